"""Targets as columns and groups, and the rows that they give away by themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from datacollab.errors import AgreementError
from datacollab.risk.attacks import class_means
from datacollab.risk.attacks._attack import check_targets, learn_target_code


def test_classes_are_those_of_leaked_and_public_rows_and_columns_those_of_leaked_ones():
    code = learn_target_code(np.array(["b", "d", "b"]), np.array(["a", "b"]))
    assert code.n_groups == 3
    assert code.groups(np.array(["a", "b", "d", "x"])).tolist() == [0, 1, 2, -1]
    assert code.columns(np.array(["a", "b", "d", "x"])).tolist() == [[0, 0], [1, 0], [0, 1], [0, 0]]


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=300))
def test_groups_of_numbers_are_intervals_of_about_one_size(values):
    target = np.array(values)
    code = learn_target_code(target)
    groups = code.groups(target)
    assert 0 <= groups.min() <= groups.max() < code.n_groups <= 10
    assert (np.diff(groups[np.argsort(target)]) >= 0).all()
    assert len(set(groups.tolist())) == code.n_groups
    if len(set(values)) == len(values):
        assert np.bincount(groups).min() >= 19 or code.n_groups == 1


def test_numbers_become_one_standardised_column(rng):
    target = rng.normal(size=50) * 4 + 2
    column = learn_target_code(target).columns(target)
    assert column.shape == (50, 1)
    assert_allclose([column.mean(), column.std()], [0, 1], atol=1e-12)


def test_a_constant_number_tells_nothing():
    code = learn_target_code(np.full(40, 0.5))
    assert code.n_groups == 1
    assert (code.columns(np.array([0.5])) == 0).all()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([1, 2], r"target has shape \(2,\), but there are 3 rows"),
        ([1.0, np.nan, np.inf], "is missing or infinite in [12] of 3 rows"),
        (np.array(["secret", None, "secret"], dtype=object), "is missing or infinite in 1 of 3 rows"),
        (["secret", "b", "c"], "another kind than the leaked rows' target"),
    ],
)
def test_bad_targets_are_refused_without_showing_them(bad, message):
    with pytest.raises(AgreementError, match=message) as caught:
        check_targets(bad, 3, "The target", like=np.array([1, 2]))
    assert "secret" not in str(caught.value)


def test_labels_of_mixed_types_are_refused():
    with pytest.raises(AgreementError, match="cannot be sorted"):
        learn_target_code(np.array(["secret", 1], dtype=object))


def test_class_means_of_classes(rng):
    public, target = rng.normal(size=(30, 3)), np.array(list("abc") * 10)
    means = class_means(public, target, ["c", "a", "unheard of"])
    expected = [public[target == "c"].mean(axis=0), public[target == "a"].mean(axis=0), public.mean(axis=0)]
    assert_allclose(means, expected)


def test_class_means_of_numbers_are_those_of_similar_targets(rng):
    target = rng.normal(size=1000)
    public = target[:, None] + rng.normal(size=(1000, 2))
    means = class_means(public, target, np.array([-9.0, 0.0, 9.0]))
    assert_allclose(means, [[-1.75] * 2, [0.0] * 2, [1.75] * 2], atol=0.35)


def test_class_means_of_bad_input_are_refused_without_showing_it():
    with pytest.raises(AgreementError, match=r"has shape \(1,\), but there are 2 rows") as caught:
        class_means([[1.0], [2.0]], ["secret"], ["secret"])
    assert "secret" not in str(caught.value)
