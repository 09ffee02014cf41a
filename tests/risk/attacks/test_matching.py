import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from datacollab.errors import AgreementError, RepresentationError
from datacollab.risk.attacks import Matches, match_margins

SEEDS = st.integers(0, 1000)


def draw(seed, n_rows=6, n_decoys=0, n_features=3, noise=1.0):
    """Candidates, and reconstructions of the first of them."""
    rng = np.random.default_rng(seed)
    candidates = rng.normal(size=(n_rows + n_decoys, n_features)) + 5
    return candidates, candidates[:n_rows] + noise * rng.normal(size=(n_rows, n_features))


def naive_ranks(candidates, reconstructions):
    return [1 + sum(row < row[i]) for i, row in enumerate(cdist(reconstructions, candidates))]


def best_assignment(candidates, reconstructions):
    """By trying all of them."""
    D = cdist(reconstructions, candidates, "sqeuclidean")
    rows = range(len(D))
    return min(itertools.permutations(range(len(candidates)), len(D)), key=lambda to: sum(D[rows, to]))


@given(seed=SEEDS, n_decoys=st.integers(0, 20))
def test_ranks_are_those_of_all_distances(seed, n_decoys):
    pair = draw(seed, 8, n_decoys)
    assert_array_equal(Matches(*pair).ranks, naive_ranks(*pair))


@given(seed=SEEDS, n_rows=st.integers(1, 5), n_decoys=st.integers(0, 2))
def test_assignment_is_the_best_of_all(seed, n_rows, n_decoys):
    pair = draw(seed, n_rows, n_decoys, noise=1.5)
    assert_array_equal(Matches(*pair).chances, np.equal(best_assignment(*pair), range(n_rows)))


def test_one_to_one_beats_nearest():
    """A wrong nearest candidate is taken by the row that it belongs to."""
    candidates, guesses = [[0.0], [2.0], [9.0]], [[-0.1], [0.9], [9.0]]
    assert_array_equal(Matches(candidates, guesses).ranks, [1, 2, 1])
    assert Matches(candidates, guesses).chances.all()


@given(seed=SEEDS, n_decoys=st.sampled_from([0, 9]))
def test_order_of_the_rows_does_not_matter(seed, n_decoys):
    candidates, guesses = draw(seed, 12, n_decoys)
    order = np.random.default_rng(seed).permutation(12)
    shuffled = np.vstack([candidates[order], candidates[12:]])
    assert_array_equal(Matches(shuffled, guesses[order]).ranks, Matches(candidates, guesses).ranks[order])
    assert_array_equal(Matches(shuffled, guesses[order]).chances, Matches(candidates, guesses).chances[order])
    assert_allclose(match_margins(shuffled, guesses[order]), match_margins(candidates, guesses)[order])


@given(seed=SEEDS)
def test_rotating_moving_and_scaling_the_space_changes_nothing(seed):
    candidates, guesses = draw(seed, 12, 9)
    R = 1000 * np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    moved = candidates @ R + 1e5, guesses @ R + 1e5
    assert_array_equal(Matches(*moved).ranks, Matches(candidates, guesses).ranks)
    assert_array_equal(Matches(*moved).chances, Matches(candidates, guesses).chances)
    assert_allclose(match_margins(*moved), match_margins(candidates, guesses), rtol=1e-5)


@pytest.mark.parametrize("n_candidates", [100, 300])
def test_constant_reconstructions_link_by_chance(n_candidates):
    """Pinned: by position, ties would link all of them.  Over 50 draws the mean is within four standard errors."""
    candidates, _ = draw(0, n_candidates, n_features=20)
    guesses = np.tile(candidates.mean(axis=0), (100, 1))
    hits = [Matches(candidates, guesses, random_state=seed).chances.sum() for seed in range(50)]
    expected = 100 / n_candidates
    assert abs(np.mean(hits) - expected) < 4 * np.sqrt(expected / 50)


@pytest.mark.parametrize("originals_equal", [False, True])
def test_rows_with_equal_reconstructions_share_their_candidates_at_random(originals_equal):
    """Groups of five rows in order, as microaggregation leaves them: one in five is linked.

    By position all would be where the originals are equal as well, and about one in four where they are not.  The mean
    over 40 draws is within four standard errors.
    """
    hits = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        centres = np.repeat(100 * rng.normal(size=(20, 8)), 5, axis=0)
        candidates = centres + (0.0 if originals_equal else rng.normal(size=(100, 8)))
        guesses = np.repeat(candidates.reshape(20, 5, 8).mean(axis=1), 5, axis=0)
        hits.append(Matches(candidates, guesses, random_state=seed).chances.sum())
    assert abs(np.mean(hits) - 20) < 4 * np.sqrt(20 / 40)


