"""MPP, GEP, ODC and LTI against the equations of the paper, its Theorem 1, and one another."""

import naive
import numpy as np
import pytest
import scipy.linalg
from bent_views import nonlinear_views
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression

import datacollab as dc
from datacollab import GEP, KTI, LTI, MPP, ODC
from datacollab.errors import AgreementError, NumericalError, UnknownPartyError
from datacollab.steps.analyst import make_integrator
from datacollab.testing import check_integrator


def maps_of(integrator):
    return {party: g.coefficients for party, g in integrator.integration_functions_.items()}


@pytest.mark.parametrize("seed", [0, 1])
def test_lti_equals_the_naive_solution(seed):
    views, _ = nonlinear_views(200, seed=seed)
    fitted = LTI(6).fit(views)
    Z, maps, objective = naive.lti(views, 6)
    assert fitted.objective_ == pytest.approx(objective, rel=1e-8)
    assert subspace_angles(fitted.target_, Z).max() < 1e-6
    for party, A in views.items():
        rotation = Z.T @ fitted.target_
        assert_allclose(fitted.integration_functions_[party](A), A @ maps[party] @ rotation, atol=1e-8)


@pytest.mark.parametrize("basis", ["orthonormal", "singular_values", "matrix"])
def test_mpp_equals_the_naive_solution(basis, rng):
    views, _ = nonlinear_views(200)
    W = np.hstack(list(views.values()))
    R = {
        "orthonormal": np.eye(5),
        "singular_values": np.diag(np.linalg.svd(W, compute_uv=False)[:5]),
        "matrix": rng.normal(size=(5, 5)),
    }[basis]
    fitted = MPP(5, basis=R if basis == "matrix" else basis).fit(views)
    U = naive.mpp(views, np.eye(5))[0]
    assert subspace_angles(fitted.target_, U).max() < 1e-6
    signs = np.diag(np.sign(np.sum(U * (fitted.target_ @ np.linalg.inv(R)), axis=0)))
    _, maps, objective = naive.mpp(views, signs @ R)
    assert fitted.objective_ == pytest.approx(objective, rel=1e-8)
    for party in views:
        assert_allclose(maps_of(fitted)[party], maps[party], rtol=1e-6, atol=1e-8 * np.abs(maps[party]).max())


def test_gep_equals_the_generalised_eigenvalue_problem():
    views, _ = nonlinear_views(200)
    fitted = GEP(6).fit(views)
    eigenvalues, maps = naive.gep(views, 6)
    assert_allclose(fitted.eigenvalues_, eigenvalues, rtol=1e-8)
    assert fitted.objective_ == pytest.approx(naive.pairwise_discrepancy(views, maps_of(fitted)), rel=1e-8)
    assert fitted.objective_ == pytest.approx(naive.pairwise_discrepancy(views, maps), rel=1e-8)
    for party in views:
        assert_allclose(np.abs(maps_of(fitted)[party]), np.abs(maps[party]), rtol=1e-5, atol=1e-9)
    constraint = sum((views[party] @ maps_of(fitted)[party]) ** 2 for party in views).sum(axis=0)
    assert_allclose(constraint, 1, rtol=1e-10)


@pytest.mark.parametrize("reference", [None, "b", "mean"])
def test_odc_equals_orthogonal_procrustes(reference):
    views, _ = nonlinear_views(200, widths=(6, 6, 6))
    fitted = ODC(reference=reference).fit(views)
    target = {None: views["a"], "b": views["b"], "mean": sum(views.values()) / 3}[reference]
    maps = {party: scipy.linalg.orthogonal_procrustes(A, target)[0] for party, A in views.items()}
    assert_allclose(fitted.target_, target, atol=1e-14)
    assert fitted.objective_ == pytest.approx(naive.residual(views, maps, target), rel=1e-8)
    for party in views:
        assert_allclose(maps_of(fitted)[party], maps[party], atol=1e-10)


