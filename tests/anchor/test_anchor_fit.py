"""Anchors that were made for single people are told from public rows of the same kind, and private rows are found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.optimize import brentq
from scipy.spatial.distance import cdist
from scipy.stats import binom, fisher_exact
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from datacollab.anchor import EqualRows, anchor_fit, equal_rows, find_private_rows
from datacollab.errors import AnchorError
from datacollab.steps.party import Policy
from suite import IS_NIGHTLY

MOST_DENSE = Policy().max_anchor_density
LEAST_SPREAD = Policy().min_anchor_spread


N_PARTIES = 100 if IS_NIGHTLY else 20
"""How many parties, or people, each share of alarms is of."""


def is_noticed(anchor, own):
    fit = anchor_fit(anchor, own)
    return fit.n_near_beyond_chance > 0 or fit.spread < LEAST_SPREAD or fit.density > MOST_DENSE


def assert_fits(anchor, own):
    fit = anchor_fit(anchor, own)
    assert fit.n_near_beyond_chance == 0
    assert fit.spread >= LEAST_SPREAD
    return fit


@pytest.fixture(scope="module", params=[load_digits, load_breast_cancer, load_diabetes])
def table(request):
    X, _ = request.param(return_X_y=True)
    return np.random.default_rng(0).permutation(X)


def test_public_rows_of_the_same_kind_fit(table):
    """Of parties of 20 rows and of 200, and anchors of 100 rows and of many."""
    for n_own in (20, 200):
        for start in range(0, 200, 40 if IS_NIGHTLY else 100):
            own, public = table[start : start + n_own], np.delete(table, np.s_[start : start + n_own], axis=0)
            for anchor in (public[:100], public):
                assert_fits(anchor, own)


@pytest.mark.parametrize("n_columns", [1, 2, 4])
def test_an_anchor_that_crowds_along_some_columns_alone_is_dense_there(n_columns, rng):
    own, anchor = rng.normal(size=(150, 10)), rng.normal(size=(300, 10))
    assert anchor_fit(anchor, own, by_column=True).density <= MOST_DENSE
    anchor[:, :n_columns] = own[0, :n_columns] + 0.2 * anchor[:, :n_columns]
    assert anchor_fit(anchor, own, by_column=True).density > MOST_DENSE


def test_columns_of_two_values_are_not_compared_one_by_one(rng):
    own, anchor = rng.integers(2, size=(100, 3)), rng.random((300, 3)) < 0.9
    assert anchor_fit(anchor, own, by_column=True) == anchor_fit(anchor, own)


@pytest.mark.parametrize("width", [0.0, 1e-4, 0.1])
@pytest.mark.parametrize("n_people", [1, 20])
def test_rows_planted_around_people_do_not(table, width, n_people, rng):
    own, honest = table[:60], table[60:160]
    noise = width * own.std(axis=0) * rng.normal(size=(200, table.shape[1]))
    planted = own[rng.integers(n_people, size=200)] + noise
    assert is_noticed(planted, own)
    # Nor if they are hidden among honest rows.
    assert is_noticed(np.vstack([honest, planted]), own)


def codes(rng, n_rows):
    """Ten yes/no columns and two small whole numbers: many rows are equal by chance."""
    return np.hstack([rng.random((n_rows, 10)) < 0.15, rng.integers(5, size=(n_rows, 2))]).astype(np.float64)


@pytest.mark.slow
def test_codes_that_are_equal_by_chance_are_no_private_rows(rng):
    """At parties whose anchors have up to 40 of their rows; and a party of few rows beside many public ones."""
    found = []
    for n_own, n_public in ((100, 200), (20, 1000)):
        for _ in range(N_PARTIES):
            own, public = codes(rng, n_own), codes(rng, n_public)
            assert assert_fits(public, own).density <= MOST_DENSE
            found.append(equal_rows(public, own))
    assert min(each.n_equal for each in found) > 3
    assert not any(each.n_beyond_chance for each in found)


@pytest.mark.parametrize("flipped", [0.0, 0.02])
@pytest.mark.parametrize("part", [1, 2])
def test_rows_planted_around_a_person_are_found_among_codes(rng, flipped, part):
    """All rows of the anchor, or every other one; with some of the person's entries changed."""
    for _ in range(N_PARTIES // 2):
        own, anchor = codes(rng, 150), codes(rng, 300)
        anchor[::part] = own[0]
        anchor[::part, :10] = np.abs(own[0, :10] - (rng.random((300 // part, 10)) < flipped))
        assert is_noticed(anchor, own)


@pytest.mark.parametrize("n_planted", [12, 30])
def test_a_dozen_rows_around_one_person_are_found(rng, n_planted):
    """Of ten columns."""
    own, anchor = rng.normal(size=(150, 10)), rng.normal(size=(300, 10))
    anchor[:n_planted] = own[0] + 0.01 * anchor[:n_planted]
    fit = anchor_fit(anchor, own)
    assert fit.n_around_one == n_planted
    assert fit.n_near_beyond_chance == n_planted - fit.around_one_by_chance > 0


@pytest.mark.parametrize(
    ("n_columns", "n_own", "n_public"), [(1, 20, 1000), (1, 100, 200), (3, 20, 1000), (3, 200, 1000)]
)
def test_around_one_own_row_are_few_in_honest_anchors(rng, n_columns, n_own, n_public):
    """However few columns and own rows."""
    for _ in range(N_PARTIES // 2):
        honest = np.exp(rng.normal(size=(n_own + n_public, n_columns)))
        assert anchor_fit(honest[n_own:], honest[:n_own]).n_near_beyond_chance == 0


def test_own_rows_in_the_anchor_are_found_beyond_chance(rng):
    """Of a table in which no row repeats, nine are enough; chance explains half of them among 100 and 200 rows."""
    own, public = rng.normal(size=(100, 5)), rng.normal(size=(200, 5))
    assert equal_rows(public, own) == EqualRows(n_equal=0, by_chance=0)
    for n_copied in (3, 8, 9, 40):
        public[:n_copied] = own[:n_copied]
        found = equal_rows(public, own)
        assert found.n_equal == n_copied
        assert (found.n_beyond_chance > 0) == (n_copied >= 9)
    # Copies of one row are one row, and keys stand for rows.
    public[:] = own[0]
    assert equal_rows(public, own).n_equal == 1
    assert equal_rows(np.arange(30, dtype=np.uint64), np.arange(25, 60, dtype=np.uint64)).n_equal == 5


@given(st.integers(5, 60), st.integers(5, 60), st.integers(2, 40), st.integers(0, 2**31))
def test_chance_explains_rows_dealt_at_random_in_all_but_one_of_a_thousand(n_own, n_public, n_kinds, seed):
    """An independent count: deal the same rows again a thousand times, and compare with the largest but one."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(n_kinds, size=n_own + n_public).astype(np.float64)
    by_chance = equal_rows(rows[:n_public], rows[n_public:]).by_chance
    kinds, group = np.unique(rows, return_inverse=True)
    dealt = np.array([rng.permutation(group) for _ in range(1000)])
    one_hot = np.eye(len(kinds), dtype=bool)
    is_both = one_hot[dealt[:, :n_public]].any(axis=1) & one_hot[dealt[:, n_public:]].any(axis=1)
    # Groups are taken for independent, which they nearly are, and errs to the side of chance.
    assert (is_both.sum(axis=1) > by_chance).mean() <= 0.004


@given(st.integers(0, 60), st.integers(1, 200))
def test_chance_explains_near_rows_as_fisher_says(n_near, n_anchors):
    """Own rows near one another by construction; the exact test of another library agrees at the bound and above."""
    own = np.arange(60.0)[:, None] * 1000 + np.array([0.0, 1.0])
    own[: n_near // 2 * 2 : 2] = own[1 : n_near // 2 * 2 : 2]
    fit = anchor_fit(np.full((n_anchors, 2), -1e6), own)

    def chance(n):
        n_pairs = n_near // 2
        table = [[n, n_anchors - n], [n_pairs, 30 - n_pairs]]
        return fisher_exact(table, alternative="greater").pvalue

    assert chance(fit.near_by_chance) >= 1e-3
    assert fit.near_by_chance == n_anchors or chance(fit.near_by_chance + 1) < 1e-3


def test_so_do_shapes_that_single_a_person_out(rng):
    """A cloud of one standard deviation, half of one of .5, and the person's direction stretched: nine in ten."""
    noticed = np.zeros(3)
    n_people = N_PARTIES // 2
    for _ in range(n_people):
        own, honest = rng.normal(size=(150, 10)), rng.normal(size=(300, 10))
        person = own[0]
        direction = person / np.linalg.norm(person)
        along = np.outer(honest @ direction, direction)
        half = honest.copy()
        half[::2] = person + 0.5 * honest[::2]
        crafted = (half, person + 0.9 * honest, 0.6 * (honest - along) + 2 * along)
        noticed += [anchor_fit(rows, own).density > MOST_DENSE for rows in crafted]
        assert anchor_fit(honest, own).density < 1
    assert (noticed >= np.array([1.0, 0.8, 0.8]) * n_people).all()


def test_the_anchors_order_and_constant_columns_hide_nothing(rng):
    """Every other row of 4,000 is honest; and one column of the own rows is constant but for rounding."""
    own, honest = rng.normal(size=(150, 10)), rng.normal(size=(4000, 10))
    honest[1::2] = own[0] + 0.5 * honest[1::2]
    density = anchor_fit(honest, own).density
    assert density == pytest.approx(anchor_fit(rng.permutation(honest), own).density)
    assert density > MOST_DENSE
    own[:, 3] = 0.1
    planted = own[0] + 0.01 * rng.normal(size=(300, 10))
    assert anchor_fit(planted, own).n_near_beyond_chance > 0


def test_another_mix_of_people_is_no_reason_to_refuse(rng):
    """One in ten at the party, half of the anchor; or an anchor that is uniform in the ranges."""
    shift = np.repeat([3.0, 0.0], 5)
    own = rng.normal(size=(500, 10)) + shift * (rng.random(500) < 0.1)[:, None]
    others = rng.normal(size=(500, 10)) + shift * (rng.random(500) < 0.5)[:, None]
    for anchor in (others, rng.uniform(own.min(axis=0), own.max(axis=0), size=(500, 10))):
        assert_fits(anchor, own)


def test_density_is_the_ratio_of_counts_within_a_ball(rng):
    own, anchor = rng.normal(size=(60, 2)), 0.4 * rng.normal(size=(80, 2))
    units = own.std(axis=0)
    ratios = []
    for i, row in enumerate(own):
        among = np.sort([np.linalg.norm((row - other) / units) for j, other in enumerate(own) if j != i])
        inside = sum(np.linalg.norm((row - other) / units) <= among[2] * (1 + 1e-9) for other in anchor)
        # Clopper and Pearson's ends: where 3 of 59, and that many of 80, are as unlikely as one in a thousand.
        most = brentq(lambda p: binom.cdf(3, 59, p) - 1e-3, 1e-9, 1 - 1e-9)
        least = brentq(lambda p, k=inside: binom.sf(k - 1, 80, p) - 1e-3, 1e-9, 1 - 1e-9) if inside else 0.0
        ratios.append(least / most)
    assert anchor_fit(anchor, own).density == pytest.approx(max(ratios), rel=1e-6)


def test_a_narrow_anchor_sees_little_of_the_table(table, rng):
    own = table[:60]
    narrow = own.mean(axis=0) + 0.5 * own.std(axis=0) * rng.normal(size=(200, own.shape[1]))
    assert anchor_fit(narrow, own).spread < LEAST_SPREAD


def test_counts_are_those_of_all_distances(rng):
    own, anchor = rng.normal(size=(30, 3)), rng.normal(size=(200, 3))
    anchor[:15] = own[0] + 1e-3 * rng.normal(size=(15, 3))
    units = own.std(axis=0)
    among, between = cdist(own / units, own / units), cdist(own / units, anchor / units)
    radius = 0.2 * np.where(np.eye(30, dtype=bool), np.inf, among).min(axis=1)
    near = between < radius[:, None]
    fit = anchor_fit(anchor, own)
    nearest = between.argmin(axis=0)
    assert fit.n_near == near[nearest, np.arange(200)].sum()
    assert fit.spread == pytest.approx(np.median(anchor.std(axis=0) / units))


@given(st.floats(1e-6, 1e6), st.integers(0, 2))
def test_units_do_not_matter(unit, column):
    rng = np.random.default_rng(7)
    own, anchor = rng.normal(size=(30, 3)), rng.normal(size=(60, 3))
    scale = np.ones(3)
    scale[column] = unit
    first, second = anchor_fit(anchor, own), anchor_fit(anchor * scale, own * scale)
    assert (first.n_near, first.near_by_chance) == (second.n_near, second.near_by_chance)
    assert second.spread == pytest.approx(first.spread)


@given(planted=st.sets(st.integers(0, 29)), tolerance=st.sampled_from([0.0, 1e-9]), seed=st.integers(0, 2**32 - 1))
def test_planted_rows_are_found_wherever_they_are_and_no_other(planted, tolerance, seed):
    generator = np.random.RandomState(seed)
    X, anchor = generator.standard_normal((40, 3)), generator.standard_normal((30, 3))
    positions = sorted(planted)
    anchor[positions] = X[generator.permutation(40)[: len(positions)]]
    assert_array_equal(find_private_rows(anchor, X, tolerance=tolerance), positions)


def test_small_tables_of_integers_agree_with_a_direct_comparison():
    generator = np.random.RandomState(0)
    X, anchor = generator.randint(3, size=(10, 3)), generator.randint(3, size=(50, 3)).astype(np.float32)
    expected = np.flatnonzero((anchor[:, np.newaxis] == X).all(axis=2).any(axis=1))
    assert 0 < expected.size < 50
    assert_array_equal(find_private_rows(anchor, X), expected)


def test_tolerance_is_the_root_mean_square_in_standard_deviations_of_the_anchor():
    generator = np.random.RandomState(0)
    scale = np.array([1.0, 100.0, 1e-3, 1e6])
    anchor = generator.standard_normal((30, 4)) * scale + 5 * scale
    shift = np.array([0.1, -0.1, 0.1, 0.1]) * anchor.std(axis=0)
    X = anchor[[3, 17]] + shift
    assert find_private_rows(anchor, X).size == 0
    assert find_private_rows(anchor, X, tolerance=0.099).size == 0
    assert_array_equal(find_private_rows(anchor, X, tolerance=0.101), [3, 17])


@pytest.mark.parametrize("tolerance", [-1, np.nan, np.inf])
def test_bad_tolerance(tolerance):
    with pytest.raises(AnchorError, match="tolerance"):
        find_private_rows(np.eye(2), np.eye(2), tolerance=tolerance)


def test_tables_that_do_not_fit():
    with pytest.raises(AnchorError, match="3 columns but X_private has 2"):
        find_private_rows(np.eye(3), np.eye(2))
    with pytest.raises(AnchorError, match="has 3 columns; expected 2"):
        find_private_rows(np.eye(2), [[np.nan, 1.0, 2.0]])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_frames_are_told_by_their_names(library):
    frames = pytest.importorskip(library)
    anchor = frames.DataFrame({"age": [1.0, 2.0, 3.0], "dose": [4.0, 5.0, 6.0]})
    own = frames.DataFrame({"dose": [5.0], "age": [2.0]})
    assert_array_equal(find_private_rows(anchor, own), [1])
    with pytest.raises(AnchorError, match=r"other names \(age, weight\)"):
        find_private_rows(anchor, frames.DataFrame({"dose": [5.0], "weight": [2.0]}))
    # Where one of them has no names, their order counts.
    assert find_private_rows(anchor, own.to_numpy()).size == 0
