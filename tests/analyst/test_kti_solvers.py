"""The solvers of KTI against each other, the naive solution, and the objective that their functions attain."""

import logging

import naive
import numpy as np
import pytest
from bent_views import nonlinear_views
from numpy.testing import assert_allclose
from scipy.linalg import null_space, subspace_angles
from sklearn.base import clone
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels, rbf_kernel

from datacollab import KTI, GeometricGraph, TargetDissimilarityGraph, TargetSimilarityGraph
from datacollab.analyst import Engine
from datacollab.errors import (
    ApproximationWarning,
    IncompressibleKernelError,
    NotEnoughMemoryError,
    NumericalError,
    UndeterminedTargetWarning,
)

SMALL = 400
"""Anchor rows up to which the exact solver is the dense one here."""
STREAMED = 600
"""Anchor rows that the exact solver streams."""


@pytest.fixture(scope="module", autouse=True)
def streamed_early():
    """Fewer rows than by default are streamed, so that the dense solution beside them is cheap."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datacollab.analyst._cost.DENSE_UP_TO", SMALL)
        patch.setattr("datacollab.analyst._solvers.DENSE_UP_TO", SMALL)
        yield


@pytest.fixture(scope="module")
def large():
    views, latent = nonlinear_views(STREAMED)
    return views, (latent[:, 0] > 0).astype(int)


@pytest.fixture
def densely(monkeypatch):
    """Fit by the dense solver, with all eigenvectors from LAPACK or those wanted by way of the inverse."""

    def fit(integrator, *data, lapack=True):
        with monkeypatch.context() as patch:
            patch.setattr("datacollab.analyst._cost.DENSE_UP_TO", 2 * STREAMED)
            if lapack:
                patch.setattr("datacollab.analyst._solvers.DENSE_UP_TO", 2 * STREAMED)
            return integrator.fit(*data)

    return fit


VARIANTS = {
    "plain": {},
    "center": {"center": True},
    "TSL": {"graph": TargetSimilarityGraph(), "graph_weight": 0.7},
    "GL, center": {"graph": GeometricGraph(), "center": True},
    "linear": {"kernel": "linear", "alpha": 2.0},
    "narrow": {"gamma_factor": 30.0},
    "small penalty": {"alpha": 1e-3},
}


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_streamed_equals_dense(large, variant, densely, caplog):
    """No matrix in common: explicit inverses and their sum there, float32 factors and refinement here."""
    parameters = {"n_components": 5, "solver": "exact", **VARIANTS[variant]}
    with caplog.at_level(logging.INFO):
        streamed = KTI(**parameters).fit(*large)
    assert "eigenvectors after" in caplog.text
    assert "solver dense" not in caplog.text
    dense = densely(KTI(**parameters), *large)
    assert dense.angle_estimate_ is None
    assert streamed.objective_ == pytest.approx(dense.objective_, rel=1e-10)
    assert subspace_angles(streamed.target_, dense.target_).max() < 1e-6
    assert streamed.angle_estimate_ < 1e-6
    assert streamed.eigengap_ == pytest.approx(dense.eigengap_, rel=0.02)
    for party, rows in large[0].items():
        expected = dense.integration_functions_[party](rows)
        assert_allclose(streamed.integration_functions_[party](rows), expected, atol=1e-6)


@pytest.mark.parametrize("variant", ["plain", "GL, center"])
def test_single_precision(large, variant):
    parameters = {"n_components": 5, "solver": "exact", "alpha": 1.0, **VARIANTS[variant]}
    double = KTI(**parameters).fit(*large)
    single = KTI(**parameters, precision="float32").fit(*large)
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-6)
    if variant == "plain":
        assert objective_of(single, large[0]) == pytest.approx(double.objective_, rel=1e-7)
    angle = subspace_angles(single.target_, double.target_).max()
    assert 1e-10 < angle <= single.angle_estimate_ < 1e-3


def objective_of(fitted, views):
    """eq. kernel-formulation, term by term, at the functions returned."""
    total = 0.0
    for party, g in fitted.integration_functions_.items():
        gram = rbf_kernel(g.anchor_representation, gamma=fitted.gammas_[party])
        fit = rbf_kernel(views[party], g.anchor_representation, gamma=fitted.gammas_[party]) @ g.coefficients
        total += np.sum((fit - fitted.target_) ** 2) + fitted.alpha * np.trace(g.coefficients.T @ gram @ g.coefficients)
    return total


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("alpha", [1e-4, 0.1, 2.0])
@pytest.mark.parametrize("center", [False, True])
def test_with_a_landmark_at_every_row_nystroem_is_exact(views, kernel, alpha, center):
    """The objective, that of the target alone by explicit inverses, and the functions."""
    integrator = KTI(4, kernel=kernel, alpha=alpha, center=center)
    exact = clone(integrator).fit(views)
    low_rank = clone(integrator).set_params(solver="nystroem", n_landmarks=200).fit(views)
    assert (exact.solver_, low_rank.solver_) == ("exact", "nystroem")
    assert low_rank.objective_ == pytest.approx(exact.objective_, rel=1e-6)
    kernels = {party: pairwise_kernels(A, metric=kernel, gamma=exact.gammas_[party]) for party, A in views.items()}
    M = naive.m_lambda(kernels, alpha)
    assert np.trace(low_rank.target_.T @ M @ low_rank.target_) == pytest.approx(exact.objective_, rel=1e-6)
    assert subspace_angles(low_rank.target_, exact.target_).max() <= low_rank.angle_estimate_ + 1e-6
    for party, K in kernels.items():
        best = K @ np.linalg.solve(K + alpha * np.eye(len(K)), low_rank.target_)
        assert_allclose(low_rank.integration_functions_[party](views[party]), best, atol=1e-6)


def landmark_matrices(fitted, views):
    """Return what the functions miss of a target, and what the solver minimises, by their formulas, dense."""
    n, alpha = len(fitted.target_), fitted.alpha
    missed, surrogate = np.zeros((n, n)), np.zeros((n, n))
    for party, g in fitted.integration_functions_.items():
        C = rbf_kernel(views[party], g.anchor_representation, gamma=fitted.gammas_[party])
        G = rbf_kernel(g.anchor_representation, gamma=fitted.gammas_[party])
        missed += np.eye(n) - C @ np.linalg.solve(C.T @ C + alpha * G, C.T)
        Q = C @ np.linalg.solve(G, C.T)
        # An RBF kernel has ones on its diagonal.
        surrogate += alpha * np.linalg.inv(Q + np.diag(1 - np.diag(Q)) + alpha * np.eye(n))
    return missed, surrogate


@pytest.mark.parametrize("engine", [None, Engine()], ids=["here", "engine"])
@pytest.mark.parametrize("alpha", [0.5, 1e-4], ids=["single", "double"])
@pytest.mark.parametrize("center", [False, True])
def test_nystroem_solves_its_problem(views, center, alpha, engine):
    """Against dense eigenvectors of the sum of its own smoothers, with the diagonal that landmarks leave unexplained.

    Centred, the eigengap is that in an explicit basis of what sums to zero.
    """
    low_rank = KTI(4, alpha=alpha, solver="nystroem", n_landmarks=25, center=center, engine=engine).fit(views)
    missed, surrogate = landmark_matrices(low_rank, views)
    Z = naive.kti_target(surrogate, 4, center=center)
    assert low_rank.objective_ == pytest.approx(np.trace(Z.T @ missed @ Z), rel=1e-4)
    assert subspace_angles(low_rank.target_, Z).max() <= low_rank.angle_estimate_ + 1e-5 < 0.021
    T = null_space(np.ones((1, 200))) if center else np.eye(200)
    gap = np.diff(np.linalg.eigvalsh(T.T @ surrogate @ T)[3:5])[0]
    assert low_rank.eigengap_ == pytest.approx(gap, rel=0.05)
    assert_allclose(low_rank.target_.T @ low_rank.target_, np.eye(4), atol=1e-12)
    if center:
        assert_allclose(low_rank.target_.sum(axis=0), 0, atol=1e-9)


def test_a_tolerance_out_of_reach_is_said(large, monkeypatch):
    monkeypatch.setattr("datacollab.analyst._solvers.MOST_LANDMARKS", 256)
    monkeypatch.setattr("datacollab.analyst._cost.MOST_LANDMARKS", 256)
    with pytest.warns(ApproximationWarning, match=r"tol=1e-09 is not reached"):
        fitted = KTI(5, alpha=0.01, solver="nystroem", tol=1e-9).fit(*large)
    assert fitted.approximation_error_ > 1e-9


@pytest.mark.slow
def test_a_tolerance_is_reached_with_all_rows_at_last(large):
    """Where there are hardly more rows than landmarks are taken, their number doubles until it is that of the rows."""
    exact = KTI(5, alpha=0.01, solver="exact").fit(large[0])
    fitted = KTI(5, alpha=0.01, solver="nystroem", tol=1e-12).fit(large[0])
    assert fitted.n_landmarks_ == STREAMED
    assert fitted.objective_ == pytest.approx(exact.objective_, rel=1e-6)


@pytest.mark.parametrize("tol", [0.02, 0.005])
@pytest.mark.nightly
def test_the_tolerance_is_that_of_the_last_doubling(tol):
    """By fits with these numbers of landmarks: it lowered the objective by so much, and the one before by more."""
    views, _ = nonlinear_views(1300)
    integrator = KTI(5, solver="nystroem", gamma_factor=3.0)
    fitted = clone(integrator).set_params(tol=tol).fit(views)
    last = fitted.n_landmarks_
    ranks = [rank for rank in (last, last // 2, last // 4) if rank >= 128]
    shares = [clone(integrator).set_params(n_landmarks=rank).fit(views).objective_ / (3 * 5) for rank in ranks]
    drops = -np.diff(shares[::-1])
    assert fitted.approximation_error_ == pytest.approx(drops[-1], rel=0.1)
    assert drops[-1] <= tol
    assert all(drop > tol for drop in drops[:-1])


@pytest.mark.slow
def test_memory_limits_the_landmarks():
    views, _ = nonlinear_views(3000)
    limit = KTI(3, solver="nystroem", n_landmarks=300).estimate_cost(3000, 3).memory
    with pytest.warns(ApproximationWarning, match="memory permits"):
        fitted = KTI(3, gamma_factor=10, solver="nystroem", tol=1e-6, memory_limit=limit).fit(views)
    assert fitted.n_landmarks_ <= 300


def test_narrow_kernels_have_no_landmarks(large):
    assert issubclass(IncompressibleKernelError, NumericalError)
    with pytest.raises(IncompressibleKernelError, match=r"Party 'c': \d+ landmarks leave \d+% .* smaller gamma"):
        KTI(5, gamma=50.0, solver="nystroem").fit(*large)


@pytest.mark.slow
def test_auto_is_exact_while_that_is_cheap(monkeypatch, large):
    assert KTI(3).fit(large[0]).solver_ == "exact"
    monkeypatch.setattr("datacollab.analyst._cost.EXACT_OPERATIONS", 1e8)
    assert KTI(3).fit(large[0]).solver_ == "nystroem"
    assert KTI(3, gamma=50.0).fit(large[0]).solver_ == "exact"  # where landmarks cannot do it
    assert KTI(3, penalty_graph=TargetDissimilarityGraph()).fit(*large).solver_ == "exact"


def test_cost_before_the_fit(monkeypatch):
    wide = {"memory_limit": 2.0**34}
    assert KTI(**wide).estimate_cost(SMALL, 10).solver == "dense"
    assert KTI(**wide).estimate_cost(5000, 10).solver == "streamed"
    assert KTI(**wide).estimate_cost(100_000, 10).solver == "nystroem"
    assert KTI(**wide, solver="exact").estimate_cost(20_000, 5).solver == "streamed"
    small, large = (KTI(**wide, solver="exact").estimate_cost(n, 10) for n in (8000, 16_000))
    assert 3 < large.memory / small.memory < 5
    speeds = dict.fromkeys(("single", "double", "skinny", "values32", "values64"), 1e10)
    monkeypatch.setattr("datacollab.analyst._cost._speeds", lambda *of: speeds)
    assert 4 < large.seconds / small.seconds < 8
    # Ten Cholesky factorisations; products with a few hundred columns are as much again.
    factorised = 10 * 8000**3 / 3 / 1e10
    assert 1.2 * factorised < small.seconds < 2 * factorised
    assert str(small) == f"about {small.seconds:,.0f} s on one thread and {small.memory / 2**30:.2g} GiB"
    assert KTI(**wide).estimate_cost(5000, 10).memory < 2**28 + 10 * 5000**2 * 4 / 2 + 2 * 5000**2 * 8


@pytest.mark.parametrize("kernel", sorted(PAIRWISE_KERNEL_FUNCTIONS))
@pytest.mark.slow
def test_speeds_are_measured_for_every_kernel(kernel):
    cost = KTI(3, kernel=kernel, memory_limit=2.0**34).estimate_cost(300, 2)
    assert "s on one thread and 0.2" in str(cost)
    assert min(cost.speeds().values()) > 1e5


def test_memory_that_does_not_suffice_is_said_before_anything_starts(large):
    with pytest.raises(NotEnoughMemoryError, match=r"3 parties with 600 anchor rows .* memory_limit"):
        KTI(5, memory_limit=1e6).fit(*large)
    with pytest.raises(MemoryError, match="solver=.exact."):
        KTI(5, memory_limit=1e6, solver="exact").fit(*large)


def test_landmarks_and_a_penalty_graph_do_not_go_together(views, anchor_classes):
    with pytest.raises(ValueError, match="solver='exact'"):
        KTI(3, solver="nystroem", penalty_graph=TargetDissimilarityGraph()).fit(views, anchor_classes)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("solver", ["streamed", "inverse", "lapack"])
@pytest.mark.slow
def test_an_undetermined_target_is_warned_of(solver, seed, densely):
    """Two copies of one cloud, far apart: every eigenvalue comes twice, so an odd number of components is arbitrary."""
    half = np.random.default_rng(seed).normal(size=(STREAMED // 2, 2))
    A = np.vstack([half, half + 1e3])

    def fit(integrator):
        data = {"a": A, "b": A}
        return integrator.fit(data) if solver == "streamed" else densely(integrator, data, lapack=solver == "lapack")

    with pytest.warns(UndeterminedTargetWarning, match="n_components"):
        fitted = fit(KTI(3, gamma=1.0))
    assert fitted.eigengap_ < 1e-6
    fit(KTI(4, gamma=1.0))


def test_progress_is_logged(large, caplog, monkeypatch):
    monkeypatch.setattr("datacollab.analyst._kti._WORTH_SAYING", SMALL)
    with caplog.at_level(logging.INFO, logger="datacollab"):
        KTI(4).fit(large[0])
    said = "\n".join(caplog.messages)
    assert "3 parties, 600 anchor rows: solver streamed, about" in said
    assert "factorised 3 kernel matrices" in said


@pytest.fixture(scope="module")
def few():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(SMALL + 10, 3))
    return {"a": A, "b": np.tanh(A) @ rng.normal(size=(3, 4))}


HARD = {
    "linear, centred": {"n_components": 5, "kernel": "linear", "center": True},
    "cosine, centred": {"n_components": 5, "kernel": "cosine", "center": True},
    "many components": {"n_components": 150},
    "tiny penalty": {"n_components": 10, "alpha": 1e-8},
    "wide kernel": {"n_components": 5, "gamma_factor": 1e-4},
}


@pytest.mark.parametrize("case", HARD)
def test_hard_cases_are_as_exact(few, case, densely):
    """Kernels of low rank, a basis that fills, and eigenvalues next to rounding."""
    streamed = KTI(**HARD[case], solver="exact").fit(few)
    dense = densely(KTI(**HARD[case], solver="exact"), few)
    assert streamed.objective_ == pytest.approx(dense.objective_, rel=1e-8)
    assert_allclose(streamed.target_.T @ streamed.target_, np.eye(HARD[case]["n_components"]), atol=1e-8)
    angle = subspace_angles(streamed.target_, dense.target_).max()
    assert angle < 1e-6 + 1e-10 / dense.eigengap_
    assert streamed.angle_estimate_ is None or angle <= streamed.angle_estimate_ + 1e-10 / dense.eigengap_


@pytest.mark.parametrize("alpha", [1.0, pytest.param(1e-3, marks=pytest.mark.nightly), 1e-6])
@pytest.mark.parametrize("variant", ["plain", "center", "TSL", "GL, center"])
def test_the_inverse_of_the_dense_matrix_has_its_eigenvectors(large, densely, variant, alpha):
    """Against LAPACK's eigenvectors, however close to each other the eigenvalues are."""
    parameters = {"n_components": 5, **VARIANTS[variant], "alpha": alpha}
    found = densely(KTI(**parameters), *large, lapack=False)
    wanted = densely(KTI(**parameters), *large)
    assert found.angle_estimate_ < 1e-3
    assert wanted.angle_estimate_ is None
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-9)
    assert found.eigengap_ == pytest.approx(wanted.eigengap_, rel=1e-3)
    angle = subspace_angles(found.target_, wanted.target_).max()
    assert angle <= found.angle_estimate_ + 1e-13 / wanted.eigengap_
    if variant in ("center", "GL, center"):
        assert_allclose(found.target_.sum(axis=0), 0, atol=1e-9)


