"""Figures of probabilities of a rare class, held against scikit-learn and their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import special, stats
from sklearn import metrics

from datacollab.linalg import (
    auc_difference,
    auc_with_interval,
    entropy,
    find_threshold,
    log_losses,
    mean_with_interval,
    ranking_figures,
    wilson,
)


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
    # On average new rows of the class are found as often as was asked for, or all of those here are.
    fewest = min(target.sum(), np.ceil(find * (target.sum() + 1) - 1e-9))
    assert told["n_found"] >= fewest
    stricter = found > told["least"]
    assert (stricter & target).sum() < fewest


@given(n=st.integers(4, 80), seed=st.integers(0, 999), find=st.sampled_from([0.1, 0.5, 0.8, 1.0]))
def test_a_threshold_is_that_of_the_figures_whatever_the_classes_are_called(n, seed, find):
    random = np.random.default_rng(seed)
    target, likely = random.random(n) < 0.3, random.random(n)
    target[:3], likely[2] = (True, False, False), 0.5
    expected = ranking_figures(target, likely, find)["threshold"]
    both = np.column_stack([1 - likely, likely])
    for of_two in (target, target[:, None], target.astype(int), target.astype(float)):
        assert find_threshold(of_two, both, find=find) == {"positive": True, **expected}
    named = np.where(target, "yes", "no").tolist()
    assert find_threshold(named, both.tolist(), find=find) == {"positive": "yes", **expected}
    found = find_threshold(np.where(target, "ja", "nein"), both[:, ::-1], find=find, pos_label="ja")
    assert found == {"positive": "ja", **expected}
    others = np.where(np.arange(n) % 2, 0, 2)
    three = np.column_stack([(1 - likely) / 2, likely, (1 - likely) / 2])
    assert find_threshold(np.where(target, 1, others), three, find=find, pos_label=1) == {"positive": 1, **expected}


@pytest.mark.parametrize(
    ("y", "probabilities", "options", "said"),
    [
        ([0, 1], [[0.9, 0.1], [0.2, 0.8]], {"find": 0}, r"find must be above 0 and at most 1; got 0\.$"),
        ([0, 1], [0.1, 0.8], {}, r"expected shape \(2, 2\), got \(2,\)"),
        ([0, 0], [[0.9, 0.1], [0.2, 0.8]], {}, "each of the 1 classes in y_true, two or more"),
        ([0, 1], [[0.9, np.nan], [0.2, 0.8]], {}, "a finite column"),
        (
            [0, 1],
            [[0.9, 0.1], [0.2, 0.8]],
            {"pos_label": "yes"},
            "one of the 2 classes in y_true, the sought one; got 'yes'",
        ),
        ([0, 1, 2], np.eye(3), {}, "one of the 3 classes in y_true, the sought one; got None"),
        (["ja", "nein"], np.eye(2), {}, "got None. It may be left out for 0 and 1"),
        ([[0, 1], [1, 0]], np.eye(2), {}, r"y_true must have one class per row: .* got \(2, 2\)"),
        ([0.0, np.nan, 1.0], np.eye(3), {}, "y_true has no class for 1 of 3 rows"),
        (["no", None, "yes"], np.eye(3)[:, :2], {}, "y_true has no class for 1 of 3 rows"),
    ],
)
def test_a_threshold_needs_probabilities_of_every_class(y, probabilities, options, said):
    with pytest.raises(ValueError, match=said):
        find_threshold(y, probabilities, **options)


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_of_the_area_has_the_areas_that_neither_variance_refuses(seed):
    """By the definition: each pair of rows of either class, and a fine grid of areas."""
    random = np.random.default_rng(seed)
    target = random.random(70) < 0.4
    scores = np.round(random.normal(size=70) * (1 + 2 * target) + target, 1)
    m, n = int(target.sum()), int((~target).sum())
    pairs = (scores[target][:, None] > scores[~target]) + 0.5 * (scores[target][:, None] == scores[~target])
    parts = pairs.mean(axis=1).var(ddof=1) / m, pairs.mean(axis=0).var(ddof=1) / n
    area, (low, high) = auc_with_interval(target, scores)
    t = stats.t.ppf(0.975, sum(parts) ** 2 / (parts[0] ** 2 / (m - 1) + parts[1] ** 2 / (n - 1)))
    θ = np.linspace(0.0005, 0.9995, 9991)
    # Hanley and McNeil: two positives against a negative, and a positive against two negatives.
    both, either = θ / (2 - θ), 2 * θ**2 / (1 + θ)
    theirs = (θ * (1 - θ) + (m - 1) * (both - θ**2) + (n - 1) * (either - θ**2)) / (m * n)
    delong = np.minimum(sum(parts) * θ * (1 - θ) / (area * (1 - area)), θ * (1 - θ) / min(m, n))
    kept = θ[(area - θ) ** 2 <= np.maximum(stats.norm.ppf(0.975) ** 2 * theirs, t**2 * delong)]
    assert_allclose([area, low, high], [pairs.mean(), kept.min(), kept.max()], atol=2e-4)


def test_a_perfect_ranking_is_no_certainty_and_two_rows_have_no_interval():
    target = np.arange(40) < 4
    assert auc_with_interval(target, target * 1.0)[0] == 1.0
    low, high = auc_with_interval(target, target * 1.0)[1]
    assert (0.5 < low < 0.8, high) == (True, 1.0)
    worst = auc_with_interval(target, ~target * 1.0)[1]
    assert worst[0] == 0.0 < worst[1] < 0.6
    assert auc_with_interval(np.arange(40) < 2, np.arange(40.0))[1] is None


def covered(n_studies, n_positive, spread, area=0.9, n_negative=100, seed=0):
    random = np.random.default_rng(seed)
    target = np.arange(n_positive + n_negative) < n_positive
    shift, hits = stats.norm.ppf(area) * np.hypot(1, spread), 0
    for _ in range(n_studies):
        scores = random.normal(size=len(target)) * np.where(target, spread, 1.0) + shift * target
        low, high = auc_with_interval(target, scores)[1]
        hits += low <= area <= high
    return hits / n_studies


def test_the_interval_of_the_area_covers_with_three_positives():
    assert covered(60, 3, 1.0) >= 0.9


@pytest.mark.nightly
@pytest.mark.parametrize("area", [0.6, 0.75, 0.9, 0.97])
@pytest.mark.parametrize("n_positive", [3, 5, 10])
def test_the_interval_of_the_area_covers_with_few_positives(n_positive, area):
    for spread in (0.5, 1.0, 2.0):
        assert covered(500, n_positive, spread, area) >= 0.9


def reached(n_studies, n_positive, find):
    """What thresholds reach on new rows of normal scores, and whether it lies in the interval."""
    random, target = np.random.default_rng(n_positive), np.arange(100) < n_positive
    for _ in range(n_studies):
        told = ranking_figures(target, random.normal(size=100) + target, find)["threshold"]
        share = stats.norm.sf(told["least"] - 1)
        yield share, told["reached"][0] <= share <= told["reached"][1]


def test_a_threshold_reaches_on_new_rows_what_was_asked_for():
    shares, held = np.mean(list(reached(100, 20, 0.9)), axis=0)
    assert shares > 0.89
    assert held >= 0.88


@pytest.mark.nightly
@pytest.mark.parametrize(("n_positive", "find"), [(5, 0.8), (20, 0.9), (60, 0.5)])
def test_the_interval_of_what_a_threshold_reaches_covers(n_positive, find):
    shares, held = np.mean(list(reached(1000, n_positive, find)), axis=0)
    assert shares > find - 0.01
    assert 0.93 <= held <= 0.97


@pytest.mark.parametrize("ties", [False, True])
def test_the_difference_of_areas_is_delongs(ties):
    """By the definition: covariances of the placements of two rankings."""
    random = np.random.default_rng(1)
    target = random.random(60) < 0.3
    now, before = (np.round(target + random.normal(size=60), 0 if ties else 9) for _ in range(2))
    m, n = int(target.sum()), int((~target).sum())
    pairs = [(s[target][:, None] > s[~target]) + 0.5 * (s[target][:, None] == s[~target]) for s in (now, before)]
    parts = [
        np.cov(*(each.mean(axis=axis) for each in pairs)) @ [1, -1] @ [1, -1] / size for axis, size in ((1, m), (0, n))
    ]
    t = stats.t.ppf(0.975, sum(parts) ** 2 / (parts[0] ** 2 / (m - 1) + parts[1] ** 2 / (n - 1)))
    difference, interval = auc_difference(target, now, before)
    assert_allclose(difference, metrics.roc_auc_score(target, now) - metrics.roc_auc_score(target, before))
    assert_allclose(interval, difference + t * np.sqrt(sum(parts)) * np.array([-1, 1]))


def test_rankings_that_agree_on_all_pairs_are_no_certainty():
    target, scores = np.arange(25) % 2 == 0, np.arange(25.0)
    assert auc_difference(target, scores, 2 * scores)[0] == 0.0
    low, high = auc_difference(target, scores, 2 * scores)[1]
    assert high == -low > 3 / 12
    assert auc_difference(np.arange(9) < 2, np.arange(9.0), np.arange(9.0))[1] is None


def gains_covered(n_studies, n, rate, strength, correlation, seed=0):
    """How often the intervals of the two gains hold the truth, in a world of normal scores and logistic outcomes."""
    random = np.random.default_rng(seed)

    def draw(n):
        first, other = random.normal(size=(2, n))
        second = correlation * first + np.sqrt(1 - correlation**2) * other
        now, before = (special.logit(rate) + strength * each for each in (first, second))
        target = random.random(n) < special.expit(now)
        losses = (-np.log(special.expit(np.where(target, each, -each))) for each in (before, now))
        return target, now, before, next(losses) - next(losses)

    target, now, before, saved = draw(400_000)
    truth = metrics.roc_auc_score(target, now) - metrics.roc_auc_score(target, before), saved.mean()
    held = np.zeros(2)
    for _ in range(n_studies):
        target, now, before, saved = draw(n)
        while target.sum() < 3:
            target, now, before, saved = draw(n)
        found = auc_difference(target, now, before)[1], mean_with_interval(saved)[1]
        held += [low <= true <= high for (low, high), true in zip(found, truth, strict=True)]
    return held / n_studies


def test_intervals_of_gains_cover():
    assert gains_covered(60, 100, 0.3, 1.0, 0.8).min() >= 0.88


@pytest.mark.nightly
@pytest.mark.parametrize("n", [60, 300])
@pytest.mark.parametrize("rate", [0.14, 0.3])
@pytest.mark.parametrize(("strength", "correlation"), [(0.7, 0.9), (1.0, 0.7)])
def test_intervals_of_gains_cover_with_rare_classes(n, rate, strength, correlation):
    held = gains_covered(1000, n, rate, strength, correlation)
    assert ((held >= 0.93) & (held <= 0.975)).all()


def test_a_constant_has_the_log_loss_of_the_shares():
    target = np.array([0, 1, 1, 2, 2, 2])
    shares = np.bincount(target) / 6
    assert_allclose(entropy(np.bincount(target, minlength=5)), metrics.log_loss(target, np.tile(shares, (6, 1))))
    assert_allclose(log_losses(np.array([0.5, 0.0])), [np.log(2), 3 * np.log(10)])
    assert mean_with_interval(np.ones(1)) == (1.0, None)
    mean, interval = mean_with_interval(np.arange(9.0))
    assert_allclose([mean, *interval], [4.0, *stats.t.interval(0.95, 8, 4.0, stats.sem(np.arange(9.0)))])


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


@pytest.mark.parametrize(("right", "n"), [(0, 1), (1, 1), (7, 10), (0, 30), (999, 1000)])
def test_the_interval_of_a_share_is_wilsons(right, n):
    expected = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert_allclose(wilson(right / n, n), [expected.low, expected.high], atol=1e-12)
