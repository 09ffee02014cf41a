import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from datacollab.anchor import find_private_rows
from datacollab.errors import AnchorError


@given(planted=st.sets(st.integers(0, 29)), tolerance=st.sampled_from([0.0, 1e-9]), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
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
