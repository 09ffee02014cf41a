"""Landmarks, ridge regression restricted to them, and how KTI chooses and bounds them."""

import subprocess
import sys
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from bent_views import nonlinear_views
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import normalize

from datacollab import KTI, GeometricGraph
from datacollab.analyst._cost import _TARGET_ROWS, FitSize
from datacollab.analyst._nystroem import (
    LandmarkFeatures,
    draw_pivots,
    feature_gram,
    fit_smoother,
    landmark_root,
    smoother_trace,
)
from datacollab.errors import ApproximationWarning, NotEnoughMemoryError
from datacollab.linalg import Kernel


def wide_views(n_anchors, *, n_latent=12, n_parties=4, seed=0):
    """Features of a latent of many dimensions, which few landmarks do not describe."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n_anchors, n_latent))
    return {k: np.tanh(latent @ rng.normal(size=(n_latent, 16)) / np.sqrt(n_latent)) for k in range(n_parties)}


def smoothers(fitted, views):
    """P of each party's restricted ridge regression, from the normal equations."""
    for party, g in fitted.integration_functions_.items():
        C = rbf_kernel(views[party], g.anchor_representation, gamma=fitted.gammas_[party])
        G = rbf_kernel(g.anchor_representation, gamma=fitted.gammas_[party])
        yield party, C @ np.linalg.solve(C.T @ C + fitted.alpha * G, C.T)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("n_rows", [300, 250])
def test_functions_are_ridge_regressions_on_the_target(monkeypatch, n_rows, center):
    """By the normal equations, wherever the target was found; the objective is what they attain."""
    monkeypatch.setattr("datacollab.analyst._cost._TARGET_ROWS", n_rows)
    monkeypatch.setattr("datacollab.analyst._cost._FEWEST_CANDIDATES", n_rows)
    monkeypatch.setattr("datacollab.analyst._cost._CANDIDATES", 4)
    views, _ = nonlinear_views(300)
    fitted = KTI(4, alpha=0.5, solver="nystroem", n_landmarks=60, center=center).fit(views)
    Z, total = fitted.target_, 0.0
    assert_allclose(Z.T @ Z, np.eye(4), atol=1e-9)
    for party, P in smoothers(fitted, views):
        assert len(fitted.integration_functions_[party].anchor_representation) == 60
        assert_allclose(fitted.integration_functions_[party](views[party]), P @ Z, atol=2e-5)
        total = total + Z.T @ (Z - P @ Z)
    # In the columns' own axes, ordered by what is missed of them.
    assert_allclose(total, np.diag(fitted.eigenvalues_), atol=2e-5)
    assert fitted.eigenvalues_.tolist() == sorted(fitted.eigenvalues_)
    assert (fitted.angle_estimate_ is None) == (n_rows < 300)
    assert fitted.objective_ == pytest.approx(np.trace(total), rel=1e-4)
    assert KTI(4, alpha=0.5, center=center).fit(views).objective_ < fitted.objective_


def test_with_a_graph_the_objective_is_that_of_all_landmarks():
    views, _ = nonlinear_views(300)
    fitted = KTI(3, alpha=0.5, solver="nystroem", n_landmarks=60, graph=GeometricGraph()).fit(views)
    M = sum(np.eye(300) - P for _, P in smoothers(fitted, views))
    B = GeometricGraph().laplacian(views).toarray()
    N = M / np.trace(M) + B / np.trace(B)
    assert fitted.objective_ == pytest.approx(np.trace(fitted.target_.T @ N @ fitted.target_), rel=1e-4)
    assert np.linalg.eigvalsh(N)[:3].sum() <= fitted.objective_ * (1 + 1e-6)


@pytest.mark.nightly
@settings(max_examples=8)
@given(seed=st.integers(0, 1000), n_latent=st.integers(2, 12), alpha=st.sampled_from([1e-4, 0.1, 2.0]))
def test_more_landmarks_are_never_worse(seed, n_latent, alpha):
    """Of functions that are real, none is below the exact minimum either."""
    views = wide_views(400, n_latent=n_latent, n_parties=3, seed=seed)
    found = [KTI(3, alpha=alpha, solver="nystroem", n_landmarks=r).fit(views).objective_ for r in (25, 100, 400)]
    exact = KTI(3, alpha=alpha).fit(views).objective_
    slack = 1e-3 * exact + 1e-5
    assert found[0] + slack >= found[1]
    assert found[1] + slack >= found[2]
    assert found[2] + slack >= exact


