"""What attacks make of targets, attributes, residuals and labels."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neighbors import KNeighborsClassifier

from datacollab.errors import AgreementError, RepresentationError
from datacollab.risk.attacks import LabelMatch, PseudoinverseAttack, attribute_inference, label_match, label_only
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


NAMES = np.array(["ant", "bee", "cow", "dog"])
CODES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def judge():
    """Recognises row [i] as the animal number i."""
    return KNeighborsClassifier(1).fit(np.arange(4.0)[:, None], NAMES)


@given(codes=CODES)
def test_counts_what_one_would_count(judge, codes):
    seen = [NAMES[i] for i, _ in codes]
    true = [NAMES[j] for _, j in codes]
    result = label_match(judge, [[float(i)] for i, _ in codes], true)
    assert result.n_rows == len(codes)
    assert result.accuracy == sum(a == b for a, b in zip(seen, true, strict=True)) / len(codes)
    assert result.most_common_share == max(seen.count(name) for name in NAMES) / len(codes)


@given(codes=CODES, seed=st.integers(0, 1000))
def test_order_of_the_rows_does_not_matter(judge, codes, seed):
    rows, true = np.array(codes, dtype=float)[:, :1], NAMES[[j for _, j in codes]]
    order = np.random.default_rng(seed).permutation(len(codes))
    assert label_match(judge, rows, true) == label_match(judge, rows[order], true[order])


def test_originals_score_one(judge):
    assert label_match(judge, np.arange(4.0)[:, None], NAMES) == LabelMatch(
        accuracy=1.0, most_common_share=0.25, n_rows=4
    )


def test_an_attack_that_always_says_the_same_is_exposed(judge, rng):
    """It matches the share of one class, which looks like chance; the other figure tells."""
    constant = PseudoinverseAttack().fit(np.full((9, 2), 0.3), rng.uniform(1.8, 2.2, size=(9, 1)))
    result = label_match(judge, constant.reconstruct(rng.normal(size=(40, 2))), np.repeat(NAMES, 10))
    assert result == LabelMatch(accuracy=0.25, most_common_share=1.0, n_rows=40)


def test_blurred_rows_are_misjudged():
    """Class means, which know the class and nothing else, need not be recognised: the rate is no measure of risk."""
    judge = KNeighborsClassifier(1).fit([[-1.0], [1.0], [0.1]], ["even", "even", "odd"])
    assert label_match(judge, [[0.0], [0.1]], ["even", "odd"]).accuracy == 0.5


def test_result_cannot_be_changed(judge):
    with pytest.raises(dataclasses.FrozenInstanceError):
        label_match(judge, [[1.0]], ["bee"]).accuracy = 1.0


def test_errors_show_no_data(judge):
    with pytest.raises(AgreementError, match=r"targets has shape \(1,\), but there are 2 reconstructions"):
        label_match(judge, [[1.0], [2.0]], ["bee"])
    with pytest.raises(AgreementError, match="does not know 1 of the 2 classes in targets") as caught:
        label_match(judge, [[1.0], [2.0]], ["bee", "secret"])
    assert "secret" not in str(caught.value)
    with pytest.raises(RepresentationError, match="reconstructions contains NaN or infinity in 1 of 2 rows"):
        label_match(judge, [[1.0], [np.nan]], ["bee", "cow"])
    with pytest.raises(NotFittedError):
        label_match(KNeighborsClassifier(), [[1.0]], ["bee"])


def test_labels_of_another_type_are_refused_rather_than_never_matched():
    judge = KNeighborsClassifier(1).fit([[0.0], [1.0]], [0, 1])
    assert label_match(judge, [[0.0]], [0.0]).accuracy == 1.0
    with pytest.raises(AgreementError, match="labels of the same type"):
        label_match(judge, [[0.0], [1.0]], ["0", "1"])
