"""Effects from arrays, beside DoubleML, naive formulas and cases that must coincide."""

import doubleml
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from datacollab.effects import (
    WhitenedLogisticRegression,
    doubly_robust,
    effect_folds,
    equal_rows,
    inverse_probability_weighting,
    partially_linear,
    survival_difference,
)
from datacollab.effects._estimators import survival_at
from datacollab.errors import EffectError

SEEDS = st.integers(0, 10_000)
ESTIMATORS = {"plr": partially_linear, "aipw": doubly_robust, "ipw": inverse_probability_weighting}


def world(seed=0, n=300, effect=2.0, strength=0.7):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    t = (rng.random(n) < 1 / (1 + np.exp(-strength * X[:, 0]))).astype(np.int64)
    y = effect * t + X @ [1.0, -1.0, 0.5] + rng.normal(size=n)
    return X, t, y


def folds_of(t, n_folds=5, seed=0):
    return effect_folds(t, np.arange(len(t)), n_folds, seed)


@pytest.mark.parametrize("outcome_model", [LinearRegression(), RandomForestRegressor(10, random_state=0)])
def test_partially_linear_regression_is_that_of_doubleml(outcome_model):
    X, t, y = world()
    folds = folds_of(t)
    learners = {"outcome_model": outcome_model, "propensity_model": LogisticRegression()}
    other = doubleml.DoubleMLPLR(
        doubleml.DoubleMLData.from_arrays(X, y, t), outcome_model, LogisticRegression(), draw_sample_splitting=False
    )
    other.set_sample_splitting([folds]).fit()
    own = partially_linear(X, t, y, folds, **learners)
    assert own.value == pytest.approx(other.coef[0], abs=1e-10)
    assert own.standard_error() == pytest.approx(other.se[0], abs=1e-10)


@pytest.mark.parametrize(("target", "score"), [("ATE", "ATE"), ("ATT", "ATTE")])
def test_doubly_robust_effects_are_those_of_doubleml(target, score):
    X, t, y = world()
    folds = folds_of(t)
    other = doubleml.DoubleMLIRM(
        doubleml.DoubleMLData.from_arrays(X, y, t),
        LinearRegression(),
        LogisticRegression(),
        score=score,
        draw_sample_splitting=False,
        ps_processor_config=doubleml.utils.PSProcessorConfig(clipping_threshold=0.02),
    )
    other.set_sample_splitting([folds]).fit()
    learners = {"outcome_model": LinearRegression(), "propensity_model": LogisticRegression()}
    own = doubly_robust(X, t, y, folds, target=target, **learners)
    assert own.value == pytest.approx(other.coef[0], abs=1e-10)
    assert own.standard_error() == pytest.approx(other.se[0], abs=1e-10)


def test_a_classifier_of_outcomes_gives_probabilities():
    X, t, y = world()
    folds, yes = folds_of(t), (y > 0).astype(np.float64)
    other = doubleml.DoubleMLIRM(
        doubleml.DoubleMLData.from_arrays(X, yes, t),
        LogisticRegression(),
        LogisticRegression(),
        draw_sample_splitting=False,
        ps_processor_config=doubleml.utils.PSProcessorConfig(clipping_threshold=0.02),
    )
    other.set_sample_splitting([folds]).fit()
    own = doubly_robust(X, t, yes, folds, outcome_model=LogisticRegression(), propensity_model=LogisticRegression())
    assert own.value == pytest.approx(other.coef[0], abs=1e-10)


@given(SEEDS)
def test_without_covariates_that_tell_anything_weighting_is_a_difference_of_means(seed):
    _, t, y = world(seed, n=80)
    constant = np.ones((len(t), 1))
    own = inverse_probability_weighting(constant, t, y, folds_of(t), target="ATE")
    assert own.value == pytest.approx(y[t == 1].mean() - y[t == 0].mean(), abs=1e-9)
    variances = [y[t == arm].var() / (t == arm).sum() for arm in (0, 1)]
    assert own.standard_error() == pytest.approx(np.sqrt(sum(variances)), rel=1e-9)


def test_the_same_rows_twice_are_no_more_than_once():
    """Standard errors by groups see through copies; by rows they would be smaller by the square root of two."""
    X, t, y = world()
    folds = folds_of(t)
    once = doubly_robust(X, t, y, folds)
    n = len(t)
    twice = [(np.concatenate([a, a + n]), np.concatenate([b, b + n])) for a, b in folds]
    X2, t2, y2 = np.vstack([X, X]), np.tile(t, 2), np.tile(y, 2)
    copies = doubly_robust(X2, t2, y2, twice, propensity_model=LogisticRegression(C=0.5))
    single = doubly_robust(X, t, y, folds, propensity_model=LogisticRegression(C=1.0))
    assert copies.value == pytest.approx(single.value, abs=1e-4)
    assert copies.standard_error(equal_rows(X2)) == pytest.approx(single.standard_error(), abs=1e-4)
    assert copies.standard_error() < 0.8 * once.standard_error()


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("ipw", "ATT"),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (("ipw", "ATE"), ("plr", "ATE"), ("aipw", "ATE"), ("aipw", "ATT"))
        ),
    ],
)
def test_intervals_hold(method, target):
    """Estimates over 100 worlds vary as their standard errors say, around the truth."""
    z = []
    for seed in range(100):
        X, t, y = world(seed)
        folds = folds_of(t)
        options = {} if method == "plr" else {"target": target}
        found = ESTIMATORS[method](X, t, y, folds, **options)
        z.append((found.value - 2) / found.standard_error())
    assert abs(np.mean(z)) < 0.4
    assert 0.8 < np.std(z) < 1.2
    assert np.mean(np.abs(z) < 1.96) >= 0.88


