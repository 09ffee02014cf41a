"""Effects linear in the rows: those of the pooled columns, sent back as a model."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import datacollab as dc
from datacollab.effects import WhitenedLogisticRegression, conditional_effects, effect_folds
from datacollab.errors import AgreementError, UnknownPartyError
from datacollab.targets import effect_target

K, N, WIDTH = 3, 100, 3


def world(seed=0, slope=1.0, noise=1.0):
    rng = np.random.default_rng(seed)
    X, anchor = rng.normal(size=(K * N, WIDTH)) + 4, rng.normal(size=(50, WIDTH)) + 4
    t = (rng.random(K * N) < 1 / (1 + np.exp(4 - X[:, 0]))).astype(np.int64)
    effects = 2 + slope * (X[:, 1] - 4)
    y = effects * t + X[:, 0] + noise * rng.normal(size=K * N)
    return X, t, y, effects, anchor


def fitted(X, target, anchor, **options):
    f = dc.obfuscator("pca", n_components=WIDTH)
    parties = [dc.Party(k, f, shuffle=False).fit(X[k * N : (k + 1) * N], target[k * N : (k + 1) * N]) for k in range(K)]
    integrator = dc.LTI(WIDTH, fit_intercept=True)
    return parties, conditional_effects([p.share(anchor) for p in parties], integrator, random_state=0, **options)


def said(parties, found, X):
    return np.concatenate([p.predict(X[k * N : (k + 1) * N], found.party_model(k)) for k, p in enumerate(parties)])


def test_they_are_least_squares_of_residuals_on_the_pooled_columns():
    """Straight from the definition, with scikit-learn's loops."""
    X, t, y, _, anchor = world()
    parties, found = fitted(X, effect_target(t, y), anchor)
    r_y, r_t = np.empty(K * N), np.empty(K * N)
    for train, test in effect_folds(t, np.arange(K * N), 5, 0):
        r_y[test] = y[test] - LinearRegression().fit(X[train], y[train]).predict(X[test])
        r_t[test] = t[test] - WhitenedLogisticRegression().fit(X[train], t[train]).predict_proba(X[test])[:, 1]
    naive = LinearRegression(fit_intercept=False).fit(r_t[:, None] * np.column_stack([np.ones(K * N), X]), r_y)
    np.testing.assert_allclose(said(parties, found, X), naive.coef_[0] + X @ naive.coef_[1:], atol=1e-6)


def test_effects_of_single_rows_are_found():
    X, t, y, effects, anchor = world(noise=0.1)
    parties, found = fitted(X, effect_target(t, y), anchor)
    assert np.sqrt(np.mean((said(parties, found, X) - effects) ** 2)) < 0.3
    assert found.p_value < 1e-6


def test_equal_effects_are_taken_for_that_as_often_as_the_test_says():
    values = []
    for seed in range(30):
        X, t, y, _, anchor = world(seed, slope=0.0)
        values.append(fitted(X, effect_target(t, y), anchor)[1].p_value)
    assert np.mean(np.array(values) < 0.05) <= 0.2
    assert 0.3 < np.mean(values) < 0.7


def test_the_model_can_be_sent(tmp_path):
    X, t, y, _, anchor = world()
    parties, found = fitted(X, effect_target(t, y), anchor)
    found.party_model(0).save(tmp_path / "effects.dcmodel")
    loaded = dc.PartyModel.load(tmp_path / "effects.dcmodel")
    np.testing.assert_allclose(
        parties[0].predict(X[:N], loaded), parties[0].predict(X[:N], found.party_model(0)), atol=1e-10
    )
    with pytest.raises(UnknownPartyError):
        found.party_model("nobody")


def test_times_to_events_are_refused():
    X, t, y, _, anchor = world()
    target = effect_target(t, event=np.ones(K * N), time=np.exp(y / 5))
    with pytest.raises(AgreementError, match="Take estimate_effect"):
        fitted(X, target, anchor)
