"""Random-effects meta-analysis of a validation under masks, against statsmodels on parties' own figures."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import chi2, norm, t
from sklearn.metrics import roc_auc_score
from statsmodels.stats.meta_analysis import combine_effects

from datacollab.errors import NumericalError, ShareError
from datacollab.study import CategoryColumn, Counts, MetaAnalysis, ModelValidation, NumberColumn, StudyPlan
from datacollab.sums import FixedPoint, MaskKey

ILL = CategoryColumn("ill", (0, 1))
SCORE = NumberColumn("score", -10, 10)
VALIDATION = ModelValidation(ILL, [SCORE], {"intercept": 0.0, "score": 1.0})
EXACT = MetaAnalysis(replace(VALIDATION, count_noise=0.0))
FIGURES = ("AUC", "calibration slope", "calibration intercept", "observed / expected")


def rows_of(n_rows, seed, intercept=0.0, slope=1.0):
    random = np.random.default_rng(seed)
    score = random.normal(-1, 1.2, n_rows)
    return {"score": score, "ill": (random.random(n_rows) < expit(intercept + slope * score)).astype(int)}


def own_figures(table):
    """A party's figures and variances, from its own validation, on the scales of the meta-analysis."""
    found = VALIDATION.result(VALIDATION.part(table), n_parties=1, noise=0.0)
    intervals = np.array([found.auc, found.slope, found.intercept, np.log(found.ratio)])
    # What parts of the predictions may move a slope, whatever the rows.
    of_parts = np.array([0.0, 0.02, 0.0, 0.0]) ** 2
    return intervals[:, 0], ((intervals[:, 2] - intervals[:, 1]) / (2 * norm.ppf(0.975))) ** 2 + of_parts


