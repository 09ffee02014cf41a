import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import r2_score

from datacollab.errors import AgreementError, RepresentationError
from datacollab.risk.attacks import class_means, explained

SEEDS = st.integers(0, 1000)


@given(seed=SEEDS, n_features=st.integers(1, 6))
def test_over_the_mean_it_is_r2(seed, n_features):
    rng = np.random.default_rng(seed)
    X, guesses = rng.normal(size=(2, 9, n_features)) + 4
    mean = X.mean(axis=0)
    expected = r2_score((X - mean).ravel(), (guesses - mean).ravel(), force_finite=False)
    centred = 1 - ((X - guesses) ** 2).sum() / ((X - mean) ** 2).sum()
    assert explained(X, guesses, mean) == pytest.approx(centred)
    assert centred == pytest.approx(expected)


@given(seed=SEEDS)
def test_fixed_points(seed):
    X, baseline = np.random.default_rng(seed).normal(size=(2, 9, 4))
    assert explained(X, X, baseline) == 1
    assert explained(X, baseline, baseline) == 0
    assert explained(X, (X + baseline) / 2, baseline) == pytest.approx(0.75)
    assert explained(X, 2 * baseline - X, baseline) == pytest.approx(-3)
    assert explained(X, np.tile(baseline[0], (9, 1)), baseline[0]) == 0


@given(seed=SEEDS)
def test_order_units_and_rotation_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    X, guesses, baseline = rng.normal(size=(3, 9, 4))
    R, order = np.linalg.qr(rng.normal(size=(4, 4)))[0], rng.permutation(9)
    moved = (5 * rows[order] @ R + 3 for rows in (X, guesses, baseline))
    assert explained(*moved) == pytest.approx(explained(X, guesses, baseline))


def test_nothing_left_to_explain():
    assert math.isnan(explained([[1.0]], [[2.0]], [[1.0]]))


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


def test_means_of_classes_explain_what_labels_disclose(rng):
    public_target, target = rng.integers(3, size=(2, 300))
    centres = 5 * rng.normal(size=(3, 4))
    public, X = (centres[y] + rng.normal(size=(300, 4)) for y in (public_target, target))
    means = class_means(public, public_target, target)
    assert explained(X, means, public.mean(axis=0)) > 0.8
    assert explained(X, means, means) == 0


def test_bad_input_is_refused_without_showing_it():
    with pytest.raises(AgreementError, match=r"originals have shape \(1, 2\) but the reconstructions have \(1, 1\)"):
        explained([[1.0, 2.0]], [[1.0]], [1.0])
    with pytest.raises(AgreementError, match=r"baseline has shape \(2, 1\)"):
        explained([[1.0]], [[1.0]], [[1.0], [2.0]])
    with pytest.raises(RepresentationError, match="baseline contains NaN"):
        explained([[1.0]], [[1.0]], [np.nan])
    with pytest.raises(AgreementError, match=r"has shape \(1,\), but there are 2 rows"):
        class_means([[1.0], [2.0]], ["secret"], ["secret"])


def test_input_is_left_alone(rng):
    X, guesses = rng.normal(size=(2, 4, 64))
    copies = X.copy(), guesses.copy()
    explained(X, guesses, X[0])
    assert_array_equal([X, guesses], copies)
