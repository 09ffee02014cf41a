"""Sums over classes instead of rows: what one record can move, what is promised, and what an attacker makes of it."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2

import datacollab as dc
from datacollab.errors import (
    AnchorError,
    NoGuaranteeError,
    ObfuscationError,
    SharedBeforeError,
    ShareError,
    SuppressedRowsWarning,
)
from datacollab.party import GaussianNoise, NoisyClassSums, gaussian_delta, gaussian_sigma
from datacollab.party._gaussian_noise import gaussian_epsilon, grid_step
from datacollab.party._noisy_class_sums import ADDED, REPLACED, class_vector
from datacollab.risk.attacks import one_run_epsilon, representation_distance_scores
from datacollab.share import ClassSums

ROUNDING = 1 + 1e-9


@pytest.fixture
def table(rng):
    return rng.normal(size=(60, 6)) @ rng.normal(size=(6, 6)), np.arange(60) % 3


@pytest.fixture
def public(rng):
    return rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6))


def summing(public, epsilon=4.0, *, classes=(0, 1, 2), **options):
    defence = NoisyClassSums(epsilon, classes=classes)
    return dc.Party("a", dc.obfuscator("pca", n_components=3), fit_on=public, defences=[defence], **options)


def repeatable(public, *rows, **options):
    return summing(public, random_state=np.random.RandomState(5), **options).fit(*rows)


class TestOneRecord:
    """How far the vector moves that noise is added to."""

    @staticmethod
    def drawn(seed, n_rows, n_classes, n_columns):
        """Rows on every scale, some far outside the sphere, with classes that may be none of those agreed on."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n_rows, n_columns)) * 10.0 ** rng.integers(-3, 6, size=(n_rows, 1))
        return X, rng.integers(-1, n_classes, size=n_rows), rng.normal(size=n_columns), 10.0 ** rng.uniform(-3, 3)

    def test_vector_is_the_sum_written_out(self, rng):
        X, codes, center, radius = self.drawn(3, 40, 4, 3)
        vector = np.zeros((4, 4))
        for x, code in zip(X, codes, strict=True):
            if code >= 0:
                v = x - center
                length = math.sqrt(sum(entry**2 for entry in v))
                vector[code, :3] += v if length <= radius else v * radius / length
                vector[code, 3] += radius
        assert_allclose(class_vector(X, codes, 4, center, radius), vector, rtol=1e-9, atol=1e-9 * radius)

    @given(st.integers(0, 10**9), st.integers(1, 30), st.integers(2, 6), st.integers(1, 8))
    def test_replacing_any_record_moves_it_by_2c_at_most(self, seed, n_rows, n_classes, n_columns):
        X, codes, center, radius = self.drawn(seed, n_rows + 1, n_classes, n_columns)
        first = class_vector(X[:-1], codes[:-1], n_classes, center, radius)
        place = seed % n_rows
        other_X, other_codes = X[:-1].copy(), codes[:-1].copy()
        other_X[place], other_codes[place] = X[-1], codes[-1]
        moved = np.linalg.norm(first - class_vector(other_X, other_codes, n_classes, center, radius))
        # Sums of entries up to n_rows * C are rounded.
        assert moved <= REPLACED * radius * ROUNDING

    @given(st.integers(0, 10**9), st.integers(2, 6), st.integers(1, 8))
    def test_adding_any_record_moves_it_by_the_root_of_two_c_at_most(self, seed, n_classes, n_columns):
        X, codes, center, radius = self.drawn(seed, 20, n_classes, n_columns)
        with_all = class_vector(X, codes, n_classes, center, radius)
        without = class_vector(X[1:], codes[1:], n_classes, center, radius)
        assert np.linalg.norm(with_all - without) <= ADDED * radius * ROUNDING

    @pytest.mark.parametrize("n_columns", [1, 5])
    def test_both_bounds_are_attained(self, rng, n_columns):
        center, radius = rng.normal(size=n_columns), 2.5
        direction = rng.normal(size=n_columns)
        direction *= radius / np.linalg.norm(direction)
        rest, rest_codes = rng.normal(size=(10, n_columns)), np.arange(10) % 3

        def moved(first, second):
            vectors = [
                class_vector(np.vstack([rest, row]), np.append(rest_codes, code), 3, center, radius)
                for row, code in (first, second)
            ]
            return np.linalg.norm(vectors[0] - vectors[1])

        there, opposite = center + direction, center - 1e3 * direction
        assert_allclose(moved((there, 0), (opposite, 0)), 2 * radius)
        assert_allclose(moved((there, 0), (there, 2)), 2 * radius)
        assert_allclose(moved((there, 0), (opposite, 2)), 2 * radius)
        nobody = class_vector(rest, rest_codes, 3, center, radius)
        one_more = class_vector(np.vstack([rest, there]), np.append(rest_codes, 1), 3, center, radius)
        assert_allclose(np.linalg.norm(one_more - nobody), math.sqrt(2) * radius)


