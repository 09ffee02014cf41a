import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from sklearn import metrics

from datacollab.party_folder._ranking import RankingScores, auc_with_interval
from datacollab.party_folder._scores import ClassificationScores, RegressionScores, wilson


def in_batches(scores, target, predicted, cuts):
    for part in np.split(np.arange(len(target)), sorted(cut % (len(target) + 1) for cut in cuts)):
        scores.add(target[part], predicted[part])
    return scores.to_dict()


@given(
    n=st.integers(1, 60),
    n_classes=st.integers(2, 4),
    texts=st.booleans(),
    seed=st.integers(0, 99),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_classification_is_scored_as_scikit_learn_does(n, n_classes, texts, seed, cuts):
    random = np.random.default_rng(seed)
    classes = np.array(list("abcd"[:n_classes])) if texts else np.arange(n_classes)
    target, predicted = random.choice(classes, n), random.choice(classes, n)
    # A class that nobody has stays in the table.
    target[target == classes[-1]] = classes[0]
    scores = in_batches(ClassificationScores(classes.tolist()), target, predicted, cuts)
    assert scores["n_rows"] == n
    assert_allclose(scores["accuracy"], metrics.accuracy_score(target, predicted))
    assert_allclose(scores["confusion"], metrics.confusion_matrix(target, predicted, labels=classes))
    recalls = [np.mean(predicted[target == name] == name) for name in np.unique(target)]
    assert_allclose(scores["balanced_accuracy"], np.mean(recalls))
    low, high = scores["accuracy_interval"]
    assert 0 <= low <= scores["accuracy"] <= high <= 1


@pytest.mark.parametrize(("right", "n"), [(0, 1), (1, 1), (7, 10), (0, 30), (999, 1000)])
def test_the_interval_of_an_accuracy_is_wilsons(right, n):
    expected = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert_allclose(wilson(right, n), [expected.low, expected.high], atol=1e-12)


@given(
    n=st.integers(2, 60),
    shift=st.sampled_from([0.0, 1e6]),
    seed=st.integers(0, 99),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_regression_is_scored_as_scikit_learn_does(n, shift, seed, cuts):
    random = np.random.default_rng(seed)
    target = shift + random.normal(size=n)
    predicted = target + random.normal(size=n)
    scores = in_batches(RegressionScores(), target, predicted, cuts)
    error = predicted - target
    assert scores["n_rows"] == n
    assert_allclose(scores["rmse"], np.sqrt(metrics.mean_squared_error(target, predicted)))
    assert_allclose(scores["mae"], metrics.mean_absolute_error(target, predicted))
    assert_allclose(scores["r2"], metrics.r2_score(target, predicted), rtol=1e-6)
    for name, values in {"mae": abs(error), "rmse": error**2}.items():
        interval = stats.ttest_1samp(values, 0).confidence_interval()
        ends = np.array([interval.low, interval.high])
        expected = ends if name == "mae" else np.sqrt(np.maximum(ends, 0))
        assert_allclose(scores[f"{name}_interval"], expected, rtol=1e-9)


def test_too_few_rows_have_no_figures():
    empty = ClassificationScores(["a", "b"]).to_dict()
    assert (empty["n_rows"], empty["accuracy"], empty["accuracy_interval"]) == (0, None, None)
    scores = RegressionScores()
    assert scores.to_dict()["rmse"] is None
    scores.add(np.array([1.0]), np.array([3.0]))
    alone = scores.to_dict()
    assert (alone["rmse"], alone["mae"], alone["rmse_interval"], alone["r2"]) == (2.0, 2.0, None, None)


def ranked(target, probabilities, cuts=(), find=0.8):
    scores = RankingScores("yes", find)
    for part in np.split(np.arange(len(target)), sorted(cuts)):
        scores.add(np.where(target, "yes", "no")[part], probabilities[part])
    return scores.to_dict()


@given(n=st.integers(4, 80), seed=st.integers(0, 999), ties=st.booleans(), find=st.sampled_from([0.1, 0.5, 0.8, 1.0]))
def test_ranking_is_scored_as_scikit_learn_does(n, seed, ties, find):
    random = np.random.default_rng(seed)
    target = random.random(n) < 0.3
    target[:2] = True, False
    found = random.integers(0, 5, n) / 8 if ties else random.random(n).astype(np.float32).astype(float)
    scores = ranked(target, found, [n // 3, n // 2], find)
    assert_allclose(scores["auc"], metrics.roc_auc_score(target, found))
    assert_allclose(scores["average_precision"], metrics.average_precision_score(target, found))
    assert_allclose(scores["brier"], np.mean((found - target) ** 2))
    assert_allclose([scores["prevalence"], scores["expected"]], [target.mean(), found.mean()], rtol=1e-6)
    told = scores["threshold"]
    called = found >= told["least"]
    assert (told["n_called"], told["n_found"]) == (called.sum(), (called & target).sum())
    assert told["n_found"] >= find * target.sum()
    stricter = found > told["least"]
    assert (stricter & target).sum() < find * target.sum()


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_of_the_area_is_delongs(seed):
    """By the definition: each pair of rows of either class, and the variance of each row's share."""
    random = np.random.default_rng(seed)
    target = random.random(70) < 0.4
    scores = np.round(random.normal(size=70) + target, 1)
    pairs = (scores[target][:, None] > scores[~target]) + 0.5 * (scores[target][:, None] == scores[~target])
    variance = pairs.mean(axis=1).var(ddof=1) / target.sum() + pairs.mean(axis=0).var(ddof=1) / (~target).sum()
    area, (low, high) = auc_with_interval(target, scores)
    half = stats.norm.ppf(0.975) * np.sqrt(variance)
    assert_allclose([area, low, high], [pairs.mean(), area - half, min(area + half, 1)])


def test_delongs_interval_covers_the_truth():
    """400 draws of 100 rows, a fifth of them positive: the area of normal scores one apart is .760."""
    random = np.random.default_rng(0)
    truth = stats.norm.cdf(1 / np.sqrt(2))
    covered = 0
    for _ in range(400):
        target = np.arange(100) < 20
        _, (low, high) = auc_with_interval(target, random.normal(size=100) + target)
        covered += low <= truth <= high
    assert 0.91 <= covered / 400 <= 0.98


def test_one_class_or_no_rows_have_no_ranking():
    assert ranked(np.zeros(0, dtype=bool), np.zeros(0))["brier"] is None
    assert RankingScores("yes", 0.8).to_dict()["auc"] is None
    only = ranked(np.zeros(3, dtype=bool), np.array([0.1, 0.2, 0.3]))
    assert (only["auc"], only["threshold"], only["prevalence"]) == (None, None, 0.0)
    assert only["expected"] == pytest.approx(0.2)
