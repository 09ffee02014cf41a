"""The effect of a treatment, from shares to an interval."""

import json
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, LogisticRegression

import datacollab as dc
from datacollab.effects import (
    WhitenedLogisticRegression,
    conditional_effects,
    doubly_robust,
    effect_folds,
    estimate_effect,
    inverse_probability_weighting,
    partially_linear,
    pseudo_values,
    survival_difference,
    with_parties,
)
from datacollab.errors import AgreementError, EffectError, EffectWarning, UnknownPartyError
from datacollab.party import Microaggregation
from datacollab.targets import effect_target

K, N, WIDTH = 4, 100, 4
PARTY = np.repeat(np.arange(K), N)


def world(seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(K * N, WIDTH)) @ rng.normal(size=(WIDTH, WIDTH)) + 5
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    t = (rng.random(K * N) < 1 / (1 + np.exp(-0.7 * z[:, 0]))).astype(np.int64)
    y = 2 * t + z @ [1.0, -1.0, 0.5, 0.3] + noise * rng.normal(size=K * N)
    return X, t, y, rng.normal(size=(60, WIDTH)) + 5


def parties_of(X, target, *, public=None, defences=(), kind="pca", **options):
    f = dc.obfuscator(kind, n_components=WIDTH, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.errors.RepeatableSecretWarning)
        return [
            dc.Party(k, f, fit_on=public, defences=defences, shuffle=False, random_state=k).fit(
                X[k * N : (k + 1) * N], target[k * N : (k + 1) * N]
            )
            for k in range(K)
        ]


def shares_of(X, target, anchor, **options):
    return [party.share(anchor) for party in parties_of(X, target, **options)]


AFFINE = dc.LTI(WIDTH, fit_intercept=True)


@cache
def plain_shares():
    X, t, y, anchor = world()
    return shares_of(X, effect_target(t, y), anchor)


@pytest.mark.parametrize(
    ("method", "target"),
    [("plr", "overlap"), *((method, each) for method in ("aipw", "ipw") for each in ("ATE", "ATT"))],
)
def test_full_rank_linear_maps_aligned_affinely_give_the_effect_of_the_pooled_columns(method, target):
    X, t, y, _ = world()
    effect = estimate_effect(plain_shares(), AFFINE, method=method, target=target, random_state=0)
    folds = effect_folds(t, np.arange(len(t)), 5, 0, party=PARTY)
    estimators = {"plr": partially_linear, "aipw": doubly_robust, "ipw": inverse_probability_weighting}
    central = estimators[method](with_parties(X, PARTY), t, y, folds, **({} if method == "plr" else {"target": target}))
    error = central.standard_error()
    assert effect.estimate == pytest.approx(central.value, abs=1e-6)
    assert effect.standard_error == pytest.approx(error, abs=1e-6)
    assert effect.misalignment < 1e-12
    low, high = effect.interval
    assert high - low == pytest.approx(2 * 1.959964 * error, rel=1e-5)
    assert (effect.n_rows, effect.n_treated, effect.n_groups) == (K * N, t.sum(), K * N)


def survival_world(seed=0):
    X, t, y, anchor = world(seed)
    rng = np.random.default_rng(seed + 1000)
    death, end = np.exp(y / 3) * rng.exponential(size=len(y)), 4 * rng.exponential(size=len(y))
    return X, t, death <= end, np.ceil(np.minimum(death, end) * 50) / 50, anchor


def shared_survival(X, t, event, time, anchor, **options):
    f = dc.obfuscator("pca", n_components=WIDTH)
    rows = [slice(k * N, (k + 1) * N) for k in range(K)]
    target = effect_target(t, event=event, time=time)
    made = [dc.Party(k, f, time_step=None, shuffle=False, **options).fit(X[r], target[r]) for k, r in enumerate(rows)]
    return [party.share(anchor) for party in made]


