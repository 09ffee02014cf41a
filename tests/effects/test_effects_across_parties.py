"""Parties whose treatments and outcomes differ: what is adjusted for, what is estimated, and whether intervals hold."""

import json
import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import t as student
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression

import datacollab as dc
from datacollab.effects import (
    conditional_effects,
    doubly_robust,
    effect_folds,
    equal_rows,
    estimate_effect,
    partially_linear,
    with_parties,
)
from datacollab.errors import EffectError, EffectWarning
from datacollab.party import Microaggregation
from datacollab.targets import effect_target

AFFINE = dc.LTI(3, fit_intercept=True)


def world(seed, kind="levels", n_parties=6, n_rows=100):
    """Six hospitals: those that treat more have better outcomes anyway.  The effect is 2, or differs as `kind` says."""
    rng = np.random.default_rng(seed)
    party = np.repeat(np.arange(n_parties), n_rows)
    X = rng.normal(size=(len(party), 3))
    level, odds, effect = np.linspace(-1.5, 1.5, n_parties), 0.5 * X[:, 0], np.full(len(party), 2.0)
    if kind == "rows":  # rows of most overlap gain least
        level, odds, effect = np.zeros(n_parties), 0.8 * X[:, 0], 2 + 1.5 * (X[:, 0] ** 2 - 1)
    if kind == "parties":
        level, effect = rng.normal(size=n_parties), 2 + 0.5 * rng.normal(size=n_parties)[party]
    e = 1 / (1 + np.exp(-odds - 0.7 * level[party]))
    t = (rng.random(len(party)) < e).astype(np.int64)
    y = effect * t + X @ [1.0, -1.0, 0.5] + level[party] + rng.normal(size=len(party))
    return X, t, y, party, e, effect


def shares_of(X, t, y, party, names=None):
    """Each party turns its rows in its own way."""
    rng, shares = np.random.default_rng(0), []
    anchor = rng.normal(size=(40, 3))
    for code in np.unique(party):
        own, Q = party == code, np.linalg.qr(rng.normal(size=(3, 3)))[0]
        target = effect_target(t[own], y[own])
        name = int(code) if names is None else names[code]
        shares.append(dc.Share(party=name, representation=X[own] @ Q, anchor_representation=anchor @ Q, target=target))
    return shares


def estimated(seed, kind="levels", n_parties=6, **options):
    X, t, y, party, *_ = world(seed, kind, n_parties)
    return estimate_effect(shares_of(X, t, y, party), AFFINE, random_state=seed, **options)


def test_with_linear_models_it_is_least_squares_with_dummies_and_clustered_errors():
    """The theorem of Frisch, Waugh and Lovell, beside statsmodels; and centring within parties is the same."""
    X, t, y, party, *_ = world(0)
    everybody = [(np.arange(len(t)), np.arange(len(t)))]
    linear = {"outcome_model": LinearRegression(), "propensity_model": LinearRegression()}
    own = partially_linear(with_parties(X, party), t, y, everybody, **linear)
    model = sm.OLS(y, np.column_stack([t, X, np.eye(6)[party]]))
    errors = {"groups": party, "use_correction": False}
    assert own.value == pytest.approx(model.fit().params[0], abs=1e-10)
    assert own.standard_error() == pytest.approx(model.fit(cov_type="HC0").bse[0], abs=1e-10)
    assert own.standard_error(party) == pytest.approx(model.fit(cov_type="cluster", cov_kwds=errors).bse[0], abs=1e-10)
    means = np.array([[np.mean(v[party == k]) for k in range(6)] for v in (t, y)])
    X_within = X - np.array([X[party == k].mean(axis=0) for k in range(6)])[party]
    within = partially_linear(X_within, t - means[0][party], y - means[1][party], everybody, **linear)
    assert own.value == pytest.approx(within.value, abs=1e-10)


@pytest.mark.slow
def test_parties_levels_are_adjusted_for():
    """Of two shares of rows of all six hospitals the effect is biased, as nothing says whose rows they are."""
    found = []
    for seed in range(4):
        X, t, y, party, *_ = world(seed)
        blind = estimate_effect(shares_of(X, t, y, np.arange(len(party)) % 2), AFFINE, random_state=0)
        found.append((blind.estimate, estimated(seed).estimate, estimated(seed, method="plr").estimate))
    blind, *aware = np.mean(found, axis=0)
    assert blind > 2.4
    assert np.abs(np.array(aware) - 2).max() < 0.15


