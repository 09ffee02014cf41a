"""Class shift: its formula, its sensitivity, and what it publishes."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier

import datacollab as dc
from datacollab.errors import ObfuscationError, RepeatableSecretWarning, SuppressedRowsWarning
from datacollab.party import ClassShift, gaussian_sigma
from datacollab.party._class_shift import PublicClass, allocated, anchor_classes, noisy_sums, public_class, shrunk_shift


class Silent(np.random.RandomState):
    """Draws rows as ever, and noise of zero."""

    def standard_normal(self, size=None):
        return np.zeros(size)


def released(defence, own, target, anchor, anchor_target, generator=None):
    generator = np.random.RandomState(0) if generator is None else generator
    return defence.release(own, np.asarray(target), anchor, np.asarray(anchor_target), generator)


@pytest.fixture
def two_classes(rng):
    """Own rows and anchor rows of two classes, shifted apart."""
    y, b = np.repeat([0, 1], [30, 20]), np.repeat([0, 1], [120, 90])
    return rng.normal(size=(50, 3)) + 4 * y[:, None] + 0.3, y, rng.normal(size=(210, 3)) + 4 * b[:, None], b


def test_is_the_formula_when_there_is_no_noise(two_classes):
    own, y, anchor, b = two_classes
    published = released(ClassShift(shrink=False), own, y, anchor, b, Silent(0))
    for label in (0, 1):
        members, public = own[y == label], anchor[b == label]
        center = public.mean(axis=0)
        radius = np.median([np.linalg.norm(row - center) for row in public])
        differences = [(z - center) * min(1, radius / np.linalg.norm(z - center)) for z in members]
        expected = np.mean(differences, axis=0)
        rows = published.rows[published.target == label]
        base = anchor[published.anchor_rows[published.target == label]]
        assert_allclose(rows - base, np.tile(expected, (len(rows), 1)), atol=radius / 2**10)
        assert np.isin(published.anchor_rows[published.target == label], np.flatnonzero(b == label)).all()
    assert len(set(published.anchor_rows)) == 50


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_noise_has_the_standard_deviation_promised(rng, epsilon):
    anchor = rng.normal(size=(300, 4))
    center = anchor.mean(axis=0)
    radius = np.median(np.linalg.norm(anchor - center, axis=1))
    own, defence = np.tile(center, (25, 1)), ClassShift(epsilon, shrink=False)
    shifts = []
    for seed in range(400):
        published = released(defence, own, np.zeros(25), anchor, np.zeros(300), np.random.RandomState(seed))
        shifts.append((published.rows - anchor[published.anchor_rows])[0])
    sigma = gaussian_sigma(epsilon, 1e-5) * 2 * radius / 25
    assert np.std(shifts) == pytest.approx(sigma, rel=5 / np.sqrt(2 * 1600))
    assert np.mean(shifts) == pytest.approx(0, abs=5 * sigma / np.sqrt(1600))


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 3))
def test_replacing_a_row_changes_all_sums_by_the_diameter_at_most(seed, n_clusters, n_columns):
    """The sensitivity over all clusters and counts together, on which the promise rests."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_clusters, n_columns)) * 3
    public = PublicClass(np.zeros((1, n_columns)), np.zeros(1, dtype=int), centers, float(rng.uniform(0.1, 3)))
    own = rng.normal(size=(6, n_columns)) * 4
    other = own.copy()
    other[2] = rng.normal(size=n_columns) * 10.0 ** rng.integers(-1, 4)
    vectors = []
    for rows in (own, other):
        sums, counts = noisy_sums(rows, public, 1e-9, Silent(0))
        vectors.append(np.column_stack([sums, counts * public.radius]).ravel())
    assert np.linalg.norm(vectors[0] - vectors[1]) <= 2 * public.radius * (1 + 1e-6)


def test_the_diameter_is_reached_within_a_cluster_and_between_two():
    public = PublicClass(np.zeros((1, 1)), np.zeros(1, dtype=int), np.array([[0.0], [10.0]]), 1.0)
    for first, second in ((-1.0, 1.0), (1.0, 9.0)):
        vectors = [
            np.column_stack([*noisy_sums(np.array([[row]]), public, 1e-9, Silent(0))]).ravel()
            for row in (first, second)
        ]
        assert np.linalg.norm(vectors[0] - vectors[1]) == pytest.approx(2.0, rel=1e-6)


