"""Figures of probabilities of a rare class, held against scikit-learn and their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from sklearn import metrics

from datacollab.linalg import auc_with_interval, ranking_figures


@given(n=st.integers(4, 80), seed=st.integers(0, 999), ties=st.booleans(), find=st.sampled_from([0.1, 0.5, 0.8, 1.0]))
def test_ranking_is_scored_as_scikit_learn_does(n, seed, ties, find):
    random = np.random.default_rng(seed)
    target = random.random(n) < 0.3
    target[:2] = True, False
    found = random.integers(0, 5, n) / 8 if ties else random.random(n)
    scores = ranking_figures(target, found, find)
    assert_allclose(scores["auc"], metrics.roc_auc_score(target, found))
    assert_allclose(scores["average_precision"], metrics.average_precision_score(target, found))
    assert_allclose(scores["brier"], np.mean((found - target) ** 2))
    assert_allclose(scores["brier_baseline"], np.mean((target.mean() - target) ** 2))
    assert_allclose([scores["prevalence"], scores["expected"]], [target.mean(), found.mean()])
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


@given(n=st.integers(2, 80), seed=st.integers(0, 999), ties=st.booleans())
def test_the_likeliest_tenth_is_told_with_those_as_likely_as_its_last(n, seed, ties):
    random = np.random.default_rng(seed)
    target = np.arange(n) < max(1, n // 4)
    found = random.integers(0, 5, n) / 8 if ties else random.random(n)
    top = ranking_figures(target, found, 0.8)["top"]
    order = sorted(range(n), key=lambda row: -found[row])
    first = order[: -(-n // 10)]
    among = [row for row in range(n) if found[row] >= found[first[-1]]]
    assert top["n_rows"] == len(among) >= len(first)
    assert_allclose([top["expected"], top["found"]], [found[among].mean(), target[among].mean()])


def test_one_class_or_no_rows_are_not_ranked():
    assert set(ranking_figures(np.zeros(0, dtype=bool), np.zeros(0), 0.8).values()) == {None}
    only = ranking_figures(np.zeros(3, dtype=bool), np.array([0.1, 0.2, 0.3]), 0.8)
    assert (only["auc"], only["top"], only["threshold"], only["prevalence"]) == (None, None, None, 0.0)
    assert only["expected"] == pytest.approx(0.2)
