"""Clusters and novelty as chains of steps, against scikit-learn."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import pairwise_distances_argmin
from sklearn.mixture import GaussianMixture

from datacollab.model import head_from, head_to, mixture_classes, mixture_novelty, nearest_centre

COVARIANCES = ("full", "tied", "diag", "spherical")


def received(estimator, n_columns):
    facts, members = head_to(estimator, "h")
    return head_from(json.loads(json.dumps(facts)), members, "h", n_columns)


def rows(seed, n_rows=200, n_columns=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_columns)) + 4.0 * rng.integers(0, 3, size=(n_rows, 1))


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 2**31 - 1), n_centres=st.integers(1, 8), n_columns=st.integers(1, 5), shift=st.floats(-1e4, 1e4)
)
def test_the_nearest_centre_is_the_nearest(seed, n_centres, n_columns, shift):
    rng = np.random.default_rng(seed)
    centres, X = (rng.normal(size=(n, n_columns)) + shift for n in (n_centres, 50))
    classes = np.arange(n_centres)
    h = received(nearest_centre(centres, classes), n_columns)
    assert_array_equal(h.predict(X), pairwise_distances_argmin(X, centres))


@pytest.mark.parametrize("covariance_type", COVARIANCES)
@pytest.mark.parametrize("seed", range(3))
def test_mixtures_say_what_scikit_learns_say(covariance_type, seed):
    X, new = rows(seed), rows(seed + 50)
    mixture = GaussianMixture(3, covariance_type=covariance_type, random_state=seed).fit(X)
    h = received(mixture_classes(mixture, np.arange(3)), 3)
    assert_array_equal(h.predict(new), mixture.predict(new))
    assert_allclose(h.predict_proba(new), mixture.predict_proba(new), atol=1e-9)


@pytest.mark.parametrize("covariance_type", COVARIANCES)
@pytest.mark.parametrize("n_components", [1, 3])
def test_novelty_is_the_log_density_but_for_a_constant(covariance_type, n_components):
    X = rows(0)
    mixture = GaussianMixture(n_components, covariance_type=covariance_type, random_state=0).fit(X)
    scores = received(mixture_novelty(mixture), 3).predict(X)
    constants = scores + mixture.score_samples(X)
    assert_allclose(constants, constants[0], rtol=0, atol=1e-9)


def test_novelty_of_the_likeliest_row_is_about_zero_and_ends_at_230():
    mixture = GaussianMixture(1, random_state=0).fit(rows(1))
    h = mixture_novelty(mixture)
    assert h.predict(mixture.means_)[0] == pytest.approx(0.0, abs=1e-9)
    assert h.predict(np.full((1, 3), 1e6))[0] == pytest.approx(100 * np.log(10))


def test_many_columns_and_components_keep_the_digits():
    X = np.random.default_rng(0).normal(size=(500, 30))
    mixture = GaussianMixture(10, reg_covar=0.1, random_state=0).fit(X)
    assert_allclose(np.diff(mixture_novelty(mixture).predict(X)), -np.diff(mixture.score_samples(X)), rtol=0, atol=1e-7)
