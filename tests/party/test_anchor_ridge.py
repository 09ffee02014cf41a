import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.dummy import DummyRegressor
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.utils.estimator_checks import check_estimator

from datacollab.linalg import median_gamma
from datacollab.party import AnchorRidge


@pytest.fixture
def wave(rng):
    X = rng.uniform(-2, 2, size=(60, 2))
    return X, np.column_stack([np.sin(2 * X[:, 0]), X[:, 0] * X[:, 1]])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_the_scikit_learn_contract():
    check_estimator(AnchorRidge())


@pytest.mark.parametrize("standardize", [False, True])
def test_what_it_says_of_its_score_is_what_refits_say(wave, standardize):
    X, T = wave
    X = X * [1.0, 5.0]
    ridge = AnchorRidge(standardize=standardize).fit(X, T)
    used = (X - X.mean(axis=0)) / X.std(axis=0) if standardize else X
    again = AnchorRidge(gamma=ridge.gamma_, alpha=ridge.alpha_, standardize=False)
    left_out = cross_val_predict(again, used, T, cv=LeaveOneOut())
    means = cross_val_predict(DummyRegressor(), used, T, cv=LeaveOneOut())
    expected = 1 - ((T - left_out) ** 2).sum() / ((T - means) ** 2).sum()
    assert_allclose(ridge.r2_, expected, rtol=1e-6)


def test_no_setting_of_the_grid_does_better(wave):
    X, T = wave
    best = AnchorRidge().fit(X, T)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    for rows, standardize in ((X, False), (scaled, True)):
        for multiple in (0.25, 0.5, 1, 2, 4):
            for alpha in (1e-6, 1e-4, 1e-2, 1.0):
                gamma = multiple * median_gamma(rows)
                other = AnchorRidge(gamma=gamma, alpha=alpha, standardize=standardize).fit(X, T)
                assert other.r2_ <= best.r2_ + 1e-12


def test_units_do_not_matter_where_columns_are_standardised(wave):
    X, T = wave
    units, zero = np.array([1e-3, 1e4]), np.array([5.0, -3.0])
    first = AnchorRidge(standardize=True).fit(X, T)
    second = AnchorRidge(standardize=True).fit(X * units + zero, T)
    assert_allclose(first.predict(X), second.predict(X * units + zero), atol=1e-6)
    # Left to choose, it does not let a column of large numbers drown the other.
    assert AnchorRidge().fit(X * units, T).standardize_


def test_targets_are_solved_as_if_alone(wave):
    X, T = wave
    settings = {"gamma": 0.7, "alpha": 1e-3, "standardize": False}
    both = AnchorRidge(**settings).fit(X, T).predict(X)
    assert_allclose(both[:, 1], AnchorRidge(**settings).fit(X, T[:, 1]).predict(X), atol=1e-12)


def test_noise_cannot_be_predicted(rng):
    assert AnchorRidge().fit(rng.normal(size=(200, 3)), rng.normal(size=(200, 2))).r2_ < 0.1


def test_of_many_rows_some_choose_and_all_are_learned_from(rng):
    X = rng.uniform(-3, 3, size=(1300, 1))
    ridge = AnchorRidge().fit(X, np.sin(X[:, 0]))
    assert ridge.coefficients_.shape == (1300, 1)
    assert ridge.score(X, np.sin(X[:, 0])) > 0.999


def test_equal_rows_have_no_width():
    with pytest.raises(ValueError, match="give gamma"):
        AnchorRidge().fit(np.ones((30, 2)), np.arange(30))