@pytest.mark.parametrize("method", ["plr", "aipw", "ipw"])
def test_effects_on_survival_are_those_of_the_pooled_columns(method):
    X, t, event, time, anchor = survival_world()
    folds = effect_folds(t, np.arange(len(t)), 5, 0, party=PARTY)
    X_there = with_parties(X, PARTY)
    shares = shared_survival(X, t, event, time, anchor)
    effect = estimate_effect(shares, AFFINE, method=method, horizon=1.0, random_state=0)
    if method == "ipw":
        central = survival_difference(X_there, t, event, time, folds, horizon=1.0)
    else:
        y = np.empty(len(t))
        for arm in (0, 1):
            y[t == arm] = pseudo_values(event[t == arm], time[t == arm], 1.0)
        central = (partially_linear if method == "plr" else doubly_robust)(X_there, t, y, folds)
    assert effect.estimate == pytest.approx(central.value, abs=1e-6)
    assert effect.standard_error == pytest.approx(central.standard_error(), abs=1e-6)
    assert "without the event at 1" in effect.sentence


def test_pseudo_values_without_censoring_are_whether_a_time_is_beyond():
    time = np.random.default_rng(0).exponential(size=100)
    assert_allclose(pseudo_values(np.ones(100, bool), time, 0.8), time > 0.8, atol=1e-12)


def test_pseudo_values_are_close_to_the_jackknife():
    """Leave-one-out Kaplan-Meier curves, straight from their product."""
    rng = np.random.default_rng(0)
    time, event = rng.exponential(size=150), rng.random(150) < 0.6

    def curve(rows):
        times = np.unique(time[rows & event & (time <= 0.7)])
        return np.prod([1 - (rows & event & (time == u)).sum() / (rows & (time >= u)).sum() for u in times])

    everyone = np.ones(150, bool)
    jackknife = [150 * curve(everyone) - 149 * curve(np.arange(150) != i) for i in range(150)]
    assert_allclose(pseudo_values(event, time, 0.7), jackknife, atol=0.02)


def test_a_survival_effect_wants_a_horizon_and_a_number_none():
    X, t, event, time, anchor = survival_world()
    with pytest.raises(ValueError, match="give a horizon above 0"):
        estimate_effect(shared_survival(X, t, event, time, anchor), AFFINE)
    with pytest.raises(ValueError, match="horizon must be None"):
        estimate_effect(plain_shares(), AFFINE, horizon=3.0)


def private_shares(seed=0, by="auto", k=5, defences=None, target=None):
    X, t, y, anchor = world(seed)
    public = np.random.default_rng(seed + 5).normal(size=(100, WIDTH)) * X.std(axis=0) + X.mean(axis=0)
    defences = (Microaggregation(k=k, by=by),) if defences is None else defences
    return shares_of(X, effect_target(t, y) if target is None else target, anchor, public=public, defences=defences)


def test_means_of_rows_are_in_one_fold_and_count_once():
    shares = private_shares()
    effect = estimate_effect(shares, AFFINE, random_state=0)
    n_groups = sum(len(np.unique(share.representation, axis=0)) for share in shares)
    assert effect.n_groups == n_groups < effect.n_rows / 4
    assert f"{n_groups}; the standard error counts these" in effect.to_text()


def test_weighting_needs_single_scores_and_refuses_means():
    with pytest.raises(EffectError, match="Take method='aipw'"):
        estimate_effect(private_shares(), AFFINE, method="ipw")


def test_rows_averaged_over_both_arms_are_refused():
    with pytest.raises(EffectError, match="treated rows and others were averaged together"):
        estimate_effect(private_shares(by=None), AFFINE)


