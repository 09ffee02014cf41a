from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from sklearn import metrics

from datacollab.steps.party._predict import figures_of

NUMBERS = SimpleNamespace(kind="regression", is_single=True)


def of_classes(classes):
    return SimpleNamespace(kind="classification", is_single=True, classes=list(classes))


@given(n=st.integers(1, 60), n_classes=st.integers(2, 4), texts=st.booleans(), seed=st.integers(0, 99))
def test_classification_is_scored_as_scikit_learn_does(n, n_classes, texts, seed):
    random = np.random.default_rng(seed)
    classes = np.array(list("abcd"[:n_classes])) if texts else np.arange(n_classes)
    target, predicted = random.choice(classes, n), random.choice(classes, n)
    # A class that nobody has stays in the table.
    target[target == classes[-1]] = classes[0]
    scores = figures_of(of_classes(classes.tolist()), target, predicted)
    assert scores["n_rows"] == n
    assert_allclose(scores["accuracy"], metrics.accuracy_score(target, predicted))
    assert_allclose(scores["confusion"], metrics.confusion_matrix(target, predicted, labels=classes))
    recalls = [np.mean(predicted[target == name] == name) for name in np.unique(target)]
    assert_allclose(scores["balanced_accuracy"], np.mean(recalls))
    low, high = scores["accuracy_interval"]
    assert 0 <= low <= scores["accuracy"] <= high <= 1


@given(n=st.integers(2, 60), shift=st.sampled_from([0.0, 1e6]), seed=st.integers(0, 99))
def test_regression_is_scored_as_scikit_learn_does(n, shift, seed):
    random = np.random.default_rng(seed)
    target = shift + random.normal(size=n)
    predicted = target + random.normal(size=n)
    scores = figures_of(NUMBERS, target, predicted)
    error = predicted - target
    assert scores["n_rows"] == n
    assert_allclose(scores["rmse"], np.sqrt(metrics.mean_squared_error(target, predicted)))
    assert_allclose(scores["mae"], metrics.mean_absolute_error(target, predicted))
    assert_allclose(scores["r2"], metrics.r2_score(target, predicted), rtol=1e-6)
    assert_allclose(scores["median_error"], np.median(abs(error)))
    interval = stats.quantile_test(abs(error), q=np.median(abs(error)), p=0.5).confidence_interval(0.95)
    found = scores["median_error_interval"]
    assert (found is None) == (n < 6)
    if found is not None:
        assert_allclose(found, [interval.low, interval.high])


def test_the_interval_of_the_median_error_covers_whatever_the_tails():
    random, hits = np.random.default_rng(0), 0
    for _ in range(200):
        error = np.exp(1.5 * random.normal(size=20))
        low, high = figures_of(NUMBERS, np.zeros(20), error)["median_error_interval"]
        hits += low <= 1.0 <= high
    assert hits >= 185


def test_too_few_rows_have_no_figures():
    nobody = np.zeros(0)
    empty = figures_of(of_classes("ab"), nobody, nobody)
    assert (empty["n_rows"], empty["accuracy"], empty["accuracy_interval"]) == (0, None, None)
    assert figures_of(NUMBERS, nobody, nobody)["rmse"] is None
    alone = figures_of(NUMBERS, np.array([1.0]), np.array([3.0]))
    assert (alone["rmse"], alone["mae"], alone["median_error_interval"], alone["r2"]) == (2.0, 2.0, None, None)
    assert figures_of(SimpleNamespace(kind="survival", is_single=False), nobody, nobody) == {
        "n_rows": 0,
        "n_events": 0,
        "concordance": None,
    }
