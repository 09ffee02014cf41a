"""KTI against the equations of the paper, its Theorem 2, and its limits."""

import tracemalloc

import naive
import numpy as np
import pytest
from bent_views import nonlinear_views
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import pairwise_kernels

from datacollab import KTI, LTI, GeometricGraph, TargetDissimilarityGraph, TargetSimilarityGraph
from datacollab.errors import NumericalError, UnknownPartyError
from datacollab.linalg import median_gamma

GRAPHS = {"none": None, "GL": GeometricGraph(), "TSL": TargetSimilarityGraph()}


def rbf_kernels(views, gammas):
    return {party: pairwise_kernels(A, metric="rbf", gamma=gammas[party]) for party, A in views.items()}


def naive_problem(views, gammas, alpha, graph=None, graph_weight=1.0, y=None):
    M = naive.m_lambda(rbf_kernels(views, gammas), alpha)
    if graph is not None:
        B = graph.laplacian(views, y).toarray()
        M = M / np.trace(M) + graph_weight * B / np.trace(B)
    return M


@pytest.mark.parametrize(
    ("n_anchors", "graph", "center"),
    [*((200, graph, center) for graph in GRAPHS for center in (False, True)), (500, "TSL", True)],
)
def test_equals_the_naive_solution(n_anchors, graph, center):
    views, latent = nonlinear_views(n_anchors)
    y = (latent[:, 0] > 0).astype(int)
    fitted = KTI(5, alpha=0.5, graph=GRAPHS[graph], graph_weight=0.7, center=center).fit(views, y)
    M = naive_problem(views, fitted.gammas_, 0.5, GRAPHS[graph], 0.7, y)
    Z = naive.kti_target(M, 5, center=center)
    assert fitted.objective_ == pytest.approx(np.trace(Z.T @ M @ Z), rel=1e-8)
    assert fitted.objective_ == pytest.approx(np.trace(fitted.target_.T @ M @ fitted.target_), rel=1e-8)
    assert subspace_angles(fitted.target_, Z).max() < 1e-6
    assert_allclose(fitted.target_.T @ fitted.target_, np.eye(5), atol=1e-10)
    for party, K in rbf_kernels(views, fitted.gammas_).items():
        expected = K @ np.linalg.inv(K + 0.5 * np.eye(n_anchors)) @ fitted.target_
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


def test_functions_are_optimal_for_their_target(views, rng):
    """A perturbed function is worse: eq. kernel-fixed-Z-problem is convex with its minimum there."""
    fitted = KTI(3, alpha=0.3).fit(views)
    g = fitted.integration_functions_["b"]
    K = rbf_kernels(views, fitted.gammas_)["b"]

    def value(Gamma):
        return np.sum((K @ Gamma - fitted.target_) ** 2) + 0.3 * np.trace(Gamma.T @ K @ Gamma)

    for _ in range(20):
        assert value(g.coefficients + 0.01 * rng.normal(size=g.coefficients.shape)) > value(g.coefficients)


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
