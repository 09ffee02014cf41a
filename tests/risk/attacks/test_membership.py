"""Membership: scores, shadow shares, and intervals of rates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score, roc_curve

from datacollab.datasets import load
from datacollab.errors import AgreementError, RepresentationError
from datacollab.risk.attacks import (
    ShadowAttack,
    interval_of_clusters,
    membership,
    reconstruction_distance_scores,
    representation_distance_scores,
    subspace_scores,
    wilson_interval,
)
from datacollab.risk.attacks._membership_attacks import Reference, View, share_statistics
from datacollab.share import Share

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


@given(members=SCORES, others=SCORES)
def test_interval_has_delongs_variance(members, others):
    auc, variance = naive_delong(members, others)
    result = membership(members, others)
    if 0 < auc < 1 and variance > 1e-12:
        half_width = stats.t.ppf(0.975, min(len(members), len(others)) - 1) * np.sqrt(variance)
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


@pytest.mark.slow
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


SEEDS = st.integers(0, 1000)


@pytest.fixture(params=["digits", pytest.param("mnist", marks=pytest.mark.slow)])
def images(request):
    """Rows in a random order, and the smallest AUC that f on party rows must show."""
    if request.param == "digits":
        X, _ = load("digits")
    else:
        X, _ = load("mnist", data_dir=request.getfixturevalue("real_data_dir"), download=False)
    rows = np.random.default_rng(0).permutation(len(X))
    return np.asarray(X, dtype=np.float64)[rows[:4000]], {"digits": 0.75, "mnist": 0.85}[request.param]


@given(seed=SEEDS)
def test_distance_to_shared_rows(seed):
    rng = np.random.default_rng(seed)
    X, Z, M = rng.normal(size=(9, 4)), rng.normal(size=(7, 2)), rng.normal(size=(4, 2))
    expected = -cdist(X @ M, Z).min(axis=1)
    assert_allclose(representation_distance_scores(X @ M, Z), expected)


@given(seed=SEEDS)
def test_distance_to_reconstructions_in_units_of_the_neighbourhood(seed):
    rng = np.random.default_rng(seed)
    X, guesses, public = rng.normal(size=(9, 4)), rng.normal(size=(7, 4)), rng.normal(size=(12, 4))
    usual = np.sort(cdist(X, public), axis=1)[:, :5].mean(axis=1)
    expected = -cdist(X, guesses).min(axis=1) / usual
    assert_allclose(reconstruction_distance_scores(X, guesses, public), expected)
    units = (1000 * rows - 7 for rows in (X, guesses, public))
    assert_allclose(reconstruction_distance_scores(*units), expected)


@given(seed=SEEDS, d=st.integers(1, 4))
def test_subspace_scores_of_an_exactly_linear_map(seed, d):
    """Written with the projections' matrices, from the map itself in place of its estimate."""
    rng = np.random.default_rng(seed)
    X, anchor, public = rng.normal(size=(8, 6)), rng.normal(size=(20, 6)), rng.normal(size=(30, 6)) + 2
    F = rng.normal(size=(6, d))
    axes = PCA(d).fit(public).components_.T
    P, P0 = F @ np.linalg.pinv(F), axes @ axes.T
    centred = X - public.mean(axis=0)
    expected = ((centred @ P) * centred).sum(axis=1) - ((centred @ P0) * centred).sum(axis=1)
    assert_allclose(subspace_scores(X, anchor, anchor @ F + 9, public), expected / (centred**2).sum(axis=1), atol=1e-9)


@given(seed=SEEDS)
def test_rotating_and_moving_the_representation_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    X, anchor, public = rng.normal(size=(3, 25, 6))
    f, R = PCA(3).fit(X), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    Z = f.transform(anchor)
    before = subspace_scores(X, anchor, Z, public)
    assert_allclose(subspace_scores(X, anchor, 5 * Z @ R - 7, public), before, atol=1e-9)
    order = rng.permutation(25)
    assert_allclose(subspace_scores(X[order], anchor[order], Z[order], public), before[order], atol=1e-9)


@pytest.mark.nightly
def test_pca_fitted_on_the_party_tells_who_took_part_and_on_others_does_not(images):
    """From the anchor's representation alone: no shared row is used."""
    X, smallest = images
    members, others, elsewhere = X[:100], X[100:500], X[500:600]
    anchor, public = X[600:1100], X[1100:]
    scores = {}
    for name, rows in (("party", members), ("elsewhere", elsewhere)):
        Z = PCA(16, random_state=0).fit(rows).transform(anchor)
        scores[name] = membership(*(subspace_scores(asked, anchor, Z, public) for asked in (members, others)))
    assert scores["party"].auc >= smallest
    assert scores["elsewhere"].auc == pytest.approx(0.5, abs=0.08)
    assert scores["elsewhere"].tpr <= 0.06


def test_bad_input_is_refused(rng):
    X, anchor, public = rng.normal(size=(3, 25, 4))
    with pytest.raises(AgreementError, match="has 4 columns but the leaked originals 3"):
        subspace_scores(X, anchor[:, :3], anchor[:, :2], public)
    with pytest.raises(AgreementError, match="has 4 columns but the public table 3"):
        subspace_scores(X, anchor, anchor[:, :2], public[:, :3])
    with pytest.raises(AgreementError, match="representation has 24 rows but the leaked original has 25"):
        subspace_scores(X, anchor, anchor[:-1, :2], public)
    with pytest.raises(RepresentationError, match="rows of the leaked representation are equal"):
        subspace_scores(X, anchor, np.ones((25, 2)), public)
    with pytest.raises(AgreementError, match="has 4 columns but the reconstructions 3"):
        reconstruction_distance_scores(X, X[:, :3], public)
    with pytest.raises(RepresentationError, match="There are 4 public rows; give at least 5"):
        reconstruction_distance_scores(X, X, public[:4])
    with pytest.raises(AgreementError, match="images have 4 columns but the representation has 2"):
        representation_distance_scores(X, X[:, :2])
    with pytest.raises(RepresentationError, match="The table of images contains NaN"):
        representation_distance_scores(X * np.nan, X)


