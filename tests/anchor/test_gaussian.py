import numpy as np
import pytest
from numpy.testing import assert_allclose

from datacollab.anchor import GaussianAnchor
from datacollab.errors import AnchorError


@pytest.fixture
def sources():
    generator = np.random.RandomState(0)
    return generator.standard_normal((60, 4)) @ generator.standard_normal((4, 4)) + [0, 10, -5, 2]


@pytest.mark.parametrize("seed", range(3))
def test_full_has_mean_and_covariance_of_the_source(sources, seed):
    anchor, target = GaussianAnchor(200_000).sample(sources, random_state=seed)
    assert target is None
    assert_allclose(anchor.mean(axis=0), sources.mean(axis=0), atol=0.03)
    assert_allclose(np.cov(anchor.T), np.cov(sources.T), atol=0.1)


def test_diagonal_has_the_variances_only(sources):
    anchor, _ = GaussianAnchor(200_000, covariance="diagonal").sample(sources, random_state=0)
    assert_allclose(anchor.mean(axis=0), sources.mean(axis=0), atol=0.03)
    assert_allclose(np.cov(anchor.T), np.diag(sources.var(axis=0, ddof=1)), atol=0.1)


def test_rows_are_normal(sources):
    anchor, _ = GaussianAnchor(50_000).sample(sources, random_state=0)
    scores = (anchor - sources.mean(axis=0)) / sources.std(axis=0, ddof=1)
    assert_allclose(np.quantile(scores, [0.1587, 0.5, 0.8413], axis=0).T, [[-1, 0, 1]] * 4, atol=0.03)


def test_fewer_sources_than_columns_stay_in_their_affine_span():
    X = np.random.RandomState(0).standard_normal((5, 300))
    anchor, _ = GaussianAnchor(20_000).sample(X, random_state=0)
    basis = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:4]
    offset = anchor - X.mean(axis=0)
    assert_allclose(offset @ basis.T @ basis, offset, atol=1e-10)
    assert_allclose(np.cov((anchor @ basis.T).T), np.cov((X @ basis.T).T), atol=3)


def test_constant_columns_stay_constant(sources):
    sources[:, 1] = 7
    for covariance in ("full", "diagonal"):
        anchor, _ = GaussianAnchor(50, covariance=covariance).sample(sources, random_state=0)
        assert_allclose(anchor[:, 1], 7)


def test_one_row_has_no_covariance():
    with pytest.raises(AnchorError, match="at least two"):
        GaussianAnchor().sample([[1.0, 2.0]])


def test_bad_parameter(sources):
    with pytest.raises(ValueError, match="The 'covariance' parameter of GaussianAnchor"):
        GaussianAnchor(covariance="tied").sample(sources)