@pytest.mark.parametrize("outcome", ["class", "bins"])
def test_rows_grouped_by_outcome_are_refused(outcome):
    """Whatever made the groups: equal outcomes in all of them are no chance."""
    X, t, y, anchor = world()
    coarse = (y > np.median(y)).astype(float) if outcome == "class" else np.round(y)
    shares = []
    for share in shares_of(X, effect_target(t, coarse), anchor):
        rows, target = share.representation.copy(), share.target
        for cell in np.unique(target):
            rows[target == cell] = rows[target == cell].mean(axis=0)
        kept = np.array([(target == each).sum() > 1 for each in target])
        shares.append(replace(share, representation=rows[kept], target=target[kept], one_to_one=False))
    with pytest.raises(EffectError, match="all rows of each group have the same outcome"):
        estimate_effect(shares, AFFINE)


def test_rare_outcomes_that_are_equal_in_groups_by_chance_are_not_refused():
    _, t, _, _ = world()
    rng = np.random.default_rng(0)
    y = (rng.random(len(t)) < 0.01).astype(float)
    shares = private_shares(target=effect_target(t, y))
    assert any(len(np.unique(share.target["outcome"])) > 1 for share in shares)
    estimate_effect(shares, AFFINE, folds=3, random_state=0)


def test_rows_with_noise_are_refused():
    noisy = [replace(share, one_to_one=False) for share in plain_shares()]
    with pytest.raises(EffectError, match="changed by a defence"):
        estimate_effect(noisy, AFFINE)


def test_other_targets_are_refused():
    X, t, _, anchor = world()
    with pytest.raises(AgreementError, match="effect_target"):
        estimate_effect(shares_of(X, t, anchor), AFFINE)
    with pytest.raises(AgreementError, match="Two shares carry the name"):
        estimate_effect([*plain_shares(), plain_shares()[0]], AFFINE)
    with pytest.raises(AgreementError, match="at least two shares, got none"):
        estimate_effect([], AFFINE)


@pytest.mark.parametrize(
    "options",
    [
        {"target": "ATU"},
        {"method": "ols"},
        {"method": "matching"},
        {"method": "plr", "target": "ATT"},
        {"method": "plr", "target": "ATE"},
        {"method": "aipw", "target": "overlap"},
        {"errors": "clinics"},
        {"trim": 0.7},
        {"confidence": 95},
        {"outcome_model": LogisticRegression()},
        {"propensity_model": LinearRegression()},
    ],
)
def test_parameters_without_meaning_are_refused(options):
    with pytest.raises((TypeError, ValueError), match="must|takes|regressor"):
        estimate_effect(plain_shares(), AFFINE, **options)


def test_kernel_maps_and_unaligned_parties_are_warned_of():
    shares = plain_shares()
    with pytest.warns(EffectWarning, match="Kernel integration functions lose"):
        estimate_effect(shares, dc.KTI(WIDTH), random_state=0)
    shifted = [
        replace(
            share,
            representation=share.representation + 100 * k,
            anchor_representation=share.anchor_representation + 100 * k,
        )
        for k, share in enumerate(shares)
    ]
    with pytest.warns(EffectWarning, match="differ in .* of their variance after alignment"):
        estimate_effect(shifted, dc.ODC(), random_state=0)


def test_arms_that_hardly_overlap_are_warned_of_and_can_be_trimmed():
    X, _, y, anchor = world()
    z = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    t = (np.random.default_rng(0).random(len(z)) < 1 / (1 + np.exp(-4 * z))).astype(np.int64)
    shares = shares_of(X, effect_target(t, y), anchor)
    with pytest.warns(EffectWarning, match="hardly rows of the other arm"):
        full = estimate_effect(shares, AFFINE, random_state=0)
    trimmed = estimate_effect(shares, AFFINE, trim=0.1, random_state=0)
    assert full.n_trimmed == 0 < trimmed.n_trimmed == full.n_rows - trimmed.n_rows
    assert f"{trimmed.n_trimmed} rows" in trimmed.to_text()
    with pytest.raises(EffectError, match="no row of one arm is left|folds"):
        estimate_effect(shares, AFFINE, trim=0.49, random_state=0)


