"""Subsets of a table's rows whose mean was published: by meeting in the middle, and as a programme."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from datacollab.risk.attacks import find_subset, find_subset_by_programme


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