def test_theorem_1_objective_is_the_sum_of_residuals(views):
    fitted = LTI(5).fit(views)
    assert fitted.objective_ == pytest.approx(naive.residual(views, maps_of(fitted), fitted.target_), rel=1e-10)
    M = sum(A @ np.linalg.pinv(A) for A in views.values())
    reduced = len(views) * 5 - np.trace(fitted.target_.T @ M @ fitted.target_)
    assert fitted.objective_ == pytest.approx(reduced, rel=1e-8)
    assert_allclose(fitted.target_.T @ fitted.target_, np.eye(5), atol=1e-12)
    assert fitted.objective_ == pytest.approx(np.sum(3 - fitted.eigenvalues_), rel=1e-10)


def test_theorem_1_no_other_target_does_better(views, rng):
    fitted = LTI(5).fit(views)

    def value(Z):
        return sum(np.sum((A @ np.linalg.lstsq(A, Z, rcond=None)[0] - Z) ** 2) for A in views.values())

    for _ in range(50):
        far = np.linalg.qr(rng.normal(size=(200, 5)))[0]
        near = np.linalg.qr(fitted.target_ + 1e-2 * rng.normal(size=(200, 5)))[0]
        assert value(far) > fitted.objective_
        assert value(near) > fitted.objective_
    rotation = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    assert value(fitted.target_ @ rotation) == pytest.approx(fitted.objective_, rel=1e-10)


@pytest.mark.parametrize("method", [MPP(4), GEP(4), LTI(4), KTI(4, alpha=1e-3)], ids=lambda m: type(m).__name__)
def test_views_that_agree_are_aligned_exactly(method, rng):
    """Invertible linear views of one table: every party's anchor lands in the same place."""
    A = rng.normal(size=(100, 4))
    views = {"a": A, "b": A @ rng.normal(size=(4, 4)), "c": A @ rng.normal(size=(4, 6))}
    if isinstance(method, KTI):
        method = method.set_params(kernel="linear", alpha=1e-10)
    aligned = method.fit(views).transform(views)
    if isinstance(method, GEP):
        assert method.objective_ == pytest.approx(0, abs=1e-10)
    assert_allclose(aligned["a"], aligned["b"], atol=1e-6)
    assert_allclose(aligned["a"], aligned["c"], atol=1e-6)


def rotated(rng, A, n, noise=0.0):
    turns = [np.linalg.qr(rng.normal(size=(A.shape[1],) * 2))[0] for _ in range(n)]
    return {k: A @ turn + noise * rng.normal(size=A.shape) for k, turn in enumerate(turns)}


def test_a_consensus_of_rotations_is_exact(rng):
    A = rng.normal(size=(40, 5))
    fitted = ODC(reference="consensus").fit(rotated(rng, A, 4))
    assert fitted.objective_ < 1e-18
    assert_allclose(np.linalg.norm(fitted.target_), np.linalg.norm(A))
    assert_allclose(fitted.target_.T @ fitted.target_, np.diag(np.diag(fitted.target_.T @ fitted.target_)), atol=1e-8)


def test_a_consensus_is_nearer_to_all_than_any_party_or_their_mean(rng):
    views = rotated(rng, rng.normal(size=(40, 5)), 4, noise=0.5)
    consensus = ODC(reference="consensus").fit(views).objective_
    assert all(consensus < ODC(reference=other).fit(views).objective_ for other in [*views, "mean"])
    fitted = ODC(reference="consensus").fit(views)
    mean = np.mean(list(fitted.transform(views).values()), axis=0)  # of all once turned onto it
    assert_allclose(mean, fitted.target_, atol=1e-3 * abs(mean).max())
    turned = {k: A @ np.linalg.qr(rng.normal(size=(5, 5)))[0] for k, A in views.items()}
    again = ODC(reference="consensus").fit(turned)
    assert_allclose(again.objective_, consensus, rtol=1e-6)


def test_odc_refuses_unequal_dimensions_and_an_unknown_reference(views, rng):
    with pytest.raises(AgreementError, match=r"dimensions must agree; got \{'a': 8, 'b': 5, 'c': 7\}"):
        ODC().fit(views)
    A = rng.normal(size=(20, 2))
    with pytest.raises(UnknownPartyError, match="'nobody' is none of the parties"):
        ODC(reference="nobody").fit({"a": A, "b": A})


