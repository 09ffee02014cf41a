"""Validation of a published model by sums, against scikit-learn, statsmodels and naive formulas on all rows."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit, logit, ndtri
from sklearn.metrics import brier_score_loss, roc_auc_score

from datacollab.errors import AgreementError, NumericalError
from datacollab.study import (
    CategoryColumn,
    Counts,
    ModelValidation,
    NumberColumn,
    StudyPlan,
    study_membership_figures,
)
from datacollab.study._model_validation import THRESHOLDS
from datacollab.sums import MaskKey

ILL = CategoryColumn("ill", ("no", "yes"))
AGE, WARD = NumberColumn("age", 0, 100), CategoryColumn("ward", ("day", "night", "none"))
MODEL = {"intercept": -5.0, "age": 0.06, "ward=day": 0.0, "ward=night": 0.7}
VALIDATION = ModelValidation(ILL, [AGE, WARD], MODEL)


def rows_of(n_rows, seed, intercept=0.0, slope=1.0):
    """Rows whose log odds are linear in those of the model."""
    random = np.random.default_rng(seed)
    table = {"age": random.normal(50, 18, n_rows).clip(0, 100), "ward": random.choice(WARD.levels, n_rows)}
    log_odds = -5 + 0.06 * table["age"] + 0.7 * (table["ward"] == "night")
    table["ill"] = np.where(random.random(n_rows) < expit(intercept + slope * log_odds), "yes", "no")
    return table, log_odds, (table["ill"] == "yes").astype(int)


def exact(table, statistic=VALIDATION):
    return statistic.result(statistic.part(table), n_parties=1, noise=0.0)


def delong_variance(y, score):
    """The variance of an AUC, written from the placements of DeLong et al. (1988)."""
    having, without = score[y == 1][:, None], score[y == 0][None]
    wins = (having > without) + 0.5 * (having == without)
    return wins.mean(axis=1).var(ddof=1) / len(having) + wins.mean(axis=0).var(ddof=1) / without.shape[1]


@settings(deadline=None, max_examples=10)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(60, 300),
    st.floats(-1, 3),
    st.sampled_from([THRESHOLDS, (0.4, 0.6), (0.1, 0.2, 0.9)]),
)
def test_figures_are_those_of_binned_predictions(seed, n_rows, intercept, thresholds):
    """For any rows and parts: AUC and its variance, sums, and net benefit; the parties' parts add up."""
    table, log_odds, y = rows_of(n_rows, seed, intercept)
    y[:10], y[10:20] = 0, 1
    table["ill"] = np.where(y == 1, "yes", "no")
    p = expit(log_odds)
    statistic = ModelValidation(ILL, [AGE, WARD], MODEL, thresholds)
    cut = n_rows // 3
    parts = [
        statistic.part({name: each[rows] for name, each in table.items()}) for rows in (slice(cut), slice(cut, None))
    ]
    found = statistic.result(sum(parts), n_parties=2, noise=0.0)
    part = np.searchsorted(thresholds, p, side="right")
    assert found.auc[0] == pytest.approx(roc_auc_score(y, part), abs=1e-9)
    assert found.brier[0] == pytest.approx(brier_score_loss(y, p), abs=1e-9)
    assert found.ratio[0] == pytest.approx(y.sum() / p.sum(), rel=1e-9)
    expected = [[((part == k) & (y == outcome)).sum() for k in range(len(thresholds) + 1)] for outcome in (0, 1)]
    assert_allclose(found.counts, expected, atol=1e-9)
    for k, threshold in enumerate(thresholds):
        treated = p >= threshold
        if treated.sum() >= 10:
            benefit = (treated & (y == 1)).mean() - threshold / (1 - threshold) * (treated & (y == 0)).mean()
            assert found.net_benefit[0, k] == pytest.approx(benefit, abs=1e-9)
        else:
            assert math.isnan(found.net_benefit[0, k])
        assert found.treat_all[k] == pytest.approx(y.mean() - threshold / (1 - threshold) * (1 - y.mean()), abs=1e-9)
    # The ends of the interval solve (area - a)² = z² variance a (1 - a) / (area (1 - area)).
    area, low, high = found.auc
    if 0 < low < high < 1:
        variance = delong_variance(y, part)
        for end in (low, high):
            distance = abs(area - end) / math.sqrt(variance * end * (1 - end) / (area * (1 - area)))
            assert distance == pytest.approx(1.959964, rel=1e-4)


