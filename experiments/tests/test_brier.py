"""Brier scores of survival: those of scikit-survival, and what unbiased weights must give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sksurv import metrics
from sksurv.datasets import load_whas500

from datacollab.survival import CoxRegression, kaplan_meier
from datacollab.targets import survival_target
from datacollab_experiments.downstream.tables import brier_score, censoring_weights, mean_brier_score


@st.composite
def targets(draw):
    """Few rows, times on a grid so coarse that events and ends of observations share them."""
    n = draw(st.integers(4, 25))
    event = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return survival_target(event, draw(st.lists(st.integers(1, 6), min_size=n, max_size=n)))


def untied(n=150, seed=0):
    """Real rows with no two times alike, for training and for a test."""
    rows, target = load_whas500()
    X = rows.to_numpy(dtype=float)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), survival_target(target["fstat"], target["lenfol"])
    chosen = np.random.default_rng(seed).permutation(np.unique(y["time"], return_index=True)[1])[: 2 * n]
    return y[chosen[:n]], y[chosen[n:]], X[chosen[:n]], X[chosen[n:]]


@pytest.mark.parametrize("seed", range(3))
def test_brier_scores_are_those_of_scikit_survival(seed):
    train, test, X_train, X_test = untied(seed=seed)
    times = np.quantile(train["time"], [0.1, 0.3, 0.5, 0.7])
    survival = CoxRegression(1.0).fit(X_train, train).predict_survival(X_test, times)
    np.testing.assert_allclose(
        brier_score(train, test, survival, times), metrics.brier_score(train, test, survival, times)[1], atol=1e-12
    )
    theirs = metrics.integrated_brier_score(train, test, survival, times)
    assert mean_brier_score(train, test, survival, times) == pytest.approx(theirs, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(targets())
def test_weighted_events_give_kaplan_and_meiers_curve(y):
    """Σ 1(t_i ≤ t, δ_i) / G(t_i-) / n = 1 - S(t), and S(t) G(t) = #{t_i > t} / n, ties or not."""
    curve = kaplan_meier(y)
    for t, survival in zip(curve.times, curve.survival, strict=True):
        seen = y["event"] & (y["time"] <= t)
        weights = censoring_weights(y, y["time"][seen])
        assert weights.sum() / len(y) == pytest.approx(1 - survival, abs=1e-12)
        if (y["time"] > t).any():
            G = 1 / censoring_weights(y, np.array([t]), beyond=True)[0]
            assert survival * G == pytest.approx(np.mean(y["time"] > t), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(targets(), st.sampled_from([0.0, 0.3, 1.0]))
def test_the_brier_score_of_one_curve_for_all(y, survival):
    """With S for everybody it is S² (1 - KM) + (1 - S)² KM: what unbiased weights must give."""
    t = float(y["time"].max()) - 1
    if t <= 0:
        return
    S, (km,) = np.full((len(y), 1), survival), kaplan_meier(y)([t])
    expected = survival**2 * (1 - km) + (1 - survival) ** 2 * km
    assert brier_score(y, y, S, [t])[0] == pytest.approx(expected, abs=1e-12)