def test_parties_order_and_a_rotation_of_one_change_nothing_but_the_folds():
    shares = plain_shares()
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(WIDTH, WIDTH)))[0]
    turned = replace(
        shares[1],
        representation=shares[1].representation @ Q,
        anchor_representation=shares[1].anchor_representation @ Q,
    )
    first = estimate_effect(shares, AFFINE, random_state=0)
    second = estimate_effect([shares[0], turned, *shares[2:]], AFFINE, random_state=0)
    assert second.estimate == pytest.approx(first.estimate, abs=1e-8)
    weighted = estimate_effect(shares, AFFINE, method="ipw", random_state=0)
    reversed_ = estimate_effect(shares[::-1], AFFINE, method="ipw", random_state=0)
    assert reversed_.estimate == pytest.approx(weighted.estimate, abs=1e-8)


def test_what_is_shown_counts_and_shows_no_row():
    t = world()[1]
    effect = estimate_effect(plain_shares(), AFFINE, random_state=0)
    assert sum(effect.overlap.treated) == t.sum()
    assert sum(effect.overlap.untreated) == (1 - t).sum()
    assert effect.overlap.effective_treated <= t.sum()
    assert json.loads(json.dumps(effect.to_dict()))["estimate"] == effect.estimate
    assert f"{effect.estimate:.4g}" in effect.to_text()
    assert str(effect) == effect.to_text()
    assert "array" not in repr(effect)


def test_pages_and_figures():
    pytest.importorskip("matplotlib")
    effect = estimate_effect(plain_shares(), AFFINE, random_state=0)
    assert effect.sentence in effect.to_html()
    axes = effect.plot_overlap()
    axes.figure.canvas.draw()
    assert all(float(label.get_text()) >= 0 for label in axes.get_yticklabels())
    heights = [bar.get_height() for bar in axes.patches]
    assert sum(abs(height) for height in heights) == K * N


RNG = np.random.default_rng(0)


def shares(step):
    X, anchor = RNG.normal(size=(300, 3)), RNG.normal(size=(60, 3))
    t = (X[:, 0] + RNG.logistic(size=300) > 0).astype(int)
    time = RNG.exponential(500.0, size=300) + 1.0
    y = effect_target(t, event=time < 900, time=np.minimum(time, 900))
    f = dc.obfuscator("pca", n_components=3)
    parties = [dc.Party(k, f, time_step=step).fit(X[k::2], y[k::2]) for k in range(2)]
    return [party.share(anchor) for party in parties]


@pytest.mark.filterwarnings("ignore:The arms differ:datacollab.errors.EffectWarning")
@pytest.mark.parametrize(("step", "horizon"), [(30.0, 365.0), (50.0, 365.0)])
def test_a_horizon_between_steps_is_warned_of(step, horizon):
    with pytest.warns(EffectWarning, match=f"survival is that at {np.floor(horizon / step) * step:g}. Take"):
        estimate_effect(shares(step), dc.LTI(3, fit_intercept=True), horizon=horizon, random_state=0)


@pytest.mark.parametrize(("step", "horizon"), [(30.0, 360.0), (0.1, 365.0), (None, 365.0)])
def test_others_are_not(step, horizon):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "(?!The arms differ)", EffectWarning)
        warnings.filterwarnings("ignore", "The arms differ", EffectWarning)
        estimate_effect(shares(step), dc.LTI(3, fit_intercept=True), horizon=horizon, random_state=0)


N_PARTIES, N_ROWS, N_COLUMNS = 3, 100, 3


def world_of_slopes(seed=0, slope=1.0, noise=1.0):
    rng = np.random.default_rng(seed)
    X, anchor = rng.normal(size=(N_PARTIES * N_ROWS, N_COLUMNS)) + 4, rng.normal(size=(50, N_COLUMNS)) + 4
    t = (rng.random(N_PARTIES * N_ROWS) < 1 / (1 + np.exp(4 - X[:, 0]))).astype(np.int64)
    effects = 2 + slope * (X[:, 1] - 4)
    y = effects * t + X[:, 0] + noise * rng.normal(size=N_PARTIES * N_ROWS)
    return X, t, y, effects, anchor