@pytest.mark.nightly
def test_the_default_stops_where_a_doubling_brings_little():
    """A latent of few dimensions is done soon; one of many is not, and each is within its tolerance of the exact."""
    numbers = {}
    for n_latent in (3, 12):
        views = wide_views(1300, n_latent=n_latent)
        fitted = KTI(10, solver="nystroem").fit(views)
        exact = KTI(10, solver="exact").fit(views).objective_
        assert fitted.approximation_error_ <= fitted.tol
        assert 0 <= (fitted.objective_ - exact) / (4 * 10) <= 2 * fitted.tol
        numbers[n_latent] = fitted.n_landmarks_
    assert numbers[3] < numbers[12]


@pytest.mark.parametrize(("limited", "cure"), [(False, "Set n_landmarks=512 "), (True, "Raise memory_limit,")])
@pytest.mark.slow
def test_the_warning_says_how_much_is_missed_and_what_to_do(monkeypatch, limited, cure):
    views = wide_views(1300)
    if limited:
        limit = KTI(5, solver="nystroem", n_landmarks=400).estimate_cost(1300, 4).memory
    else:
        limit = None
        monkeypatch.setattr("datacollab.analyst._cost.MOST_LANDMARKS", 256)
        monkeypatch.setattr("datacollab.analyst._solvers.MOST_LANDMARKS", 256)
    integrator = KTI(5, solver="nystroem", tol=1e-4, memory_limit=limit)
    with pytest.warns(ApproximationWarning, match=rf"tol=0.0001 is not reached.*{cure}.* raise tol") as caught:
        fitted = integrator.fit(views)
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    assert ("memory permits" in message) == limited
    missed = float(message.split("miss a share of ")[1].split()[0])
    assert missed == pytest.approx(fitted.objective_ / (4 * 5), rel=0.05)
    assert f"the last doubling lowered that by {fitted.approximation_error_:.2g}" in message
    assert "accuracy" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KTI(5, solver="nystroem", n_landmarks=100).fit(views)


