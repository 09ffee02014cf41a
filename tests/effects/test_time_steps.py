"""Horizons between the steps to which parties have rounded times are warned of."""

import warnings

import numpy as np
import pytest

import datacollab as dc
from datacollab.effects import estimate_effect
from datacollab.effects._pooled import time_step_of
from datacollab.errors import EffectWarning
from datacollab.targets import coarsened, effect_target, survival_target

RNG = np.random.default_rng(0)


def shares(step):
    X, anchor = RNG.normal(size=(300, 3)), RNG.normal(size=(60, 3))
    t = (X[:, 0] + RNG.logistic(size=300) > 0).astype(int)
    time = RNG.exponential(500.0, size=300) + 1.0
    y = effect_target(t, event=time < 900, time=np.minimum(time, 900))
    f = dc.obfuscator("pca", n_components=3)
    parties = [dc.Party(k, f, time_step=step).fit(X[k::2], y[k::2]) for k in range(2)]
    return [party.share(anchor) for party in parties]


@pytest.mark.parametrize(("step", "horizon"), [(30.0, 365.0), (50.0, 365.0)])
def test_a_horizon_between_steps_is_warned_of(step, horizon):
    with pytest.warns(EffectWarning, match=f"survival is that at {np.floor(horizon / step) * step:g}. Take"):
        estimate_effect(shares(step), dc.LTI(3, fit_intercept=True), horizon=horizon, random_state=0)


@pytest.mark.parametrize(("step", "horizon"), [(30.0, 360.0), (0.1, 365.0), (None, 365.0)])
def test_others_are_not(step, horizon):
    with warnings.catch_warnings():
        warnings.simplefilter("error", EffectWarning)
        estimate_effect(shares(step), dc.LTI(3, fit_intercept=True), horizon=horizon, random_state=0)


def test_steps_are_seen_in_the_times():
    exact = survival_target(np.ones(500), 1 + RNG.exponential(300.0, size=500))
    assert time_step_of(exact) is None
    for step in (7.0, 30.4375):
        np.testing.assert_allclose(time_step_of(coarsened(exact, step)), step)
    assert time_step_of(effect_target([0, 1], [1.0, 2.0])) is None