class TestNoise:
    def released(self, X, y, anchor, n_times, epsilon=4.0, classes=(0, 1)):
        mechanism = NoisyClassSums(epsilon, classes=classes)
        state = np.random.RandomState(0)
        C = mechanism.clip(anchor)
        tables = [mechanism.release(X, y, anchor, None, state) for _ in range(n_times)]
        return np.array([np.column_stack([each.rows, C * each.counts]) for each in tables]), mechanism

    def test_has_the_variance_that_is_said_in_every_entry(self, rng):
        anchor, X, y = rng.normal(size=(100, 2)), rng.normal(size=(30, 2)), np.arange(30) % 2
        tables, mechanism = self.released(X, y, anchor, 1000)
        C, noise = mechanism.clip(anchor), mechanism.noise(anchor)
        assert noise == gaussian_sigma(4.0, 1e-5) * 2 * C
        exact = class_vector(X, y, 2, anchor.mean(axis=0), C)
        squares = ((tables - exact) ** 2).sum(axis=0) / noise**2
        low, high = chi2.ppf([1e-6, 1 - 1e-6], 1000)
        assert ((low < squares) & (squares < high)).all()
        flat = (tables - exact).reshape(1000, -1)
        correlations = np.corrcoef(flat.T) - np.eye(flat.shape[1])
        assert np.abs(correlations).max() < 0.17  # five standard deviations

    def test_lies_on_a_grid(self, rng):
        anchor, X, y = rng.normal(size=(100, 2)), rng.normal(size=(30, 2)), np.arange(30) % 2
        tables, mechanism = self.released(X, y, anchor, 3)
        step = grid_step(mechanism.noise(anchor))
        assert_allclose(np.round(tables / step), tables / step, rtol=0, atol=1e-6)

    @pytest.mark.parametrize(("epsilon", "change"), [(1.0, "features"), (4.0, "label"), (4.0, "presence")])
    def test_best_attack_does_as_well_as_is_promised_and_no_better(self, rng, epsilon, change):
        """On the pairs that attain the bounds, scored by the likelihood ratio: below that the noise would be wasted."""
        anchor = rng.normal(size=(100, 3))
        center, n_times = anchor.mean(axis=0), 3000
        C = NoisyClassSums(epsilon).clip(anchor)
        far = np.array([10 * C, 0, 0])
        first = (np.vstack([anchor[:9], center + far]), np.arange(10) % 2)
        second = {
            "features": (np.vstack([anchor[:9], center - far]), np.arange(10) % 2),
            "label": (first[0], np.append(np.arange(9) % 2, 0)),
            "presence": (first[0][:9], first[1][:9]),
        }[change]
        tables = [self.released(*each, anchor, n_times, epsilon)[0] for each in (first, second)]
        exact = [class_vector(*each, 2, center, C) for each in (first, second)]
        scores = [np.tensordot(each, exact[0] - exact[1], axes=2) for each in tables]
        # Two streams of noise: the second is reversed, so that pairs are not of the same draw.
        auc = np.mean(scores[0][:, None] > scores[1][::-1][None])
        mechanism = NoisyClassSums(epsilon, classes=(0, 1))
        if change == "presence":
            mu = 1 / gaussian_sigma(mechanism.epsilon_of_presence, 1e-5)
            expected = math.erfc(-mu / 2) / 2
        else:
            expected = summing(anchor, epsilon, classes=(0, 1)).fit(anchor[:20] + 0.1, np.arange(20) % 2)
            expected = expected.guarantee(anchor).auc_at_most
        assert auc == pytest.approx(expected, abs=0.025)

    @pytest.mark.parametrize(("epsilon", "too_little"), [(1.0, 0.05), (4.0, 0.05)])
    def test_audit_in_one_run_stays_below_epsilon(self, epsilon, too_little):
        """Canaries on the axes, one for each column and class: each is x or its opposite by a fair coin."""
        n_classes, n_columns = 10, 60
        rng = np.random.default_rng(1)
        anchor = rng.normal(size=(200, n_columns))
        mechanism = NoisyClassSums(epsilon, classes=range(n_classes))
        C, center = mechanism.clip(anchor), anchor.mean(axis=0)
        coins = rng.choice([-1.0, 1.0], size=(n_classes, n_columns))
        axes = np.einsum("ck,kj->ckj", coins, np.eye(n_columns)).reshape(-1, n_columns)
        labels = np.repeat(np.arange(n_classes), n_columns)

        def shown(noise):
            told = noise + C * coins
            sure = np.abs(told) >= np.quantile(np.abs(told), 0.5)
            right = int((np.sign(told) == coins)[sure].sum())
            return one_run_epsilon(right, int(sure.sum()), coins.size, mechanism.delta)

        published = mechanism.release(center + C * axes, labels, anchor, None, np.random.RandomState(2))
        noise = published.rows - C * coins
        assert shown(noise) < epsilon
        # The audit would notice noise that is twenty times too small.
        assert shown(noise * too_little) > min(epsilon, 3.0)


