"""Rows and clusters dealt to groups."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from datacollab.study import deal


@pytest.mark.parametrize(("n_rows", "n_groups"), [(0, 3), (2, 5), (53, 10), (200, 20)])
def test_rows_fill_groups_alike(n_rows, n_groups):
    sizes = [np.bincount(deal(n_rows, n_groups, bytes([seed]) * 32), minlength=n_groups) for seed in range(40)]
    assert {size for each in sizes for size in each} <= {n_rows // n_groups, n_rows // n_groups + 1}
    if n_rows:
        assert len({tuple(each) for each in sizes}) == (1 if n_rows % n_groups == 0 else n_groups)


def test_each_pair_of_rows_meets_as_often_as_by_chance():
    dealt = np.array([deal(6, 3, bytes([a, b]) * 16) for a in range(50) for b in range(40)])
    together = (dealt[:, :, None] == dealt[:, None, :]).mean(axis=0)[np.triu_indices(6, 1)]
    np.testing.assert_allclose(together, 1 / 5, atol=0.05)  # 2,000 draws: five standard deviations


def test_a_cluster_is_in_one_group_in_each_batch_and_another_by_another_secret():
    labels = np.array([f"Dr {place}" for place in range(300)], dtype=object)
    first, second = (deal(300, 10, bytes([secret]) * 32, labels) for secret in (1, 2))
    assert_array_equal(first[100:200], deal(100, 10, bytes([1]) * 32, labels[100:200]))
    assert_array_equal(np.repeat(first, 2), deal(600, 10, bytes([1]) * 32, np.repeat(labels, 2)))
    assert 0.03 < np.mean(first == second) < 0.2
    assert np.bincount(first, minlength=10).min() > 10


def test_numbers_are_labels_and_rows_without_a_label_are_clusters_of_their_own():
    whole = deal(40, 10, bytes(32), [3, 4] * 20)
    assert_array_equal(whole, deal(40, 10, bytes(32), [3.0, 4.0] * 20))
    alone = deal(400, 10, bytes(32), [None, np.nan] * 200)
    assert np.bincount(alone, minlength=10).min() > 15