def test_folds_deal_each_arm_of_each_party():
    rng = np.random.default_rng(0)
    party, t = rng.integers(0, 5, 333), rng.integers(0, 2, 333)
    folds = effect_folds(t, np.arange(333), 4, 0, party=party)
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(333))
    for values in (t, 2 * party + t):
        counts = np.array([np.bincount(values[test], minlength=10) for _, test in folds])
        assert np.ptp(counts, axis=0).max() <= 1


def test_what_is_estimated_is_named():
    X, t, y, party, e, effect = world(1, "rows")
    ate = estimated(1, "rows")
    overlap = estimated(1, "rows", method="plr")
    att = estimated(1, "rows", target="ATT")
    trimmed = estimated(1, "rows", trim=0.2)
    assert (ate.target, ate.method) == ("ATE", "aipw")
    assert (overlap.target, att.target) == ("overlap", "ATT")
    assert estimated(1, "rows", target="overlap").estimate == overlap.estimate
    for found, words in (
        (ate, "the average over all rows (ATE)"),
        (overlap, "the average over rows weighted by overlap"),
        (att, "the average over the treated rows (ATT)"),
        (trimmed, f"among the {trimmed.n_rows} rows kept of 600"),
    ):
        assert words in found.sentence
        assert words in found.to_html()
        assert words in found._repr_html_()
        assert found.estimand in json.loads(json.dumps(found.to_dict()))["estimand"]
        assert f"target='{found.target}'" in repr(found)
    assert ate.heterogeneity < 0.001
    assert "this is not the average over all rows" in overlap.sentence
    assert "this is not the effect on each row" in ate.sentence
    assert "Effects differ" not in estimated(1).sentence


def test_effects_that_differ_between_parties_are_seen():
    assert estimated(0, "parties").heterogeneity < 0.01


def test_errors_by_party_count_parties():
    X, t, y, party, *_ = world(0, "parties")
    found = estimated(0, "parties", errors="parties")
    folds = effect_folds(t, np.arange(len(t)), 5, 0, party=party)
    central = doubly_robust(with_parties(X, party), t, y, folds)
    error = central.standard_error(party) * np.sqrt(6 / 5)
    assert found.standard_error == pytest.approx(error, abs=1e-6)
    assert np.diff(found.interval)[0] == pytest.approx(2 * student(5).ppf(0.975) * error, abs=1e-5)
    assert found.standard_error > 1.4 * estimated(0, "parties").standard_error
    assert "if parties are, and their rows move together" in found.to_text()
    with pytest.raises(EffectError, match="errors='parties' needs 5 parties; there are 4"):
        estimated(0, n_parties=4, errors="parties")


def test_balance_is_written_down_by_component_and_party():
    pytest.importorskip("matplotlib")
    X, t, y, party, *_ = world(0)
    found = estimate_effect(shares_of(X, t, y, party, names="abcdef"), AFFINE, random_state=0)
    assert list(found.balance) == [*(f"component {k}" for k in (1, 2, 3)), *(f"party {each}" for each in "abcdef")]
    d = party == 5
    naive = (d[t == 1].mean() - d[t == 0].mean()) / np.sqrt((d[t == 1].var() + d[t == 0].var()) / 2)
    assert found.balance["party f"][0] == pytest.approx(naive)
    assert naive > 0.2 > 0.15 > abs(found.balance["party f"][1])
    name, largest = found.largest_imbalance
    assert abs(largest) == max(abs(after) for _, after in found.balance.values())
    assert f"{name}, {largest:+.2f}" in found.to_text()
    axes = found.plot_balance()
    axes.figure.canvas.draw()
    assert "party f" in [label.get_text() for label in axes.get_yticklabels()]


def test_arms_that_weights_do_not_make_alike_are_warned_of():
    with pytest.warns(
        EffectWarning, match=r"differ by 0\.\d\d standard deviations in (party|component) .* after weighting"
    ):
        estimated(0, propensity_model=DummyClassifier())