def test_what_is_published_depends_on_features_through_noisy_sums_alone(two_classes):
    """With no noise and no shift, own features change nothing."""
    own, y, anchor, b = two_classes
    shares = [released(ClassShift(min_rows=100), rows, y, anchor, b) for rows in (own, own * 1e3)]
    assert_array_equal(shares[0].rows, shares[1].rows)
    assert_array_equal(shares[0].rows, anchor[shares[0].anchor_rows])


def test_shrinking_is_the_best_linear_estimate(rng):
    """Of a normal mean m with covariance S seen with noise s: naive inverse, and the smallest squared error."""
    rows = rng.normal(size=(500, 2)) @ np.diag([3.0, 0.5])
    S, s = np.cov(rows, rowvar=False) / 20, 0.4
    truth = rng.multivariate_normal([0, 0], S, size=3000)
    seen = truth + s * rng.normal(size=truth.shape)
    found = np.array([shrunk_shift(m, rows, 20, s) for m in seen])
    assert_allclose(found, seen @ np.linalg.inv(S + s**2 * np.eye(2)) @ S, atol=1e-9)
    error = np.mean((found - truth) ** 2)
    assert all(error < np.mean((factor * seen - truth) ** 2) for factor in np.linspace(0, 1, 11))


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 200), st.floats(0.01, 50))
def test_counts_of_clusters_add_up(seed, n_clusters, n_rows, noise):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(n_clusters))
    counts = allocated(rng.normal(size=n_clusters) * noise + n_rows * shares, shares, n_rows, noise)
    assert counts.sum() == n_rows
    assert (counts >= 0).all()
    # Without noise, what is counted is what comes out.
    exact = rng.multinomial(n_rows, shares)
    assert_array_equal(allocated(exact.astype(float), shares, n_rows, 1e-9)[shares > 0.01], exact[shares > 0.01])


def test_clusters_are_moved_each_by_itself(rng):
    """One class of two lumps, of which the party has moved one to the left and the other to the right."""
    kind = np.repeat([-10.0, 10.0], 300)
    anchor = rng.normal(size=(600, 2)) * 0.3 + np.column_stack([kind, np.zeros(600)])
    own = anchor + np.column_stack([np.sign(kind) * 0.2, np.zeros(600)])
    published = released(ClassShift(8.0, n_clusters=2), own, np.zeros(600), anchor, np.zeros(600))
    moved = published.rows - anchor[published.anchor_rows]
    side = np.sign(anchor[published.anchor_rows][:, 0])
    # Half of the differences are clipped, which takes some of the 0.2.
    assert (np.abs(moved[:, 0] * side - 0.14) < 0.06).all()
    assert len(np.unique(np.round(moved, 9), axis=0)) == 2
    both = released(ClassShift(8.0), own, np.zeros(600), anchor, np.zeros(600))
    assert np.abs(both.rows - anchor[both.anchor_rows]).max() < 1.0


def test_few_anchor_rows_have_fewer_clusters(rng):
    assert len(public_class(rng.normal(size=(25, 2)), 5).centers) == 2
    assert len(public_class(rng.normal(size=(3, 2)), 5).centers) == 1


def test_no_row_twice_before_all_were_drawn(rng):
    anchor, own = rng.normal(size=(12, 2)), rng.normal(size=(30, 2))
    published = released(ClassShift(), own, np.zeros(30), anchor, np.zeros(12))
    counts = np.bincount(published.anchor_rows)
    assert sorted(set(counts)) == [2, 3]


def test_a_class_of_one_anchor_row_is_published_as_it_is(rng):
    anchor = rng.normal(size=(1, 2))
    published = released(ClassShift(), rng.normal(size=(9, 2)), np.zeros(9), anchor, [0])
    assert_array_equal(published.rows, np.tile(anchor, (9, 1)))


def test_classes_that_the_anchor_lacks_are_not_shared(two_classes):
    own, y, anchor, b = two_classes
    with pytest.warns(SuppressedRowsWarning, match="20 of 50 rows are of classes that the anchor has no row of"):
        published = released(ClassShift(), own, y, anchor[b == 0], b[b == 0])
    assert_array_equal(published.own_rows, np.arange(30))
    with pytest.raises(ObfuscationError, match="have nothing in common"):
        released(ClassShift(), own, y.astype(str), anchor, b)


def test_targets_of_the_anchor_are_needed(rng):
    party = dc.Party("clinic", PCA(2), fit_on=rng.normal(size=(50, 4)), defences=[ClassShift()])
    party.fit(rng.normal(size=(40, 4)), np.zeros(40))
    with pytest.raises(ObfuscationError, match="Party 'clinic': ClassShift needs the targets.*LabelledAnchors"):
        party.share(rng.normal(size=(50, 4)))


