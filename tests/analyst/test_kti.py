"""KTI against the equations of the paper and its limits; weights, kernels and matrices of each party."""

import tracemalloc

import naive
import numpy as np
import pytest
from bent_views import nonlinear_views
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles
from sklearn.gaussian_process.kernels import Matern
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, pairwise_kernels, polynomial_kernel, rbf_kernel
from sklearn.preprocessing import FunctionTransformer

import datacollab as dc
from datacollab import KTI, KTICV, LTI, GeometricGraph, TargetDissimilarityGraph, TargetSimilarityGraph
from datacollab.errors import (
    AgreementError,
    NotEnoughMemoryError,
    NumericalError,
    RepresentationError,
    ShareError,
    UnknownPartyError,
)
from datacollab.linalg import median_gamma
from datacollab.model import LinearMap

GRAPHS = {"none": None, "GL": GeometricGraph(), "TSL": TargetSimilarityGraph()}


def rbf_kernels(views, gammas=None):
    gammas = gammas or dict.fromkeys(views, GAMMA)
    return {party: pairwise_kernels(A, metric="rbf", gamma=gammas[party]) for party, A in views.items()}


def naive_problem(views, gammas, alpha, graph=None, graph_weight=1.0, y=None):
    M = naive.m_lambda(rbf_kernels(views, gammas), alpha)
    if graph is not None:
        B = graph.laplacian(views, y).toarray()
        M = M / np.trace(M) + graph_weight * B / np.trace(B)
    return M


@pytest.mark.parametrize("center", [False, True], ids=["", "center"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_equals_the_naive_solution(graph, center):
    views, latent = nonlinear_views(200)
    y = (latent[:, 0] > 0).astype(int)
    fitted = KTI(5, alpha=0.5, graph=GRAPHS[graph], graph_weight=0.7, center=center).fit(views, y)
    M = naive_problem(views, fitted.gammas_, 0.5, GRAPHS[graph], 0.7, y)
    Z = naive.kti_target(M, 5, center=center)
    assert fitted.objective_ == pytest.approx(np.trace(Z.T @ M @ Z), rel=1e-8)
    assert fitted.objective_ == pytest.approx(np.trace(fitted.target_.T @ M @ fitted.target_), rel=1e-8)
    assert subspace_angles(fitted.target_, Z).max() < 1e-6
    assert_allclose(fitted.target_.T @ fitted.target_, np.eye(5), atol=1e-10)
    for party, K in rbf_kernels(views, fitted.gammas_).items():
        expected = K @ np.linalg.inv(K + 0.5 * np.eye(200)) @ fitted.target_
        assert_allclose(fitted.integration_functions_[party](views[party]), expected, atol=1e-9)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-4])
@pytest.mark.parametrize("center", [False, True], ids=["", "center"])
@pytest.mark.parametrize("graph", ["none", "TSL"])
def test_penalty_graph_equals_the_naive_pencil(views, anchor_classes, graph, center, epsilon):
    penalty = TargetDissimilarityGraph()
    fitted = KTI(4, graph=GRAPHS[graph], penalty_graph=penalty, penalty_epsilon=epsilon, center=center)
    fitted.fit(views, anchor_classes)
    M = naive_problem(views, fitted.gammas_, 0.1, GRAPHS[graph], 1.0, anchor_classes)
    M = M / np.trace(M) if graph == "none" else M
    C = penalty.laplacian(views, anchor_classes).toarray()
    if not center:  # a connected graph's Laplacian is regular on the centred subspace
        C = C + epsilon * np.trace(C) / 200 * np.eye(200)
    Z = naive.kti_target(M, 4, C=C, center=center)
    assert fitted.objective_ == pytest.approx(np.trace(Z.T @ M @ Z), rel=1e-8)
    assert subspace_angles(fitted.target_, Z).max() < 1e-6
    assert_allclose(fitted.target_.T @ C @ fitted.target_, np.eye(4), atol=1e-9)


def test_penalty_of_a_disconnected_graph_is_regularised_when_centred(rng):
    """Two far groups of anchors: two components, so the penalty is singular on the centred subspace too."""
    A = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 100])
    y = np.arange(60) % 2
    fitted = KTI(2, center=True, gamma=1.0, penalty_graph=TargetDissimilarityGraph(4), penalty_epsilon=1e-3)
    fitted.fit({"a": A, "b": A}, y)
    C = TargetDissimilarityGraph(4).laplacian({"a": A}, y).toarray()
    C += 1e-3 * np.trace(C) / 60 * np.eye(60)
    assert_allclose(fitted.target_.T @ C @ fitted.target_, np.eye(2), atol=1e-9)
    assert_allclose(fitted.target_.sum(axis=0), 0, atol=1e-9)