def fitted(X, target, anchor, **options):
    f = dc.obfuscator("pca", n_components=N_COLUMNS)
    parties = [
        dc.Party(k, f, shuffle=False).fit(X[k * N_ROWS : (k + 1) * N_ROWS], target[k * N_ROWS : (k + 1) * N_ROWS])
        for k in range(N_PARTIES)
    ]
    integrator = dc.LTI(N_COLUMNS, fit_intercept=True)
    return parties, conditional_effects([p.share(anchor) for p in parties], integrator, random_state=0, **options)


def said(parties, found, X):
    own = [X[k * N_ROWS : (k + 1) * N_ROWS] for k in range(N_PARTIES)]
    return np.concatenate([p.predict(own[k], found.party_model(k)) for k, p in enumerate(parties)])


def test_they_are_least_squares_of_residuals_on_the_pooled_columns():
    """Straight from the definition, with scikit-learn's loops."""
    X, t, y, _, anchor = world_of_slopes()
    parties, found = fitted(X, effect_target(t, y), anchor)
    r_y, r_t = np.empty(N_PARTIES * N_ROWS), np.empty(N_PARTIES * N_ROWS)
    party = np.repeat(np.arange(N_PARTIES), N_ROWS)
    Z = with_parties(X, party)
    for train, test in effect_folds(t, np.arange(N_PARTIES * N_ROWS), 5, 0, party=party):
        r_y[test] = y[test] - LinearRegression().fit(Z[train], y[train]).predict(Z[test])
        r_t[test] = t[test] - WhitenedLogisticRegression().fit(Z[train], t[train]).predict_proba(Z[test])[:, 1]
    design = r_t[:, None] * np.column_stack([np.ones(N_PARTIES * N_ROWS), X])
    naive = LinearRegression(fit_intercept=False).fit(design, r_y)
    assert_allclose(said(parties, found, X), naive.coef_[0] + X @ naive.coef_[1:], atol=1e-6)


def test_effects_of_single_rows_are_found():
    X, t, y, effects, anchor = world_of_slopes(noise=0.1)
    parties, found = fitted(X, effect_target(t, y), anchor)
    assert np.sqrt(np.mean((said(parties, found, X) - effects) ** 2)) < 0.3
    assert found.p_value < 1e-6


@pytest.mark.nightly
def test_equal_effects_are_taken_for_that_as_often_as_the_test_says():
    values = []
    for seed in range(30):
        X, t, y, _, anchor = world_of_slopes(seed, slope=0.0)
        values.append(fitted(X, effect_target(t, y), anchor)[1].p_value)
    assert np.mean(np.array(values) < 0.05) <= 0.2
    assert 0.3 < np.mean(values) < 0.7


def test_the_model_can_be_sent(tmp_path):
    X, t, y, _, anchor = world_of_slopes()
    parties, found = fitted(X, effect_target(t, y), anchor)
    found.party_model(0).save(tmp_path / "effects.dcmodel")
    loaded = dc.PartyModel.load(tmp_path / "effects.dcmodel")
    assert_allclose(
        parties[0].predict(X[:N_ROWS], loaded), parties[0].predict(X[:N_ROWS], found.party_model(0)), atol=1e-10
    )
    with pytest.raises(UnknownPartyError):
        found.party_model("nobody")


def test_times_to_events_are_refused():
    X, t, y, _, anchor = world_of_slopes()
    target = effect_target(t, event=np.ones(N_PARTIES * N_ROWS), time=np.exp(y / 5))
    with pytest.raises(AgreementError, match="Take estimate_effect"):
        fitted(X, target, anchor)