def share_of(rows, target, anchor=None, **given):
    anchor = rows if anchor is None else anchor
    return Share(party="a", representation=rows, anchor_representation=anchor, target=target, **given)


def told(make_share, seed=0, n=40, d=5):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    own, others, public = (rng.normal(size=(size, d)) for size in (n, 300, 800))
    attack = ShadowAttack(make_share, 24, random_state=seed).fit(public, np.arange(800) % 2, y)
    share = make_share(own, y, np.random.RandomState(99))
    return membership(attack.score(share, own, y), attack.score(share, others, np.arange(300) % 2))


def test_rows_shared_as_they_are_are_told():
    assert told(lambda rows, y, random: share_of(rows, y)).auc > 0.99


@pytest.mark.parametrize("seed", [0, 1])
def test_a_share_that_has_nothing_of_the_rows_tells_nothing(seed):
    """The one figure that has to be a half: 40 members, so that two standard errors are about .1."""
    found = told(lambda rows, y, random: share_of(random.normal(size=rows.shape), y), seed)
    assert found.low < 0.5 < found.high


@pytest.mark.slow
def test_noise_that_bounds_the_best_test_bounds_the_attack():
    """The mean of all rows with noise: no test exceeds that of two normal distributions a known distance apart."""

    def noisy_mean(rows, y, random):
        clipped = rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
        # Leaving out one row moves the mean by 1 / 40 at most: mu is 1.
        return share_of(np.tile(clipped.mean(axis=0) + random.normal(size=5) / 40, (len(rows), 1)), y)

    found = [told(noisy_mean, seed).auc for seed in range(4)]
    assert 0.5 < np.mean(found) <= 0.76


def test_too_few_public_rows_are_refused():
    attack = ShadowAttack(lambda rows, y, random: share_of(rows, y))
    with pytest.raises(AgreementError, match="at least 80 public rows; got 70"):
        attack.fit(np.ones((70, 2)), np.zeros(70, dtype=int), np.zeros(40, dtype=int))


def test_statistics_are_their_formulas(rng):
    rows, images, known = rng.normal(size=(12, 3)), rng.normal(size=(6, 3)), rng.normal(size=(60, 3))
    group, of_known = np.arange(12) % 2, np.arange(60) % 2
    of_images = np.arange(6) % 2
    found = share_statistics(View(rows, group), Reference(known, of_known, 2), images, of_images)
    for record, (image, label) in enumerate(zip(images, of_images, strict=True)):
        distances = np.sort(np.linalg.norm(rows[group == label] - image, axis=1))
        mean = known[of_known == label].mean(axis=0)
        clip = np.median(np.linalg.norm(known[of_known == label] - mean, axis=1))
        gap = image - mean
        gap *= min(1, clip / np.linalg.norm(gap))
        shift = rows[group == label].mean(axis=0) - mean
        nearest = np.argsort(np.linalg.norm(rows - image, axis=1))[:5]
        wanted = [
            -distances[0],
            -np.linalg.norm(rows - image, axis=1).min(),
            -distances[:5].mean(),
            shift @ gap,
            (group[nearest] == label).mean(),
        ]
        assert_allclose(found[record, [0, 1, 2, 4, 7]], wanted)


RATES = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(rate=RATES)
def test_wilson_is_scipys(rate):
    expected = stats.binomtest(*rate).proportion_ci(0.95, method="wilson")
    assert_allclose(wilson_interval(*rate), expected, atol=1e-12)


@given(rate=RATES)
def test_a_rate_lies_in_its_interval_and_its_complement_mirrors_it(rate):
    hits, n = rate
    (low, high), missed = wilson_interval(hits, n), wilson_interval(n - hits, n)
    assert 0 <= low <= hits / n <= high <= 1
    assert_allclose(missed, [1 - high, 1 - low], atol=1e-12)


@pytest.mark.parametrize(("hits", "n"), [(1, 0), (0, 0), (3, 2), (-1, 2)])
def test_no_rate(hits, n):
    with pytest.raises(ValueError, match="no rate"):
        wilson_interval(hits, n)


def test_values_in_groups_count_as_groups(rng):
    """Where all of a group are alike the interval is about that of the groups' number; alone each counts."""
    hits = rng.random(200) < 0.3
    assert interval_of_clusters(hits, range(200)) == wilson_interval(int(hits.sum()), 200)
    low, high = interval_of_clusters(np.repeat(hits, 5), np.repeat(np.arange(200), 5))
    assert_allclose([low, high], wilson_interval(int(hits.sum()), 200), atol=0.01)
    assert interval_of_clusters([0.2] * 5, [0] * 5) == (0.0, 1.0)
    with pytest.raises(ValueError, match="from 0 to 1"):
        interval_of_clusters([1.5], [0])


def test_interval_of_values_in_groups_covers(rng):
    covered = []
    for _ in range(400):
        rates = rng.beta(2, 3, size=20)
        values = (rng.random((20, 5)) < rates[:, None]).ravel()
        low, high = interval_of_clusters(values, np.repeat(np.arange(20), 5))
        covered.append(low <= 0.4 <= high)
    assert np.mean(covered) >= 0.92
