"""Survival under masks, against lifelines, statsmodels and formulas written naively on all rows in one place."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from numpy.testing import assert_allclose
from sksurv.datasets import load_gbsg2, load_veterans_lung_cancer, load_whas500
from statsmodels.duration.survfunc import survdiff
from statsmodels.stats.proportion import proportion_confint

from datacollab.errors import AgreementError, NumericalError
from datacollab.linalg import gaussian_sigma
from datacollab.study import AdditiveHazards, CategoryColumn, NumberColumn, StudyPlan, Survival
from datacollab.sums import MaskKey, RidgeSums

ARM = CategoryColumn("arm", ("old", "new"))
WARD = CategoryColumn("arm", ("a", "b", "c"))
TIME = NumberColumn("time", 0, 10)
AGE = NumberColumn("age", 0, 100)


RIDGE_MOVED = RidgeSums(1, limits=(0, 1)).sensitivity


def simulated(n_rows, seed, arms=("old", "new"), hazard=0.2):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"arm": random.choice(arms, n_rows).astype(object), "age": random.uniform(0, 100, n_rows)})
    event = random.exponential(1 / (hazard * (1 + (frame["arm"] == arms[-1])) + frame["age"] / 500))
    censored = random.uniform(0, 15, n_rows)
    frame["time"], frame["seen"] = np.minimum(event, censored), (event <= censored).astype(int)
    return frame


def tables():
    for load, group, most in ((load_gbsg2, "horTh", 3000), (load_whas500, "gender", 3000)):
        X, y = load()
        event, time = (y[name].astype(float) for name in y.dtype.names)
        frame = pd.DataFrame({"time": time, "seen": event.astype(int), "arm": X[group].astype(object), "age": X["age"]})
        yield load.__name__[5:], frame, most
    X, y = load_veterans_lung_cancer()
    frame = pd.DataFrame({"time": y["Survival_in_days"], "seen": y["Status"].astype(int), "age": X["Age_in_years"]})
    frame["arm"] = X["Celltype"].astype(object)
    yield "veterans", frame, 1000


def dealt(frame, n_parties):
    """Deal rows to parties of unequal sizes, in which no cumulative hazard reaches 3."""
    frame = frame.sample(frac=1, random_state=0)
    ends = (np.linspace(0.0, 1.0, n_parties + 1) ** 1.5 * len(frame)).astype(int)
    return [frame.iloc[start:end].reset_index(drop=True) for start, end in itertools.pairwise(ends)]


def pooled(statistic, frames, **options):
    return statistic.result(sum(map(statistic.part, frames)), n_parties=len(frames), **options)


def naive_life_table(frame, edges):
    """Rows at risk, survival and person-time, interval by interval."""
    at_risk, survival, person_time, remain = [], [], [], 1.0
    for start, end in itertools.pairwise(edges):
        under = frame[frame["time"] > start] if start else frame
        lived = (under["time"].clip(upper=end) - start) / (end - start)
        leaves = under["time"] <= end
        seen = leaves & (under["seen"] == 1)
        exposed = len(under) - (1 - lived[leaves & ~seen]).sum()
        remain *= 1 - seen.sum() / max(exposed, 1.0)
        at_risk.append(len(under))
        survival.append(remain)
        person_time.append(lived.sum() * (end - start))
    return at_risk, survival, person_time


@pytest.mark.parametrize("n_parties", [3, 5, 10])
@pytest.mark.parametrize(("frame", "most"), [pytest.param(*each, id=name) for name, *each in tables()])
def test_curves_and_test_are_those_of_all_rows_stratified_by_party(n_parties, frame, most):
    by = CategoryColumn("arm", sorted(frame["arm"].unique(), key=str))
    frames = dealt(frame, n_parties)
    frames[0] = frames[0].assign(seen=0)  # A party without events.
    frames[1] = frames[1].assign(arm=by.levels[0])  # A party without a level.
    rows = pd.concat(frames)
    party = np.repeat(np.arange(n_parties), [len(each) for each in frames])
    found = pooled(Survival(NumberColumn("time", 0, most), "seen", by), frames, noise=0.0)
    for curve in found.curves:
        at_risk, survival, person_time = naive_life_table(rows[rows["arm"] == curve.group], found.edges)
        shown = np.array(at_risk) >= 10
        assert_allclose(curve.at_risk, at_risk, atol=1e-9)
        assert_allclose(curve.survival[shown], np.array(survival)[shown], rtol=1e-8, atol=1e-12)
        assert np.isnan(curve.survival[~shown]).all()
        assert_allclose(curve.person_time, person_time, rtol=1e-8, atol=1e-6)
        assert ((curve.low < curve.survival) & (curve.survival < curve.high))[shown & (curve.survival < 1)].all()
        assert (curve.high - curve.low)[shown].min() > 0, "no interval has zero width"
    died = rows["time"].clip(upper=most), rows["seen"] * (rows["time"] <= most)
    chi_square, p_value = survdiff(*died, rows["arm"], strata=party)
    weights = min(_least_weight(each) for each in frames)
    tolerance = 1e-8 if weights == 1 else 0.02
    assert found.chi_square == pytest.approx(chi_square, rel=tolerance)
    assert found.p_value == pytest.approx(p_value, rel=50 * tolerance)
    assert found.degrees_of_freedom == len(by.levels) - 1


def _least_weight(frame):
    died = frame.groupby("time")["seen"].sum()
    at_risk = np.array([(frame["time"] >= time).sum() for time in died.index])
    return np.clip((5 - (died / at_risk).cumsum().shift(fill_value=0.0)) / 2, 0, 1).min()


def test_times_at_ends_of_intervals_give_the_curve_of_kaplan_and_meier():
    frame = simulated(300, 0)
    frame["time"] = np.ceil(frame["time"] * 2).clip(upper=20) / 2
    curve = pooled(Survival(TIME, "seen"), dealt(frame, 3), noise=0.0).curves[0]
    expected = KaplanMeierFitter().fit(frame["time"], frame["seen"])
    survival = expected.survival_function_at_times(np.arange(0.5, 10.5, 0.5)).to_numpy()
    shown = ~np.isnan(curve.survival)
    assert shown.sum() > 12
    assert_allclose(curve.survival[shown], survival[shown], rtol=1e-8)


def test_without_censoring_an_interval_is_that_of_wilson():
    frame = pd.DataFrame(
        {"time": np.repeat([1.0, 4.0, 10.0], [12, 30, 58]), "seen": np.repeat([1, 1, 0], [12, 30, 58])}
    )
    curve = pooled(Survival(TIME, "seen", n_intervals=10), dealt(frame, 3), noise=0.0).curves[0]
    for end, survivors in ((1, 88), (4, 58), (9, 58)):
        expected = proportion_confint(survivors, 100, method="wilson")
        assert_allclose((curve.low[end - 1], curve.high[end - 1]), expected, rtol=1e-6)
    assert_allclose(curve.rates[0], 12 / 100)
    assert curve.median[0] != curve.median[0], "58 % survive"


def test_the_median_is_interpolated():
    frame = pd.DataFrame({"time": np.repeat([2.0, 4.0], [20, 80]), "seen": 1})
    curve = pooled(Survival(TIME, "seen", n_intervals=5), dealt(frame, 3), noise=0.0).curves[0]
    assert curve.median[0] == pytest.approx(2 + 2 * 0.3 / 0.8)
    assert curve.median[1] < curve.median[0] < curve.median[2]


def test_a_median_that_is_not_reached_is_said_once():
    frame = pd.DataFrame({"time": np.repeat([2.0, 10.0], [50, 950]), "seen": np.repeat([1, 0], [50, 950])})
    found = pooled(Survival(TIME, "seen", n_intervals=5), dealt(frame, 3), noise=0.0)
    assert "Median: not reached, nor is its 95 % interval." in found.table().note


@pytest.mark.parametrize(("hazard", "is_full"), [(0.05, True), (2.0, False)])
def test_the_hazard_ratio_is_that_of_mantel_and_haenszel_within_parties(hazard, is_full):
    """Events count less where few of a party survive."""
    frames = dealt(simulated(300, 2, hazard=hazard), 3)
    assert (min(map(_least_weight, frames)) == 1) == is_full
    first, second, variance = 0.0, 0.0, 0.0
    for frame in frames:
        times, is_new, before = frame["time"].to_numpy(), (frame["arm"] == "new").to_numpy(), 0.0
        died = np.flatnonzero((frame["seen"] == 1) & (times <= 10))
        for row in died[np.argsort(times[died])]:
            new, weight = is_new[times >= times[row]].mean(), min(1, max(0, (5 - before) / 2))
            first += weight * is_new[row] * (1 - new)
            second += weight * (1 - is_new[row]) * new
            variance += weight**2 * new * (1 - new)
            before += 1 / (times >= times[row]).sum()
    statistic = Survival(TIME, "seen", ARM)
    found = pooled(statistic, frames, noise=0.0)
    assert found.chi_square == pytest.approx((first - second) ** 2 / variance, rel=1e-8)
    # With noise, both parts have variances, and the test and the interval hold them.
    noisy, noise = pooled(statistic, frames, noise=0.5), 0.5 * statistic.spread[-2]
    assert noisy.chi_square == pytest.approx((first - second) ** 2 / (variance + 2 * noise**2), rel=1e-8)
    assert noisy.p_value > found.p_value
    for ratio, of_noise in ((found.hazard_ratio, 0), (noisy.hazard_ratio, noise**2 * (first**-2 + second**-2))):
        half = 1.959964 * math.sqrt(variance / first / second + of_noise)
        assert_allclose(ratio, [first / second * math.exp(sign * half) for sign in (0, -1, 1)], rtol=1e-6)


@pytest.mark.nightly
@given(seed=st.integers(0, 1000), step=st.sampled_from([0.5, 2.0, 5.0]))
@settings(max_examples=10, deadline=None)
def test_tied_times_leave_the_test_as_it_is_and_the_ratio_is_one_of_rates(seed, step):
    """Each tied row was at risk for half of its interval, so that events are compared by person-time."""
    frames = dealt(simulated(240, seed, hazard=0.1), 3)
    frames = [each.assign(time=np.ceil(each["time"] / step) * step) for each in frames]
    assert min(map(_least_weight, frames)) == 1
    parts = np.zeros(2)
    for frame in frames:
        for now in np.unique(frame["time"][(frame["seen"] == 1) & (frame["time"] <= 10)]):
            at_risk = frame[frame["time"] >= now]
            is_new = (at_risk["arm"] == "new").to_numpy()
            died = ((at_risk["time"] == now) & (at_risk["seen"] == 1)).to_numpy()
            events = np.array([died[is_new].sum(), died[~is_new].sum()])
            time_lived = np.array([is_new.sum(), (~is_new).sum()]) - events / 2
            parts += events * time_lived[::-1] / len(at_risk)
    found = pooled(Survival(TIME, "seen", ARM), frames, noise=0.0)
    assert found.hazard_ratio[0] == pytest.approx(parts[0] / parts[1], rel=1e-8)
    rows = pd.concat(frames)
    party = np.repeat(np.arange(3), [len(each) for each in frames])
    seen = rows["seen"] * (rows["time"] <= 10)
    expected, _ = survdiff(rows["time"].clip(upper=10), seen, rows["arm"], strata=party)
    assert found.chi_square == pytest.approx(expected, rel=1e-8)


def test_the_ratio_of_rounded_times_tends_to_the_true_one():
    """Without the half of tied rows it would be .70."""
    random = np.random.default_rng(5)
    new = np.repeat([False, True], 20_000)
    time = random.exponential(15 * np.where(new, 2.0, 1.0))
    rounded = np.ceil(np.minimum(time, 24) / 8) * 8
    table = {"time": rounded, "seen": (time <= 24).astype(int), "arm": np.where(new, "new", "old")}
    statistic = Survival(NumberColumn("time", 0, 24), "seen", ARM)
    assert pooled(statistic, [table], noise=0.0).hazard_ratio[0] == pytest.approx(0.5, abs=0.02)


def naive_additive_hazards(frames, columns, most):
    """A, b and B, time by time and row by row."""
    p = len(columns)
    A, b, B = np.zeros((p, p)), np.zeros(p), np.zeros((p, p))
    for frame in frames:
        seen, before, hazard = (frame["seen"] == 1).to_numpy(), 0.0, 0.0
        time, all_rows = frame["time"].clip(upper=most).to_numpy(), frame[columns].to_numpy(dtype=float)
        seen = seen & (frame["time"] <= most).to_numpy()
        for now in np.unique(time):
            Z = all_rows[time >= now]
            weight = min(max((5 - hazard) / 2, 0), 1)
            for z in Z - Z.mean(axis=0):
                A += weight * (now - before) * np.outer(z, z)
            died = (time == now) & seen
            for z in all_rows[died] - Z.mean(axis=0):
                b += weight * z
                B += weight**2 * np.outer(z, z)
            before, hazard = now, hazard + died.sum() / len(Z)
    return A, b, B


@pytest.mark.parametrize("n_parties", [3, 5, 10])
def test_additive_hazards_are_those_of_all_rows_with_baselines_of_parties(n_parties):
    frames = dealt(simulated(150, 3, hazard=1.0), n_parties)
    assert n_parties == 10 or min(map(_least_weight, frames)) < 1
    frames[0] = frames[0].assign(seen=0)
    statistic = AdditiveHazards(TIME, "seen", [AGE, ARM])
    found = pooled(statistic, frames, noise=0.0)
    assert found.names == ("age", "arm=new")
    A, b, B = naive_additive_hazards([each.assign(new=each["arm"] == "new") for each in frames], ["age", "new"], 10)
    covariance = np.linalg.inv(A) @ B @ np.linalg.inv(A)
    assert_allclose(found.coefficients, np.linalg.solve(A, b), rtol=1e-8)
    assert_allclose(found.errors, np.sqrt(np.diag(covariance)), rtol=1e-8)
    assert_allclose(found.inflation, 1.0)
    rows = pd.concat(frames)
    assert (found.n_rows, found.n_events) == (150, rows.loc[rows["time"] <= 10, "seen"].sum())


def test_one_message_carries_both_and_batches_join():
    keys = {name: MaskKey.generate() for name in ("north", "south", "west")}
    statistics = [Survival(TIME, "seen", ARM), AdditiveHazards(TIME, "seen", [AGE, ARM])]
    plan = StudyPlan({name: key.public for name, key in keys.items()}, statistics)
    frames = dealt(simulated(2400, 6), 3)
    messages = [plan.message(name, frame, key) for (name, key), frame in zip(keys.items(), frames, strict=True)]
    survival, additive = plan.results(messages)
    exact, exact_additive = (pooled(each, frames, noise=0.0) for each in statistics)
    for noisy, curve in zip(survival.curves, exact.curves, strict=True):
        assert (abs(noisy.survival - curve.survival) < 0.1)[~np.isnan(noisy.survival)].all()
    assert survival.hazard_ratio[0] == pytest.approx(exact.hazard_ratio[0], rel=0.1)
    assert (abs(additive.coefficients - exact_additive.coefficients) < 4 * additive.errors).all()
    assert survival.fault is None
    assert survival.complete[0] == pytest.approx(2400, abs=6 * survival.complete[1])
    assert not survival.rare
    assert "Log-rank test, stratified by party" in survival.table().note
    for statistic in statistics:
        first, second = (statistic.add_up(frames[1][part], bytes(32)) for part in (slice(0, 50), slice(50, None)))
        assert_allclose(statistic.finish(statistic.join(first, second)), statistic.part(frames[1]), atol=1e-9)


def test_rows_with_gaps_are_left_out_and_times_beyond_the_longest_are_cut():
    frame = simulated(60, 7)
    gaps = frame.assign(
        arm=frame["arm"].mask(frame.index == 3), seen=frame["seen"].astype(object).mask(frame.index < 2)
    )
    late = frame.assign(time=frame["time"].where(frame["time"] < 5, 99.0))
    cut = frame.assign(seen=frame["seen"] * (frame["time"] < 5), time=frame["time"].where(frame["time"] < 5, 10.0))
    for statistic in (Survival(TIME, "seen", ARM), AdditiveHazards(TIME, "seen", [ARM])):
        assert_allclose(statistic.part(gaps), statistic.part(frame.drop([0, 1, 3])), atol=1e-12)
        assert_allclose(statistic.part(late), statistic.part(cut), atol=1e-12)


STATISTICS = [
    Survival(TIME, "seen", n_intervals=3),
    Survival(TIME, "seen", ARM, n_intervals=3),
    Survival(TIME, "seen", WARD, n_intervals=3),
    AdditiveHazards(TIME, "seen", [AGE]),
    AdditiveHazards(TIME, "seen", [AGE, NumberColumn("dose", 0, 1), WARD]),
    AdditiveHazards(TIME, "seen", [AGE, ARM]),
]
ROWS = st.fixed_dictionaries(
    {
        "time": st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, 9.0, 10.0]),
        "seen": st.sampled_from([1, 1, 1, 0, None]),
        "place": st.integers(0, 2),
        "age": st.sampled_from([0.0, 100.0, 100.0, 50.0]),
        "dose": st.sampled_from([0.0, 1.0]),
    }
)


def named(rows, statistic):
    levels = WARD.levels if WARD in (getattr(statistic, "by", None), *getattr(statistic, "columns", ())) else ARM.levels
    return pd.DataFrame([row | {"arm": levels[row["place"] % len(levels)]} for row in rows]).astype(object)


@pytest.mark.parametrize("statistic", STATISTICS)
@settings(max_examples=25)
@given(rows=st.lists(ROWS, min_size=1, max_size=8), copies=st.integers(1, 3), other=ROWS)
def test_no_row_moves_the_numbers_farther_than_said(statistic, rows, copies, other):
    """In units of the noise, as a Gaussian mechanism counts."""
    rest = rows[1:] * copies
    first, second = (statistic.part(named([row, *rest], statistic)) for row in (rows[0], other))
    assert np.linalg.norm((first - second) / statistic.spread) <= statistic.loss * (1 + 1e-12)


# Numbers of a block, its share of the squared loss, and how much of its bound is reached.
BLOCKS = [
    (STATISTICS[1], [(slice(24, 26), 0.5, 0.3), (slice(26, 27), 0.5, 0.1)]),
    (STATISTICS[3], [(slice(2, 3), 0.15, 0.5), (slice(3, 4), 0.3, 0.3), (slice(4, 5), 0.5, 0.03)]),
]


@pytest.mark.parametrize(("statistic", "blocks"), BLOCKS)
def test_a_last_survivor_moves_blocks_of_numbers_by_a_good_part_of_that(statistic, blocks):
    """All others die one after the other in the first group, so that the party's cumulative hazard grows."""
    times = np.linspace(0.1, 9.9, 100)
    rest = [{"time": t, "seen": 1, "place": 0, "age": 0.0, "dose": 0.0} for t in times]
    late = {"time": 10.0, "seen": 0, "place": 1, "age": 100.0, "dose": 1.0}
    early = {"time": 0.1, "seen": 1, "place": 1, "age": 100.0, "dose": 1.0}
    parts = [statistic.part(named([*rest, row], statistic)) / statistic.spread for row in (late, early)]
    for block, share, least in blocks:
        moved = np.linalg.norm((parts[0] - parts[1])[block]) / (RIDGE_MOVED / statistic.noise * math.sqrt(share))
        assert least <= moved <= 1