class TestNumbers:
    def test_targets_are_those_of_the_anchor_in_the_same_interval(self, rng):
        own, y = rng.normal(size=(80, 2)), rng.gamma(2.0, size=80)
        anchor, b = rng.normal(size=(400, 2)), rng.gamma(2.0, size=400)
        published = released(ClassShift(), own, y, anchor, b)
        assert_array_equal(published.target, b[published.anchor_rows])
        ends = np.sort(b)[np.arange(40, 400, 40) - 1]
        naive = [sum(value > end for end in ends) for value in y]
        assert_array_equal([sum(value > end for end in ends) for value in published.target], naive)
        assert not np.isin(published.target, y).any()

    def test_own_targets_count_by_their_interval_alone(self, rng):
        own, anchor, b = rng.normal(size=(60, 2)), rng.normal(size=(300, 2)), rng.normal(size=300)
        y = rng.normal(size=60)
        ends = np.sort(b)[np.arange(30, 300, 30) - 1]
        coarse = np.append(ends, np.inf)[np.searchsorted(ends, y)]
        shares = [released(ClassShift(n_bins=10), own, each, anchor, b) for each in (y, np.minimum(coarse, 1e9))]
        assert_array_equal(shares[0].rows, shares[1].rows)
        assert_array_equal(shares[0].target, shares[1].target)

    def test_every_interval_has_anchor_rows(self, rng):
        for b in (np.zeros(100), np.repeat([0.5, 1.5], 50), np.round(rng.gamma(1.0, size=200), 1) + 0.5):
            classes = anchor_classes(rng.normal(size=50) * 10, b, 10)
            assert set(classes.own) <= set(classes.anchor)

    def test_texts_have_no_intervals(self, rng):
        with pytest.raises(ObfuscationError, match="n_bins=3 needs numeric targets"):
            released(ClassShift(n_bins=3), rng.normal(size=(4, 2)), list("abab"), rng.normal(size=(4, 2)), list("abab"))


def test_guarantee_says_what_is_covered(rng):
    public, X = rng.normal(size=(200, 5)), rng.normal(size=(60, 5))
    numbers = rng.normal(size=200)
    for b, y, words in (
        (np.arange(200) % 2, np.arange(60) % 2, "Labels (targets) and row counts are released exactly"),
        (numbers, rng.normal(size=60), "How many targets lie in each interval is released exactly"),
    ):
        party = dc.Party("a", PCA(3), fit_on=public, defences=[ClassShift(2.0, 1e-6)]).fit(X, y)
        guarantee = party.guarantee(public, b)
        assert (guarantee.epsilon, guarantee.delta) == (2.0, 1e-6)
        assert guarantee.mu == pytest.approx(1 / gaussian_sigma(2.0, 1e-6))
        assert words in guarantee.statement


@pytest.mark.slow
def test_nobody_links_more_rows_than_by_chance_within_a_class(rng):
    """Pairs within a class are random: over many shares, each own row stands beside each place as often."""
    own, anchor = np.sort(rng.normal(size=(6, 1)), axis=0), np.sort(rng.normal(size=(40, 1)), axis=0)
    ranks = np.array(
        [
            np.argsort(np.argsort(released(
                ClassShift(100.0, shrink=False), own, np.zeros(6), anchor, np.zeros(40), np.random.RandomState(seed)
            ).rows[:, 0]))
            for seed in range(600)
        ]
    )  # fmt: skip
    for place, rank in itertools.product(range(6), range(6)):
        assert abs(np.mean(ranks[:, place] == rank) - 1 / 6) < 4 * np.sqrt(5 / 36 / 600)


@pytest.mark.parametrize("seed", [0, 10, 20])
def test_a_collaboration_of_shifted_classes_learns(seed):
    X, y = dc.datasets.load("digits")
    parties = [dc.Party.private(k, X[:400], epsilon=4.0, random_state=seed + k) for k in range(4)]
    for k, party in enumerate(parties):
        own = slice(400 + 100 * k, 500 + 100 * k)
        with pytest.warns(RepeatableSecretWarning):
            party.fit(X[own], y[own])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shares = [party.share(X[:400], y[:400]) for party in parties]
    model = dc.Analyst(dc.LTI(16), RandomForestClassifier(50, random_state=0)).fit(shares)
    accuracy = np.mean(parties[0].predict(X[1000:], model.party_model(0)) == y[1000:])
    assert accuracy > 0.8
