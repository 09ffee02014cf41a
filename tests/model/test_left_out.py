"""Predictions for rows left out, and averages of models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from predictor_examples import Average
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingClassifier, VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from datacollab.model import AveragedClassifier, CalibratedForestClassifier, fit_left_out, fit_weighted


def left_out_of(estimator, X, y, *, weights=None, groups=None):
    weights = np.ones(len(X)) if weights is None else weights
    groups = np.arange(len(X)) if groups is None else groups
    return fit_left_out(estimator, X, y, weights, groups=groups, judges=np.ones(len(X)))


@pytest.fixture
def noise(rng):
    """Rows and classes that have nothing to do with one another, every row three times."""
    X, y = rng.normal(size=(80, 4)), rng.integers(2, size=80)
    return np.repeat(X, 3, axis=0), np.repeat(y, 3), np.repeat(np.arange(80), 3)


@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsClassifier(1),
        CalibratedForestClassifier(12, random_state=0),
        RandomForestClassifier(12, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_rows_of_a_group_are_left_out_together(noise, estimator):
    X, y, groups = noise
    _, together = left_out_of(estimator, X, y, groups=groups)
    assert abs(np.mean(together.argmax(axis=1) == y) - 0.5) < 0.2
    _, alone = left_out_of(estimator, X, y)
    assert np.mean(alone.argmax(axis=1) == y) > 0.9  # the copies tell


@pytest.mark.parametrize("estimator", [RandomForestRegressor(20, random_state=0), CalibratedForestClassifier(20)])
def test_a_forest_keeps_nothing_of_rows_left_out(rng, estimator):
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    fitted, left_out = left_out_of(estimator, X, y)
    forest = getattr(fitted, "estimator_", fitted)
    assert not any("oob" in name and name != "oob_score" for name in vars(forest))
    assert len(left_out) == 60


def test_trees_that_saw_a_row_say_nothing_of_it(rng):
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    fitted, left_out = left_out_of(RandomForestRegressor(100, random_state=0), X, y)
    assert np.corrcoef(fitted.predict(X), y)[0, 1] > 0.9
    assert abs(np.corrcoef(left_out, y)[0, 1]) < 0.25


def test_where_every_tree_saw_a_row_folds_say_it(rng):
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    _, left_out = left_out_of(RandomForestRegressor(2, random_state=0), X, y)
    assert abs(np.corrcoef(left_out, y)[0, 1]) < 0.5
    assert np.all(left_out != 0)


def test_folds_say_what_fits_without_them_say(rng):
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    fitted, left_out = left_out_of(Ridge(), X, y)
    assert_allclose(fitted.coef_, Ridge().fit(X, y).coef_)
    errors = [abs(Ridge().fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0] - left_out[i]) for i in range(50)]
    assert 0 < max(errors) < 0.5


def test_a_class_that_a_fold_lacks_gets_no_probability_there(rng):
    X = rng.normal(size=(40, 2))
    y = np.array(["rare"] + ["a", "b"] * 19 + ["a"])
    fitted, left_out = left_out_of(LogisticRegression(), X, y)
    assert fitted.classes_.tolist() == ["a", "b", "rare"]
    assert left_out[0, 2] == 0
    assert_allclose(left_out.sum(axis=1), 1)


def test_a_class_of_weight_nothing_is_no_class_of_the_model(rng):
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "b", "c")
    y[40:] = "a"
    weights = np.r_[np.ones(40), np.zeros(20)]
    groups = np.repeat(np.arange(30), 2)
    for estimator in (LogisticRegression(), CalibratedForestClassifier(30, random_state=0)):
        fitted, left_out = left_out_of(estimator, X, y, weights=weights, groups=groups)
        assert fitted.classes_.tolist() == ["b", "c"]
        assert left_out.shape == (60, 2)
        assert np.mean(fitted.classes_[left_out[:40].argmax(axis=1)] == y[:40]) > 0.8
        assert fitted.predict_proba(X).shape == (60, 2)


def test_few_rows_of_each_class_and_one_group(rng):
    X, y = rng.normal(size=(6, 2)), np.array([0, 0, 1, 1, 2, 2])
    assert left_out_of(LogisticRegression(), X, y)[1].shape == (6, 3)
    assert left_out_of(LogisticRegression(), X, y, groups=np.zeros(6, dtype=int))[1] is None
    with pytest.raises(ValueError, match="of one group"):
        left_out_of(CalibratedForestClassifier(5), X, y, groups=np.zeros(6, dtype=int))


def test_classifiers_without_probabilities_say_nothing(rng):
    assert left_out_of(LinearSVC(), rng.normal(size=(40, 2)), np.arange(40) % 2)[1] is None


def test_weights_reach_the_last_step_of_a_pipeline(rng):
    X, y, weights = rng.normal(size=(40, 2)), np.arange(40) % 2, rng.uniform(0.1, 2, size=40)
    found = fit_weighted(make_pipeline(StandardScaler(), LogisticRegression()), X, y, weights)
    scaled = StandardScaler().fit_transform(X)
    assert_allclose(found[-1].coef_, LogisticRegression().fit(scaled, y, weights).coef_)
    with pytest.raises(TypeError, match="KNeighborsClassifier takes no sample_weight"):
        fit_weighted(KNeighborsClassifier(), X, y, weights)
    assert len(fit_weighted(KNeighborsClassifier(), X, y, (weights > 1).astype(float))._fit_X) == (weights > 1).sum()


def test_calibration_mends_what_a_forest_is_too_sure_of(rng):
    X = rng.normal(size=(300, 5))
    y = (X[:, 0] + 2 * rng.normal(size=300) > 0).astype(int)
    model = CalibratedForestClassifier(50, random_state=0)
    left_out = model.fit_left_out(X, y)
    plain = RandomForestClassifier(50, oob_score=True, random_state=0).fit(X, y).oob_decision_function_
    loss = {
        name: -np.mean(np.log(np.maximum(p[np.arange(300), y], 1e-3))) for name, p in [("a", left_out), ("b", plain)]
    }
    assert loss["a"] < loss["b"]
    assert clone(model).fit(X, y).predict_proba(X).shape == (300, 2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.EstimatorCheckFailedWarning")
def test_scikit_learn_contract():
    by_chance = "bootstraps differ where rows are repeated instead of weighted, as in random forests"
    check_estimator(
        # So many that no row is in the bootstraps of all, which would take a forest for each fold.
        CalibratedForestClassifier(16, random_state=0),
        expected_failed_checks={"check_sample_weight_equivalence_on_dense_data": by_chance},
    )


AVERAGED = [LogisticRegression(), GaussianNB()]
AVERAGED_NUMBERS = [Ridge(10.0), LinearRegression()]


@pytest.fixture
def three_classes(rng):
    X = rng.normal(size=(80, 3))
    return X, np.array(["a", "b", "c"])[np.digitize(X[:, 0] + rng.normal(size=80), [-0.5, 0.5])]


@pytest.mark.parametrize("weights", [[1.0, 1.0], [1.0, 3.0]])
def test_classifiers_are_averaged_as_by_a_soft_vote(three_classes, weights):
    X, y = three_classes
    vote = VotingClassifier(list(zip("pq", AVERAGED, strict=True)), voting="soft", weights=weights).fit(X, y)
    average = Average(AVERAGED, weights).fit(X, y)
    assert_allclose(average.predict_proba(X), vote.predict_proba(X), atol=1e-12)
    assert_array_equal(average.predict(X), vote.predict(X))


def test_regressors_are_averaged_as_by_scikit_learn(rng, three_classes):
    X, _ = three_classes
    y = X[:, 0] + rng.normal(size=80)
    vote = VotingRegressor(list(zip("pq", AVERAGED_NUMBERS, strict=True)), weights=[1.0, 3.0]).fit(X, y)
    assert_allclose(Average(AVERAGED_NUMBERS, [1.0, 3.0]).fit(X, y).predict(X), vote.predict(X))


def test_models_of_different_classes_have_all_of_them(three_classes):
    X, y = three_classes
    some = y != "b"
    partial, full = GaussianNB().fit(X[some], y[some]), GaussianNB().fit(X, y)
    average = AveragedClassifier([partial, full], [0.25, 0.75])
    assert_array_equal(average.classes_, ["a", "b", "c"])
    assert average.estimators_[0] is partial
    expected = 0.75 * full.predict_proba(X)
    expected[:, [0, 2]] += 0.25 * partial.predict_proba(X)
    assert_allclose(average.predict_proba(X), expected)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -0.1], [0.0, 0.0], [np.nan, 1.0], [[1.0], [1.0]]], ids=str)
def test_weights_without_meaning(three_classes, weights):
    with pytest.raises(ValueError, match="2 numbers from 0 on, not all 0"):
        Average(AVERAGED, weights).fit(*three_classes)


def test_nothing_to_average():
    with pytest.raises(ValueError, match="name at least one"):
        AveragedClassifier([], [])
