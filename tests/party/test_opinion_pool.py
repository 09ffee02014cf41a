"""Pools of opinions: against generic optimisers, finite differences and special cases."""

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose

from datacollab.party._own_models import fit_convex_pool, fit_log_pool, log_pool, penalised_log_loss, weights_by_loss


def opinions(rng, n_opinions=2, n_rows=30, n_classes=3, skill=1.5):
    codes = rng.integers(n_classes, size=n_rows)
    scores = rng.normal(size=(n_opinions, n_rows, n_classes)) + skill * np.eye(n_classes)[codes]
    return scores - np.log(np.exp(scores).sum(axis=2, keepdims=True)), codes


def naive_loss(weights, bias, logs, codes, prior, tau, ridge):
    total = 0.0
    for row, code in enumerate(codes):
        unnormalised = np.prod([np.exp(each[row]) ** w for each, w in zip(logs, weights, strict=True)], axis=0)
        unnormalised = unnormalised * np.exp(bias)
        total -= np.log(unnormalised[code] / unnormalised.sum())
    return total + tau / 2 * np.sum((weights - prior) ** 2) + ridge / 2 * np.sum(bias**2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ridge", [None, 2.0])
def test_loss_and_gradient_are_those_of_the_formula(seed, ridge):
    rng = np.random.default_rng(seed)
    logs, codes = opinions(rng)
    prior = np.array([0.3, 0.7])
    weights, bias = rng.uniform(size=2), rng.normal(size=3) if ridge else np.zeros(3)
    parameters = np.concatenate([weights, bias]) if ridge else weights
    value, gradient = penalised_log_loss(parameters, logs, codes, prior, 5.0, ridge)
    assert_allclose(value, naive_loss(weights, bias, logs, codes, prior, 5.0, ridge or 0.0))
    numeric = scipy.optimize.approx_fprime(
        parameters, lambda at: penalised_log_loss(at, logs, codes, prior, 5.0, ridge)[0], 1e-7
    )
    assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tau", [0.1, 20.0])
@pytest.mark.parametrize("ridge", [None, 1.0])
def test_the_fit_is_where_a_generic_optimiser_ends(rng, tau, ridge):
    logs, codes = opinions(rng, n_opinions=3)
    prior = np.array([0.2, 0.3, 0.5])
    weights, bias = fit_log_pool(logs, codes, prior=prior, tau=tau, bias_ridge=ridge)
    n_biases = 3 if ridge else 0
    generic = scipy.optimize.minimize(
        lambda at: naive_loss(at[:3], at[3:] if ridge else np.zeros(3), logs, codes, prior, tau, ridge or 0.0),
        np.full(3 + n_biases, 0.5),
        method="SLSQP",
        bounds=[(0, None)] * 3 + [(None, None)] * n_biases,
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    found = weights if bias is None else np.concatenate([weights, bias])
    assert_allclose(found, generic.x, atol=1e-4)


def test_a_misleading_opinion_gets_no_negative_weight(rng):
    logs, codes = opinions(rng, n_rows=200)
    logs[1] = np.log(np.roll(np.exp(logs[0]), 1, axis=1))
    weights, _ = fit_log_pool(logs, codes, prior=np.array([0.5, 0.5]), tau=0.01)
    assert weights[1] == 0
    assert weights[0] > 0.5


def test_a_large_penalty_leaves_the_weights_by_loss(rng):
    logs, codes = opinions(rng)
    prior = weights_by_loss(np.array([1.0, 0.5]))
    assert_allclose(prior, [0.2, 0.8])
    assert_allclose(fit_log_pool(logs, codes, prior=prior, tau=1e8)[0], prior, atol=1e-4)


def test_equal_opinions_pool_to_themselves(rng):
    logs, _ = opinions(rng)
    assert_allclose(log_pool(np.stack([logs[0]] * 2), np.array([0.25, 0.75])), logs[0], atol=1e-12)


def test_biases_follow_the_mix_of_classes(rng):
    even = np.log(np.full((1, 60, 3), 1 / 3))
    codes = np.repeat([0, 1], [40, 20])
    weights, bias = fit_log_pool(even, codes, prior=np.ones(1), tau=20.0, bias_ridge=1.0)
    shares = np.exp(log_pool(even[:, :1], weights, bias))[0]
    assert shares[0] > shares[1] > shares[2]
    assert_allclose(shares[0], 2 / 3, atol=0.03)


@pytest.mark.parametrize("n_opinions", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_convex_weights_are_those_of_a_generic_optimiser(n_opinions, seed):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=40)
    noise = rng.uniform(0.1, 3, size=n_opinions)
    said = target[:, None] + rng.normal(size=(40, n_opinions)) * noise
    prior = np.full(n_opinions, 1 / n_opinions)
    weights = fit_convex_pool(said, target, prior=prior, tau=2.0)
    generic = scipy.optimize.minimize(
        lambda w: 0.5 * np.sum((target - said @ w) ** 2) + 1.0 * np.sum((w - prior) ** 2),
        prior,
        method="SLSQP",
        bounds=[(0, 1)] * n_opinions,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert_allclose(weights.sum(), 1)
    assert weights.min() >= 0
    assert_allclose(weights, generic.x, atol=1e-4)


def test_convex_weights_do_not_depend_on_where_the_target_lies(rng):
    target = rng.normal(size=30)
    said = target[:, None] + rng.normal(size=(30, 2))
    prior = np.array([0.5, 0.5])
    moved = fit_convex_pool(said + 100, target + 100, prior=prior, tau=1.0)
    assert_allclose(moved, fit_convex_pool(said, target, prior=prior, tau=1.0), atol=1e-9)