@pytest.mark.slow
def test_eigenvalues_too_close_for_the_streamed_solver(densely, caplog):
    """The matrix is formed after all where memory permits, and not before that takes as long as what was tried."""
    views, _ = nonlinear_views(STREAMED)
    parameters = {"n_components": 16, "alpha": 1e-3, "gamma_factor": 30.0}
    with caplog.at_level(logging.INFO):
        found = KTI(**parameters).fit(views)
    assert "the streamed solver does not converge; solver dense" in caplog.text
    assert caplog.text.count("eigenvectors after") == caplog.text.count("factorised") == 1
    wanted = densely(KTI(**parameters), views)
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-9)


@pytest.mark.parametrize("solver", ["exact", "nystroem"])
def test_few_distinct_rows_centred(rng, solver):
    A = rng.normal(size=(8, 2))[rng.integers(0, 8, size=STREAMED)]
    fitted = KTI(5, gamma=0.5, center=True, solver=solver).fit({"a": A, "b": np.tanh(A)})
    assert_allclose(fitted.target_.T @ fitted.target_, np.eye(5), atol=1e-8)
    assert_allclose(fitted.target_.sum(axis=0), 0, atol=1e-8)
    assert 0 < fitted.objective_ == pytest.approx(objective_of(fitted, {"a": A, "b": np.tanh(A)}), rel=1e-3)


