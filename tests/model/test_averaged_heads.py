"""Averages of models: scikit-learn's soft vote, and what it cannot do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from predictor_examples import Average
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB

from datacollab.model import AveragedClassifier

CLASSIFIERS = [LogisticRegression(), GaussianNB()]
REGRESSORS = [Ridge(10.0), LinearRegression()]


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(80, 3))
    return X, np.array(["a", "b", "c"])[np.digitize(X[:, 0] + rng.normal(size=80), [-0.5, 0.5])]


@pytest.mark.parametrize("weights", [[1.0, 1.0], [1.0, 3.0]])
def test_classifiers_are_averaged_as_by_a_soft_vote(rows, weights):
    X, y = rows
    vote = VotingClassifier(list(zip("pq", CLASSIFIERS, strict=True)), voting="soft", weights=weights).fit(X, y)
    average = Average(CLASSIFIERS, weights).fit(X, y)
    assert_allclose(average.predict_proba(X), vote.predict_proba(X), atol=1e-12)
    assert_array_equal(average.predict(X), vote.predict(X))


def test_regressors_are_averaged_as_by_scikit_learn(rng, rows):
    X, _ = rows
    y = X[:, 0] + rng.normal(size=80)
    vote = VotingRegressor(list(zip("pq", REGRESSORS, strict=True)), weights=[1.0, 3.0]).fit(X, y)
    assert_allclose(Average(REGRESSORS, [1.0, 3.0]).fit(X, y).predict(X), vote.predict(X))


def test_models_of_different_classes_have_all_of_them(rows):
    X, y = rows
    some = y != "b"
    partial, full = GaussianNB().fit(X[some], y[some]), GaussianNB().fit(X, y)
    average = AveragedClassifier([partial, full], [0.25, 0.75])
    assert_array_equal(average.classes_, ["a", "b", "c"])
    assert average.estimators_[0] is partial
    expected = 0.75 * full.predict_proba(X)
    expected[:, [0, 2]] += 0.25 * partial.predict_proba(X)
    assert_allclose(average.predict_proba(X), expected)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -0.1], [0.0, 0.0], [np.nan, 1.0], [[1.0], [1.0]]], ids=str)
def test_weights_without_meaning(rows, weights):
    with pytest.raises(ValueError, match="2 numbers from 0 on, not all 0"):
        Average(CLASSIFIERS, weights).fit(*rows)


def test_nothing_to_average():
    with pytest.raises(ValueError, match="name at least one"):
        AveragedClassifier([], [])