def test_mpp_refuses_a_singular_or_misshapen_basis(views):
    with pytest.raises(NumericalError, match="invertible"):
        MPP(2, basis=np.ones((2, 2))).fit(views)
    with pytest.raises(ValueError, match="n_components=2"):
        MPP(2, basis=np.eye(3)).fit(views)


@pytest.mark.parametrize("method", [LTI, GEP, MPP, KTI])
def test_a_default_number_of_components_is_lowered_and_a_given_one_is_refused(method, rng):
    """Rows of three kinds leave three directions, whatever the method."""
    rows = np.eye(3)[rng.integers(3, size=50)]
    views = {party: rows @ rng.normal(size=(3, 3)) for party in ("a", "b")}
    assert method().fit(views).transform(views)["a"].shape == (50, 3)
    with pytest.raises(ValueError, match="n_components=10 is more than the data allow: at most 3"):
        method(10).fit(views)


COLUMNS = {"a": 4, "b": 5, "c": 3}


def representations(seed, n_rows=40, scale=3.0):
    """Noisy linear views of one table, each with a shift of its own."""
    generator = np.random.default_rng(seed)
    latent = generator.normal(size=(n_rows, 4))
    return {
        party: latent @ generator.normal(size=(4, d))
        + 0.1 * generator.normal(size=(n_rows, d))
        + scale * generator.normal(size=d)
        for party, d in COLUMNS.items()
    }


def naive_affine(anchors, n_components):
    """Append a column of ones to every representation, and take the constant out of the target."""
    n = len(next(iter(anchors.values())))
    ones, J = np.ones((n, 1)), np.full((n, n), 1 / n)
    M = sum(W @ np.linalg.pinv(W) for W in (np.hstack([A, ones]) for A in anchors.values()))
    values, vectors = np.linalg.eigh((np.eye(n) - J) @ M @ (np.eye(n) - J))
    return values[::-1][:n_components], vectors[:, ::-1][:, :n_components]


@given(seed=st.integers(0, 1000), n_components=st.integers(1, 4))
def test_is_the_formula(seed, n_components):
    anchors = representations(seed)
    fitted = dc.LTI(n_components, fit_intercept=True).fit(anchors)
    values, Z = naive_affine(anchors, n_components)
    assert_allclose(fitted.eigenvalues_, values, rtol=1e-8)
    assert_allclose(fitted.target_ @ fitted.target_.T, Z @ Z.T, atol=1e-6)
    assert_allclose(fitted.target_.sum(axis=0), 0, atol=1e-9)
    for party, A in anchors.items():
        W = np.hstack([A, np.ones((len(A), 1))])
        # The best affine map onto this target, by least squares.
        assert_allclose(fitted.transform({party: A})[party], W @ np.linalg.pinv(W) @ fitted.target_, atol=1e-8)
    residuals = sum(np.sum((rows - fitted.target_) ** 2) for rows in fitted.transform(anchors).values())
    assert_allclose(fitted.objective_, residuals, rtol=1e-6)


def test_affine_alignment_keeps_the_contract():
    check_integrator(LTI(4, fit_intercept=True))


@pytest.mark.parametrize("seed", range(3))
def test_shifts_of_representations_change_nothing(seed):
    anchors = representations(seed)
    generator = np.random.default_rng(seed + 100)
    shifts = {party: 10 * generator.normal(size=d) for party, d in COLUMNS.items()}
    moved = {party: A + shifts[party] for party, A in anchors.items()}
    before = dc.LTI(3, fit_intercept=True).fit(anchors)
    after = dc.LTI(3, fit_intercept=True).fit(moved)
    for party in anchors:
        rows = np.random.default_rng(seed).normal(size=(7, COLUMNS[party]))
        assert_allclose(
            after.transform({party: rows + shifts[party]})[party], before.transform({party: rows})[party], atol=1e-8
        )
    plain, plain_after = dc.LTI(3).fit(anchors), dc.LTI(3).fit(moved)
    assert abs(plain.objective_ - plain_after.objective_) > 1e-4  # without intercepts they do