@given(SEEDS)
def test_curves_are_products_and_their_derivatives_differences(seed):
    rng = np.random.default_rng(seed)
    time, weights = rng.integers(1, 12, 30).astype(float), rng.random(30) + 0.1
    event = rng.random(30) < 0.6

    def naive(w):
        value = 1.0
        for u in np.unique(time[event & (time <= 7.0)]):
            value *= 1 - w[event & (time == u)].sum() / w[time >= u].sum()
        return value

    value, derivative = survival_at(event, time, weights, 7.0)
    assert value == pytest.approx(naive(weights), abs=1e-12)
    assert derivative.sum() == pytest.approx(0, abs=1e-12)
    for i in range(5):
        step = np.where(np.arange(30) == i, 1e-6, 0.0)
        slope = (naive(weights * (1 + step)) - naive(weights * (1 - step))) / 2e-6
        assert derivative[i] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("target", ["ATE", "ATT"])
def test_survival_without_censoring_is_the_effect_on_being_beyond(target):
    X, t, y = world()
    time = np.exp(y / 3)
    folds = folds_of(t)
    own = survival_difference(X, t, np.ones(len(t), bool), time, folds, horizon=1.5, target=target)
    naive = inverse_probability_weighting(X, t, (time > 1.5).astype(float), folds, target=target)
    assert own.value == pytest.approx(naive.value, abs=1e-12)
    assert own.standard_error() == pytest.approx(naive.standard_error(), abs=1e-12)


@pytest.mark.nightly
def test_intervals_of_survival_hold():
    """Exponential times: the truth is known from a million rows without confounding; times are cut off at random."""
    rng = np.random.default_rng(99)
    big = rng.normal(size=1_000_000)

    def beyond(arm):
        return np.exp(-np.exp(0.5 * big - 0.7 * arm)).mean()

    truth, z = beyond(1) - beyond(0), []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X, t, _ = world(seed)
        death = rng.exponential(np.exp(-0.5 * X[:, 0] + 0.7 * t))
        end = rng.exponential(3.0, len(t))
        found = survival_difference(X, t, death <= end, np.minimum(death, end), folds_of(t), horizon=1.0)
        z.append((found.value - truth) / found.standard_error())
    assert abs(np.mean(z)) < 0.3
    assert 0.85 < np.std(z) < 1.15


def test_horizons_that_few_rows_reach_are_refused():
    X, t, y = world()
    with pytest.raises(EffectError, match="Take an earlier horizon"):
        survival_difference(X, t, np.ones(len(t), bool), np.exp(y), folds_of(t), horizon=float(np.exp(y).max()))


def test_whitened_logistic_regression_is_scikit_learns_in_whitened_columns():
    X, t, _ = world()
    Q = np.sqrt(len(X)) * np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0]
    other = LogisticRegression(C=10.0, tol=1e-10, max_iter=1000).fit(Q, t)
    own = WhitenedLogisticRegression().fit(X, t)
    assert_allclose(own.predict_proba(X), other.predict_proba(Q), atol=1e-8)


@given(SEEDS)
def test_folds_keep_equal_rows_together_and_arms_apart(seed):
    rng = np.random.default_rng(seed)
    t = np.repeat(rng.permutation(np.arange(30) % 2), 5)
    groups = np.repeat(np.arange(30), 5)
    folds = effect_folds(t, groups, 5, seed)
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(150))
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
        assert t[test].mean() == 0.5


def test_too_few_groups_for_the_folds_are_refused():
    with pytest.raises(EffectError, match="one arm has 3"):
        effect_folds(np.array([0] * 50 + [1] * 15), np.repeat(np.arange(13), 5), 5, 0)


def _weighted_estimate(v, X, t, y, target):
    """Logistic scores and weighted means of the arms where row i counts v_i times, written down anew."""
    beta, B = np.zeros(X.shape[1] + 1), np.column_stack([np.ones(len(X)), X])
    for _ in range(50):
        e = 1 / (1 + np.exp(-B @ beta))
        step = np.linalg.solve((B * (v * e * (1 - e))[:, None]).T @ B, B.T @ (v * (t - e)))
        beta = beta + step
    e = 1 / (1 + np.exp(-B @ beta))
    w = np.where(t == 1, 1.0, e / (1 - e)) if target == "ATT" else np.where(t == 1, 1 / e, 1 / (1 - e))
    means = [np.sum((v * w * y)[t == arm]) / np.sum((v * w)[t == arm]) for arm in (0, 1)]
    return means[1] - means[0]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["ATE", "ATT"])
def test_the_influence_knows_that_scores_were_estimated(target):
    """It is the derivative of the whole procedure by how often a row counts, also where effects differ."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(250, 2))
    t = (rng.random(250) < 1 / (1 + np.exp(-0.8 * X[:, 0]))).astype(np.int64)
    y = 2 * X[:, 0] + X[:, 1] + t * (1 - 3 * X[:, 0]) + rng.normal(size=250)
    found = inverse_probability_weighting(X, t, y, folds_of(t), target=target)
    h, wanted = 1e-5, np.empty(250)
    for i in range(250):
        v = np.ones(250)
        v[i] += h
        up = _weighted_estimate(v, X, t, y, target)
        v[i] -= 2 * h
        wanted[i] = 250 * (up - _weighted_estimate(v, X, t, y, target)) / (2 * h)
    assert np.corrcoef(found.influence, wanted)[0, 1] > 0.995
    assert_allclose(found.standard_error(), np.sqrt(wanted @ wanted) / 250, rtol=0.03)