@pytest.mark.parametrize(("intercept", "slope"), [(0.0, 1.0), (0.5, 1.0), (-0.5, 0.6), (1.0, 1.4)])
def test_calibration_and_auc_are_near_those_of_exact_predictions(intercept, slope):
    """Parts cost at most .02 of slope and intercept, and the AUC the part that is said, within a fifth."""
    table, log_odds, y = rows_of(60_000, 0, intercept, slope)
    found = exact(table)
    binomial = sm.families.Binomial()
    both = sm.GLM(y, sm.add_constant(log_odds), family=binomial).fit()
    alone = sm.GLM(y, np.ones(len(y)), family=binomial, offset=log_odds).fit()
    assert found.slope[0] == pytest.approx(both.params[1], abs=0.02)
    assert found.intercept[0] == pytest.approx(alone.params[0], abs=0.02)
    assert (found.slope[2] - found.slope[1]) / (2 * 1.96) == pytest.approx(both.bse[1], rel=0.05)
    assert (found.intercept[2] - found.intercept[1]) / (2 * 1.96) == pytest.approx(alone.bse[0], rel=0.05)
    lost = roc_auc_score(y, log_odds) - found.auc[0]
    assert 0 < lost < 0.006
    assert lost == pytest.approx(found.lost, rel=0.2)


def test_binned_likelihood_is_that_of_the_means_of_parts():
    """Without noise all parts weigh alike: the slope is that of statsmodels on the same counts."""
    table, _, _ = rows_of(3000, 1)
    found = exact(table)
    means = np.log(found.predicted / (1 - found.predicted))
    counts = found.counts[::-1].T
    fit = sm.GLM(
        counts[counts.sum(axis=1) > 0.5],
        sm.add_constant(means[counts.sum(axis=1) > 0.5]),
        family=sm.families.Binomial(),
    ).fit()
    assert found.slope[0] == pytest.approx(fit.params[1], rel=1e-6)


def test_means_of_parts_are_near_the_mean_predictions():
    table, log_odds, y = rows_of(60_000, 2)
    found = exact(table)
    p = expit(log_odds)
    part = np.searchsorted(THRESHOLDS, p, side="right")
    rows = np.bincount(part, minlength=20)
    for k in np.flatnonzero(rows > 200):
        assert found.predicted[k] == pytest.approx(p[part == k].mean(), rel=0.05)
        assert found.observed[0, k] == pytest.approx(y[part == k].mean(), abs=1e-9)
        assert found.observed[1, k] < found.observed[0, k] < found.observed[2, k]
    assert np.isnan(found.observed[:, rows < 10]).all()


@pytest.mark.slow
def test_noise_is_as_said():
    """200 draws; the square of an interval's half width is the sum of both variances."""
    table, _, _ = rows_of(2000, 3)
    total, random = VALIDATION.part(table), np.random.default_rng(0)
    without = exact(table)
    found = [
        VALIDATION.result(total + 1.5 * VALIDATION.spread * random.normal(size=len(total)), n_parties=3, noise=1.5)
        for _ in range(200)
    ]
    assert np.std([each.n_events for each in found]) == pytest.approx(found[0].noise_of_rows, rel=0.2)
    assert np.std([each.n_rows for each in found]) == pytest.approx(found[0].complete[1], rel=0.2)
    for name in ("auc", "slope", "intercept", "ratio", "brier"):
        drawn = np.std([getattr(each, name)[0] for each in found])
        half = np.median([(getattr(each, name)[2] - getattr(each, name)[1]) / 2 for each in found]) / 1.96
        sampling = (getattr(without, name)[2] - getattr(without, name)[1]) / 2 / 1.96
        assert math.hypot(drawn, sampling) == pytest.approx(half, rel=0.15), name
        # Parts with much noise weigh less, which moves calibration a little.
        mean = np.mean([getattr(each, name)[0] for each in found])
        assert abs(mean - getattr(without, name)[0]) < 4 * drawn / 200**0.5 + 0.15 * half, name


