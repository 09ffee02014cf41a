"""Measures of survival models, and their figures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from lifelines.statistics import multivariate_logrank_test
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom, norm
from sksurv import metrics
from sksurv.compare import compare_survival
from sksurv.nonparametric import kaplan_meier_estimator
from survival_examples import made_up

from datacollab.errors import AgreementError, NumericalError
from datacollab.survival import (
    CoxRegression,
    calibration,
    concordance_index,
    kaplan_meier,
    log_rank_test,
    plot_calibration,
    plot_kaplan_meier,
    risk_groups,
)
from datacollab.targets import survival_target


@st.composite
def targets(draw, least=4):
    """Few rows, times on a grid so coarse that events and ends of observations share them."""
    n = draw(st.integers(least, 25))
    event = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    time = draw(st.lists(st.integers(1, 6), min_size=n, max_size=n))
    return survival_target(event, time)


@given(targets(), st.integers(0, 10**6))
@settings(max_examples=60)
def test_harrells_index_is_that_of_scikit_survival(y, seed):
    risk = np.random.default_rng(seed).integers(0, 4, size=len(y)).astype(float)
    try:
        theirs = metrics.concordance_index_censored(y["event"], y["time"], risk)[0]
    except ValueError:  # NoComparablePairException, or all censored
        with pytest.raises(NumericalError, match="No two rows"):
            concordance_index(y, risk)
        return
    assert concordance_index(y, risk) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("step", [0.0, 0.2])
def test_kaplan_and_meiers_curve_is_that_of_lifelines_and_scikit_survival(step):
    _, y = made_up(100, step=step)
    weight = np.random.default_rng(0).integers(1, 4, size=100)
    ours = kaplan_meier(y)
    times, survival = kaplan_meier_estimator(y["event"], y["time"])
    assert_array_equal(ours.times, times)
    assert_allclose(ours.survival, survival, rtol=1e-12)
    theirs = KaplanMeierFitter().fit(y["time"], y["event"], weights=weight)
    weighted = kaplan_meier(y, weight)
    assert_allclose(weighted.survival, theirs.survival_function_at_times(weighted.times).to_numpy(), rtol=1e-12)
    # Their interval is log(-log S)'s, with this variance.
    bounds = theirs.confidence_interval_.loc[weighted.times].to_numpy().T
    inner = (weighted.survival > 0) & (weighted.survival < 1)
    S, variance = weighted.survival[inner], weighted.variance[inner]
    factor = np.exp(norm.ppf(0.975) * np.sqrt(variance) / (S * -np.log(S)))
    assert_allclose([S**factor, S ** (1 / factor)], bounds[:, inner], rtol=1e-10)


def test_the_interval_without_censoring_is_the_mid_p_interval_of_a_proportion():
    """At its ends, the smaller tail with half of what was found is 2.5 %."""
    curve = kaplan_meier(survival_target(np.ones(12), np.arange(1.0, 13.0)))
    low, high = curve.interval()
    for n_left, p in [*zip(range(11, 0, -1), low, strict=False), *zip(range(11, 0, -1), high, strict=False)]:
        tail = binom.sf(n_left - 1, 12, p) - binom.pmf(n_left, 12, p) / 2
        assert min(tail, 1 - tail) == pytest.approx(0.025, abs=1e-6)


def test_the_interval_is_a_quantile_of_products_of_beta_variables():
    """With censoring, against products drawn at random."""
    y = survival_target([1, 0, 1, 1, 0, 1, 0, 1, 0, 0], [1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    curve, random = kaplan_meier(y), np.random.default_rng(0)
    n, d = curve.at_risk, curve.events
    draws = [random.beta(n[i] - d[i] + 1, d[i], 200_000) for i in range(6) if d[i]]
    upper = np.prod(draws, axis=0)
    mixed = np.concatenate([upper, upper * random.beta(n[6], 1, 200_000)])
    found = np.array(curve.interval())[:, 5]
    assert_allclose(found, np.quantile(mixed, [0.025, 0.975]), atol=0.012)
    low, high = curve.interval()
    assert (low < high).all()


def coverage_of_curves(n_studies, n, seed=0):
    """Share of studies whose interval has the survival at a time before which it is .75 to .99, events being early."""
    random, hits = np.random.default_rng(seed), 0
    for _ in range(n_studies):
        survival = random.uniform(0.75, 0.99)
        time, end = random.exponential(size=n) ** 2, random.uniform(0, 2, size=n)
        at = np.log(survival) ** 2
        curve = kaplan_meier(survival_target(time <= end, np.minimum(time, end)))
        place = np.searchsorted(curve.times, at, side="right") - 1
        pairs = zip(curve.interval(), (0, 1), strict=True)
        low, high = (bound[place] if place >= 0 else whole for bound, whole in pairs)
        hits += low <= survival <= high
    return hits / n_studies


@pytest.mark.slow
def test_the_interval_covers_early_survival():
    assert coverage_of_curves(150, 20) >= 0.92


@pytest.mark.nightly
@pytest.mark.parametrize(("n", "most"), [(20, 0.985), (50, 0.97), (200, 0.97)])
def test_the_interval_covers_early_survival_in_as_many_studies_as_it_says(n, most):
    """With few rows in some more: numbers of events leave no coverage between .925 and .984 at .95 and 20 rows."""
    assert 0.93 <= coverage_of_curves(500, n) <= most


@pytest.mark.parametrize("n_groups", [2, 3, 5])
@pytest.mark.parametrize("step", [0.0, 0.2])
@pytest.mark.filterwarnings("ignore:Starting with pandas")
def test_the_log_rank_test_is_that_of_scikit_survival_and_lifelines(n_groups, step):
    _, y = made_up(100, step=step)
    groups = np.random.default_rng(n_groups).integers(n_groups, size=100)
    ours = log_rank_test(y, groups)
    statistic, p_value = compare_survival(y, groups)
    assert ours.statistic == pytest.approx(statistic, rel=1e-10)
    assert ours.p_value == pytest.approx(p_value, rel=1e-9)
    theirs = multivariate_logrank_test(y["time"], groups, y["event"])
    assert ours.statistic == pytest.approx(theirs.test_statistic, rel=1e-8)
    assert ours.degrees_of_freedom == n_groups - 1


def test_groups_of_risk():
    risk = np.random.default_rng(0).normal(size=300)
    groups = risk_groups(risk)
    assert_array_equal(np.bincount(groups), [100, 100, 100])
    assert risk[groups == 0].max() < risk[groups == 1].min()
    # Bounds of rows that all have, so that a group means the same everywhere.
    assert_array_equal(risk_groups(risk[:50], reference=risk), groups[:50])
    assert set(risk_groups(np.zeros(5))) == {0}
    with pytest.raises(ValueError, match="2 or more"):
        risk_groups(risk, 1)
    with pytest.raises(AgreementError, match="Expected two groups or more"):
        log_rank_test(made_up(5)[1], np.zeros(5))
    with pytest.raises(AgreementError, match="Expected one group per row"):
        log_rank_test(made_up(5)[1], np.zeros(4))


def test_calibration_compares_means_with_kaplan_and_meier():
    X, y = made_up(400, seed=2)
    survival = CoxRegression().fit(X, y).predict_survival(X, [0.5])[:, 0]
    found = calibration(y, survival, 0.5, n_groups=4)
    groups = np.argsort(np.argsort(survival)) // 100
    for group in range(4):
        own = groups == group
        assert found.predicted[group] == pytest.approx(survival[own].mean())
        assert found.observed[group] == pytest.approx(kaplan_meier(y[own])([0.5])[0])
        assert found.low[group] <= found.observed[group] <= found.high[group]
        # A model that is right is calibrated.
        assert found.low[group] - 0.05 < found.predicted[group] < found.high[group] + 0.05
    assert_array_equal(found.n_rows, 100)
    assert len(calibration(y, np.full(400, 0.5), 0.5).predicted) == 1
    with pytest.raises(AgreementError, match="Expected one probability per row"):
        calibration(y, survival[:5], 0.5)
    with pytest.raises(AgreementError, match="No row was observed until"):
        calibration(y, survival, 1e9)


def test_measures_take_survival_targets_alone():
    with pytest.raises(AgreementError, match="must be survival targets"):
        concordance_index(np.array([1.0, 2.0]), [1.0, 2.0])
    with pytest.raises(ValueError, match="risk must have"):
        concordance_index(survival_target([1, 0], [1.0, 2.0]), [1.0, np.nan])
    with pytest.raises(AgreementError, match="not above 0"):
        kaplan_meier(np.array([(True, 0.0)], dtype=[("event", bool), ("time", float)]))


def test_groups_that_were_not_watched_have_no_say_in_the_log_rank_test():
    y = survival_target([1, 1, 0, 1, 1, 0], [2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    groups = np.array([0, 1, 0, 1, 0, 1])
    early = survival_target([0, 0], [0.5, 1.0])
    alone, beside = log_rank_test(y, groups), log_rank_test(np.concatenate([y, early]), np.append(groups, [2, 2]))
    assert_allclose(beside.statistic, alone.statistic)
    assert beside.degrees_of_freedom == alone.degrees_of_freedom == 1


def test_a_group_without_events_is_no_certainty():
    """Nor one in which all had theirs: bounds of a proportion of four, and of those who were watched until then."""
    y = survival_target([1, 1, 1, 1, 0, 0, 0, 0], [1.0, 2.0, 3.0, 4.0, 9.0, 9.0, 9.0, 2.0])
    found = calibration(y, [0.2] * 4 + [0.8] * 4, time=5.0, n_groups=2)
    assert_array_equal(found.observed, [0.0, 1.0])
    assert_allclose([found.low[0], found.high[0]], [0.0, 1 - 0.05 ** (1 / 4)], atol=1e-9)
    assert_allclose([found.low[1], found.high[1]], [0.05 ** (1 / 3), 1.0], atol=1e-9)


def test_calibration_says_nothing_of_groups_that_nobody_watched_so_long():
    y = survival_target([0, 0, 1, 1, 0, 1], [0.5, 0.6, 0.4, 3.0, 9.0, 9.5])
    found = calibration(y, [0.2, 0.2, 0.2, 0.8, 0.8, 0.8], time=8.0, n_groups=2)
    assert np.isnan([found.observed[0], found.low[0], found.high[0]]).all()
    assert np.isfinite([found.observed[1], found.low[1], found.high[1]]).all()


X, Y = made_up(200)
MODEL = CoxRegression().fit(X, Y)


def test_curves_of_groups():
    groups = risk_groups(MODEL.predict(X))
    axes = plot_kaplan_meier(Y, groups, unit="years")
    assert len(axes.lines) == 3
    curve = kaplan_meier(Y[groups == 2])
    assert_allclose(axes.lines[2].get_ydata()[1:], curve.survival)
    assert axes.get_title(loc="left") == "log-rank test: p < 0.001"
    assert axes.get_legend().get_texts()[0].get_text() == "0 (n = 67)"
    assert axes.get_xlabel() == "time in years"


def test_calibration_axes():
    found = calibration(Y, MODEL.predict_survival(X, [1.0])[:, 0], 1.0)
    axes = plot_calibration(found, unit="years")
    assert_array_equal(axes.lines[1].get_ydata(), found.observed)
    assert axes.get_xlabel() == "predicted survival to 1 years"
