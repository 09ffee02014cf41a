import numpy as np
import pytest
from bent_views import nonlinear_views
from numpy.testing import assert_allclose
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from datacollab import KTI, KTICV, TargetDissimilarityGraph, TargetSimilarityGraph
from datacollab.errors import AgreementError, NumericalError


def score_by_hand(held, target, random_state):
    """How well discriminant analysis on half of the rows, every other of the sorted targets, predicts the other."""
    shuffled = random_state.permutation(len(target))
    order = shuffled[np.argsort(target[shuffled], kind="stable")]
    halves, scores = (order[::2], order[1::2]), []
    for representations in held:
        hits = []
        for seen, new in (halves, halves[::-1]):
            pooled = np.vstack([rows[seen] for rows in representations.values()])
            scaler = StandardScaler().fit(pooled)
            model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1)
            model.fit(scaler.transform(pooled), np.tile(target[seen], len(representations)))
            hits += [
                np.mean(model.predict(scaler.transform(rows[new])) == target[new]) for rows in representations.values()
            ]
        scores.append(np.mean(hits))
    return scores


def assert_scored_by_hand(search, views, target, n_folds, **options):
    random_state, by_hand = np.random.RandomState(0), []
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=random_state).split(target, target):
        fits = (
            KTI(**candidate, **options).fit({p: A[train] for p, A in views.items()}, target[train])
            for candidate in search.cv_results_["params"]
        )
        held = [kti.transform({p: A[test] for p, A in views.items()}) for kti in fits]
        by_hand.append(score_by_hand(held, target[test], random_state))
    assert_allclose(search.cv_results_["mean_test_score"], np.mean(by_hand, axis=0))
    assert_allclose(search.cv_results_["std_test_score"], np.std(by_hand, axis=0))


@pytest.mark.slow
def test_scores_by_hand_with_targets(views, anchor_classes):
    options = {"graph": TargetSimilarityGraph(5), "center": True}
    tried = {"gamma_factors": (0.5, 2.0), "alphas": (0.1,), "graph_weights": (0.0, 3.0)}
    search = KTICV((3, 6), **tried, **options, cv=3).fit(views, anchor_classes)
    assert len(search.cv_results_["params"]) == 2 * 3 * 2
    assert_scored_by_hand(search, views, anchor_classes, 3, **options)


def test_scores_by_hand_without_targets(views):
    search = KTICV(4, gamma_factors=(1.0,), alphas=(0.1, 1.0), kernels=("rbf",), cv=2).fit(views)
    for candidate, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        by_hand = []
        for train, test in KFold(2, shuffle=True, random_state=0).split(np.zeros(200)):
            kti = KTI(**candidate).fit({p: A[train] for p, A in views.items()})
            seen = [g(views[p][test]) for p, g in kti.integration_functions_.items()]
            shares = [
                np.var(np.mean([rows[:, j] for rows in seen], axis=0)) / np.var(np.concatenate([r[:, j] for r in seen]))
                for j in range(4)
            ]
            by_hand.append(np.mean(shares))
        assert score == pytest.approx(np.mean(by_hand))


@pytest.mark.parametrize("penalty_graph", [None, TargetDissimilarityGraph(5)])
@pytest.mark.slow
def test_the_best_candidate_is_fitted_on_all_rows(views, anchor_classes, penalty_graph):
    options = {"graph": TargetSimilarityGraph(5), "center": True, "penalty_graph": penalty_graph}
    search = KTICV(4, graph_weights=(0.3, 3.0), alphas=(0.1,), **options).fit(views, anchor_classes)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    kti = KTI(**search.best_params_, **options).fit(views, anchor_classes)
    assert_allclose(search.target_, kti.target_)
    assert_allclose(search.transform(views)["b"], kti.transform(views)["b"])
    assert search.objective_ == kti.objective_
    assert search.gammas_ == kti.gammas_
    assert search.solver_ == kti.solver_
    assert_allclose(search.eigenvalues_, kti.eigenvalues_)


def test_with_a_penalty_graph_candidates_are_refitted(views, anchor_classes):
    options = {"penalty_graph": TargetDissimilarityGraph(5), "center": True}
    search = KTICV((3, 5), alphas=(0.1,), kernels=("linear",), cv=2, **options).fit(views, anchor_classes)
    assert_scored_by_hand(search, views, anchor_classes, 2, **options)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_one_decomposition_of_a_kernel_gives_what_a_fit_of_each_candidate_gives(views, anchor_classes, kernel):
    search = KTICV((2, 5), kernels=(kernel,), gamma_factors=(0.3,), alphas=(0.001, 0.1, 1.0), cv=2)
    assert_scored_by_hand(search.fit(views, anchor_classes), views, anchor_classes, 2)