@pytest.mark.parametrize("statistic", STATISTICS[::2])
def test_epsilon_holds_for_the_whole_message(statistic):
    plan = StudyPlan({name: MaskKey.generate().public for name in "abc"}, [statistic], epsilon=1.0)
    assert 1 / plan.loss == pytest.approx(gaussian_sigma(1.0, 1e-5))


@pytest.mark.nightly
def test_intervals_and_level_hold_with_noise():
    """60 studies of four parties of 150: about 95 % of the intervals hold, and 5 % of the tests reject."""
    random, held, rejected = np.random.default_rng(0), [], 0
    survival, additive = Survival(TIME, "seen", ARM), AdditiveHazards(TIME, "seen", [NumberColumn("x", 0, 1)])
    for seed in range(60):
        frames = []
        for party in range(4):
            x = random.uniform(0, 1, 150)
            event, censored = random.exponential(1 / (0.05 + 0.05 * party + 0.1 * x)), random.uniform(0, 20, 150)
            arm = random.choice(ARM.levels, 150, p=[0.3 + 0.1 * party, 0.7 - 0.1 * party])
            time = np.minimum(event, censored)
            frames.append({"time": time, "seen": 1 * (event <= censored), "arm": arm, "x": x})
        noisy = []
        for statistic in (survival, additive):
            total = sum(map(statistic.part, frames))
            total = total + 1.4 * statistic.spread * random.normal(size=len(total))
            noisy.append(statistic.result(total, n_parties=4, noise=1.4))
        rejected += noisy[0].p_value < 0.05
        ratio = noisy[0].hazard_ratio
        held += [ratio[1] <= 1 <= ratio[2], noisy[1].low[0] <= 0.1 <= noisy[1].high[0]]
        assert seed or noisy[1].inflation[0] > 1.02, "the noise is no small part of the errors here"
    assert 0.91 <= np.mean(held) <= 0.99
    assert rejected <= 8