def test_a_party_of_one_arm_is_warned_of_and_parties_of_one_arm_are_refused():
    X, t, y, party, *_ = world(0)
    t = np.where(party == 2, 1, t)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = estimate_effect(shares_of(X, t, y, party), AFFINE, method="plr", random_state=0)
    assert any(r"Parties [2] have rows of one arm only" in str(each.message) for each in caught)
    assert abs(found.estimate - 2) < 4 * found.standard_error
    shares = shares_of(X, (party > 2).astype(int), y, party)
    for estimate in (estimate_effect, conditional_effects):
        with pytest.raises(EffectError, match="has both arms"):
            estimate(shares, AFFINE)


def z_of(estimator, kind, truth, n_studies=500, **options):
    """Estimates less the truth, in standard errors, of studies on raw rows; three folds, to be quick."""
    z = []
    for seed in range(n_studies):
        X, t, y, party, e, effect = world(seed, kind)
        folds = effect_folds(t, np.arange(len(t)), 3, seed, party=party)
        found = estimator(with_parties(X, party), t, y, folds, **options)
        z.append(((found.value - truth), found.standard_error(), found.standard_error(party) * np.sqrt(6 / 5)))
    return np.transpose(z)


def truth_of(weight):
    """Averages of the effect of `world(kind="rows")`, by weights of the propensity."""
    *_, e, effect = world(0, "rows", n_rows=500_000)
    return np.average(effect, weights=weight(e))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("estimator", "kind", "weight", "options"),
    [
        (partially_linear, "levels", np.ones_like, {}),
        (doubly_robust, "levels", np.ones_like, {}),
        (partially_linear, "rows", lambda e: e * (1 - e), {}),
        (doubly_robust, "rows", np.ones_like, {}),
        (doubly_robust, "rows", np.asarray, {"target": "ATT"}),
    ],
    ids=["overlap, levels", "ATE, levels", "overlap, rows", "ATE, rows", "ATT, rows"],
)
def test_intervals_hold_in_500_studies(estimator, kind, weight, options):
    truth = 2.0 if kind == "levels" else truth_of(weight)
    off, error, _ = z_of(estimator, kind, truth, **options)
    assert 0.93 <= np.mean(np.abs(off) < 1.96 * error) <= 0.975
    assert abs(off.mean()) <= (0.03 if kind == "levels" else 0.08)


@pytest.mark.nightly
def test_intervals_by_party_hold_where_effects_differ_between_parties():
    off, by_row, by_party = z_of(partially_linear, "parties", 2.0)
    assert 0.93 <= np.mean(np.abs(off) < student(5).ppf(0.975) * by_party) <= 0.97
    assert np.mean(np.abs(off) < 1.96 * by_row) < 0.7


@pytest.mark.nightly
def test_one_effect_is_taken_for_several_as_often_as_the_test_says():
    assert np.mean([estimated(seed).heterogeneity < 0.05 for seed in range(150)]) <= 0.1


@pytest.mark.nightly
def test_of_means_of_rows_aipw_has_the_average_over_all_rows_and_plr_has_not():
    """A quarter is treated, and effects are linear in a column: 2 on average, and more where arms overlap."""
    covered = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        party = np.repeat(np.arange(8), 120)
        X, level = rng.normal(size=(960, 4)), np.linspace(-1, 1, 8)[party]
        t = (rng.random(960) < 1 / (1 + np.exp(1.2 - 0.7 * X[:, 0] - 0.7 * level))).astype(np.int64)
        y = (2 + X[:, 0]) * t + X @ [1.0, -1.0, 0.5, 0.3] + level + rng.normal(size=960)
        groups = [Microaggregation(5).apply(X[party == k], t[party == k], random_state=seed) for k in range(8)]
        own = np.concatenate([np.flatnonzero(party == k)[made.own_rows] for k, made in enumerate(groups)])
        means, t, y, party = np.vstack([made.rows for made in groups]), t[own], y[own], party[own]
        numbers = equal_rows(means)
        folds = effect_folds(t, numbers, 5, seed, party=party)
        for estimator in (doubly_robust, partially_linear):
            found = estimator(with_parties(means, party), t, y, folds)
            covered.append(abs(found.value - 2) < 1.96 * found.standard_error(numbers))
    aipw, plr = np.reshape(covered, (-1, 2)).mean(axis=0)
    assert aipw >= 0.93
    assert plr < 0.6