def test_theorem_2_objective_is_fit_plus_penalty(views):
    fitted = KTI(5, alpha=0.3).fit(views)
    kernels = rbf_kernels(views, fitted.gammas_)
    assert fitted.objective_ == pytest.approx(naive.kti_objective(kernels, fitted.target_, 0.3), rel=1e-8)
    total = 0.0
    for party, g in fitted.integration_functions_.items():
        penalty = np.trace(g.coefficients.T @ kernels[party] @ g.coefficients)
        total += np.sum((g(views[party]) - fitted.target_) ** 2) + 0.3 * penalty
    assert fitted.objective_ == pytest.approx(total, rel=1e-8)


def test_theorem_2_no_other_target_does_better(views, rng):
    fitted = KTI(5, alpha=0.3).fit(views)
    M = naive_problem(views, fitted.gammas_, 0.3)
    for _ in range(50):
        far = np.linalg.qr(rng.normal(size=(200, 5)))[0]
        near = np.linalg.qr(fitted.target_ + 1e-2 * rng.normal(size=(200, 5)))[0]
        assert np.trace(far.T @ M @ far) > fitted.objective_
        assert np.trace(near.T @ M @ near) > fitted.objective_


@pytest.mark.parametrize("seed", range(3))
def test_linear_kernel_tends_to_lti(seed):
    views, _ = nonlinear_views(150, seed=seed)
    lti = LTI(4).fit(views)
    angles = [
        subspace_angles(KTI(4, kernel="linear", alpha=alpha).fit(views).target_, lti.target_).max()
        for alpha in (1.0, 1e-2, 1e-4, 1e-6)
    ]
    assert angles == sorted(angles, reverse=True)
    assert angles[-1] < 1e-6
    kti = KTI(4, kernel="linear", alpha=1e-6).fit(views)
    new = {party: A[:5] for party, A in views.items()}
    for party, rows in lti.transform(new).items():
        assert_allclose(kti.transform(new)[party], rows, atol=1e-5)


@pytest.mark.parametrize("kernel", ["laplacian", "poly", "cosine", "linear", Matern(nu=1.5)], ids=str)
def test_other_kernels(views, kernel):
    fitted = KTI(3, kernel=kernel, alpha=0.5, coef0=2, degree=2).fit(views)
    kernels = {}
    for party, A in views.items():
        parameters = {"gamma": fitted.gammas_.get(party), "coef0": 2, "degree": 2}
        named = isinstance(kernel, str)
        kernels[party] = pairwise_kernels(A, metric=kernel, filter_params=True, **parameters) if named else kernel(A)
    Z = naive.kti_target(naive.m_lambda(kernels, 0.5), 3)
    assert subspace_angles(fitted.target_, Z).max() < 1e-6
    assert set(fitted.gammas_) == (set(views) if kernel in ("laplacian", "poly") else set())


def test_gamma_rules(views):
    medians = {party: median_gamma(A) for party, A in views.items()}
    assert KTI().fit(views).gammas_ == pytest.approx(medians)
    assert KTI(gamma_factor=3).fit(views).gammas_ == pytest.approx({p: 3 * g for p, g in medians.items()})
    assert KTI(gamma=0.5).fit(views).gammas_ == {"a": 0.5, "b": 0.5, "c": 0.5}
    scale = {party: 1 / (A.shape[1] * A.var()) for party, A in views.items()}
    assert KTI(gamma="scale").fit(views).gammas_ == pytest.approx(scale)
    mixed = KTI(gamma={"a": 1.0, "b": "median", "c": lambda A: A.shape[1]}).fit(views).gammas_
    assert mixed == pytest.approx({"a": 1.0, "b": medians["b"], "c": 7.0})
    with pytest.raises(UnknownPartyError, match=r"no width for \['b', 'c'\]"):
        KTI(gamma={"a": 1.0}).fit(views)