def test_a_rare_group_is_named_and_its_curve_is_not_shown():
    frame = simulated(400, 8)
    frame.loc[:5, "arm"] = "c"
    found = pooled(Survival(TIME, "seen", CategoryColumn("arm", ("old", "new", "c"))), dealt(frame, 3), noise=0.0)
    assert found.rare == (("arm", "c"),)
    assert np.isnan(found.curves[2].survival).all()
    assert not any(row[0] == "c" for row in found.table().rows)


def test_three_groups_have_no_hazard_ratio():
    frame = simulated(600, 8, WARD.levels)
    frame.loc[frame["arm"] != "a", "time"] /= 3
    found = pooled(Survival(TIME, "seen", WARD), dealt(frame, 3), noise=0.0)
    assert found.degrees_of_freedom == 2
    assert found.p_value < 0.001
    assert np.isnan(found.hazard_ratio).all()
    assert "Hazard ratio" not in found.table().note


def test_noise_where_few_are_at_risk_does_not_change_the_curve_before():
    """Curves with noise fall, and intervals hold the curve without it."""
    random, statistic, held = np.random.default_rng(1), Survival(TIME, "seen", count_noise=10.0), []
    total = sum(map(statistic.part, dealt(simulated(2000, 10, hazard=0.3), 3)))
    (exact,) = statistic.result(total, n_parties=3, noise=0.0).curves
    for _ in range(20):
        noisy = total + statistic.spread * random.normal(size=len(total))
        (curve,) = statistic.result(noisy, n_parties=3).curves
        shown = ~np.isnan(curve.survival)
        assert (np.diff(curve.survival[shown]) <= 0).all()
        assert (curve.low <= curve.survival + 0.02)[shown].all()
        assert (curve.survival <= curve.high + 0.02)[shown].all()
        held += [*((curve.low <= exact.survival) & (exact.survival <= curve.high))[shown]]
    assert np.mean(held) > 0.9, "the noise alone is beyond the interval of a sample without it"


