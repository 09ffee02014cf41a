import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import accuracy_score, r2_score

from datacollab.errors import AgreementError
from datacollab.risk.attacks import attribute_inference, label_only

NUMBERS = st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=20)
LETTERS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=20)


@given(pairs=NUMBERS.filter(lambda pairs: np.std([a for a, _ in pairs]) > 1e-3))
def test_of_numbers_it_is_r2(pairs):
    values, inferred = np.array(pairs).T
    assert attribute_inference(values, inferred) == pytest.approx(r2_score(values, inferred))
    assert attribute_inference(values, inferred, baseline=values.mean()) == attribute_inference(values, inferred)


@given(pairs=LETTERS)
def test_of_categories_it_is_accuracy(pairs):
    values, inferred = (list(side) for side in zip(*pairs, strict=True))
    assert attribute_inference(values, inferred) == pytest.approx(accuracy_score(values, inferred))


def test_fixed_points():
    values, baseline = np.array([1.0, 2.0, 4.0]), np.array([1.5, 1.5, 3.0])
    assert attribute_inference(values, values, baseline=baseline) == 1
    assert attribute_inference(values, baseline, baseline=baseline) == 0
    assert math.isnan(attribute_inference([2.0, 2.0], [2.0, 3.0]))


def test_categories_of_unequal_length_and_truth_values():
    assert attribute_inference(np.array(["a", "b"]), np.array(["abc", "b"])) == 0.5
    assert attribute_inference([True, False, True], [True, True, True]) == pytest.approx(2 / 3)
    assert attribute_inference(np.array(["a", None], dtype=object), np.array(["a", None], dtype=object)) == 1


def test_labels_alone_tell_the_mean_or_the_most_frequent():
    target = np.array(["x", "x", "x", "y"])
    assert_allclose(label_only([1.0, 2.0, 6.0, 8.0], target, ["y", "x", "unheard of"]), [8.0, 3.0, 4.25])
    inferred = label_only(["no", "yes", "yes", "no"], target, ["y", "x", "unheard of"])
    assert_array_equal(inferred, ["no", "yes", "no"])


def test_labels_alone_by_similar_numbers(rng):
    target = rng.normal(size=2000)
    values = 3 * target + rng.normal(size=2000)
    fresh = rng.normal(size=2000)
    inferred = label_only(values, target, fresh)
    score = attribute_inference(3 * fresh + rng.normal(size=2000), inferred)
    assert 0.75 < score < 0.9  # nine tenths with the target itself


def test_beyond_the_labels(rng):
    """An attribute that is the label and nothing more is no leak beyond it."""
    target = rng.integers(2, size=500)
    values = 10.0 * target + rng.normal(size=500)
    labels = label_only(values, target, target)
    assert attribute_inference(values, labels) > 0.9
    assert attribute_inference(values, values.round(), baseline=labels) > 0.8
    assert attribute_inference(values, labels, baseline=labels) == 0


def test_bad_input_is_refused_without_showing_it():
    with pytest.raises(AgreementError, match=r"values has shape \(2,\) and inferred has \(1,\)"):
        attribute_inference([1.0, 2.0], [1.0])
    with pytest.raises(AgreementError, match="inferred .dtype <U6. must be numbers as well") as caught:
        attribute_inference([1.0], ["secret"])
    assert "secret" not in str(caught.value)
    with pytest.raises(AgreementError, match="none may be missing"):
        attribute_inference([1.0, np.nan], [1.0, 2.0])
    with pytest.raises(AgreementError, match=r"baseline has shape \(3,\)"):
        attribute_inference([1.0, 2.0], [1.0, 2.0], baseline=[1.0, 2.0, 3.0])
    with pytest.raises(AgreementError, match="public_values must be one-dimensional"):
        label_only([[1.0]], ["a"], ["a"])
    with pytest.raises(AgreementError, match="there are 2 rows"):
        label_only([1.0, 2.0], ["a"], ["a"])
    with pytest.raises(AgreementError, match="cannot be sorted"):
        label_only(np.array(["a", None], dtype=object), ["x", "x"], ["x"])