@pytest.mark.parametrize(("alpha", "atol"), [(0.1, 1e-5), (1e-4, 1e-10)], ids=["single", "double"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.nightly
def test_blocks_change_nothing(monkeypatch, center, kernel, alpha, atol):
    """Whether the rows come eleven at a time or all at once; but for rounding."""
    views, _ = nonlinear_views(300)
    integrator = KTI(4, kernel=kernel, alpha=alpha, center=center, solver="nystroem", n_landmarks=40)
    fitted = []
    for block in (11, 300):
        monkeypatch.setattr("datacollab.analyst._nystroem._BLOCK", block)
        fitted.append(clone(integrator).fit(views))
    assert_allclose(fitted[0].target_, fitted[1].target_, rtol=0, atol=atol)
    assert fitted[0].objective_ == pytest.approx(fitted[1].objective_, rel=1e-5 if alpha == 0.1 else 1e-10)
    for party, A in views.items():
        mapped = (each.integration_functions_[party](A) for each in fitted)
        assert_allclose(*mapped, rtol=0, atol=20 * atol)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["exact", "nystroem"])
def test_single_precision_and_files_are_taken_as_they_are(tmp_path, solver):
    """Numbers that float32 holds give the same in float32, also mapped from a file, as in float64."""
    views = {party: A.astype(np.float32) for party, A in nonlinear_views(300)[0].items()}
    mapped = {}
    for party, A in views.items():
        np.save(tmp_path / f"{party}.npy", A)
        mapped[party] = np.load(tmp_path / f"{party}.npy", mmap_mode="r")
    integrator = KTI(4, alpha=1e-4, solver=solver)
    double = clone(integrator).fit({party: A.astype(np.float64) for party, A in views.items()})
    for single in (views, mapped):
        fitted = clone(integrator).fit(single)
        assert_allclose(fitted.target_, double.target_, rtol=0, atol=1e-10)
        for party, A in views.items():
            assert_allclose(fitted.transform({party: A})[party], double.transform({party: A})[party], atol=1e-8)


@pytest.mark.parametrize("n_rows", [300, 100])
@pytest.mark.parametrize("kernel", ["linear", "cosine"])
def test_more_components_than_the_features_have_directions(monkeypatch, kernel, n_rows):
    """Whether the target is found on all rows or on some."""
    monkeypatch.setattr("datacollab.analyst._cost._TARGET_ROWS", n_rows)
    monkeypatch.setattr("datacollab.analyst._cost.candidate_rows", lambda rank: n_rows)
    views = {party: A[:, :2] for party, A in nonlinear_views(300)[0].items()}
    together = np.hstack([normalize(A) if kernel == "cosine" else A for A in views.values()])
    with pytest.raises(ValueError, match=rf"n_components=7 .* at most {np.linalg.matrix_rank(together)}, because"):
        KTI(7, kernel=kernel, solver="nystroem").fit(views)


def test_the_target_is_found_on_as_many_rows_as_memory_permits():
    """All rows up to some thousand; with less memory half as many, and so on, down to four for each landmark."""
    size = FitSize(n_anchors=10**6, n_parties=10, n_components=10, n_columns=16, kernel=Kernel(metric="rbf"))
    most = size.landmarks()
    assert most.n_rows == _TARGET_ROWS
    assert replace(size, n_anchors=9000).landmarks().n_rows == 9000
    cost, numbers = most, [most.n_rows]
    while (less := size.landmarks(cost.memory - 1)).memory < cost.memory:
        cost = less
        numbers.append(cost.n_rows)
    assert numbers[1] == numbers[0] // 2
    assert numbers[-1] == 4 * 1024
    assert replace(size, n_landmarks=10_000).landmarks().n_rows == 80_000
    # A graph joins all rows.
    graph = replace(size, n_anchors=10**5, has_graph=True)
    assert graph.landmarks(limit=1.0).n_rows == 10**5


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "cosine"])
@pytest.mark.parametrize("n_anchors", [150, 3000, 10**5])
def test_a_limit_equal_to_the_estimate_allows_what_was_estimated(kernel, n_anchors):
    """As many landmarks, in the same way, and with a byte less not as many; more than are of use cost nothing."""
    numbers = product([1, 5, 40], [2, 60], [1, 80], [1e-4, 0.1])
    for n_parties, n_columns, n_components, alpha in numbers:
        size = FitSize(
            n_anchors=n_anchors,
            n_parties=n_parties,
            n_components=n_components,
            kernel=Kernel(metric=kernel),
            n_columns=n_columns,
            alpha=alpha,
        )
        most = min(n_anchors, n_columns if kernel in ("linear", "cosine") else 1024)
        cost = size.choose("nystroem", 2.0**60)
        assert size.choose("nystroem", cost.memory) == replace(cost, limit=cost.memory)
        assert size.most_landmarks(replace(cost, limit=cost.memory)) == 1024
        assert size.most_landmarks(replace(cost, limit=cost.memory - 1)) == most - 1
        for rank in (1, 100, 300, 900):
            few = size.cost("nystroem", n_rows=cost.n_rows, rank=rank)
            assert size.most_landmarks(replace(few, limit=few.memory)) == (rank if rank < most else 1024)


@pytest.mark.parametrize(("n_components", "least"), [(10, 128), (100, 200)])
def test_memory_for_the_landmarks_begun_with_is_needed(n_components, least):
    """128, or two for each component, in the way that takes less memory; then those are the most allowed."""
    size = FitSize(n_anchors=10**5, n_parties=5, n_components=n_components, n_columns=16, kernel=Kernel(metric="rbf"))
    limit = size.landmarks(0.0, least).memory
    assert size.most_landmarks(size.choose("nystroem", limit)) == least
    with pytest.raises(NotEnoughMemoryError):
        size.choose("nystroem", limit - 1)