@pytest.mark.slow
@settings(deadline=None, max_examples=8)
@given(st.integers(0, 2**32 - 1), st.integers(3, 12), st.sampled_from([0.0, 0.3, 1.0]))
def test_figures_are_those_of_statsmodels_on_all_parties(seed, n_parties, between):
    """Paule and Mandel's variance between parties, with a t distribution; the order of parties does not matter."""
    random = np.random.default_rng(seed)
    tables = [
        rows_of(
            int(random.integers(300, 900)), [seed, k], between * random.normal(), 1 + 0.3 * between * random.normal()
        )
        for k in range(n_parties)
    ]
    found = EXACT.result(sum(map(EXACT.part, tables)), n_parties=n_parties)
    theta, variance = map(np.array, zip(*map(own_figures, tables), strict=True))
    for place, (name, back) in enumerate(
        zip(FIGURES, (lambda auc: np.clip(auc, 0, 1), float, float, np.exp), strict=True)
    ):
        figure = found.figures[name]
        pooled = combine_effects(theta[:, place], variance[:, place], method_re="iterated", use_t=True)
        tau = np.sqrt(pooled.tau2)
        assert figure.n_parties == n_parties
        assert figure.q == pytest.approx(pooled.q, rel=1e-4, abs=1e-4)
        assert figure.p == pytest.approx(chi2.sf(pooled.q, n_parties - 1), rel=1e-3, abs=1e-6)
        assert figure.i_squared == pytest.approx(max(0.0, pooled.i2), abs=1e-4)
        # The grid of values of tau is a part of its figures.
        assert figure.tau == pytest.approx(tau, rel=2e-3, abs=1e-3)
        error = pooled.sd_eff_w_re
        assert figure.value == pytest.approx(back(pooled.mean_effect_re), abs=0.01 * error)
        _, interval, *_ = pooled.conf_int(use_t=True)
        assert_allclose([figure.low, figure.high], [back(each) for each in interval], rtol=3e-3, atol=0.01 * error)
        reach = t.ppf(0.975, n_parties - 2) * np.hypot(tau, error)
        ends = [back(pooled.mean_effect_re + sign * reach) for sign in (-1, 1)]
        assert_allclose([figure.predicted_low, figure.predicted_high], ends, rtol=3e-3, atol=0.02 * error)
    other_way = EXACT.result(sum(map(EXACT.part, tables[::-1])), n_parties=n_parties)
    assert_allclose(other_way.figures["AUC"], found.figures["AUC"], rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_noise_of_the_party_is_that_of_the_plan_and_of_its_figures_errors():
    """Of many parties that are alike, Q is what chance gives, the noise included; a part of the same rows differs."""
    across = MetaAnalysis(VALIDATION, copies=3.0)
    n_parties = 150
    tables = [rows_of(600, seed) for seed in range(n_parties)]
    total = sum(map(across.part, tables))
    found = across.result(total, n_parties=n_parties)
    for name in FIGURES:
        figure = found.figures[name]
        # The standard deviation of Q over its expectation is .12.
        assert 0.65 < figure.q / (figure.n_parties - 1) < 1.35, name
    without = EXACT.result(sum(map(EXACT.part, tables)), n_parties=n_parties)
    assert not np.allclose(found.figures["AUC"][1:], without.figures["AUC"][1:], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [None, 0.5])
def test_a_message_draws_as_much_noise_as_all_its_counts_and_epsilon_need(epsilon):
    """The logarithm of observed over expected has the noise of three statistics' counts, and of the epsilon."""
    keys = {name: MaskKey.generate() for name in ("north", "south", "west")}
    statistics = [Counts([ILL]), VALIDATION, MetaAnalysis(VALIDATION)]
    plan = StudyPlan({name: key.public for name, key in keys.items()}, statistics, epsilon=epsilon)
    table = rows_of(20_000, 0)
    sums = plan.add_up(table, bytes(32))
    own = len(statistics[2].spread)
    draws = np.array([plan.finish(sums)[-own:] for _ in range(200)])
    # Of the last figure, weights and products without variance between parties.
    numbers = draws.reshape(len(draws), len(FIGURES), -1)[:, -1]
    n_taus = (numbers.shape[1] - 1) // 3
    ratios = numbers[:, 1 + n_taus] / numbers[:, 1]
    spread = replace(VALIDATION, copies=3.0).spread * plan.raised
    events = table["ill"].sum()
    expected = np.hypot(spread[0] / events, spread[-1] / expit(table["score"]).sum())
    assert plan.raised == 1.0 or epsilon is not None
    # The error of a standard deviation from 200 draws is 5 %.
    assert np.std(ratios) == pytest.approx(expected, rel=0.18)


def test_a_party_with_few_rows_gives_no_figures_and_two_parties_are_no_meta_analysis():
    tables = [*(rows_of(500, seed) for seed in range(3)), rows_of(40, 9)]
    found = EXACT.result(sum(map(EXACT.part, tables)), n_parties=4)
    assert {each.n_parties for each in found.figures.values()} == {3}
    assert "3 of 4 parties" in found.cautions[0]
    assert "hardly known" in found.cautions[1]
    many = EXACT.result(sum(EXACT.part(rows_of(500, seed)) for seed in range(5)), n_parties=5)
    assert many.cautions == ()
    with pytest.raises(NumericalError, match="fewer than 3 parties"):
        EXACT.result(sum(map(EXACT.part, tables[1:])), n_parties=3)


def test_a_figure_that_few_parties_have_is_left_open():
    """All predictions are equal at one party, which has no slope then."""
    alike = rows_of(500, 9) | {"score": np.full(500, -1.0)}
    found = EXACT.result(sum(map(EXACT.part, (rows_of(500, 0), rows_of(500, 1), alike))), n_parties=3)
    assert found.figures["calibration slope"].n_parties == 2
    assert np.isnan(found.figures["calibration slope"].value)
    assert found.figures["observed / expected"].n_parties == 3
    table = found.table()
    (slope,) = (row for row in table.rows if row[0] == "calibration slope")
    assert slope[1:3] == ("2", "")


@pytest.mark.parametrize(
    ("places", "factor", "words"),
    [
        (slice(0, 1), 1.5, "the number of parties"),
        (slice(0, 1), 5.0, "the number of parties"),
        (slice(0, 1), np.nan, "the number of parties"),
        (slice(0, 1), 0.0, "figures of no party"),
        (slice(1, 121), -1.0, "a weight is smaller, or larger"),
        (slice(1, 121), 1e7, "a weight is smaller, or larger"),
        (slice(1, None), 0.0, "a weight is smaller, or larger"),
        (slice(121, 241), 1e3, "a figure is beyond its range"),
        (slice(241, 361), 1e3, "a figure is beyond its range"),
        (slice(241, 361), 0.1, "figures vary less than not at all"),
    ],
)
def test_a_total_that_no_parties_give_is_refused(places, factor, words):
    total = sum(EXACT.part(rows_of(500, seed)) for seed in range(3))
    total[places] *= factor
    with pytest.raises(ShareError, match=words):
        EXACT.result(total, n_parties=3)


@pytest.mark.parametrize("n_rows", [40, 100, 1000])
def test_totals_of_rows_are_never_refused_as_made_up(n_rows):
    """Whatever rows and noise, figures are missing at most."""
    for seed in range(20):
        tables = [rows_of(n_rows, [seed, k], 3.0 * (k - 1), -1.0 if seed % 3 == 0 else 2.0) for k in range(4)]
        total = sum(map(MetaAnalysis(VALIDATION).part, tables))
        try:
            found = MetaAnalysis(VALIDATION).result(total, n_parties=4)
        except NumericalError:
            continue
        assert found.n_parties == 4


def test_a_made_up_count_does_not_end_the_analysts_program():
    """Two parties whose predictions are all alike have no slope, and the third says that it has three, of nothing."""
    alike = rows_of(500, 9) | {"score": np.full(500, -1.0)}
    numbers = len(EXACT.spread) // len(FIGURES)
    forged = EXACT.part(alike)
    forged[numbers] = 3.0
    with pytest.raises(ShareError, match="a weight is smaller"):
        EXACT.result(2 * EXACT.part(alike) + forged, n_parties=3)


@pytest.mark.parametrize(
    "draw",
    [
        lambda random, n: np.where(random.random(n) < 0.5, -2.2, -0.85),
        lambda random, n: random.choice([-2.9, -1.7, -0.6], n),
        lambda random, n: np.full(n, -1.4),
    ],
    ids=["two risks", "three risks", "one risk"],
)
def test_the_auc_of_few_different_predictions_is_theirs(draw):
    """Models of a few yes and no have few different predictions; ties count one half, as in scikit-learn."""
    random = np.random.default_rng(1)
    tables = []
    for _ in range(5):
        score = draw(random, 4000)
        tables.append({"score": score, "ill": (random.random(4000) < expit(score)).astype(int)})
    found = EXACT.result(sum(map(EXACT.part, tables)), n_parties=5).figures["AUC"]
    of_parties = [roc_auc_score(table["ill"], table["score"]) for table in tables]
    assert found.value == pytest.approx(np.mean(of_parties), abs=1e-3)


@pytest.mark.parametrize("share", [0.4, 0.055])
def test_whether_a_party_has_figures_depends_on_its_predictions_alone(share):
    """Of parties with few events, the mean over those that happened to have many would be too high.

    With a share of .4 both parties have enough events, and with .055 neither has.
    """
    across = MetaAnalysis(replace(VALIDATION, count_noise=0.5))
    needed = 2 * across.validation.fewest_shown(1.0)
    counts = []
    for expected in (0.5 * needed, 1.6 * needed):
        n_rows = int(expected / expit(-2.0))
        table = {"score": np.full(n_rows, -2.0), "ill": (np.arange(n_rows) < share * n_rows).astype(int)}
        counts.append(across.part(table)[0])
    assert counts == [0, 1]


@pytest.mark.slow
def test_many_parties_with_extreme_figures_fit_into_a_total():
    """Fixed-point numbers end at 2^31, which 300 parties do not reach, whatever their rows."""
    part = EXACT.part(rows_of(2_000_000, 0, slope=0.2, intercept=3.5))
    assert 300 * np.abs(part).max() < FixedPoint().largest
    bound = 4.0**2 / 4e-6
    assert 300 * bound < FixedPoint().largest
