import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from datacollab.anchor import UniformAnchor
from datacollab.errors import AnchorError

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(bounds=arrays(np.float64, (2, 4), elements=FINITE), seed=st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_rows_stay_inside_any_finite_box(bounds, seed):
    low, high = bounds.min(axis=0), bounds.max(axis=0)
    anchor, target = UniformAnchor(20, low=low, high=high).sample(random_state=seed)
    assert anchor.shape == (20, 4)
    assert target is None
    assert (anchor >= low).all()
    assert (anchor <= high).all()


def test_rows_fill_the_box_evenly():
    anchor, _ = UniformAnchor(50_000, low=-2, high=[0, 4]).sample(random_state=0)
    assert_allclose(np.quantile(anchor, [0.25, 0.5, 0.75], axis=0).T, [[-1.5, -1, -0.5], [-0.5, 1, 2.5]], atol=0.06)
    assert abs(np.corrcoef(anchor.T)[0, 1]) < 0.02


def test_bounds_of_the_source_fill_in_for_missing_ones():
    X = np.array([[0.0, 10.0], [1.0, 30.0]])
    anchor, _ = UniformAnchor(2000).sample(X, random_state=0)
    assert_allclose(anchor.min(axis=0), [0, 10], atol=0.05)
    assert_allclose(anchor.max(axis=0), [1, 30], atol=0.05)
    anchor, _ = UniformAnchor(2000, low=-5).sample(X, random_state=0)
    assert_allclose(anchor.min(axis=0), -5, atol=0.05)
    assert_allclose(anchor.max(axis=0), [1, 30], atol=0.05)


def test_single_numbers_with_a_number_of_columns():
    assert UniformAnchor(7, low=0, high=1, n_features=3).sample()[0].shape == (7, 3)


@pytest.mark.parametrize(
    ("parameters", "X", "message"),
    [
        ({}, None, "'low' is missing"),
        ({"low": 0}, None, "'high' is missing"),
        ({"low": 0, "high": 1}, None, "number of columns is unknown"),
        ({"low": [0, 0], "high": [1, 1, 1]}, None, "do not agree"),
        ({"low": [0, 0], "high": 1, "n_features": 3}, None, "do not agree"),
        ({"low": [0, 0]}, [[1, 2, 3]], "do not agree"),
        ({"low": [], "high": []}, None, "do not agree"),
        ({"low": [0, 2, 0], "high": 1}, None, r"low is above high in 1 of 3 columns \(first: \[1\]\)"),
        ({"low": [0, np.nan], "high": 1}, None, "low must be a finite number"),
        ({"low": 0, "high": [[1, 2]]}, None, "high must be a finite number"),
        ({"low": 0, "high": ["one", "two"]}, None, "high must be a number"),
    ],
)
def test_unusable_boxes_are_refused(parameters, X, message):
    with pytest.raises(AnchorError, match=message):
        UniformAnchor(5, **parameters).sample(X)
