import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import r2_score

from datacollab.errors import AgreementError, RepresentationError
from datacollab.risk.attacks import class_means, explained, structural_similarity

SEEDS = st.integers(0, 1000)


def naive_ssim(image, other, window, spread):
    """Square by square, as the definition has it."""
    small, smaller = (0.03 * spread) ** 2, (0.01 * spread) ** 2
    values = []
    for top in range(image.shape[0] - window + 1):
        for left in range(image.shape[1] - window + 1):
            a = image[top : top + window, left : left + window].ravel()
            b = other[top : top + window, left : left + window].ravel()
            C = np.cov(a, b)
            means = (2 * a.mean() * b.mean() + smaller) / (a.mean() ** 2 + b.mean() ** 2 + smaller)
            values.append(means * (2 * C[0, 1] + small) / (C[0, 0] + C[1, 1] + small))
    return np.mean(values)


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


@pytest.mark.parametrize(("shape", "window"), [((9, 12), 7), ((8, 8), 3), ((7, 7), 7), ((28, 28), 7)])
@pytest.mark.parametrize("offset", [0.0, -100.0])
def test_similarity_is_the_definition(rng, shape, window, offset):
    X, noise = rng.normal(size=(2, 3, np.prod(shape))) + offset
    guesses = 0.8 * X + 0.2 * noise
    expected = [
        naive_ssim(a.reshape(shape), b.reshape(shape), window, np.ptp(X)) for a, b in zip(X, guesses, strict=True)
    ]
    assert structural_similarity(X, guesses, shape, window) == pytest.approx(np.mean(expected), rel=1e-6)


@given(seed=SEEDS)
def test_similarity_is_largest_for_equal_images(seed):
    X, guesses = np.random.default_rng(seed).normal(size=(2, 4, 64))
    assert structural_similarity(X, X, (8, 8)) == pytest.approx(1)
    assert structural_similarity(X, guesses, (8, 8)) < 0.7
    assert structural_similarity(100 * X, 100 * guesses, (8, 8)) == pytest.approx(
        structural_similarity(X, guesses, (8, 8))
    )


def test_similarity_sees_a_mirrored_image_as_another(rng):
    X = np.cumsum(rng.normal(size=(4, 8, 8)), axis=2)
    mirrored = X[:, :, ::-1]
    similarity = structural_similarity(X.reshape(4, -1), mirrored.reshape(4, -1), (8, 8))
    assert similarity < 0.5
    assert structural_similarity(np.ones((2, 64)), np.ones((2, 64)), (8, 8)) == 1


def test_bad_input_is_refused_without_showing_it():
    with pytest.raises(AgreementError, match=r"originals have shape \(1, 2\) but the reconstructions have \(1, 1\)"):
        explained([[1.0, 2.0]], [[1.0]], [1.0])
    with pytest.raises(AgreementError, match=r"baseline has shape \(2, 1\)"):
        explained([[1.0]], [[1.0]], [[1.0], [2.0]])
    with pytest.raises(RepresentationError, match="baseline contains NaN"):
        explained([[1.0]], [[1.0]], [np.nan])
    with pytest.raises(AgreementError, match=r"has shape \(1,\), but there are 2 rows"):
        class_means([[1.0], [2.0]], ["secret"], ["secret"])
    with pytest.raises(AgreementError, match="no images of 2 by 3"):
        structural_similarity([[1.0]], [[1.0]], (2, 3))
    for window in (1, 4, 9):
        with pytest.raises(AgreementError, match="must be odd, at least 3, and fit"):
            structural_similarity(np.ones((1, 64)), np.ones((1, 64)), (8, 8), window)


def test_input_is_left_alone(rng):
    X, guesses = rng.normal(size=(2, 4, 64))
    copies = X.copy(), guesses.copy()
    explained(X, guesses, X[0])
    structural_similarity(X, guesses, (8, 8))
    assert_array_equal([X, guesses], copies)