class TestPromise:
    def test_statement_covers_labels_and_says_what_it_rests_on(self, table, public):
        party = summing(public).fit(*table)
        guarantee = party.guarantee(public)
        assert (guarantee.epsilon, guarantee.delta, guarantee.n_rows) == (4.0, 1e-5, 60)
        assert guarantee.mu == pytest.approx(1 / gaussian_sigma(4.0, 1e-5))
        for words in (
            "its features and its label, with all other rows and the number of rows unchanged",
            "No row leaves, and no label",
            "agreed on beforehand and not covered",
            "with an epsilon of 2.70",
            "the rows in fit_on and the anchor are not private",
            "no parameter was chosen by looking at private rows",
        ):
            assert words in guarantee.statement
        assert "released exactly" not in guarantee.statement
        sums = party.class_sums(public)
        assert (sums.clip, sums.noise) == (guarantee.clip, guarantee.noise)
        assert (sums.epsilon, sums.delta) == (4.0, 1e-5)

    @given(st.floats(0.1, 20), st.floats(-9, -2))
    def test_presence_costs_less_than_a_replacement(self, epsilon, exponent):
        mechanism = NoisyClassSums(epsilon, 10.0**exponent)
        found = mechanism.epsilon_of_presence
        assert 0 <= found < epsilon
        assert (
            gaussian_delta(math.sqrt(2) * gaussian_sigma(epsilon, mechanism.delta), found) <= mechanism.delta * 1.0001
        )

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"fit_on": None}, "fitted on its private rows"),
            ({"random_state": 0}, "noise comes from a random_state"),
            ({"defences": [NoisyClassSums(4.0, 0.5, classes=(0, 1, 2))]}, "not below one over its 60 rows"),
        ],
    )
    @pytest.mark.filterwarnings("ignore::datacollab.errors.RepeatableSecretWarning")
    def test_nothing_leaves_without_one_unless_asked(self, table, public, changes, reason):
        party = summing(public).fit(*table)
        for name, value in changes.items():
            setattr(party, name, value)
        party.fit(*table)
        with pytest.raises(NoGuaranteeError, match=reason):
            party.class_sums(public)
        sums = party.class_sums(public, unproven=True)
        assert sums.epsilon is None
        assert sums.delta is None

    @pytest.mark.filterwarnings("ignore::datacollab.errors.RepeatableSecretWarning")
    def test_all_but_sums_and_counts_is_the_same_whatever_the_rows_are(self, table, public, rng):
        """Other features, other labels, a class missing, and another number of rows."""
        X, y = table
        other = rng.normal(5, 10, size=(37, 6)), rng.integers(0, 2, size=37)
        first, second = (repeatable(public, *each).class_sums(public, unproven=True) for each in ((X, y), other))
        for name in ("party", "clip", "noise", "anchor_target", "epsilon", "delta"):
            assert getattr(first, name) == getattr(second, name)
        for name in ("classes", "anchor_representation"):
            assert_array_equal(getattr(first, name), getattr(second, name))
        assert first.sums.shape == second.sums.shape == (3, 3)
        assert first.counts.shape == second.counts.shape == (3,)

    def test_no_row_leaves(self, table, public):
        X, y = table
        party = summing(public).fit(X, y)
        sums = party.class_sums(public)
        own = {row.tobytes() for row in party.obfuscate(X)} | {row.tobytes() for row in X}
        told = [sums.sums, sums.counts[:, None], sums.anchor_representation]
        assert not own & {row.tobytes() for array in told for row in array}
        assert "array" not in repr(sums)

    def test_distances_to_what_left_do_not_tell_members(self, table, public, rng):
        """Scored as rows of a share would be: as good as guessing, where rows themselves give themselves away."""
        X, y = table
        others = rng.normal(size=(60, 6)) @ np.linalg.qr(rng.normal(size=(6, 6)))[0] * X.std()
        party = summing(public).fit(X, y)
        sums = party.class_sums(public)
        scores = representation_distance_scores(np.vstack([X, others]), sums.sums, party.obfuscate)
        auc = np.mean(scores[:60, None] > scores[None, 60:])
        rows = representation_distance_scores(np.vstack([X, others]), party.obfuscate(X), party.obfuscate)
        assert abs(auc - 0.5) < 0.25
        assert np.mean(rows[:60, None] > rows[None, 60:]) == 1.0