@pytest.mark.slow
def test_the_only_person_of_a_group_is_hardly_read_from_the_total():
    """The likeliest of 40 records, for somebody who knows all other rows: the figures of the page.

    The noise is of three parties, one of which may collude; and what is left once that one has taken off its own.
    """
    statistic, random = Survival(TIME, "seen", ARM), np.random.default_rng(0)
    records = [{"time": (k + 0.5) / 2, "seen": seen, "arm": "new"} for k in range(20) for seen in (0, 1)]
    true, guessed = np.repeat(np.arange(40), 100), {math.sqrt(3 / 2): [], 1.0: []}
    for seed in range(11, 14):
        others = simulated(300, seed).assign(arm="old")
        parts = [statistic.part(pd.concat([others, pd.DataFrame([each])])) for each in records]
        totals = np.array(parts) / statistic.spread
        for noise, guesses in guessed.items():
            noisy = totals[true] + noise * random.normal(size=(len(true), len(totals[0])))
            guesses.append(((totals**2).sum(axis=1) - 2 * noisy @ totals.T).argmin(axis=1))
    found = np.array(list(guessed.values()))
    for figure, expected in ((found == true, (0.14, 0.17)), (found % 2 == true % 2, (0.71, 0.75))):
        assert_allclose(figure.mean(axis=(1, 2)), expected, atol=0.015)
    assert_allclose((found // 2 == true // 2).mean(axis=(1, 2)), (0.19, 0.22), atol=0.015)


def test_no_test_is_made_of_too_few_events():
    frame = simulated(400, 9)
    few = frame.assign(seen=frame["seen"] * (frame.index < 8))
    found = pooled(Survival(TIME, "seen", ARM), dealt(few, 3), noise=1.2)
    assert math.isnan(found.p_value)
    assert "No log-rank test" in found.table().note
    with pytest.raises(NumericalError, match="10 for each"):
        pooled(AdditiveHazards(TIME, "seen", [AGE, ARM]), dealt(few, 3), noise=0.0)
    with pytest.raises(NumericalError, match="standard error"):
        some = frame.assign(seen=frame["seen"] * (frame.index < 40))
        pooled(AdditiveHazards(TIME, "seen", [AGE]), dealt(some, 3), noise=1.5)
    with pytest.raises(NumericalError, match="'age', 'age' hardly vary within parties, or nearly follow"):
        pooled(AdditiveHazards(TIME, "seen", [AGE, NumberColumn("age", 0, 120)]), dealt(frame, 3), noise=0.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Survival(NumberColumn("time", 1, 9), "seen"),
        lambda: Survival(TIME, "seen", n_intervals=1),
        lambda: AdditiveHazards(NumberColumn("time", 1, 9), "seen", [AGE]),
        lambda: AdditiveHazards(TIME, "seen", []),
        lambda: AdditiveHazards(TIME, "seen", [TIME]),
    ],
)
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(AgreementError):
        make()