def test_clear_errors(views, anchor_classes):
    with pytest.raises(ValueError, match=r"at most 200, because there are 200 anchor rows"):
        KTI(201).fit(views)
    with pytest.raises(ValueError, match=r"at most 199"):
        KTI(200, center=True).fit(views)
    with pytest.raises(ValueError, match=r"pass y=anchor_target"):
        KTI(graph=TargetSimilarityGraph()).fit(views)
    with pytest.raises(NumericalError, match=r"Party 'a'.*not positive definite.*raise alpha"):
        KTI(kernel="sigmoid", gamma=0.1, coef0=-1, alpha=1e-9).fit(views)
    with pytest.raises(ValueError, match=r"'alpha' parameter of KTI must be a float"):
        KTI(alpha=0.0).fit(views)
    half_equal = {**views, "c": np.where(np.arange(200)[:, None] < 160, 0.0, views["c"])}
    with pytest.raises(NumericalError, match=r"Party 'c': gamma='median' gives no usable kernel width"):
        KTI().fit(half_equal)
    with pytest.raises(ValueError, match=r"n_components=21.*at most 20.*rank of the kernel matrices together"):
        KTI(21, kernel="linear").fit(views)
    with pytest.raises(ValueError, match=r"kernel_params is for kernels that are functions"):
        KTI(kernel_params={"gamma": 7.0}).fit(views)
    with pytest.raises(ValueError, match=r"rank of the penalty graph"):
        KTI(200, penalty_graph=TargetDissimilarityGraph()).fit(views, anchor_classes)


@pytest.mark.slow
@pytest.mark.parametrize("center", [False, True], ids=["", "center"])
def test_memory_is_that_of_two_matrices(center):
    """However many parties there are."""
    n_anchors = 900
    views = {party: np.random.default_rng(party).normal(size=(n_anchors, 4)) for party in range(5)}
    KTI(4, gamma=0.3).fit({party: A[:50] for party, A in views.items()})  # imports and caches
    tracemalloc.start()
    KTI(4, gamma=0.3, center=center).fit(views)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.6 * n_anchors**2 * 8


WEIGHTS = {"a": 0.3, "b": 2.0, "c": 1.1}
GAMMA = 0.2
MIXED = {"a": "laplacian", "b": "linear", "c": Matern(nu=1.5)}


@pytest.fixture(params=["dense", "streamed"])
def solved(request, monkeypatch):
    """Solve exactly in either way; the streamed one begins with fewer rows than by default."""
    if request.param == "streamed":
        for module in ("_cost", "_solvers"):
            monkeypatch.setattr(f"datacollab.analyst.{module}.DENSE_UP_TO", 100)
    return request.param


def weighted(kernels, weights, alpha):
    return sum(weights[party] * naive.m_lambda({party: K}, alpha) for party, K in kernels.items())


