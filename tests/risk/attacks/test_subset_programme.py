from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from datacollab.risk.attacks._demixing import find_subset_by_programme


@pytest.mark.parametrize(
    ("size", "n_columns"),
    [(2, 4), pytest.param(5, 8, marks=pytest.mark.slow), (10, 16), pytest.param(14, 24, marks=pytest.mark.slow)],
)
def test_a_planted_subset_is_found_exactly(size, n_columns):
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
    assert_array_equal(find_subset_by_programme(vectors, 2, 1e-9, 60.0, np.array([1.0, 1, 5, 5, 5, 5])), [0, 1])


def test_there_are_too_few_vectors_or_no_time():
    vectors = np.array([[1.0], [-1.0]])
    assert find_subset_by_programme(vectors, 3, 1e-9, 60.0) is None
    assert find_subset_by_programme(vectors, 2, 1e-9, 0.0) is None
    assert find_subset_by_programme(np.zeros((3, 2)), 2, 1e-9, 60.0) is None
