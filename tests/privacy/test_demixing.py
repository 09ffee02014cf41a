import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from datacollab.errors import AgreementError
from datacollab.privacy import AffineEstimate, demix, equal_rows, membership


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


def test_groups_of_others_are_not_solved():
    shared, order, people, estimate = world()
    found = demix(shared, np.zeros(len(shared), dtype=int), people[len(order) :], estimate)
    assert found.applies
    assert found.n_solved == 0
    assert_allclose(np.ptp(found.scores(np.zeros(100))), 0)


def test_a_group_with_one_member_unknown_is_not_solved():
    shared, order, people, estimate = world()
    known = np.delete(people, 0, axis=0)
    found = demix(shared, np.zeros(len(shared), dtype=int), known, estimate)
    assert found.n_solved == 3
    of_missing = next(rows for rows in found.groups if 0 in order[rows])
    assert found.members[[rows is of_missing for rows in found.groups].index(True)] is None


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_means_with_noise_are_not_solved(noise):
    shared, _, people, estimate = world(noise)
    assert demix(shared, np.zeros(len(shared), dtype=int), people, estimate).n_solved == 0


def test_too_few_columns_tell_nothing_apart():
    """One column of a wide tolerance fits thousands of subsets: none may count."""
    shared, order, people, _ = world(n_columns=1)
    rng = np.random.default_rng(1)
    anchor = rng.normal(size=(200, 20))
    F = np.linalg.lstsq(people, np.ones((150, 1)), rcond=None)[0]
    rough = AffineEstimate(anchor, anchor @ F + 0.01 * F.std() * rng.normal(size=(200, 1)))
    assert demix(shared, np.zeros(len(shared), dtype=int), people, rough).n_solved == 0


def test_a_map_that_is_not_affine_is_left_alone():
    rng = np.random.default_rng(0)
    anchor = rng.normal(size=(100, 20))
    estimate = AffineEstimate(anchor, np.sin(3 * anchor[:, :4]))
    found = demix(rng.normal(size=(10, 4)), np.zeros(10, dtype=int), anchor, estimate)
    assert not found.applies
    assert "not affine" in found.obstacle


def test_errors_are_those_of_rows_left_out(rng):
    """Oracle: the fit again, without a fold."""
    anchor, Z = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    out = np.arange(40) % 5 == 2
    A = np.column_stack([np.ones(40), anchor])
    fitted = np.linalg.lstsq(A[~out], Z[~out], rcond=None)[0]
    scale = np.sqrt(((Z - Z.mean(axis=0)) ** 2).mean())
    assert_allclose(AffineEstimate(anchor, Z).errors[out], np.linalg.norm(A[out] @ fitted - Z[out], axis=1) / scale)
    with pytest.raises(AgreementError, match="40 rows but its representation 39"):
        AffineEstimate(anchor, Z[1:])


def test_equal_rows_are_grouped():
    groups = equal_rows(np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]]))
    assert sorted(group.tolist() for group in groups) == [[0, 2], [1]]
