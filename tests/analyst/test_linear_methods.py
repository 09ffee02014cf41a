"""MPP, GEP, ODC and LTI against the equations of the paper, its Theorem 1, and one another."""

import naive
import numpy as np
import pytest
import scipy.linalg
from bent_views import nonlinear_views
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles
from sklearn.decomposition import PCA

from datacollab import GEP, KTI, LTI, MPP, ODC
from datacollab.errors import AgreementError, NumericalError, UnknownPartyError

SIZES = [200, 500]


def maps_of(integrator):
    return {party: g.coefficients for party, g in integrator.integration_functions_.items()}


@pytest.mark.parametrize("n_anchors", SIZES)
@pytest.mark.parametrize("seed", [0, 1])
def test_lti_equals_the_naive_solution(n_anchors, seed):
    views, _ = nonlinear_views(n_anchors, seed=seed)
    fitted = LTI(6).fit(views)
    Z, maps, objective = naive.lti(views, 6)
    assert fitted.objective_ == pytest.approx(objective, rel=1e-8)
    assert subspace_angles(fitted.target_, Z).max() < 1e-6
    for party, A in views.items():
        rotation = Z.T @ fitted.target_
        assert_allclose(fitted.integration_functions_[party](A), A @ maps[party] @ rotation, atol=1e-8)


@pytest.mark.parametrize("n_anchors", SIZES)
@pytest.mark.parametrize("basis", ["orthonormal", "singular_values", "matrix"])
def test_mpp_equals_the_naive_solution(n_anchors, basis, rng):
    views, _ = nonlinear_views(n_anchors)
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


@pytest.mark.parametrize("n_anchors", SIZES)
def test_gep_equals_the_generalised_eigenvalue_problem(n_anchors):
    views, _ = nonlinear_views(n_anchors)
    fitted = GEP(6).fit(views)
    eigenvalues, maps = naive.gep(views, 6)
    assert_allclose(fitted.eigenvalues_, eigenvalues, rtol=1e-8)
    assert fitted.objective_ == pytest.approx(naive.pairwise_discrepancy(views, maps_of(fitted)), rel=1e-8)
    assert fitted.objective_ == pytest.approx(naive.pairwise_discrepancy(views, maps), rel=1e-8)
    for party in views:
        assert_allclose(np.abs(maps_of(fitted)[party]), np.abs(maps[party]), rtol=1e-5, atol=1e-9)
    constraint = sum((views[party] @ maps_of(fitted)[party]) ** 2 for party in views).sum(axis=0)
    assert_allclose(constraint, 1, rtol=1e-10)


@pytest.mark.parametrize("n_anchors", SIZES)
@pytest.mark.parametrize("reference", [None, "b", "mean"])
def test_odc_equals_orthogonal_procrustes(n_anchors, reference):
    views, _ = nonlinear_views(n_anchors, widths=(6, 6, 6))
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


def test_maps_have_least_norm(views):
    """Among all maps with the same fitted values, on representations with a duplicated column."""
    views = {**views, "a": np.column_stack([views["a"], views["a"][:, 0]])}
    fitted = LTI(5).fit(views)
    expected = np.linalg.pinv(views["a"]) @ fitted.target_
    assert_allclose(maps_of(fitted)["a"], expected, atol=1e-9)
    assert_allclose(maps_of(fitted)["a"][0], maps_of(fitted)["a"][-1], atol=1e-10)


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
