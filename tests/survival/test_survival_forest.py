import numpy as np
import pytest
from lifelines import NelsonAalenFitter
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import xlogy
from survival_examples import made_up

from datacollab.errors import AgreementError
from datacollab.survival import CoxRegression, SurvivalForest
from datacollab.targets import survival_target


def hazard_of(y):
    fitted = NelsonAalenFitter(nelson_aalen_smoothing=False).fit(y["time"], y["event"])
    return fitted.cumulative_hazard_at_times(y["time"]).to_numpy()


def drawn_for(model, y):
    """The trees, and how often each row was drawn for them, as the seeds say."""
    seeds = np.random.RandomState(model.random_state).randint(2**31 - 1, size=model.n_estimators)
    for tree, seed in zip(model.estimators_, seeds, strict=True):
        yield tree, np.bincount(np.random.RandomState(seed).randint(len(y), size=len(y)), minlength=len(y))


def test_the_first_split_is_the_best_one_of_the_formula():
    """LeBlanc and Crowley: the split that gains most of Σ δ log(δ/Λθ) over all columns and thresholds."""
    X, y = made_up(60, 2, seed=3)
    model = SurvivalForest(40, min_samples_leaf=5, min_expected_events=0.0, max_features=1.0, random_state=0).fit(X, y)
    hazard, event = hazard_of(y), y["event"].astype(float)
    for tree, weight in drawn_for(model, y):
        best = -np.inf, 0, 0.0
        for column in range(2):
            ordered = np.unique(X[weight > 0, column])
            for threshold in (ordered[1:] + ordered[:-1]) / 2:
                gain = 0.0
                for side in (X[:, column] <= threshold, X[:, column] > threshold):
                    d, expected = weight[side] @ event[side], weight[side] @ hazard[side]
                    if (side & (weight > 0)).sum() < 5 or d == 0:
                        gain = -np.inf
                        break
                    gain += xlogy(d, d / expected)
                best = max(best, (gain, column, threshold))
        assert tree.tree_.feature[0] == best[1]
        assert tree.tree_.threshold[0] == pytest.approx(best[2])


def test_a_leaf_has_its_events_over_those_expected():
    X, y = made_up(100, step=0.1)
    model = SurvivalForest(5, random_state=0).fit(X, y)
    hazard, event = hazard_of(y), y["event"].astype(float)
    for tree, weight in drawn_for(model, y):
        leaf = tree.apply(X)
        for node in np.unique(leaf[weight > 0]):
            own = leaf == node
            expected = weight[own] @ hazard[own]
            assert expected >= 3.0 - 1e-9
            assert tree.tree_.value[node, 0, 0] == pytest.approx(weight[own] @ event[own] / expected)


def test_the_risk_is_the_mean_over_trees():
    X, y = made_up(100)
    model = SurvivalForest(7, random_state=0).fit(X, y)
    trees = np.mean([tree.predict(X) for tree in model.estimators_], axis=0)
    assert_allclose(np.exp(model.predict(X)), trees, rtol=1e-12)


def test_the_baseline_is_of_the_risks_of_trees_that_did_not_see_a_row():
    X, y = made_up(150)
    model = SurvivalForest(100, min_events_per_step=1, random_state=0).fit(X, y)
    seen = drawn_for(model, y)
    sums = np.sum([np.where(drawn == 0, (tree.predict(X), np.ones(150)), 0) for tree, drawn in seen], axis=0)
    risk = sums[0] / sums[1]
    for time, hazard in zip(model.baselines_[None].times[:20], model.baselines_[None].cumulative_hazard, strict=False):
        steps = [
            (y["time"][y["event"]] == t).sum() / risk[y["time"] >= t].sum()
            for t in np.unique(y["time"][y["event"]])
            if t <= time
        ]
        assert hazard == pytest.approx(sum(steps))


def test_it_sees_what_a_cox_regression_cannot():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(600, 4))
    time = generator.exponential(np.exp(-2 * np.abs(X[:, 0])))
    y = survival_target(time < 2, np.minimum(time, 2))
    forest = SurvivalForest(100, random_state=0).fit(X[:400], y[:400])
    assert forest.score(X[400:], y[400:]) > CoxRegression().fit(X[:400], y[:400]).score(X[400:], y[400:]) + 0.1


def test_strata_have_baselines_of_their_own_and_order_of_their_names_does_not_matter():
    X, y = made_up(120)
    strata = np.array(["b", "a"])[np.arange(120) % 2]
    forest = SurvivalForest(20, random_state=0).fit(X, y, strata=strata)
    assert set(forest.baselines_) == {"a", "b"}
    again = SurvivalForest(20, random_state=0).fit(X, y, strata=np.where(strata == "a", 0, 1))
    assert_array_equal(forest.predict_survival(X, [0.2], "a"), again.predict_survival(X, [0.2], 0))


def test_trees_are_grown_of_few_events():
    X, y = made_up(60)
    y["event"] = np.arange(60) < 2
    forest = SurvivalForest(40, min_expected_events=0.0, random_state=0).fit(X, y)
    assert np.isfinite(forest.predict(X)).all()
    assert any(drawn[:2].sum() == 0 for _, drawn in drawn_for(forest, y))


def test_too_few_events_are_refused():
    X, y = made_up(30)
    y["event"][:] = False
    y["event"][:5] = True
    with pytest.raises(AgreementError, match="There are 5 events, too few for two leaves of 3"):
        SurvivalForest().fit(X, y)
    with pytest.raises(ValueError, match="max_features"):
        SurvivalForest(max_features=0).fit(X, y)