def test_an_indefinite_kernel_is_an_error_that_names_the_party(views):
    search = KTICV(2, kernels=(lambda a, b: -float(a @ b),), alphas=(0.001,))
    with pytest.raises(NumericalError, match=r"Party 'a': .*alpha=0\.001 is not positive definite"):
        search.fit({party: A[:40] for party, A in views.items()})


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


def test_task_says_what_the_targets_are(views, anchor_classes):
    as_numbers = KTICV(3, alphas=(0.1,), gamma_factors=(1.0,), task="regression").fit(views, anchor_classes)
    as_floats = KTICV(3, alphas=(0.1,), gamma_factors=(1.0,)).fit(views, anchor_classes.astype(float))
    assert as_numbers.best_score_ == as_floats.best_score_
    as_classes = KTICV(3, alphas=(0.1,), gamma_factors=(1.0,), task="classification")
    assert as_classes.fit(views, anchor_classes.astype(float)).best_score_ != as_floats.best_score_


def test_a_misfitting_target_is_refused(views):
    with pytest.raises(AgreementError, match=r"shape \(200,\); got \(3,\)"):
        KTICV(3).fit(views, [0, 1, 0])


def test_the_number_of_components_is_chosen(views, anchor_classes):
    search = KTICV((1, 6), alphas=(0.1,), gamma_factors=(1.0,), kernels=("rbf",)).fit(views, anchor_classes)
    one, six = search.cv_results_["mean_test_score"]
    assert [params["n_components"] for params in search.cv_results_["params"]] == [1, 6]
    assert six > one
    assert search.target_.shape == (200, 6)


def test_numbers_of_components_that_are_too_large_are_left_out(views, anchor_classes):
    search = KTICV((4, 25, 1000), alphas=(0.1,), gamma_factors=(1.0,)).fit(views, anchor_classes)
    tried = {(params["kernel"], params["n_components"]) for params in search.cv_results_["params"]}
    assert tried == {("rbf", 4), ("rbf", 25), ("linear", 4)}
    with pytest.raises(ValueError, match=r"n_components=150 is more than the data allow: at most 100.*100 anchor rows"):
        KTICV(150).fit(views)
    with pytest.raises(ValueError, match="n_components=25 is more than .* with any of the kernels"):
        KTICV(25, kernels=("linear",)).fit(views)


def test_without_targets_the_largest_number_is_taken(views):
    search = KTICV((2, 5, 25), alphas=(0.1,), gamma_factors=(1.0,), cv=2).fit(views)
    assert [(p["kernel"], p["n_components"]) for p in search.cv_results_["params"]] == [("linear", 5), ("rbf", 25)]


def test_many_anchors_are_searched_on_in_part(views, anchor_classes):
    options = {"alphas": (0.1, 1.0), "gamma_factors": (1.0,)}
    search = KTICV(4, max_anchors=90, **options).fit(views, anchor_classes)
    rows = np.sort(np.random.RandomState(0).permutation(200)[:90])
    assert search.target_.shape == (200, 4)
    kept = {p: A[rows] for p, A in views.items()}
    # The generator has drawn the rows already, so folds are those of its next state.
    random_state = np.random.RandomState(0)
    random_state.permutation(200)
    alone = KTICV(4, max_anchors=None, random_state=random_state, **options).fit(kept, anchor_classes[rows])
    assert_allclose(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])


@pytest.mark.parametrize("name", ["kernels", "gamma_factors", "alphas", "graph_weights", "n_components"])
def test_no_candidates_is_an_error(views, name):
    with pytest.raises(ValueError, match=f"KTICV: {name} is empty"):
        KTICV(**{name: ()}).fit(views)


@pytest.mark.parametrize(
    ("name", "value"),
    [("gamma_factors", 0.0), ("alphas", -1.0), ("graph_weights", -1.0), ("kernels", "cubic"), ("n_components", 0)],
)
def test_candidates_that_kti_refuses_are_refused_before_any_work(views, name, value):
    with pytest.raises(ValueError, match=rf"'{name.removesuffix('s')}s?' parameter of KTI must be .* Got"):
        KTICV(**{name: (value,)}).fit(views)