@pytest.mark.parametrize("constant", [0.1, 1000.1, 1e6 + 0.1, -1e8 - 0.1])
def test_a_constant_column_is_no_direction(constant):
    """What rounding leaves of it after centring is not scaled up."""
    latent = np.random.default_rng(0).normal(size=(60, 3))
    anchors = {"a": np.column_stack([latent, np.full(60, constant)]), "b": latent}
    with pytest.raises(ValueError, match="at most 3"):
        dc.LTI(4, fit_intercept=True).fit(anchors)
    g = dc.LTI(3, fit_intercept=True).fit(anchors).integration_functions_["a"]
    assert_allclose(g.coefficients[3], 0, atol=1e-12)
    assert_allclose(g(anchors["a"] + [0, 0, 0, 1.0]), g(anchors["a"]), atol=1e-9)


def made_up_table(n_rows=240, n_columns=6):
    generator = np.random.default_rng(5)
    X = generator.normal(size=(n_rows, n_columns)) @ generator.normal(size=(n_columns, n_columns)) + 4
    y = X @ generator.normal(size=n_columns) + generator.normal(size=n_rows)
    return X, y, np.arange(n_rows) % 4, X[:80] + generator.normal(size=(80, n_columns))


def test_full_rank_loses_nothing_to_rows_in_one_place():
    """Every party centres and turns its columns as its own rows have it; a linear model on the pool is that of all."""
    X, y, groups, anchor = made_up_table()
    central = dc.Central(LinearRegression()).fit(X, y, groups=groups)
    pca = dc.obfuscator("pca", 6)

    def predicted(integrator):
        model = dc.DataCollaborationRegressor(pca, integrator, LinearRegression())
        return model.fit(X, y, groups=groups, anchor=anchor).predict(X, groups=groups)

    assert_allclose(predicted(dc.LTI(6, fit_intercept=True)), central.predict(X), rtol=1e-8)
    assert np.abs(predicted(dc.LTI(6)) - central.predict(X)).max() > 1e-3


def test_the_command_takes_it_by_name():
    shares = [
        dc.Share(party=party, representation=A, anchor_representation=A, target=np.arange(40) % 2)
        for party, A in representations(1).items()
    ]
    method = make_integrator("lti-affine", shares)
    assert (method.fit_intercept, method.n_components) == (True, 5)
    model = dc.Analyst(method.set_params(n_components=3), LogisticRegression()).fit(shares)
    assert model.party_model("a").integration_function.intercept.shape == (3,)


def test_maps_have_least_norm(views):
    """Among all maps with the same fitted values, on representations with a duplicated column."""
    views = {**views, "a": np.column_stack([views["a"], views["a"][:, 0]])}
    fitted = LTI(5).fit(views)
    expected = np.linalg.pinv(views["a"]) @ fitted.target_
    assert_allclose(maps_of(fitted)["a"], expected, atol=1e-9)
    assert_allclose(maps_of(fitted)["a"][0], maps_of(fitted)["a"][-1], atol=1e-10)


def test_principal_components_beyond_the_rank_do_not_count():
    """PCA with more components than the data's rank gives columns of rounding noise."""
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(5, 12))
    anchor = rng.normal(size=(80, 5)) @ mixing
    views = {party: PCA(10).fit(rng.normal(size=(30, 5)) @ mixing).transform(anchor) for party in "ab"}
    for method in (LTI, GEP):
        maps = maps_of(method(5).fit(views))
        assert max(np.abs(G).max() for G in maps.values()) < 10
        with pytest.raises(ValueError, match="n_components=9"):
            method(9).fit(views)


@pytest.mark.parametrize("method", [MPP, GEP, LTI])
def test_more_components_than_the_rank_are_refused(method, rng):
    A = rng.normal(size=(50, 3))
    with pytest.raises(ValueError, match=r"n_components=4 is more than the data allow: at most 3"):
        method(4).fit({"a": A, "b": A @ rng.normal(size=(3, 3))})