def test_a_gap_in_what_the_model_uses_leaves_a_row_out():
    table, _, _ = rows_of(300, 4)
    for name in ("age", "ward", "ill"):
        gaps = {each: entries.astype(object) for each, entries in table.items()}
        gaps[name][:5] = None
        assert exact(gaps).n_rows == pytest.approx(295), name
    unused = ModelValidation(ILL, [AGE, WARD], MODEL | {"ward=night": 0.0})
    gaps = {**table, "ward": table["ward"].astype(object)}
    gaps["ward"][:5] = None
    assert exact(gaps, unused).n_rows == pytest.approx(300)


def test_numbers_are_clipped_and_any_level_may_be_the_reference():
    table, _, _ = rows_of(300, 5)
    far = {**table, "age": np.where(table["age"] > 80, 1000.0, table["age"])}
    near = {**table, "age": np.where(table["age"] > 80, 100.0, table["age"])}
    assert_allclose(VALIDATION.part(far), VALIDATION.part(near))
    other = {"intercept": -4.3, "age": 0.06, "ward=day": -0.7, "ward=none": -0.7}
    assert_allclose(ModelValidation(ILL, [AGE, WARD], other).part(table), VALIDATION.part(table), atol=1e-9)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"coefficients": {"age": 0.1}}, "intercept is missing. Add"),
        ({"coefficients": MODEL | {"agee": 0.1}}, "'agee' is no column or level .* intercept, age, ward=day"),
        ({"coefficients": {"intercept": 0.0, "ward=night": 0.7, "ward=none": 0.1}}, "'age' has no coefficient. Add it"),
        ({"coefficients": {"intercept": 0.0, "age": 0.1, "ward=night": 0.7}}, "'ward=day', 'ward=none' has no coef"),
        ({"coefficients": MODEL | {"age": math.nan}}, "'age' is not finite"),
        ({"columns": [NumberColumn("intercept", 0, 1)]}, "Rename the column"),
        ({"outcome": WARD}, "of two levels, got 3"),
        ({"outcome": CategoryColumn("age", (0, 1))}, "'age' is among the columns"),
        ({"thresholds": (0.5, 0.2)}, "ascending"),
        ({"thresholds": (0.0, 0.2)}, "ascending"),
        ({"thresholds": (0.5,)}, "two at least"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_with_the_way_on(changes, words):
    entries = {"outcome": ILL, "columns": [AGE, WARD], "coefficients": MODEL} | changes
    with pytest.raises(AgreementError, match=words):
        ModelValidation(**entries)


def test_an_outcome_that_is_neither_level_is_refused_and_not_shown():
    table, _, _ = rows_of(50, 6)
    table["ill"] = table["ill"].astype(object)
    table["ill"][3] = "perhaps"
    with pytest.raises(AgreementError, match="'ill': an entry is none of the levels") as found:
        VALIDATION.part(table)
    assert "perhaps" not in str(found.value)


@pytest.mark.parametrize("n_events", [0, 1, 9])
def test_few_events_are_refused(n_events):
    table, _, _ = rows_of(200, 7)
    table["ill"] = np.array(["yes"] * n_events + ["no"] * (200 - n_events))
    with pytest.raises(NumericalError, match=f"about {n_events} rows have the rarer outcome of 'ill'"):
        exact(table)


def test_fewer_than_a_hundred_events_are_a_caution():
    for n_events, cautions in ((99, 1), (100, 0)):
        table, _, _ = rows_of(400, 8)
        table["ill"] = np.array(["yes"] * n_events + ["no"] * (400 - n_events))
        assert len(exact(table).cautions) == cautions


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, -12.0, 12.0]), st.sampled_from([0.0, 0.5, 5.0]))
def test_extreme_predictions_have_figures_or_none(seed, intercept, noise):
    """All predictions in one part, or a model that says nothing: no figure is infinite, and limits enclose."""
    table, _, y = rows_of(200, seed)
    statistic = ModelValidation(
        ILL, [AGE, WARD], {"intercept": intercept, "age": 0.0, "ward=day": 0.0, "ward=none": 0.0}
    )
    random = np.random.default_rng(seed)
    total = statistic.part(table) + noise * statistic.spread * random.normal(size=len(statistic.spread))
    try:
        found = statistic.result(total, n_parties=3, noise=noise)
    except NumericalError:
        return
    for value, low, high in (found.auc, found.slope, found.intercept, found.ratio, found.brier):
        assert math.isnan(value) or (low <= value <= high and math.isfinite(low) and math.isfinite(high))
    if noise == 0:
        assert found.auc[0] == pytest.approx(0.5)
        assert math.isnan(found.slope[0])
    found.table()


