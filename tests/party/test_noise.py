import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from datacollab.errors import ObfuscationError
from datacollab.party import GaussianNoise


@pytest.mark.parametrize("scale", [0.3, 1.5])
def test_noise_is_gaussian_in_units_of_each_column(rng, scale):
    X = rng.normal(size=(2000, 3)) * [1.0, 100.0, 1e-3] + 7
    published, target = GaussianNoise(scale).apply(X, np.arange(2000), random_state=0)
    standard = (published - X) / (scale * X.std(axis=0))
    low, high = stats.chi2(standard.size).ppf([1e-4, 1 - 1e-4])
    assert low < np.sum(standard**2) < high
    assert stats.kstest(standard.ravel(), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(standard.T)[0, 1]) < 0.1
    assert_array_equal(target, np.arange(2000))


def test_constant_columns_get_none(rng):
    X = np.column_stack([np.full(50, 3.0), rng.normal(size=50)])
    published, _ = GaussianNoise().apply(X, np.zeros(50), random_state=0)
    assert_allclose(published[:, 0], 3.0)
    assert not np.isclose(published[:, 1], X[:, 1]).any()


def test_one_row_does_not_leave_without_noise():
    with pytest.raises(ObfuscationError, match="one row has no standard deviation"):
        GaussianNoise().apply([[1.0, 2.0]], [0])


def test_no_noise_is_no_choice(rng):
    with pytest.raises(ValueError, match="The 'scale' parameter of GaussianNoise must be"):
        GaussianNoise(0).apply(rng.normal(size=(5, 2)), np.zeros(5))
