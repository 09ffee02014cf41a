"""Means of groups taken apart: subsets that add up, and rows that are found."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from datacollab.errors import AgreementError
from datacollab.risk.attacks import AffineEstimate, demix, find_subset, find_subset_by_programme, membership


@pytest.mark.parametrize("size", range(1, 10))
def test_a_planted_subset_is_found_exactly(size):
    rng = np.random.default_rng(size)
    vectors = rng.normal(size=(40, 8))
    planted = np.sort(rng.choice(40, size, replace=False))
    vectors -= vectors[planted].mean(axis=0)
    assert_array_equal(find_subset(vectors, size, 1e-9), planted)


@pytest.mark.parametrize("size", range(1, 7))
def test_what_is_no_sum_is_not_found(size):
    vectors = np.random.default_rng(size).normal(size=(20, 8))
    vectors -= vectors[:size].mean(axis=0) + 0.01 / size
    assert min(np.linalg.norm(vectors[list(s)].sum(axis=0)) for s in combinations(range(20), size)) > 1e-3
    assert find_subset(vectors, size, 1e-3) is None


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_within_a_tolerance_the_sum_is_found_that_trying_all_finds(size):
    """Where at most one fits."""
    rng = np.random.default_rng(size)
    vectors = rng.normal(size=(16, 6))
    vectors -= vectors[-size:].mean(axis=0) + 0.01 * rng.normal(size=6) / size
    fits = [s for s in combinations(range(16), size) if np.linalg.norm(vectors[list(s)].sum(axis=0)) <= 0.1]
    assert len(fits) == 1
    assert_array_equal(find_subset(vectors, size, 0.1), fits[0])


def test_no_vector_counts_twice():
    vectors = np.array([[0.0, 0.0], [-1.0, 1.0], [4.0, 5.0], [6.0, 3.0]])
    assert find_subset(vectors, 2, 1e-9) is None
    assert find_subset(vectors, 3, 1e-9) is None


@pytest.mark.parametrize(("size", "n_columns"), [(2, 4), pytest.param(10, 16, marks=pytest.mark.nightly)])
def test_a_planted_subset_is_found_exactly_by_the_programme(size, n_columns):
    """Subsets too large to meet in the middle among them."""
    rng = np.random.default_rng(size)
    vectors = rng.normal(size=(200, n_columns))
    planted = np.sort(rng.choice(200, size, replace=False))
    vectors -= vectors[planted].mean(axis=0)
    assert_array_equal(find_subset_by_programme(vectors, size, 1e-9, 60.0), planted)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_it_finds_what_trying_all_finds(size):
    rng = np.random.default_rng(size)
    vectors = rng.normal(size=(14, 5))
    vectors -= vectors[-size:].mean(axis=0) + 1e-3
    fits = [s for s in combinations(range(14), size) if np.linalg.norm(vectors[list(s)].sum(axis=0)) <= 0.02]
    assert len(fits) == 1
    assert_array_equal(find_subset_by_programme(vectors, size, 0.02, 60.0), fits[0])
    assert find_subset_by_programme(vectors, size, 1e-4, 60.0) is None


def test_of_several_that_fit_the_least_costly_is_taken():
    vectors = np.array([[3.0], [-3.0], [1.0], [-1.0], [2.0], [-2.0]])
    assert_array_equal(find_subset_by_programme(vectors, 2, 1e-9, 60.0), [2, 3])


def test_there_are_too_few_vectors_or_no_time():
    vectors = np.array([[1.0], [-1.0]])
    assert find_subset_by_programme(vectors, 3, 1e-9, 60.0) is None
    assert find_subset_by_programme(vectors, 2, 1e-9, 0.0) is None
    assert find_subset_by_programme(np.zeros((3, 2)), 2, 1e-9, 60.0) is None


def world(noise=0.0, n_columns=8, size=5, n_groups=4, seed=0):
    """Means of groups of a table's rows through an affine map, and candidates: these rows, then strangers."""
    rng = np.random.default_rng(seed)
    F, shift = rng.normal(size=(20, n_columns)), rng.normal(size=n_columns)
    people, anchor = rng.normal(size=(150, 20)), rng.normal(size=(200, 20))
    n = size * n_groups
    means = (people[:n] @ F + shift).reshape(n_groups, size, -1).mean(axis=1)
    means += noise * (people @ F).std() * rng.normal(size=means.shape)
    order = rng.permutation(n)
    estimate = AffineEstimate(anchor, anchor @ F + shift)
    return np.repeat(means, size, axis=0)[order], order, people, estimate


@pytest.mark.parametrize("size", [2, 3, 5, 6])
def test_planted_groups_are_found_exactly(size):
    shared, order, people, estimate = world(size=size)
    found = demix(shared, np.zeros(len(shared), dtype=int), people, estimate)
    assert found.n_solved == len(found.groups) == 4
    for rows, members in zip(found.groups, found.members, strict=True):
        assert_array_equal(members, np.sort(order[rows]))
    scores = found.scores(np.zeros(len(people)))
    assert membership(scores[: len(order)], scores[len(order) :]).tpr == 1.0