def test_close_candidates_are_no_tie():
    """What decides ties must not blur rows that differ in the seventh digit."""
    rng = np.random.default_rng(0)
    candidates = rng.normal(size=(1, 5)) + 3e-7 * rng.normal(size=(30, 5))
    far = np.vstack([candidates, rng.normal(size=(30, 5))])
    assert (Matches(far, candidates).ranks == 1).all()
    assert Matches(far, candidates).chances.all()


@given(seed=SEEDS, n_decoys=st.integers(1, 20))
def test_margins_are_those_of_all_distances(seed, n_decoys):
    candidates, guesses = draw(seed, 8, n_decoys)
    D = cdist(guesses, candidates)
    own = D[range(8), range(8)]
    D[range(8), range(8)] = np.inf
    margins = match_margins(candidates, guesses)
    assert_allclose(margins, D.min(axis=1) / own)
    assert_array_equal(margins > 1, Matches(candidates, guesses).ranks == 1)


def test_margin_of_a_row_that_is_there_twice_is_one():
    assert_array_equal(match_margins([[1.0], [1.0], [4.0]], [[1.0], [1.0], [4.0]]), [1.0, 1.0, np.inf])


def test_blocks_change_nothing(monkeypatch):
    candidates, guesses = draw(0, 40, 30)

    def measured():
        matches = Matches(candidates, guesses)
        return matches.ranks, matches.chances, match_margins(candidates, guesses)

    whole = measured()
    monkeypatch.setattr("datacollab.risk.attacks._attack.BLOCK_ENTRIES", 200)
    for before, after in zip(whole, measured(), strict=True):
        assert_array_equal(before, after)


@pytest.mark.parametrize("measure", [Matches, match_margins])
def test_bad_input_is_refused(measure):
    with pytest.raises(AgreementError, match="candidates have 2 columns but the reconstructions have 1"):
        measure([[1.0, 2.0]], [[1.0]])
    with pytest.raises(AgreementError, match="2 reconstructions but only 1 candidates"):
        measure([[1.0]], [[1.0], [2.0]])
    with pytest.raises(RepresentationError, match="reconstructions contains NaN or infinity in 1 of 2 rows"):
        measure([[1.0], [2.0]], [[np.nan], [1.0]])


def test_a_margin_needs_two_candidates():
    with pytest.raises(AgreementError, match="second candidate"):
        match_margins([[1.0]], [[1.0]])


def test_chances_are_the_mean_over_all_draws(rng):
    """Rows in pairs with one reconstruction each: what random draws come to on average."""
    candidates = rng.normal(size=(10, 2))
    guesses = np.repeat(candidates[::2] + 0.4 * rng.normal(size=(5, 2)), 2, axis=0)
    chances = Matches(candidates, guesses, random_state=0).chances
    costs = cdist(guesses, candidates, "sqeuclidean")
    draws = [linear_sum_assignment(costs + 1e-9 * rng.random((10, 10)))[1] == np.arange(10) for _ in range(400)]
    drawn = np.mean(draws, axis=0)
    assert_allclose(chances, drawn, atol=0.11)
    assert set(chances) <= {0.0, 0.5, 1.0}


def test_a_hit_is_any_equal_original(rng):
    candidates = np.repeat(rng.normal(size=(5, 2)), 2, axis=0)
    persons = np.arange(10) // 2
    assert_allclose(Matches(candidates, candidates, persons=persons).chances, 1)
    assert (Matches(candidates, candidates, persons=persons, random_state=0).ranks == 1).all()
    assert_allclose(Matches(candidates, candidates).chances, 0.5)
    with pytest.raises(AgreementError, match="one number per candidate"):
        Matches(candidates, candidates, persons=[1])


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
        ([1, 0, 2, 4, 3], [0, 0, 2, 3, 3]),
        ([1, 2, 0, 3, 4], [0, 0, 0, 3, 4]),
        ([1, 2, 3, 4, 0], [0, 1, 2, 3, 4]),
    ],
)
def test_rows_taken_for_each_other_count_as_one(order, expected):
    """Every row lies on the candidate of another; rounds of more than three are guesses."""
    candidates = 10.0 * np.arange(7)[:, None]
    assert Matches(candidates, candidates[order], random_state=0).tries.tolist() == expected


def test_a_row_taken_for_a_stranger_stands_alone():
    candidates = 10.0 * np.arange(5)[:, None]
    assert Matches(candidates, candidates[[4, 0, 2]], random_state=0).tries.tolist() == [0, 1, 2]