class TestClasses:
    def test_are_those_agreed_on_in_one_order(self, table, public):
        X, y = table
        defence = NoisyClassSums(4.0, classes=[7, 2, 0, 1, 2])
        party = dc.Party("a", dc.obfuscator("pca", n_components=3), fit_on=public, defences=[defence]).fit(X, y)
        sums = party.class_sums(public)
        assert_array_equal(sums.classes, [0, 1, 2, 7])
        assert sums.sums.shape == (4, 3)

    def test_or_those_of_the_anchor_and_never_of_the_rows(self, table, public):
        X, y = table
        party = summing(public, classes=None).fit(X[y < 2], y[y < 2])
        sums = party.class_sums(public, np.arange(80) % 4)
        assert_array_equal(sums.classes, [0, 1, 2, 3])
        assert_array_equal(sums.anchor_target, np.arange(80) % 4)
        for call in (lambda party: party.class_sums(public), lambda party: party.guarantee(public)):
            with pytest.raises(NoGuaranteeError, match="targets"):
                call(summing(public, classes=None).fit(X, y))
        with pytest.raises(ObfuscationError, match="must not be learnt from private rows"):
            summing(public, classes=None).fit(X, y).class_sums(public, unproven=True)

    def test_rows_of_others_add_nothing_and_only_the_party_hears_of_it(self, table, public):
        X, y = table
        far = np.where(np.arange(60) < 20, y, 9)
        with pytest.warns(SuppressedRowsWarning, match="40 of 60 rows are of none of the classes"):
            sums = summing(public, 1e6).fit(X, far).class_sums(public)
        assert_allclose(sums.counts, np.bincount(y[:20], minlength=3), atol=0.1)
        with pytest.warns(SuppressedRowsWarning, match="60 of 60"):
            nobody = summing(public).fit(X, np.full(60, 9)).class_sums(public)
        assert nobody.sums.shape == (3, 3)

    def test_texts(self, table, public):
        X, y = table
        names = np.array(["no", "perhaps", "yes"])[y]
        sums = summing(public, 1e6, classes=["yes", "no", "perhaps"]).fit(X, names).class_sums(public)
        assert_array_equal(sums.classes, ["no", "perhaps", "yes"])
        assert_allclose(sums.counts, [20, 20, 20], atol=0.1)
        with pytest.raises(ObfuscationError, match="one coding"):
            summing(public).fit(X, names).class_sums(public)

    @pytest.mark.parametrize("classes", [[1], [[1, 2], [3, 4]]])
    def test_too_few_or_several_in_one_are_refused(self, table, public, classes):
        with pytest.raises((ObfuscationError, ValueError)):
            summing(public, classes=classes).fit(*table).class_sums(public)

    def test_numeric_targets_are_no_classes(self, table, public, rng):
        X, _ = table
        with pytest.raises(ObfuscationError, match="do not serve for targets that are numbers"):
            summing(public, classes=None).fit(X, rng.normal(size=60)).class_sums(public, rng.normal(size=80))


