import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from datacollab.anchor import SampleAnchor
from datacollab.errors import AnchorError


@given(n_rows=st.integers(1, 40), data=st.data())
@settings(max_examples=30, deadline=None)
def test_rows_are_distinct_source_rows_with_their_targets(n_rows, data):
    X = np.arange(2.0 * n_rows).reshape(n_rows, 2)
    n_samples = data.draw(st.integers(1, n_rows))
    anchor, target = SampleAnchor(n_samples).sample(X, X[:, 0] / 2, random_state=data.draw(st.integers(0, 99)))
    positions = anchor[:, 0] / 2
    assert np.unique(positions).size == n_samples
    assert_array_equal(anchor, X[positions.astype(int)])
    assert_array_equal(target, positions)


def test_without_targets():
    anchor, target = SampleAnchor(3).sample(np.eye(5), random_state=0)
    assert anchor.shape == (3, 5)
    assert target is None


def test_balanced_totals_and_random_order():
    y = np.repeat(["a", "b", "c"], [20, 50, 500])
    X = np.arange(570.0).reshape(-1, 1)
    anchor, target = SampleAnchor(50, balanced=True).sample(X, pd.Series(y), random_state=0)
    assert [int((target == label).sum()) for label in "abc"] == [17, 17, 16]
    assert np.unique(anchor).size == 50
    assert_array_equal(target, y[anchor[:, 0].astype(int)])
    assert list(target) != sorted(target)


def test_every_row_of_a_class_is_as_likely():
    y = np.repeat([0, 1], [4, 12])
    X = np.arange(16.0).reshape(-1, 1)
    generator = np.random.RandomState(0)
    chosen = np.concatenate(
        [SampleAnchor(4, balanced=True).sample(X, y, random_state=generator)[0].ravel() for _ in range(1200)]
    )
    expected = np.where(y == 0, 1200 * 2 / 4, 1200 * 2 / 12)
    assert (abs(np.bincount(chosen.astype(int)) - expected) < 5 * np.sqrt(expected)).all()


def test_too_few_rows_are_refused():
    with pytest.raises(AnchorError, match="5 rows, too few for n_samples=6"):
        SampleAnchor(6).sample(np.eye(5))
    with pytest.raises(AnchorError, match=r"1 of 2 classes.*at most 2"):
        SampleAnchor(4, balanced=True).sample(np.eye(5), [0, 1, 1, 1, 1])
    with pytest.raises(AnchorError, match="needs class labels"):
        SampleAnchor(4, balanced=True).sample(np.eye(5))
