import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from conftest import nonlinear_views
from datacollab import KTI, KTICV, TargetSimilarityGraph
from datacollab.analyst._kti_cv import concordance
from datacollab.errors import AgreementError


def test_scores_by_hand_with_targets(views, anchor_classes):
    search = KTICV(4, gamma_factors=(0.5, 2.0), alphas=(0.1,), kernels=("rbf",), cv=3).fit(views, anchor_classes)
    for candidate, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        by_hand = []
        for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(np.zeros(200), anchor_classes):
            kti = KTI(4, **candidate).fit({p: A[train] for p, A in views.items()})
            seen = np.vstack([kti.integration_functions_[p](A[train]) for p, A in views.items()])
            held = np.vstack([kti.integration_functions_[p](A[test]) for p, A in views.items()])
            scaler = StandardScaler().fit(seen)
            model = KNeighborsClassifier(10).fit(scaler.transform(seen), np.tile(anchor_classes[train], 3))
            by_hand.append(np.mean(model.predict(scaler.transform(held)) == np.tile(anchor_classes[test], 3)))
        assert score == pytest.approx(np.mean(by_hand))


def test_scores_by_hand_without_targets(views):
    search = KTICV(4, gamma_factors=(1.0,), alphas=(0.1, 1.0), kernels=("rbf",), cv=2).fit(views)
    for candidate, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        by_hand = []
        for train, test in KFold(2, shuffle=True, random_state=0).split(np.zeros(200)):
            kti = KTI(4, **candidate).fit({p: A[train] for p, A in views.items()})
            seen = [g(views[p][test]) for p, g in kti.integration_functions_.items()]
            shares = [
                np.var(np.mean([rows[:, j] for rows in seen], axis=0)) / np.var(np.concatenate([r[:, j] for r in seen]))
                for j in range(4)
            ]
            by_hand.append(np.mean(shares))
        assert score == pytest.approx(np.mean(by_hand))


def test_the_best_candidate_is_fitted_on_all_rows(views, anchor_classes):
    search = KTICV(4, graph=TargetSimilarityGraph(5), center=True, graph_weights=(0.3, 3.0), alphas=(0.1,))
    search.fit(views, anchor_classes)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    kti = KTI(4, graph=TargetSimilarityGraph(5), center=True, **search.best_params_).fit(views, anchor_classes)
    assert_allclose(search.target_, kti.target_)
    assert_allclose(search.transform(views)["b"], kti.transform(views)["b"])
    assert search.objective_ == kti.objective_
    assert search.gammas_ == kti.gammas_
    assert search.solver_ == kti.solver_
    assert_allclose(search.eigenvalues_, kti.eigenvalues_)


def test_candidates_leave_out_what_makes_no_difference(views, anchor_classes):
    search = KTICV(3, kernels=("rbf", "linear"), gamma_factors=(1.0, 2.0), alphas=(0.1, 1.0), cv=2)
    search.fit(views, anchor_classes)
    params = search.cv_results_["params"]
    assert len(params) == 2 * 2 + 2
    assert all("gamma_factor" not in p for p in params if p["kernel"] == "linear")
    assert all("graph_weight" not in p for p in params)


def test_finds_that_coiled_views_need_a_kernel():
    rng = np.random.default_rng(1)
    latent = rng.uniform(-1, 1, size=(300, 2))
    coiled = np.column_stack([np.sin(2.5 * latent), np.cos(2.5 * latent)])
    search = KTICV(2, center=True, alphas=(0.01, 0.1)).fit({"a": latent, "b": coiled}, latent[:, 0])
    assert search.best_params_["kernel"] == "rbf"
    scores = dict(zip(map(str, search.cv_results_["params"]), search.cv_results_["mean_test_score"], strict=True))
    assert search.best_score_ > max(score for params, score in scores.items() if "linear" in params) + 0.03


def test_numeric_targets_and_own_estimators(views, rng):
    latent = nonlinear_views(200)[1]
    search = KTICV(4, alphas=(0.01, 1.0), gamma_factors=(1.0,)).fit(views, latent[:, 0])
    assert 0 < search.best_score_ <= 1
    own = KTICV(4, alphas=(0.1,), gamma_factors=(1.0,), estimator=LogisticRegression(C=100))
    assert 0.5 < own.fit(views, latent[:, 0] > 0).best_score_ <= 1


def test_number_of_jobs_changes_nothing(views, anchor_classes):
    one, two = (KTICV(3, alphas=(0.1, 1.0), cv=2, n_jobs=jobs).fit(views, anchor_classes) for jobs in (None, 2))
    assert_allclose(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


def test_concordance():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 2))
    assert concordance([rows, rows]) == pytest.approx(1.0)
    assert concordance([rows, rng.normal(size=(500, 2))]) == pytest.approx(0.5, abs=0.1)
    assert concordance([rows, -rows]) == pytest.approx(0.0, abs=1e-3)
    constant = np.column_stack([rows[:, 0], np.ones(500)])
    assert concordance([constant, constant]) == pytest.approx(0.5)


def test_ties_go_to_the_larger_penalty_and_the_plain_width():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    apart = 100 * np.eye(3)[y] + rng.normal(size=(90, 3))
    search = KTICV(3, center=True).fit({"a": apart, "b": 2 * apart}, y)
    ties = search.cv_results_["mean_test_score"] == search.best_score_
    assert ties.sum() > 1
    assert search.best_params_["alpha"] == max(
        params["alpha"] for params, tie in zip(search.cv_results_["params"], ties, strict=True) if tie
    )


def test_order_of_the_anchor_rows_does_not_decide(views, anchor_classes):
    """Anchors that come class after class are split like any others."""
    order = np.argsort(anchor_classes, kind="stable")
    by_class = {party: A[order] for party, A in views.items()}
    cv = {"alphas": (0.1,), "gamma_factors": (1.0,), "kernels": ("rbf",)}
    scores = [KTICV(3, **cv).fit(given).best_score_ for given in (views, by_class)]
    assert scores[0] == pytest.approx(scores[1], abs=0.03)


def test_task_says_what_the_targets_are(views, anchor_classes):
    as_numbers = KTICV(3, alphas=(0.1,), gamma_factors=(1.0,), task="regression").fit(views, anchor_classes)
    as_floats = KTICV(3, alphas=(0.1,), gamma_factors=(1.0,)).fit(views, anchor_classes.astype(float))
    assert as_numbers.best_score_ == as_floats.best_score_
    as_classes = KTICV(3, alphas=(0.1,), gamma_factors=(1.0,), task="classification")
    assert as_classes.fit(views, anchor_classes.astype(float)).best_score_ != as_floats.best_score_


def test_few_anchors():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 2))
    search = KTICV(1, alphas=(0.1,), gamma_factors=(1.0,)).fit({"a": A, "b": 2 * A}, np.arange(12) % 2)
    assert 0 <= search.best_score_ <= 1


def test_a_misfitting_target_is_refused(views):
    with pytest.raises(AgreementError, match=r"shape \(200,\); got \(3,\)"):
        KTICV(3).fit(views, [0, 1, 0])
