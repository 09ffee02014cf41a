import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.metrics import roc_auc_score, roc_curve

from datacollab.risk.attacks import membership

SCORES = st.lists(st.integers(0, 12), min_size=2, max_size=30)


def naive_delong(members, others):
    """AUC and its variance from all pairs."""
    wins = np.array([[(a > b) + 0.5 * (a == b) for b in others] for a in members])
    m, n = wins.shape
    return wins.mean(), wins.mean(axis=1).var(ddof=1) / m + wins.mean(axis=0).var(ddof=1) / n


@given(members=SCORES, others=SCORES)
def test_auc_is_scikit_learns(members, others):
    labels = [1] * len(members) + [0] * len(others)
    result = membership(members, others)
    assert result.auc == pytest.approx(roc_auc_score(labels, members + others))
    assert 0 <= result.low <= result.auc <= result.high <= 1


@given(members=SCORES, others=SCORES, confidence=st.sampled_from([0.8, 0.95]))
def test_interval_has_delongs_variance(members, others, confidence):
    auc, variance = naive_delong(members, others)
    result = membership(members, others, confidence=confidence)
    if 0 < auc < 1 and variance > 1e-12:
        half_width = stats.t.ppf((1 + confidence) / 2, min(len(members), len(others)) - 1) * np.sqrt(variance)
        odds = np.log(auc / (1 - auc)) + np.array([-1, 1]) * half_width / (auc * (1 - auc))
        assert_allclose([result.low, result.high], 1 / (1 + np.exp(-odds)), atol=1e-9)


def test_groups_count_once():
    """Oracle: the variance of the members' part from sums over groups; members alone in a group change nothing."""
    members, others, groups = np.arange(12) ** 2 % 17.0, np.arange(30) % 11.0, np.arange(12) // 3
    wins = ((members[:, None] > others) + 0.5 * (members[:, None] == others)).astype(float)
    auc = wins.mean()
    sums = [(wins[groups == group].mean(axis=1) - auc).sum() for group in range(4)]
    variance = 4 / 3 * np.square(sums).sum() / 12**2 + wins.mean(axis=0).var(ddof=1) / 30
    odds = np.log(auc / (1 - auc)) + np.array([-1, 1]) * stats.t.ppf(0.975, 3) * np.sqrt(variance) / (auc * (1 - auc))
    result = membership(members, others, groups=groups)
    assert_allclose([result.low, result.high], 1 / (1 + np.exp(-odds)))
    assert membership(members, others, groups=range(12)) == membership(members, others)
    with pytest.raises(ValueError, match=r"groups must have one entry per member, shape \(12,\); got \(3,\)"):
        membership(members, others, groups=[0, 1, 2])


@pytest.mark.parametrize("distance", [0.0, 0.8, 1.5])
def test_interval_covers_with_thirty_members_in_six_groups(rng, distance):
    """The members of a group are alike; intervals that count each covered seven in ten."""
    true, groups = stats.norm.cdf(distance / np.sqrt(2)), np.arange(30) // 5
    covered, alone = [], []
    for _ in range(300):
        members = distance + np.sqrt(0.5) * (rng.normal(size=6)[groups] + rng.normal(size=30))
        others = rng.normal(size=300)
        for found, given_groups in ((covered, groups), (alone, None)):
            result = membership(members, others, groups=given_groups)
            found.append(result.low <= true <= result.high)
    assert np.mean(covered) >= 0.9
    assert np.mean(alone) < 0.85


def test_interval_is_as_wide_as_a_bootstraps(rng):
    members, others = rng.normal(0.7, 1, size=80), rng.normal(size=150)
    result = membership(members, others)
    aucs = [membership(rng.choice(members, 80), rng.choice(others, 150)).auc for _ in range(500)]
    assert (result.high - result.low) / 2 == pytest.approx(1.96 * np.std(aucs), rel=0.15)


def test_interval_covers(rng):
    """The AUC of two normal populations one standard deviation apart is known."""
    true = stats.norm.cdf(1 / np.sqrt(2))
    results = [membership(rng.normal(1, 1, size=60), rng.normal(size=60)) for _ in range(300)]
    assert 0.9 <= np.mean([r.low <= true <= r.high for r in results]) <= 0.99


@given(members=SCORES, others=SCORES, fpr=st.sampled_from([0.0, 0.01, 0.07, 0.1, 0.3, 1.0]))
def test_tpr_is_the_best_that_the_curve_allows(members, others, fpr):
    labels = [1] * len(members) + [0] * len(others)
    false, true, _ = roc_curve(labels, members + others, drop_intermediate=False)
    assert membership(members, others, fpr).tpr == pytest.approx(true[false <= fpr + 1e-9].max())


def test_rounding_does_not_cost_an_allowed_row():
    """0.07 * 100 is a little more than 7, and 0.29 * 100 a little less than 29."""
    for percent in range(100):
        assert membership([percent - 0.5], range(99, -1, -1), (99 - percent) / 100 + 0.01).tpr == 1


@given(members=SCORES, others=SCORES)
def test_only_the_order_of_the_scores_counts(members, others):
    moved = [np.exp(np.array(scores, dtype=float)) for scores in (members, others)]
    assert membership(*moved) == membership(members, others)
    swapped = membership(others, members)
    result = membership(members, others)
    wanted = [1 - result.auc, 1 - result.high, 1 - result.low]
    assert_allclose([swapped.auc, swapped.low, swapped.high], wanted, atol=1e-12)


def test_telling_all_apart_is_no_certainty():
    """DeLong's interval has no width there; ten rows of a kind do not show that much."""
    result = membership(range(10, 20), range(10))
    assert (result.auc, result.high, result.tpr) == (1, 1, 1)
    assert result.low == pytest.approx(stats.binomtest(10, 10).proportion_ci(method="wilson").low)
    result = membership(range(10), range(10, 20))
    assert (result.auc, result.low, result.tpr) == (0, 0, 0)
    assert 0.2 < result.high < 0.3


def test_constant_scores_tell_nothing():
    result = membership(np.ones(20), np.ones(30))
    assert (result.auc, result.tpr) == (0.5, 0)
    assert (result.n_members, result.n_others, result.fpr) == (20, 30, 0.01)


def test_a_single_row_shows_nothing():
    assert (membership([1.0], [0.0, 0.5]).low, membership([1.0], [0.0, 0.5]).high) == (0, 1)


@pytest.mark.parametrize("bad", [[], [[1.0]], [np.nan], [np.inf]])
def test_bad_scores(bad):
    with pytest.raises(ValueError, match="member_scores must be one-dimensional, finite and not empty"):
        membership(bad, [1.0])
    with pytest.raises(ValueError, match="other_scores must be"):
        membership([1.0], bad)


def test_bad_parameters():
    with pytest.raises(ValueError, match="must lie in"):
        membership([1.0], [1.0], 1.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        membership([1.0], [1.0], confidence=95)