def test_a_small_penalty_makes_single_precision_correct_itself(few):
    double, single = (KTI(5, alpha=1e-3, precision=precision).fit(few) for precision in ("float64", "float32"))
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-9)


def test_landmarks_refuse_an_indefinite_kernel(rng):
    A = rng.normal(size=(300, 3))
    with pytest.raises(NumericalError, match="Party 'a': .*positive"):
        KTI(3, kernel="sigmoid", solver="nystroem").fit({"a": A, "b": np.tanh(A)})


@pytest.mark.parametrize("center", [False, True])
def test_the_eigengap_is_that_of_an_explicit_basis(rng, center):
    """Up to the last but one direction; with all of them there is no next eigenvalue."""
    A = rng.normal(size=(14, 3))
    data = {"a": A, "b": np.tanh(A)}
    M = naive.m_lambda({party: rbf_kernel(rows, gamma=0.3) for party, rows in data.items()}, 0.5)
    T = null_space(np.ones((1, 14))) if center else np.eye(14)
    values = np.linalg.eigvalsh(T.T @ M @ T)
    for k in (1, 5, len(values) - 1):
        gap = KTI(k, gamma=0.3, alpha=0.5, center=center).fit(data).eigengap_
        assert gap == pytest.approx(values[k] - values[k - 1], rel=1e-6)
    assert KTI(len(values), gamma=0.3, alpha=0.5, center=center).fit(data).eigengap_ is None


