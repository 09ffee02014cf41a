"""Anchor rows labelled at home: what leaves, how good the targets are, and what votes promise."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge

import datacollab as dc
from datacollab.errors import NoGuaranteeError, ObfuscationError
from datacollab.party import AnchorResiduals, GaussianNoise, LabelledAnchors, Microaggregation, gaussian_sigma
from datacollab.party._labelled_anchors import (
    ROWS_OF_TEACHER,
    KernelModel,
    best_labels,
    offsets_for_counts,
)


class Silent(np.random.RandomState):
    """Draws rows as ever, and noise of zero."""

    def standard_normal(self, size=None):
        return np.zeros(size)


def released(defence, own, target, anchor, generator=None):
    generator = np.random.RandomState(0) if generator is None else generator
    return defence.release(own, np.asarray(target), anchor, None, generator)


@pytest.fixture
def rings(rng):
    """A class inside another, which no linear model tells."""
    X = rng.normal(size=(500, 2)) * 2
    return X, np.where((X**2).sum(axis=1) < 5, "in", "out")


def test_targets_are_mostly_right(rings):
    X, y = rings
    published = released(LabelledAnchors(200), X[:200], y[:200], X[200:])
    assert_array_equal(published.rows, X[200:][published.anchor_rows])
    assert published.own_rows is None
    assert len(set(published.anchor_rows)) == 200
    assert np.mean(published.target == y[200:][published.anchor_rows]) > 0.9
    assert published.target.dtype == y.dtype


def test_numbers_are_predicted(rng):
    X = rng.normal(size=(400, 2))
    y = np.sin(X[:, 0]) + 10
    published = released(LabelledAnchors(150), X[:200], y[:200], X[200:])
    error = published.target - y[200:][published.anchor_rows]
    assert np.mean(error**2) < 0.05 * np.var(y)


@pytest.mark.parametrize("numeric", [False, True])
def test_the_better_of_two_models_is_taken(rng, numeric):
    """A smooth boundary suits the kernel; one that follows a column among many suits the forest."""
    smooth, many = rng.normal(size=(300, 2)), rng.normal(size=(1000, 10))
    for X, y in ((smooth, smooth.sum(axis=1)), (many, np.where(np.abs(many[:, 0]) > 0.7, 2.0, -2.0))):
        half = len(X) // 2
        target = y if numeric else (y > 0).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = best_labels(X[:half], target[:half], X[half:], numeric=numeric, generator=np.random.RandomState(0))
        error = np.mean((found - target[half:]) ** 2)
        assert error < (0.15 if numeric else 0.1) * (1 if not numeric else np.var(y))


def test_kernel_model_is_kernel_ridge_regression(rng):
    X, new = rng.normal(size=(40, 3)), rng.normal(size=(30, 3))
    y = X[:, 0] + rng.normal(size=40)
    model = KernelModel(0.3, 0.1, numeric=True).fit(X, y, np.random.RandomState(0))
    # A constant that is penalised like the rest is a kernel with one added.
    gram, between = (np.exp(-0.3 * ((A[:, None] - X) ** 2).sum(axis=2)) + 1 for A in (X, new))
    naive = KernelRidge(alpha=0.1, kernel="precomputed")
    assert_allclose(model.predict(new), naive.fit(gram, y).predict(between), atol=1e-6)
    other = KernelModel(0.3, 5.0, numeric=True).fit(X, y, np.random.RandomState(0)).with_ridge(0.1)
    assert_allclose(other.predict(new), model.predict(new), atol=1e-12)
    assert_allclose(other.left_out_scores, model.left_out_scores, atol=1e-12)
    for row in range(0, 40, 7):
        others = np.arange(40) != row
        alone = naive.fit(gram[np.ix_(others, others)], y[others]).predict(gram[[row]][:, others])
        assert_allclose(model.left_out_scores[row], alone[0], atol=1e-6)


def test_left_out_score_of_pure_noise_is_that_of_chance(rng):
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 4, size=300)
    model = KernelModel(0.3, 0.01, numeric=False).fit(X, y, np.random.RandomState(0))
    assert np.mean(model.predict(X) == y) > 0.7
    assert abs(np.mean(model.left_out_scores.argmax(axis=1) == y) - 0.25) < 0.1
    # Worse than to say 1/4 of every class, whose error is 3/16.
    assert np.mean((model.left_out_scores - np.eye(4)[y]) ** 2) > 3 / 16


def test_as_many_anchor_rows_are_labelled_as_there_are_own_ones_and_300_at_most(rng):
    anchor = rng.normal(size=(400, 2))
    for n_own, n_published in ((20, 20), (299, 299), (350, 300)):
        own = rng.normal(size=(n_own, 2))
        assert len(released(LabelledAnchors(), own, own[:, 0] > 0, anchor).rows) == n_published
    assert len(released(LabelledAnchors(), anchor[:100], anchor[:100, 0] > 0, anchor[:50]).rows) == 50


def test_a_rare_class_is_named(rng):
    """One row in eight, hardly told from the others: its score is hardly ever the larger one."""
    X = rng.normal(size=(800, 3))
    y = X[:, 0] + 2 * rng.normal(size=800) > 2.6
    found = best_labels(X[:400], y[:400], X[400:], numeric=False, generator=np.random.RandomState(0))
    timid = KernelModel(0.1, 1.0, numeric=False).fit(X[:400], y[:400], np.random.RandomState(0))
    assert 0.08 < y[:400].mean() < 0.16
    assert timid.predict(X[400:]).mean() < 0.02
    assert 0.06 < found.mean() < 0.18
    assert X[400:, 0][found].mean() > X[400:, 0].mean() + 0.5


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_offsets_give_each_class_its_rows(rng, n_classes):
    scores = rng.normal(size=(300, n_classes)) + rng.normal(size=n_classes)
    counts = np.bincount(rng.integers(0, n_classes, size=300), minlength=n_classes)
    found = np.bincount((scores + offsets_for_counts(scores, counts)).argmax(axis=1), minlength=n_classes)
    assert np.abs(found - counts).sum() <= 2
    assert np.abs(np.bincount(scores.argmax(axis=1), minlength=n_classes) - counts).sum() > 10


def test_offsets_are_none_where_counts_fit_already(rng):
    scores = rng.normal(size=(50, 3))
    counts = np.bincount(scores.argmax(axis=1), minlength=3)
    assert_array_equal(offsets_for_counts(scores, counts), 0)


def test_one_class_labels_all(rng):
    published = released(LabelledAnchors(5), rng.normal(size=(8, 2)), ["ill"] * 8, rng.normal(size=(20, 2)))
    assert set(published.target) == {"ill"}


def test_nothing_of_the_own_rows_is_in_the_share(rng):
    X, y, public = rng.normal(size=(60, 6)), rng.normal(size=60), rng.normal(size=(80, 6))
    party = dc.Party("a", PCA(3), fit_on=public, defences=[LabelledAnchors(50)]).fit(X, y)
    share, order = party.share_with_order(public)
    assert order is None
    assert share.representation.shape == (50, 3)
    assert not np.isin(share.target, y).any()
    assert_array_equal(share.representation, share.anchor_representation[share.anchor_rows])
    with pytest.raises(NoGuaranteeError, match="no ClassShift or GaussianMechanism"):
        party.guarantee(public)


class TestVotes:
    def votes(self, rng, epsilon, n_rows=20, n_teachers=40, generator=None):
        X = rng.normal(size=(800, 2))
        y = (X[:, 0] > 0).astype(int)
        anchor = rng.normal(size=(100, 2))
        defence = LabelledAnchors(n_rows, epsilon=epsilon, n_teachers=n_teachers)
        return released(defence, X, y, anchor, generator), anchor

    def test_many_teachers_are_right_in_spite_of_noise(self, rng):
        published, anchor = self.votes(rng, 8.0)
        assert np.mean(published.target == (published.rows[:, 0] > 0)) >= 0.85

    def test_without_noise_the_majority_decides(self, rng):
        X, anchor = rng.normal(size=(90, 2)), rng.normal(size=(30, 2))
        y = (X[:, 0] > 0).astype(int)
        defence = LabelledAnchors(30, epsilon=1.0, n_teachers=3)
        published = released(defence, X, y, anchor, Silent(3))
        generator = np.random.RandomState(3)
        chosen = generator.permutation(30)
        teachers = np.array_split(generator.permutation(90), 3)
        gamma = 1 / np.median([((a - b) ** 2).sum() for i, a in enumerate(anchor) for b in anchor[:i]])
        model = KernelModel(gamma, 0.1, numeric=False)
        answers = [model.fit(X[own], y[own], generator).predict(anchor[chosen]) for own in teachers]
        assert_array_equal(published.target, (np.sum(answers, axis=0) >= 2).astype(int))

    def test_noise_is_that_of_all_votes_together(self, rng, monkeypatch):
        """Of one row replaced: one teacher changes, and with it a vote in two cells for each published row."""
        seen = {}

        def spied(votes, sigma, generator):
            seen.setdefault("votes", []).append(votes)
            seen["sigma"] = sigma
            return votes

        monkeypatch.setattr("datacollab.party._labelled_anchors.noisy", spied)
        X, anchor = rng.normal(size=(60, 2)), rng.normal(size=(15, 2))
        y = (X[:, 0] > 0).astype(int)
        worst = 0.0
        for changed in range(12):
            other_X, other_y = X.copy(), y.copy()
            other_X[changed], other_y[changed] = 100 * rng.normal(size=2), 1 - y[changed]
            for rows, target in ((X, y), (other_X, other_y)):
                released(LabelledAnchors(10, epsilon=2.0, n_teachers=30), rows, target, anchor)
            worst = max(worst, np.linalg.norm(seen["votes"][-1] - seen["votes"][-2]))
        assert seen["sigma"] == pytest.approx(gaussian_sigma(2.0, 1e-5) * np.sqrt(2 * 10))
        assert 0 < worst <= np.sqrt(2 * 10)

    def test_means_of_bounded_numbers(self, rng, monkeypatch):
        seen = {}

        def spied(means, sigma, generator):
            seen.update(sigma=sigma, means=means)
            return means

        monkeypatch.setattr("datacollab.party._labelled_anchors.noisy", spied)
        X, anchor = rng.normal(size=(200, 2)), rng.normal(size=(40, 2))
        defence = LabelledAnchors(25, epsilon=4.0, n_teachers=20, bounds=(-1.0, 2.0))
        published = released(defence, X, 50 * X[:, 0], anchor)
        assert seen["sigma"] == pytest.approx(gaussian_sigma(4.0, 1e-5) * 3.0 * np.sqrt(25) / 20)
        assert published.target.min() >= -1
        assert published.target.max() <= 2
        with pytest.raises(ObfuscationError, match="bounds=.low, high. must say"):
            released(LabelledAnchors(epsilon=1.0), X, X[:, 0], anchor)

    @pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
    def test_no_target_decides_what_is_published(self, rng, bounds):
        """Of two tables that differ in one target, 1 or 0.5, both are voted on, averaged, or refused."""
        X, anchor = rng.normal(size=(60, 2)), rng.normal(size=(15, 2))
        whole = (X[:, 0] > 0).astype(float)
        other = np.where(np.arange(60) == 0, 0.5, whole)
        defence = LabelledAnchors(10, epsilon=2.0, bounds=bounds)
        for target in (whole, other):
            if bounds is None:
                with pytest.raises(ObfuscationError, match="bounds=.low, high. must say"):
                    released(defence, X, target, anchor)
            else:
                # Means with noise, which hardly ever are whole between the bounds.
                found = released(defence, X, target, anchor, Silent(0)).target
                assert np.any((found > 0) & (found < 1))

    def test_what_targets_are_can_be_said(self, rng):
        X, anchor = rng.normal(size=(60, 2)), rng.normal(size=(15, 2))
        defence = LabelledAnchors(10, epsilon=2.0, regression=False)
        assert set(released(defence, X, (X[:, 0] > 0).astype(float), anchor).target) <= {0.0, 1.0}
        with pytest.raises(ObfuscationError, match="targets must be numbers; got type"):
            released(LabelledAnchors(epsilon=1.0, bounds=(0, 1)), X, ["ill"] * 60, anchor)

    def test_a_guarantee_covers_targets_too(self, rng):
        X, public = rng.normal(size=(100, 4)), rng.normal(size=(60, 4))
        party = dc.Party("a", PCA(3), fit_on=public, defences=[LabelledAnchors(5, epsilon=3.0)])
        guarantee = party.fit(X, np.arange(100) % 2).guarantee(public)
        assert guarantee.epsilon == 3.0
        assert "features and target" in guarantee.statement
        assert "Which classes (targets) occur is taken as public" in guarantee.statement

    def test_teachers_have_ten_rows_and_share_none(self, rng):
        defence = LabelledAnchors(epsilon=1.0)
        teachers = defence._teachers(95, np.random.RandomState(0))
        assert len(teachers) == 95 // ROWS_OF_TEACHER
        assert sorted(np.concatenate(teachers)) == list(range(95))
        with pytest.raises(ObfuscationError, match="5 rows are fewer than n_teachers=6"):
            LabelledAnchors(epsilon=1.0, n_teachers=6)._teachers(5, np.random.RandomState(0))


class TestResiduals:
    def test_are_those_of_the_class(self, rng):
        means, anchor, b = np.zeros((60, 2)), rng.normal(size=(50, 2)) + 5, np.arange(50) % 2
        y = np.arange(60) % 3
        published, target = AnchorResiduals().apply(
            means, y, anchor_representation=anchor, anchor_target=b, random_state=0
        )
        assert_array_equal(target, y)
        for label in range(3):
            of_class = anchor[b == label] if label < 2 else anchor
            residuals = of_class - of_class.mean(axis=0)
            for row in published[y == label]:
                assert np.abs(residuals - row).max(axis=1).min() < 1e-12

    def test_stay_at_home(self, rng):
        X, public = rng.normal(size=(60, 4)), rng.normal(size=(60, 4))
        defences = [Microaggregation(5), GaussianNoise(0.3), AnchorResiduals()]
        share = dc.Party("a", PCA(3), fit_on=public, defences=defences).fit(X, np.arange(60) % 2).share(public)
        assert share.anchor_rows is None
        assert not share.one_to_one
        assert len(np.unique(share.representation, axis=0)) == 60


def test_of_whole_numbers_of_many_kinds_no_own_one_is_published(rng):
    own, anchor = rng.normal(size=(60, 2)), rng.normal(size=(90, 2))
    y = np.round(100 * own[:, 0])
    _, labels = LabelledAnchors().apply(own, y, anchor_representation=anchor, random_state=0)
    assert not np.isin(labels, y).any()
    _, as_numbers = LabelledAnchors(regression=True).apply(own, y, anchor_representation=anchor, random_state=0)
    assert np.corrcoef(labels, as_numbers)[0, 1] > 0.999