def test_figures_of_attacks_are_of_the_way_in_which_totals_come():
    """Ratios come by counts or by rounds; a meta-analysis was not attacked."""
    for title in ("logistic regression", "poisson regression"):
        by_counts, by_rounds = (study_membership_figures([title], by_rounds=each) for each in (False, True))
        assert {each.statistics for each in by_counts} == {(f"{title} (counts)",)}
        assert {each.statistics for each in by_rounds} == {(title,)}
    assert {each.statistics for each in study_membership_figures(["validation", "meta-analysis"])} == {("validation",)}
    assert study_membership_figures(["meta-analysis"]) == ()


def test_one_message_carries_it_beside_counts_under_masks():
    keys = {name: MaskKey(bytes([place]) * 32) for place, name in enumerate(("north", "south", "west"), start=1)}
    plan = StudyPlan({name: key.public for name, key in keys.items()}, [Counts([AGE, WARD, ILL]), VALIDATION])
    tables = {name: rows_of(1500, place)[0] for place, name in enumerate(keys)}
    counts, found = plan.results([plan.message(name, tables[name], key) for name, key in keys.items()])
    y = np.concatenate([table["ill"] == "yes" for table in tables.values()])
    log_odds = np.concatenate([rows_of(1500, place)[1] for place in range(3)])
    assert abs(found.n_events - y.sum()) < 5 * found.noise_of_rows
    assert abs(found.n_events - counts.counts["ill"]["yes"]) < 7 * found.noise_of_rows
    # Five standard errors: the noise is drawn anew in each run.
    for (value, low, high), true in ((found.auc, roc_auc_score(y, log_odds)), (found.slope, 1.0)):
        assert abs(value - true) < 2.5 * (high - low) / 2
    named = [row[0] for row in found.table().rows]
    assert [*dict.fromkeys(named)][:3] == ["AUC", "calibration slope", "calibration intercept"]
    assert named.count("observed share") == (~np.isnan(found.observed[0])).sum()
    assert all(len(row) == len(found.table().heads) for row in found.table().rows)


ETA = NumberColumn("eta", -40, 40)