class TestOnce:
    def test_the_same_numbers_leave_every_time(self, table, public):
        party = summing(public).fit(*table)
        first, second = party.class_sums(public), copy.deepcopy(party).class_sums(public)
        assert_array_equal(first.sums, second.sums)
        assert_array_equal(first.counts, second.counts)

    def test_two_parties_draw_other_noise(self, table, public):
        first, second = (summing(public).fit(*table).class_sums(public) for _ in range(2))
        assert not np.isclose(first.counts, second.counts).any()

    def test_not_with_another_anchor(self, table, public, rng):
        party = summing(public).fit(*table)
        party.class_sums(public)
        with pytest.raises(AnchorError, match="another anchor"):
            party.class_sums(public + 1)

    def test_not_after_another_fit_and_if_so_it_adds_up(self, table, public):
        X, y = table
        party = summing(public).fit(X, y)
        party.class_sums(public)
        party.fit(X[:40], y[:40])
        with pytest.raises(SharedBeforeError, match="40 of its rows were shared"):
            party.class_sums(public)
        party.share_again = True
        sums = party.class_sums(public)
        together = gaussian_epsilon(gaussian_sigma(4.0, 1e-5) / math.sqrt(2), 1e-5)
        assert sums.epsilon == pytest.approx(together)
        assert party.guarantee(public).n_shares == 2

    def test_rows_and_sums_are_in_one_ledger(self, table, public):
        X, y = table
        party = summing(public).fit(X, y)
        party.class_sums(public)
        party.defences = [GaussianNoise(1.0)]
        with pytest.raises(SharedBeforeError):
            party.fit(X, y).share(public)
        party = dc.Party("a", dc.obfuscator("pca", n_components=3), fit_on=public, defences=[GaussianNoise(1.0)])
        party.fit(X, y).share(public)
        party.defences, party.share_again = [NoisyClassSums(4.0, classes=(0, 1, 2))], True
        with pytest.raises(NoGuaranteeError, match="nothing was promised then"):
            party.fit(X, y).class_sums(public)

    def test_rows_do_not_leave_behind_it_nor_sums_behind_others(self, table, public):
        party = summing(public).fit(*table)
        with pytest.raises(ShareError, match="no row leaves behind NoisyClassSums"):
            party.share(public)
        party.class_sums(public)
        other = dc.Party("a", dc.obfuscator("pca", n_components=3), fit_on=public).fit(*table)
        with pytest.raises(ShareError, match="class sums leave behind NoisyClassSums alone"):
            other.class_sums(public)

    @pytest.mark.parametrize("before", [True, False])
    def test_it_is_the_only_defence(self, table, public, before):
        both = [GaussianNoise(1.0), NoisyClassSums(4.0, classes=(0, 1, 2))]
        party = dc.Party("a", dc.obfuscator("pca"), fit_on=public, defences=both if before else both[::-1])
        with pytest.raises(ValueError, match="NoisyClassSums is given with other defences"):
            party.fit(*table)

    def test_it_is_not_stored_before_it_has_left(self, table, public):
        party = summing(public).fit(*table)
        with pytest.raises(TypeError, match="have not been shared yet"):
            pickle.dumps(party)


def test_sums_tell_what_they_should_where_noise_is_small(table, public):
    X, y = table
    party = summing(public, 1e8).fit(X, y)
    sums = party.class_sums(public)
    assert isinstance(sums, ClassSums)
    rows, center = party.obfuscate(X), sums.anchor_representation.mean(axis=0)
    exact = class_vector(rows, y, 3, center, sums.clip)
    assert_allclose(sums.sums, exact[:, :-1], atol=0.01 * sums.clip)
    assert_allclose(sums.counts, [20, 20, 20], atol=0.01)


def test_an_anchor_whose_rows_lie_at_their_mean_is_refused():
    with pytest.raises(ObfuscationError, match="the bound on a row's length is zero"):
        NoisyClassSums(4.0).clip(np.vstack([np.zeros((50, 6)), np.eye(6), -np.eye(6)]))