@pytest.mark.slow
def test_groups_of_others_are_not_solved():
    shared, order, people, estimate = world(size=3)
    found = demix(shared, np.zeros(len(shared), dtype=int), people[len(order) :], estimate)
    assert found.groups
    assert found.n_solved == 0
    assert_allclose(np.ptp(found.scores(np.zeros(100))), 0)


@pytest.mark.nightly
def test_a_group_with_one_member_unknown_is_not_solved():
    shared, order, people, estimate = world()
    known = np.delete(people, 0, axis=0)
    found = demix(shared, np.zeros(len(shared), dtype=int), known, estimate)
    assert found.n_solved == 3
    of_missing = next(rows for rows in found.groups if 0 in order[rows])
    assert found.members[[rows is of_missing for rows in found.groups].index(True)] is None


@pytest.mark.nightly
@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_means_with_noise_are_not_solved(noise):
    shared, _, people, estimate = world(noise)
    assert demix(shared, np.zeros(len(shared), dtype=int), people, estimate).n_solved == 0


@pytest.mark.nightly
def test_too_few_columns_tell_nothing_apart():
    """One column of a wide tolerance fits thousands of subsets: none may count."""
    shared, order, people, _ = world(n_columns=1)
    rng = np.random.default_rng(1)
    anchor = rng.normal(size=(200, 20))
    F = np.linalg.lstsq(people, np.ones((150, 1)), rcond=None)[0]
    rough = AffineEstimate(anchor, anchor @ F + 0.01 * F.std() * rng.normal(size=(200, 1)))
    assert demix(shared, np.zeros(len(shared), dtype=int), people, rough).n_solved == 0


def test_errors_are_those_of_rows_left_out(rng):
    """Oracle: the fit again, without a fold."""
    anchor, Z = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    out = np.arange(40) % 5 == 2
    A = np.column_stack([np.ones(40), anchor])
    fitted = np.linalg.lstsq(A[~out], Z[~out], rcond=None)[0]
    scale = np.sqrt(((Z - Z.mean(axis=0)) ** 2).mean())
    assert_allclose(AffineEstimate(anchor, Z).errors[out], np.linalg.norm(A[out] @ fitted - Z[out], axis=1) / scale)
    with pytest.raises(AgreementError, match="representation has 39 rows but the leaked original has 40"):
        AffineEstimate(anchor, Z[1:])


def test_groups_of_twelve_close_rows_are_found_too():
    """As a defence makes them; too large for meeting in the middle."""
    rng = np.random.default_rng(0)
    people, anchor, F = rng.normal(size=(150, 20)), rng.normal(size=(200, 20)), rng.normal(size=(20, 16))
    people[:36] += 4 * np.repeat(rng.normal(size=(3, 20)), 12, axis=0)
    shared = np.repeat((people[:36] @ F).reshape(3, 12, 16).mean(axis=1), 12, axis=0)
    found = demix(shared, np.zeros(36, dtype=int), people, AffineEstimate(anchor, anchor @ F))
    assert sorted(members.tolist() for members in found.members) == np.arange(36).reshape(3, 12).tolist()


@pytest.mark.parametrize("numeric", [False, True])
def test_candidates_of_other_targets_are_left_out(numeric):
    """Members known to have other targets than the group's rows cannot be its members."""
    shared, order, people, estimate = world()
    y = np.arange(150) % 5
    y = y + 0.5 if numeric else y
    found = demix(shared, y[order], people, estimate, candidate_target=y)
    assert found.n_solved == 4
    assert demix(shared, y[order] + 10, people, estimate, candidate_target=y).n_solved == 0


def test_fewer_pairs_than_columns_are_met_in_the_units_that_fit_better(rng):
    """f standardises columns of very different spreads; from 60 pairs of 80 columns F is not determined."""
    spread = np.exp(rng.normal(size=80, scale=2))
    latent = rng.normal(size=(360, 10)) @ rng.normal(size=(10, 80)) + 0.1 * rng.normal(size=(360, 80))
    anchor, others = np.split(latent * spread, [60])
    F = rng.normal(size=(80, 4)) / spread[:, None]
    found = AffineEstimate(anchor, anchor @ F)
    A = np.column_stack([np.ones(60), anchor - anchor.mean(axis=0)])
    raw = np.linalg.lstsq(A, anchor @ F, rcond=None)[0]
    errors = [
        np.median(np.linalg.norm(mapped - others @ F, axis=1))
        for mapped in (found(others), np.column_stack([np.ones(300), others - anchor.mean(axis=0)]) @ raw)
    ]
    assert errors[0] < 0.8 * errors[1]