def test_a_million_rows_of_ten_parties_fit_into_four_gibibytes():
    limit = 4 * 2**30
    cost = KTI(16, memory_limit=limit).estimate_cost(10**6, 10)
    assert cost.solver == "nystroem"
    assert cost.memory < limit
    with pytest.raises(NotEnoughMemoryError, match="anchor representations included"):
        KTI(16, memory_limit=limit).estimate_cost(10**6, 10, n_columns=64)
    assert KTI(16, memory_limit=limit).estimate_cost(10**6, 10, n_columns=64, dtype="float32").memory < limit


MEASURED = """
import sys
import numpy as np
from datacollab import KTI

alpha, n = float(sys.argv[1]), 100_000
rng = np.random.default_rng(0)
views = {k: np.empty((n, 16)) for k in range(6)}
weights = {k: rng.normal(size=(12, 16)) for k in views}
for start in range(0, n, 1000):
    latent = rng.normal(size=(1000, 12))
    for k, A in views.items():
        A[start : start + 1000] = np.tanh(latent @ weights[k])
integrator = KTI(5, solver="nystroem", alpha=alpha, gamma=0.01, n_landmarks=200)
integrator.fit(views)
# What getrusage says begins with the memory of the process that began this one.
[taken] = [1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(taken, integrator.estimate_cost(n, 6, 16).memory)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("alpha", [0.1, 1e-4], ids=["single", "double"])
def test_memory_is_as_estimated(alpha):
    """The features of all rows, if they were kept, would exceed it."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process's memory is read from /proc")
    command = [sys.executable, "-c", MEASURED, str(alpha)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    taken, estimated = map(int, told.split())
    assert taken / 1.5 < estimated < 1.5 * taken
    representations = 6 * 100_000 * 16 * 8
    assert taken - representations < 6 * 100_000 * 200 * (4 if alpha == 0.1 else 8)


RBF = Kernel(metric="rbf", parameters={"gamma": 0.3})


def pivoted(kernel, A, rank, seed=0):
    return draw_pivots(kernel, A, rank, np.random.default_rng(seed))


def restricted(kernel, A, S, Z, alpha):
    """Return the restricted ridge regression of Z: its values, its coefficients, and its factor."""
    features = LandmarkFeatures.prepare(kernel, A, S, alpha)
    factor = feature_gram(features)
    weights = scipy.linalg.cho_solve((factor, True), features.moments(Z))
    coefficients = features.expansion(weights)
    return features.combine(coefficients), coefficients, factor


def nystroem(K, S):
    return K[:, S] @ np.linalg.pinv(K[np.ix_(S, S)]) @ K[S]


@given(seed=st.integers(0, 1000), rank=st.integers(1, 40))
def test_the_factor_is_the_nystroem_approximation(seed, rank):
    A = np.random.default_rng(seed).normal(size=(60, 3))
    found, K = pivoted(RBF, A, rank, seed), RBF.gram(A)
    assert len(found.pivots) == len(set(found.pivots)) == rank
    approximation = found.factor @ found.factor.T
    assert_allclose(approximation, nystroem(K, found.pivots), atol=1e-6)
    assert_allclose(found.unexplained, np.diag(K - approximation), atol=1e-10)
    assert np.linalg.eigvalsh(K - approximation).min() > -1e-10
    assert_allclose(np.triu(found.factor[found.pivots], 1), 0, atol=1e-10)


def test_a_kernel_of_low_rank_is_exhausted(rng):
    A = rng.normal(size=(50, 3))
    linear = pivoted(Kernel(metric="linear"), A, 20)
    assert len(linear.pivots) == 3
    assert linear.exhausted
    assert_allclose(linear.factor @ linear.factor.T, A @ A.T, atol=1e-10)
    assert not pivoted(RBF, A, 3).exhausted


def test_landmarks_are_better_than_random_rows(rng):
    """Clusters of very different sizes: uniform rows miss the small ones."""
    centres, sizes = rng.normal(size=(30, 4)) * 6, [300] * 5 + [3] * 25
    A = np.vstack([centre + 0.1 * rng.normal(size=(size, 4)) for centre, size in zip(centres, sizes, strict=True)])
    K = RBF.gram(A)
    drawn = [np.trace(K - nystroem(K, pivoted(RBF, A, 60, seed).pivots)) for seed in range(5)]
    uniform = [np.trace(K - nystroem(K, rng.choice(len(A), 60, replace=False))) for _ in range(5)]
    assert max(drawn) < 0.3 * min(uniform)


@pytest.mark.parametrize("metric", ["rbf", "laplacian", "poly", "linear", "cosine", Matern(nu=1.5)], ids=str)
def test_diagonal_without_the_matrix(rng, metric):
    parameters = {"gamma": 0.2, "coef0": 2} if isinstance(metric, str) else {}
    kernel = Kernel(metric=metric, parameters=parameters)
    A = rng.normal(size=(20, 3))
    assert_allclose(kernel.diagonal(A), np.diag(kernel.gram(A)), atol=1e-12)


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
def test_smoother_is_that_of_the_restricted_problem(rng, alpha):
    """g in span{k(., s)}: the normal equations of kernel ridge regression with those functions alone."""
    A, Z = rng.normal(size=(120, 3)), rng.normal(size=(120, 4))
    S = A[:15]
    C, G = RBF.between(A, S), RBF.gram(S)
    W = np.linalg.solve(C.T @ C + alpha * G, C.T @ Z)
    values, coefficients, factor = restricted(RBF, A, S, Z, alpha)
    assert_allclose(values, C @ W, atol=2e-5)
    assert_allclose(coefficients, W, atol=2e-4 * np.abs(W).max())
    P = C @ np.linalg.solve(C.T @ C + alpha * G, C.T)
    assert smoother_trace(factor, alpha) == pytest.approx(np.trace(P), rel=1e-5)


@given(
    seed=st.integers(0, 1000),
    rank=st.integers(1, 60),
    alpha=st.sampled_from([1e-4, 1e-2, 1.0]),
    metric=st.sampled_from(["rbf", "laplacian", "poly", "linear"]),
)
def test_the_smoother_keeps_the_diagonal_of_the_kernel(seed, rank, alpha, metric):
    """The formula with an inverse; the factor of the restricted ridge regression comes from the same features."""
    rng = np.random.default_rng(seed)
    A, Z = rng.normal(size=(60, 3)), rng.normal(size=(60, 4))
    kernel = Kernel(metric=metric, parameters={} if metric == "linear" else {"gamma": 0.3})
    K = kernel.gram(A)
    S = pivoted(kernel, A, rank, seed).pivots
    Q = nystroem(K, S)
    smoother = fit_smoother(LandmarkFeatures.prepare(kernel, A, A[S], alpha))
    wanted = Z - alpha * np.linalg.solve(Q + np.diag(np.diag(K - Q)) + alpha * np.eye(60), Z)
    # Features in float32, where few rows are landmarks and alpha is not small, divided by alpha.
    is_single = smoother.features.dtype == np.float32
    assert_allclose(smoother.apply(Z), wanted, atol=1e-3 if is_single else 1e-6)
    P = Q @ np.linalg.inv(Q + alpha * np.eye(60))
    assert smoother_trace(smoother.feature_gram(), alpha) == pytest.approx(np.trace(P), rel=1e-3)


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_rounding_of_large_entries_does_not_reach_small_ones(rng, alpha):
    """Many rows under a wide kernel: entries of the Gram matrix are far above the penalty."""
    A, Z = rng.normal(size=(5000, 8)), rng.normal(size=(5000, 3))
    wide = Kernel(metric="rbf", parameters={"gamma": 0.02})
    S = A[pivoted(wide, A[:1000], 150).pivots]
    L = np.linalg.solve(landmark_root(wide, S), wide.between(S, A)).T
    wanted = L @ np.linalg.solve(L.T @ L + alpha * np.eye(150), L.T @ Z)
    values, _, _ = restricted(wide, A, S, Z, alpha)
    assert np.linalg.norm(values - wanted) < 2e-5 * np.linalg.norm(wanted)