def test_a_small_eigengap_is_not_called_none(few):
    assert KTI(5, alpha=1e-4, solver="nystroem").fit(few).eigengap_ > 0


@pytest.mark.parametrize("n_landmarks", [10, 40])
def test_nystroem_attains_the_objective_it_reports(views, n_landmarks):
    """Its functions are real ones, so that nothing it attains is below the exact minimum."""
    low_rank = KTI(4, alpha=0.5, solver="nystroem", n_landmarks=n_landmarks).fit(views)
    assert objective_of(low_rank, views) == pytest.approx(low_rank.objective_, rel=1e-5)
    assert low_rank.objective_ > KTI(4, alpha=0.5).fit(views).objective_
    assert low_rank.n_landmarks_ == n_landmarks
    for g in low_rank.integration_functions_.values():
        assert g.anchor_representation.shape[0] == n_landmarks


def test_functions_of_many_rows_are_the_best_of_their_landmarks():
    """Landmarks lie so far apart that kernel values are made in float32, of which two thousand are added up."""
    views, _ = nonlinear_views(2200)
    low_rank = KTI(4, solver="nystroem", n_landmarks=128).fit(views)
    best = 0.0
    for party, g in low_rank.integration_functions_.items():
        C = rbf_kernel(views[party], g.anchor_representation, gamma=low_rank.gammas_[party])
        G = rbf_kernel(g.anchor_representation, gamma=low_rank.gammas_[party])
        solved = np.linalg.solve(C.T @ C + low_rank.alpha * G, C.T @ low_rank.target_)
        best += np.sum(low_rank.target_**2) - np.sum((C.T @ low_rank.target_) * solved)
    assert objective_of(low_rank, views) == pytest.approx(best, rel=1e-6)
    assert low_rank.objective_ == pytest.approx(best, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("center", [False, True])
def test_the_target_of_some_rows_serves_all(monkeypatch, center):
    """Found on a third of the rows, with the functions of all: close to what all rows give."""
    views, _ = nonlinear_views(1500)
    integrator = KTI(5, alpha=0.5, solver="nystroem", n_landmarks=60, center=center)
    whole = clone(integrator).fit(views)
    monkeypatch.setattr("datacollab.analyst._cost._TARGET_ROWS", 500)
    monkeypatch.setattr("datacollab.analyst._cost._FEWEST_CANDIDATES", 400)
    sampled = clone(integrator).fit(views)
    assert sampled.angle_estimate_ is None
    assert_allclose(sampled.target_.T @ sampled.target_, np.eye(5), atol=1e-12)
    if center:
        assert_allclose(sampled.target_.sum(axis=0), 0, atol=1e-9)
    assert objective_of(sampled, views) == pytest.approx(sampled.objective_, rel=1e-4)
    assert sampled.objective_ == pytest.approx(whole.objective_, rel=0.05)
    assert sampled.objective_ != whole.objective_