@pytest.mark.parametrize("center", [False, True], ids=["", "center"])
@pytest.mark.parametrize("graph", [None, GeometricGraph()], ids=["", "GL"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_weights_equal_the_naive_sum(views, solved, graph, center, precision, caplog):
    fitted = KTI(4, gamma=GAMMA, alpha=0.5, graph=graph, center=center, party_weights=WEIGHTS, precision=precision)
    with caplog.at_level("INFO", logger="datacollab"):
        fitted.fit(views)
    assert "too coarse" not in caplog.text  # another factorisation would hide a mistake in the corrections
    M = weighted(rbf_kernels(views), WEIGHTS, 0.5)
    if graph is not None:
        B = graph.laplacian(views).toarray()
        M = M / np.trace(M) + B / np.trace(B)
    Z = naive.kti_target(M, 4, center=center)
    loose = precision == "float32" and solved == "streamed"
    assert fitted.objective_ == pytest.approx(np.trace(Z.T @ M @ Z), rel=1e-6 if loose else 1e-9)
    assert subspace_angles(fitted.target_, Z).max() < (1e-3 if loose else 1e-6)
    # Given the target, functions are those without weights.
    for party, K in rbf_kernels(views).items():
        expected = np.linalg.solve(K + 0.5 * np.eye(200), fitted.target_)
        assert_allclose(fitted.integration_functions_[party].coefficients, expected, atol=1e-4 if loose else 1e-9)


def test_weight_two_is_the_party_twice(views, solved):
    heavy = KTI(4, party_weights={"a": 2, "b": 1, "c": 1}).fit(views)
    twice = KTI(4).fit({**views, "again": views["a"]})
    assert_allclose(heavy.eigenvalues_, twice.eigenvalues_, rtol=1e-9)
    assert heavy.eigengap_ == pytest.approx(twice.eigengap_, rel=1e-2)
    assert subspace_angles(heavy.target_, twice.target_).max() < 1e-6
    for party, rows in views.items():
        assert_allclose(heavy.transform({party: rows})[party], twice.transform({party: rows})[party], atol=1e-6)


@given(factor=st.floats(1e-6, 1e6))
def test_a_factor_of_all_weights_scales_the_objective_alone(factor):
    views, _ = nonlinear_views(40)
    plain = KTI(3, gamma=GAMMA, party_weights=WEIGHTS).fit(views)
    scaled = KTI(3, gamma=GAMMA, party_weights={party: factor * w for party, w in WEIGHTS.items()}).fit(views)
    assert_allclose(scaled.eigenvalues_, factor * plain.eigenvalues_, rtol=1e-9)
    assert_allclose(scaled.target_, plain.target_, atol=1e-9)


@pytest.mark.slow
def test_weight_zero_leaves_the_party_out_of_the_target(views, solved):
    others = KTI(4).fit({party: A for party, A in views.items() if party != "b"})
    angles = []
    for weight in (1e-1, 1e-3, 1e-5, 0.0):
        fitted = KTI(4, party_weights={"a": 1, "b": weight, "c": 1}).fit(views)
        angles.append(subspace_angles(fitted.target_, others.target_).max())
    assert angles[0] > angles[1] > angles[2]
    assert angles[-1] < 1e-6
    K = rbf_kernel(views["b"], gamma=fitted.gammas_["b"])
    expected = np.linalg.solve(K + 0.1 * np.eye(200), fitted.target_)
    assert_allclose(fitted.integration_functions_["b"].coefficients, expected, atol=1e-8)


def test_weights_count_for_the_rank(rng):
    """A party of weight 0 tells no directions apart: four columns of a linear kernel have rank four."""
    views = {"a": rng.normal(size=(50, 4)), "b": rng.normal(size=(50, 4))}
    KTI(4, kernel="linear", party_weights={"a": 1, "b": 0}).fit(views)
    with pytest.raises(ValueError, match="n_components=5 .* at most 4, .* rank of the kernel matrices"):
        KTI(5, kernel="linear", party_weights={"a": 1, "b": 0}).fit(views)


def test_unusable_weights_are_refused(views):
    with pytest.raises(
        UnknownPartyError, match=r"party_weights: no value for \['c'\]; it names \['a', 'b'\]\. Give one"
    ):
        KTI(party_weights={"a": 1, "b": 1}).fit(views)
    for value in (-1.0, np.nan, np.inf, "2"):
        with pytest.raises(ValueError, match=r"party_weights: party 'b' has .*; expected a number of 0 or more"):
            KTI(party_weights={**WEIGHTS, "b": value}).fit(views)
    with pytest.raises(ValueError, match="party_weights: all are 0"):
        KTI(party_weights=dict.fromkeys(views, 0.0)).fit(views)


@pytest.mark.parametrize(
    ("parameter", "value"), [("party_weights", 1.0), ("kernel", "rbf"), ("gamma", 0.5), ("kernel", "precomputed")]
)
def test_a_name_that_is_missing_is_refused_and_others_shown_but_further_parties_do_no_harm(views, parameter, value):
    anchors = rbf_kernels(views) if value == "precomputed" else views
    misspelt, further = {"a": value, "b": value, "C": value}, dict.fromkeys("abcd", value)
    with pytest.raises(UnknownPartyError) as caught:
        KTI(**{parameter: misspelt}).fit(anchors)
    what = "width" if parameter == "gamma" else "value"
    assert str(caught.value) == (
        f"{parameter}: no {what} for ['c']; it names ['a', 'b', 'C'], but ['C'] is no such party. "
        "Give one for each party of ['a', 'b', 'c']."
    )
    with_all, alike = (KTI(3, **{parameter: each}).fit(anchors) for each in (further, dict.fromkeys("abc", value)))
    assert_allclose(with_all.target_, alike.target_)


def test_a_kernel_for_each_party_equals_the_naive_solution(views, solved):
    fitted = KTI(4, kernel=MIXED, gamma={"a": 0.3}, alpha=0.5).fit(views)
    kernels = {
        "a": laplacian_kernel(views["a"], gamma=0.3),
        "b": linear_kernel(views["b"]),
        "c": Matern(nu=1.5)(views["c"]),
    }
    M = naive.m_lambda(kernels, 0.5)
    Z = naive.kti_target(M, 4)
    assert fitted.objective_ == pytest.approx(np.trace(Z.T @ M @ Z), rel=1e-9)
    assert subspace_angles(fitted.target_, Z).max() < 1e-6
    assert fitted.gammas_ == {"a": 0.3}
    for party, K in kernels.items():
        expected = K @ np.linalg.solve(K + 0.5 * np.eye(200), fitted.target_)
        assert_allclose(fitted.transform({party: views[party]})[party], expected, atol=1e-8)


def test_unusable_kernels_of_parties_are_refused(views):
    with pytest.raises(UnknownPartyError, match=r"kernel: no value for \['b', 'c'\]"):
        KTI(kernel={"a": "rbf"}).fit(views)
    with pytest.raises(ValueError, match=r"kernel: party 'b' has 'cubic'; expected a function, or one of .*rbf"):
        KTI(kernel={**MIXED, "b": "cubic"}).fit(views)
    with pytest.raises(ValueError, match="kernel_params is for kernels that are functions"):
        KTI(kernel=dict.fromkeys(views, "rbf"), kernel_params={"gamma": 2.0}).fit(views)


@pytest.mark.parametrize("solver", ["exact", "nystroem"])
def test_partly_labelled_anchors_and_several_targets_reach_the_graph(views, anchor_classes, solver):
    gaps = [np.where(np.arange(200) % 3 == 0, None, anchor_classes), views["a"][:, 0]]
    graph = TargetSimilarityGraph(5)
    fitted = KTI(4, gamma=GAMMA, graph=graph, solver=solver, n_landmarks=200).fit(views, gaps)
    B = graph.laplacian(views, gaps).toarray()
    assert not B[::3].any()
    M = naive.m_lambda(rbf_kernels(views), 0.1)
    Z = naive.kti_target(M / np.trace(M) + B / np.trace(B), 4)
    assert subspace_angles(fitted.target_, Z).max() < (1e-6 if solver == "exact" else 0.1)


def test_what_the_graphs_alone_take_is_refused_elsewhere(views, anchor_classes):
    labelled = np.arange(200) % 3 > 0
    gaps = np.where(labelled, anchor_classes, None)
    options = {"graph": TargetSimilarityGraph(5)}
    search = KTICV(3, alphas=(0.1,), kernels=("linear",), **options)
    way_on = r"Fit KTICV to one target and the rows that have it, then KTI\(\*\*best_params_, graph=...\) to all rows"
    with pytest.raises(AgreementError, match=f"KTICV scores by one target .*missing values.*{way_on}"):
        search.fit(views, gaps)
    with pytest.raises(AgreementError, match=f"KTICV scores by one target .* y has 2 targets.*{way_on}"):
        search.fit(views, [anchor_classes, anchor_classes])
    search.fit({party: A[labelled] for party, A in views.items()}, anchor_classes[labelled])
    assert KTI(**search.best_params_, **options).fit(views, gaps).target_.shape == (200, 3)
    share = {"party": "a", "representation": views["a"], "anchor_representation": views["a"]}
    with pytest.raises(ShareError, match=r"anchor_target contains NaN.*KTI.fit takes partly labelled anchors as y"):
        dc.Share(**share, target=anchor_classes, anchor_target=gaps)
    with pytest.raises(ShareError, match=r"target contains NaN, None or infinity; drop such rows"):
        dc.Share(**share, target=gaps)


PRECOMPUTED = {
    "rbf": (lambda X, A: rbf_kernel(X, A, gamma=GAMMA), {"gamma": GAMMA}),
    "linear": (linear_kernel, {}),
    "poly": (lambda X, A: polynomial_kernel(X, A, degree=2, gamma=GAMMA, coef0=1), {"degree": 2, "gamma": GAMMA}),
}
SETTINGS = {
    "plain": {},
    "center": {"center": True},
    "TSL": {"graph": TargetSimilarityGraph(5), "center": True},
    "float32": {"precision": "float32", "alpha": 1.0},
    "weights": {"party_weights": WEIGHTS},
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_precomputed_is_the_same_kernel_by_name(views, anchor_classes, solved, kernel, setting):
    """Distances between rows order as those in the kernel's space do, for these two, so that graphs agree, too."""
    function, parameters = PRECOMPUTED[kernel]
    named = KTI(4, kernel=kernel, **parameters, **SETTINGS[setting]).fit(views, anchor_classes)
    given = {party: function(A, A) for party, A in views.items()}
    before = {party: K.copy() for party, K in given.items()}
    own = KTI(4, kernel="precomputed", **SETTINGS[setting]).fit(given, anchor_classes)
    assert own.objective_ == pytest.approx(named.objective_, rel=1e-6)
    assert subspace_angles(own.target_, named.target_).max() < (1e-3 if setting == "float32" else 1e-6)
    assert own.gammas_ == {}
    new = {party: A[:7] + 0.1 for party, A in views.items()}
    mapped = own.transform({party: function(rows, views[party]) for party, rows in new.items()})
    for party, rows in named.transform(new).items():
        assert_allclose(mapped[party], rows, atol=1e-3 if setting == "float32" else 1e-6)
    for party, K in given.items():
        assert_allclose(K, before[party], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precomputed_beside_a_named_kernel_and_a_penalty_graph(views, anchor_classes, dtype):
    function, parameters = PRECOMPUTED["poly"]
    options = {"penalty_graph": TargetDissimilarityGraph(5), "coef0": 1, **parameters}
    K = function(views["b"], views["b"])
    own = KTI(4, kernel={"a": "rbf", "b": "precomputed", "c": "rbf"}, **options)
    own.fit({**views, "b": K.astype(dtype)}, anchor_classes)
    # Neighbours by the kernel's own distances, found naively.
    eigenvalues, V = np.linalg.eigh(K)
    points = {**views, "b": V * np.sqrt(np.clip(eigenvalues, 0, None))}
    kernels = {**rbf_kernels(views), "b": K}
    C = options["penalty_graph"].laplacian(points, anchor_classes).toarray()
    C += 1e-6 * np.trace(C) / 200 * np.eye(200)
    M = naive.m_lambda(kernels, 0.1)
    Z = naive.kti_target(M / np.trace(M), 4, C=C)
    assert subspace_angles(own.target_, Z).max() < (1e-3 if dtype == np.float32 else 1e-5)
    assert isinstance(own.integration_functions_["b"], LinearMap)
    assert set(own.gammas_) == {"a", "c"}


def test_unusable_precomputed_kernels_are_refused(views):
    K = rbf_kernels(views)
    integrator = KTI(3, kernel="precomputed")
    with pytest.raises(RepresentationError, match=r"Party 'b': .*square matrix .*; got shape \(200, 5\)"):
        integrator.fit({**K, "b": views["b"]})
    uneven = K["b"].copy()
    uneven[3, 5] += 1e-3
    with pytest.raises(RepresentationError, match=r"Party 'b': .*is not symmetric: .* by up to 1.0e-03 of the largest"):
        integrator.fit({**K, "b": uneven})
    with pytest.raises(RepresentationError, match=r"Party 'b': .*must be an array of real numbers"):
        integrator.fit({**K, "b": [row[: i + 1] for i, row in enumerate(K["b"].tolist())]})
    with pytest.raises(NumericalError, match=r"Party 'b'.*not positive definite"):
        integrator.fit({**K, "b": -K["b"]})
    with pytest.raises(NumericalError, match=r"Party 'b'.*not positive definite"):
        KTI(3, kernel="precomputed", graph=GeometricGraph()).fit({**K, "b": -K["b"]})
    message = (
        r"Party 'b': .*kernel values between these rows and the 200 anchor rows, shape \(n_rows, 200\); got shape "
    )
    for rows in (views["b"], K["b"][:3, :199], K["b"][0]):
        with pytest.raises(RepresentationError, match=message):
            integrator.fit(K).transform({"b": rows})
    with pytest.raises(ValueError, match="n_landmarks=50 is of no use: kernel='precomputed' is solved exactly"):
        KTI(3, kernel={"a": "rbf", "b": "precomputed", "c": "rbf"}, n_landmarks=50).fit({**views, "b": K["b"]})
    with pytest.raises(ValueError, match=r"KTICV: kernels has 'precomputed'.*fit KTI\(kernel='precomputed'\)"):
        KTICV(3, kernels=("rbf", {"a": "precomputed", "b": "rbf", "c": "rbf"})).fit(K)


@pytest.mark.parametrize("given", ["array", "dict", "some", "lists"])
def test_matrices_as_the_parameter_are_refused_without_an_entry(views, given):
    K = {party: 0.123456789 * each for party, each in rbf_kernels(views).items()}
    kernel = {"array": K["a"], "dict": K, "some": {"a": K["a"], "b": "rbf", "c": "rbf"}, "lists": K["a"].tolist()}[
        given
    ]
    for fit in (KTI(3, kernel=kernel).fit, KTICV(3, kernels=[kernel]).fit):
        with pytest.raises(ValueError, match=r"kernel: an array was given; set kernel='precomputed'.* fit") as caught:
            fit(views)
        assert "0.1234" not in str(caught.value)


@pytest.mark.parametrize("given", [{"party_weights": WEIGHTS}, {"kernel": "precomputed"}], ids=["weights", "kernel"])
def test_landmarks_are_refused_and_not_chosen(views, monkeypatch, given):
    K = rbf_kernels(views) if "kernel" in given else views
    name = next(iter(given))
    with pytest.raises(ValueError, match=rf"solver='nystroem' cannot do {name}.* Set solver='exact' or 'auto'"):
        KTI(3, solver="nystroem", **given).fit(K)
    monkeypatch.setattr("datacollab.analyst._cost.EXACT_OPERATIONS", 1.0)
    monkeypatch.setattr("datacollab.analyst._cost.DENSE_UP_TO", 100)
    assert KTI(3, **given).fit(K).solver_ == "exact"
    with pytest.raises(NotEnoughMemoryError) as error:
        KTI(3, memory_limit=1e6, **given).fit(K)
    assert "nystroem" not in str(error.value)
    assert "raise memory_limit" in str(error.value)


def test_precomputed_kernels_pass_through_shares_and_model_files(tmp_path, rng):
    """Rows that are kernels with the anchor are an obfuscation like others; the model's map is linear in them."""
    X, anchor = rng.normal(size=(120, 4)), rng.normal(size=(50, 4))
    y = (X[:, 0] > 0).astype(int)
    parties = {
        name: dc.Party(name, FunctionTransformer(lambda rows, gamma=gamma: rbf_kernel(rows, anchor, gamma=gamma)))
        for name, gamma in (("a", 0.1), ("b", 0.3))
    }
    shares = []
    for place, (name, party) in enumerate(parties.items()):
        party.fit(X[place::2], y[place::2]).share(anchor).save(tmp_path / name)
        shares.append(dc.Share.load(tmp_path / name))
    collaboration = dc.Analyst(KTI(4, kernel="precomputed"), LogisticRegression()).fit(shares)
    for name, party in parties.items():
        model = collaboration.party_model(name)
        model.save(tmp_path / f"model-{name}")
        loaded = dc.PartyModel.load(tmp_path / f"model-{name}")
        assert_allclose(party.predict_proba(X[:5], loaded), party.predict_proba(X[:5], model), rtol=0, atol=0)
        assert np.mean(party.predict(X, loaded) == y) > 0.8


def test_the_objective_is_the_weighted_sum_over_parties(views, solved):
    fitted = KTI(4, gamma=GAMMA, alpha=0.5, party_weights=WEIGHTS).fit(views)
    total = 0.0
    for party, K in rbf_kernels(views).items():
        g = fitted.integration_functions_[party]
        penalty = 0.5 * np.trace(g.coefficients.T @ K @ g.coefficients)
        total += WEIGHTS[party] * (np.sum((g(views[party]) - fitted.target_) ** 2) + penalty)
    assert fitted.objective_ == pytest.approx(total, rel=1e-8)


def test_functions_are_optimal_for_their_target(views, rng):
    """A perturbed function is worse: eq. kernel-fixed-Z-problem is convex with its minimum there."""
    fitted = KTI(3, alpha=0.3).fit(views)
    g = fitted.integration_functions_["b"]
    K = rbf_kernels(views, fitted.gammas_)["b"]

    def value(Gamma):
        return np.sum((K @ Gamma - fitted.target_) ** 2) + 0.3 * np.trace(Gamma.T @ K @ Gamma)

    for _ in range(20):
        assert value(g.coefficients + 0.01 * rng.normal(size=g.coefficients.shape)) > value(g.coefficients)