def scored(mean, deviation, thresholds=THRESHOLDS, slope=1.0, noise=0.0, n_rows=400_000):
    """A model whose log odds are normal, tried where the odds follow them with this slope; they, and the outcomes."""
    k = np.arange(n_rows)
    eta = mean + deviation * ndtri((k + 0.5) / n_rows)
    # Even, not random: multiples of the golden ratio fill every stretch of rows alike.
    y = k * (np.sqrt(5) - 1) / 2 % 1 < expit(slope * eta)
    statistic = ModelValidation(ILL, [ETA], {"intercept": 0.0, "eta": 1.0}, thresholds)
    total = statistic.part({"eta": eta, "ill": np.where(y, "yes", "no")})
    return statistic.result(total, n_parties=1, noise=noise), eta, y


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mean", "deviation", "thresholds"),
    [(0, 1, (0.05, 0.5, 0.95)), (0, 2, (0.2, 0.5, 0.8)), (-6.5, 1, THRESHOLDS), (-1, 1.5, THRESHOLDS)],
    ids=["few wide parts", "few narrow parts", "rare", "usual"],
)
def test_a_calibrated_model_is_found_so_whatever_the_parts(mean, deviation, thresholds):
    """Rare outcomes lie in one open part, where the mean prediction is above that of the mean log odds."""
    found, eta, y = scored(mean, deviation, thresholds)
    binomial = sm.families.Binomial()
    slope = sm.GLM(y, sm.add_constant(eta), family=binomial).fit().params[1]
    intercept = sm.GLM(y, np.ones(len(y)), family=binomial, offset=eta).fit().params[0]
    assert found.slope[0] == pytest.approx(slope, abs=0.02)
    assert found.intercept[0] == pytest.approx(intercept, abs=0.02)
    # What ties take is that of all parts, the open ones included.
    assert roc_auc_score(y, eta) - found.auc[0] == pytest.approx(found.lost, rel=0.25)


@pytest.mark.parametrize("risks", [(0.2,), (0.1, 0.3), (0.05, 0.12, 0.3)])
def test_few_different_predictions_have_their_intercept_and_no_slope(risks):
    """As of a model of a few yes and no: within their parts they are not as a normal distribution has them."""
    random = np.random.default_rng(2)
    eta = logit(random.choice(risks, 60_000))
    y = (random.random(60_000) < expit(0.2 + eta)).astype(int)
    statistic = ModelValidation(ILL, [ETA], {"intercept": 0.0, "eta": 1.0})
    table = {"eta": eta, "ill": np.where(y == 1, "yes", "no")}
    found = exact(table, statistic)
    alone = sm.GLM(y, np.ones(len(y)), family=sm.families.Binomial(), offset=eta).fit()
    assert found.intercept[0] == pytest.approx(alone.params[0], abs=0.01)
    assert (found.intercept[2] - found.intercept[1]) / (2 * 1.96) == pytest.approx(alone.bse[0], rel=0.05)
    assert np.isnan(found.slope[0])
    assert len(risks) == 1 or "few different ones" in found.cautions[-1]


@pytest.mark.slow
def test_the_intercept_is_as_certain_as_its_interval_says():
    """Over 300 draws of rows and noise, at seven events in a hundred, 95 % of intervals hold."""
    random = np.random.default_rng(3)
    statistic = ModelValidation(ILL, [ETA], {"intercept": 0.0, "eta": 1.0})
    held = []
    for _ in range(300):
        eta = random.choice(logit([0.02, 0.05, 0.15]), 3000)
        y = random.random(3000) < expit(eta)
        total = statistic.part({"eta": eta, "ill": np.where(y, "yes", "no")})
        noise = 1.5 * statistic.spread * random.normal(size=len(total))
        _, low, high = statistic.result(total + noise, n_parties=3, noise=1.5).intercept
        held.append(low <= 0 <= high)
    assert 0.92 < np.mean(held) < 0.98


def test_noise_does_not_change_what_the_intercept_is_of():
    """With a slope of .3, parts call for different intercepts: their noise must not choose among these."""
    with_noise, without = (scored(-1, 2, slope=0.3, noise=noise)[0].intercept[0] for noise in (40.0, 0.0))
    assert with_noise == pytest.approx(without, abs=1e-6)


def test_two_parts_tell_no_slope():
    two, *_ = scored(0, 0.1, (0.0001, 0.5, 0.9999))
    assert np.isnan(two.slope[0])
    assert np.isfinite(two.intercept[0])
    three, *_ = scored(0, 0.1, (0.48, 0.52))
    assert np.isfinite(three.slope[0])
