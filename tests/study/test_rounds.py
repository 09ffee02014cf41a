"""Regressions by rounds: maximum likelihood in the end, and what one row can move."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from datacollab.errors import AgreementError, NumericalError, ShareError
from datacollab.study import (
    RIDGE_MOVED,
    CategoryColumn,
    HazardRound,
    LogisticRound,
    NumberColumn,
    PoissonRound,
    RoundsSoFar,
    StudyPlan,
)
from datacollab.sums import MaskKey

AGE = NumberColumn("age", 20, 80)
STAGE = CategoryColumn("stage", ["I", "II", "III"])
DIED = CategoryColumn("died", ["no", "yes"])
YEARS = NumberColumn("years", 0, 5)
SIZES = (300, 200, 60)


def make_parties(*, seed=0, sizes=SIZES, base=-1.0, is_rate=False):
    """Return tables of parties whose outcomes differ by party, age and stage."""
    rng = np.random.default_rng(seed)
    tables = []
    for n in sizes:
        age = np.clip(rng.normal(50, 10, n), 20, 80)
        stage = rng.choice(["I", "II", "III"], n, p=[0.5, 0.3, 0.2])
        eta = base + 0.5 * rng.normal() + 0.03 * (age - 50) + 0.6 * (stage == "II") + 1.1 * (stage == "III")
        table = {"age": age, "stage": stage}
        if is_rate:
            time = rng.exponential(np.exp(-eta))
            end = rng.uniform(0.2, 1.0, n)
            table["years"] = np.minimum(time, end)
            died = time <= end
        else:
            died = rng.random(n) < 1 / (1 + np.exp(-eta))
        tables.append(table | {"died": np.where(died, "yes", "no")})
    return tables


def run(statistic, tables, *, noise=0.0, rng=None):
    """Return the result of all rounds, with Gaussian noise in each total."""
    for place in range(statistic.n_rounds):
        total = np.sum([statistic.part(each, bytes([place]) * 32) for each in tables], axis=0)
        if noise:
            total = total + rng.normal(size=len(total)) * statistic.spread_at(noise)
        result = statistic.result(total, n_parties=len(tables), noise=noise)
        statistic = replace(statistic, before=getattr(result, "so_far", None))
    return result


def fit_pooled(tables, *, is_rate=False):
    """Return coefficients and errors of statsmodels on all rows together, with an indicator of each party."""
    party = np.repeat(np.arange(len(tables)), [len(each["age"]) for each in tables])
    whole = {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}
    X = np.column_stack([whole["age"], whole["stage"] == "II", whole["stage"] == "III", np.eye(len(tables))[party]])
    family = sm.families.Poisson() if is_rate else sm.families.Binomial()
    exposure = whole["years"] if is_rate else None
    found = sm.GLM(whole["died"] == "yes", X, family=family, exposure=exposure).fit(tol=1e-14)
    return found.params[:3], found.bse[:3]


LOGISTIC = LogisticRound([AGE, STAGE], DIED)
POISSON = PoissonRound([AGE, STAGE], DIED, time=YEARS)
HAZARDS = HazardRound([AGE, STAGE], DIED, time=YEARS)
EQUAL = (0.1,) * 10
SECRET = bytes(32)


@pytest.mark.parametrize(("n_rounds", "apart"), [(2, 0.15), (3, 0.01), (4, 1e-4), (6, 1e-6)])
def test_rounds_end_at_the_maximum_likelihood_of_all_rows_with_an_indicator_of_each_party(n_rounds, apart):
    tables = make_parties()
    params, errors = fit_pooled(tables)
    found = run(replace(LOGISTIC, n_rounds=n_rounds), tables)
    assert np.abs((found.params - params) / errors).max() < apart
    np.testing.assert_allclose(found.bse, errors, rtol=max(apart, 1e-4))
    assert found.inflation == pytest.approx(np.ones(3))


@pytest.mark.parametrize(("n_rounds", "apart"), [(2, 0.3), (4, 0.05), (16, 1e-6)])
def test_rates_end_there_as_well_where_nobody_expects_two_events(n_rounds, apart):
    tables = make_parties(base=-2.5, is_rate=True, sizes=(600, 500, 400))
    params, errors = fit_pooled(tables, is_rate=True)
    found = run(replace(POISSON, n_rounds=n_rounds), tables)
    assert np.abs((found.params - params) / errors).max() < apart
    # The information is that of a sample, of some 100 events.
    np.testing.assert_allclose(found.bse, errors, rtol=0.15)


def make_times(*, seed=0, sizes=(600, 500, 400), base=-2.5):
    """Return tables of parties whose hazards fall with time, differently in each, with times up to 5 years."""
    rng = np.random.default_rng(seed)
    tables = make_parties(seed=seed, sizes=sizes)
    for place, table in enumerate(tables):
        ratio = np.exp(0.03 * (table["age"] - 50) + 0.6 * (table["stage"] == "II") + 1.1 * (table["stage"] == "III"))
        n = len(table["age"])
        shape = (0.7, 1.0, 1.4)[place % 3]
        event = 5 * (rng.exponential(size=n) / ratio / np.exp(base + 0.4 * place)) ** (1 / shape)
        end = rng.uniform(2, 6, n)
        table["years"] = np.minimum(event, end)
        table["died"] = np.where(event <= end, "yes", "no")
    return tables


def fit_cox(tables):
    """Return coefficients and errors of statsmodels on all rows together, with parties as strata and Efron's ties."""
    whole = {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}
    X = np.column_stack([whole["age"], whole["stage"] == "II", whole["stage"] == "III"])
    died = (whole["died"] == "yes") & (whole["years"] <= 5)
    party = np.repeat(np.arange(len(tables)), [len(each["age"]) for each in tables])
    found = sm.PHReg(np.minimum(whole["years"], 5), X.astype(float), died, strata=party, ties="efron").fit(disp=0)
    return found.params, found.bse


def fit_grouped(tables):
    """Return coefficients of statsmodels: a binomial regression with a complementary log-log link, a row an interval.

    A row that leaves within an interval has the part that it was observed as an offset.
    """
    blocks = []
    for place, table in enumerate(tables):
        X = np.column_stack([table["age"], table["stage"] == "II", table["stage"] == "III"])
        intervals = np.minimum(table["years"], 5) * 2
        died = (table["died"] == "yes") & (table["years"] <= 5)
        for j in range(10):
            seen = died & (intervals > j) & (intervals <= j + 1)
            observed = np.where(seen, 1.0, np.clip(intervals - j, 0, 1))
            if seen.any():
                own = observed > 0
                cell = np.full(own.sum(), place * 10 + j)
                blocks.append(np.column_stack([X[own], seen[own], np.log(observed[own]), cell]))
    rows = np.vstack(blocks)
    cells = pd.get_dummies(rows[:, 5]).to_numpy(float)
    family = sm.families.Binomial(link=sm.families.links.CLogLog())
    X = np.hstack([rows[:, :3], cells])
    return sm.GLM(rows[:, 3], X, family=family, offset=rows[:, 4]).fit(tol=1e-13).params[:3]


def test_hazards_end_at_the_maximum_likelihood_of_grouped_times_with_baselines_of_each_party_and_interval():
    tables = make_times()
    _, errors = fit_cox(tables)
    params = fit_grouped(tables)
    apart = {n: np.abs((run(replace(HAZARDS, n_rounds=n), tables).params - params) / errors).max() for n in (2, 4, 12)}
    assert apart[2] < 0.15
    assert apart[4] < 0.01
    assert apart[12] < 1e-6


@pytest.mark.parametrize("months", [0, 3, 6, 12])
def test_hazard_ratios_are_near_those_of_cox_on_all_rows_and_exact_times_also_if_times_are_tied(months):
    tables = make_times()
    params, errors = fit_cox(tables)
    if months:
        for table in tables:
            table["years"] = np.ceil(table["years"] * 12 / months) * months / 12
    found = run(replace(HAZARDS, n_rounds=3), tables)
    assert np.abs((found.params - params) / errors).max() < (0.15 if months < 12 else 0.3)
    np.testing.assert_allclose(found.bse, errors, rtol=0.1)
    assert found.of_ratios == "hazard ratio"
    assert "a baseline for each party" in found.table().note


def make_frequent(seed, statistic):
    if statistic is HAZARDS:
        return make_times(seed=seed, base=0.5, sizes=(250, 250))
    return make_parties(seed=seed, base=0.5, sizes=(250, 250), is_rate=True)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", [POISSON, HAZARDS])
def test_frequent_events_leave_no_bias_though_rows_that_expect_many_count_less(statistic):
    """Of 40 studies with 60 to 80 % of events, the mean is where their scatter lets it be."""
    rng = np.random.default_rng(4)
    true = np.array([0.03, 0.6, 1.1])
    studies = [make_frequent(seed, statistic) for seed in range(40)]
    found = [run(replace(statistic, n_rounds=3), each, noise=1e-9, rng=rng) for each in studies]
    z = [(each.params - true) / each.bse for each in found]
    assert np.abs(np.mean(z, axis=0)).max() < 0.55
    assert 0.6 < np.std(z) < 1.15


@pytest.mark.parametrize("statistic", [POISSON, HAZARDS])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_two_rounds_are_near_a_ratio_of_five(statistic, share):
    """The mean of 20 studies is within half an error of it."""
    rng = np.random.default_rng(2)
    drug = CategoryColumn("drug", ["old", "new"])
    apart = []
    for _ in range(20):
        is_new = rng.random(1500) < share
        event = rng.exponential(1 / (0.1 * np.where(is_new, 5, 1)))
        end = rng.uniform(0.5, 2, 1500)
        table = {"drug": np.where(is_new, "new", "old"), "died": np.where(event <= end, "yes", "no")}
        table["years"] = np.minimum(event, end)
        found = run(replace(statistic, columns=[drug], n_rounds=2), [table])
        apart.append((found.params[0] - np.log(5)) / found.bse[0])
    assert abs(np.mean(apart)) < 0.5


def test_errors_of_hazard_ratios_are_right_where_a_level_leaves_early():
    """Nobody with the new drug is seen for longer than a year: it is new, and later events are of others."""
    rng = np.random.default_rng(3)
    drug = CategoryColumn("drug", ["old", "new"])
    is_new = rng.random(9000) < 0.5
    event = rng.exponential(1 / 0.1, 9000)
    end = np.where(is_new, 1.0, 5.0)
    table = {"drug": np.where(is_new, "new", "old"), "died": np.where(event <= end, "yes", "no")}
    table["years"] = np.minimum(event, end)
    found = run(HazardRound([drug], DIED, time=YEARS, n_rounds=4), [table])
    exact = sm.PHReg(table["years"], is_new[:, None].astype(float), event <= end).fit(disp=0)
    assert found.bse[0] == pytest.approx(exact.bse[0], rel=0.1)
    assert found.params[0] == pytest.approx(exact.params[0], abs=0.3 * exact.bse[0])


def test_rates_are_right_where_many_rows_expect_more_events_than_count():
    """One level has hardly any events, and rows of the other are expected to have fifteen."""
    rng = np.random.default_rng(0)
    drug = CategoryColumn("drug", ["old", "new"])
    rate = np.repeat([0.1, 3.0], 20_000)
    event = rng.exponential(1 / rate)
    table = {"drug": np.repeat(["old", "new"], 20_000), "died": np.where(event <= 5, "yes", "no")}
    table["years"] = np.minimum(event, 5)
    found = run(PoissonRound([drug], DIED, time=YEARS, n_rounds=12), [table])
    assert found.params[0] == pytest.approx(np.log(30), abs=0.03)


@pytest.mark.parametrize("n", [1, 2, 7, 20, 21, 400])
def test_the_information_of_events_is_their_covariance_where_no_difference_is_long(n):
    table = make_times(sizes=(900,))[0]
    table |= {"died": np.where(np.arange(900) % 2, "no", "yes"), "stage": np.repeat("II", 900), "years": np.ones(900)}
    table["died"][2 * n :] = "no"
    found = HAZARDS.part(table, SECRET)[-9]
    ages = table["age"][: 2 * n : 2] / 60
    assert found == pytest.approx(n * np.var(ages, ddof=1) if n > 1 else 0.0, rel=1e-9 if n <= 21 else 0.1)


def test_an_event_counts_in_its_party_and_interval_however_the_hazard_runs_within():
    """Any change of times that leaves each in its interval, and leaving rows at its end, changes nothing."""
    table = make_times(sizes=(200,))[0]
    table["years"] = np.ceil(table["years"] * 2) / 2
    moved = {**table, "years": np.where(table["died"] == "yes", table["years"] - 0.3, table["years"])}
    np.testing.assert_allclose(HAZARDS.part(table, SECRET), HAZARDS.part(moved, SECRET))


def test_who_cannot_tell_ratios_of_hazards_adds_nothing_to_the_score():
    table = make_times(sizes=(80,))[0]
    nobody = HAZARDS.part({**table, "died": np.repeat("no", 80)})
    assert nobody[1] == 0
    assert not nobody[6:].any()
    # All have the event in one interval: their baseline is infinite there.
    everybody = HAZARDS.part({**table, "died": np.repeat("yes", 80), "years": np.full(80, 1.2)})
    assert everybody[8] == 80
    assert everybody[16] == 0
    assert not everybody[-3:].any()


def test_events_on_the_first_day_count_and_late_ones_do_not():
    table = make_times(sizes=(60,))[0]
    table["years"][:3] = [0.0, 0.0, 9.0]
    table["died"][:3] = ["yes", "no", "yes"]
    part = HAZARDS.part(table, SECRET)
    assert part[0] == 60
    within = (table["died"] == "yes") & (table["years"] <= 5)
    assert part[1] == within.sum()
    np.testing.assert_array_equal(part[6:16], np.histogram(np.maximum(table["years"][within], 1e-9), 10, (0, 5))[0])


def test_bounds_by_interval_follow_the_events_of_the_first_round():
    tables = make_times(sizes=(2000, 2000), base=-1.5)
    total = np.sum([HAZARDS.part(each) for each in tables], axis=0)
    shares = HAZARDS.result(total, n_parties=2, noise=0.0).so_far.shares
    events = total[6:16]
    assert sum(shares) == pytest.approx(1)
    np.testing.assert_allclose(shares, 0.05 + 0.5 * events / events.sum())


def test_a_party_whose_outcomes_are_all_alike_tells_its_rows_and_nothing_else():
    table = make_parties(sizes=(80,))[0]
    for outcome, n_outcomes in (("no", 0), ("yes", 80)):
        part = LOGISTIC.part(table | {"died": np.repeat(outcome, 80)})
        levels = [(table["stage"] == level).sum() for level in ("II", "III")]
        assert part[:6].tolist() == [80, n_outcomes, *levels, *(levels if n_outcomes else [0, 0])]
        assert not part[6:].any()


def test_batches_of_rows_give_what_all_rows_give():
    table = make_parties(sizes=(90,))[0]
    parts = [
        LOGISTIC.add_up({name: own[rows] for name, own in table.items()}, b"") for rows in (slice(40), slice(40, 90))
    ]
    np.testing.assert_allclose(LOGISTIC.finish(LOGISTIC.join(*parts)), LOGISTIC.part(table))


def test_rows_with_gaps_or_without_time_are_left_out_and_late_events_count_as_time():
    table = make_parties(is_rate=True, sizes=(60,))[0]
    table["years"][:3] = [0.0, 9.0, 9.0]
    table["died"][:3] = ["yes", "yes", "no"]
    table["age"][3] = np.nan
    whole = POISSON.part(table)
    late = {name: own[[1, 2, *range(4, 60)]].copy() for name, own in table.items()}
    late["years"][:2] = 5.0
    late["died"][0] = "no"
    np.testing.assert_allclose(whole, POISSON.part(late))


# Few different times, so that rows share intervals; few different ages, so that they lie at the ends.
rows = st.tuples(
    st.sampled_from([20.0, 80.0]) | st.floats(20, 80),
    st.sampled_from(["I", "II", "III"]),
    st.booleans(),
    st.sampled_from([0.4, 0.9, 5.0]) | st.floats(0.01, 5),
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(rows, min_size=2, max_size=12),
    rows,
    st.lists(st.floats(-8, 8), min_size=3, max_size=3),
    st.sampled_from([LOGISTIC, POISSON, HAZARDS]),
    st.sampled_from([EQUAL, (1.0, *[0.0] * 9), (0.02, 0.9, *[0.01] * 8)]),
)
def test_replacing_a_row_moves_a_round_by_no_more_than_the_noise_was_made_for(
    own, other, coefficients, statistic, shares
):
    def table_of(listed):
        age, stage, died, years = zip(*listed, strict=True)
        return {"age": age, "stage": stage, "died": np.where(died, "yes", "no"), "years": years}

    first = replace(statistic, n_rounds=1)
    later = replace(statistic, n_rounds=2, before=RoundsSoFar(1, tuple(coefficients), 100.0, 50.0, shares))
    for each in (first, later):
        moved = each.part(table_of([other, *own[1:]]), SECRET) - each.part(table_of(own), SECRET)
        # All rounds together may tell what `loss` says, and each its part of that.
        assert np.linalg.norm(moved / each.spread) <= each.loss / np.sqrt(each.n_rounds) + 1e-6
        assert np.linalg.norm(moved[-3:]) <= each._score_moved + 1e-6
        assert np.sqrt(moved[-9:-3] ** 2 @ [1, 2, 2, 1, 2, 1]) <= each._information_moved + 1e-6


def share_of_noise(statistic, table, changed):
    """How far a change moves the numbers after the counts, as a part of what `loss` says of one round."""
    moved = (statistic.part(changed, SECRET) - statistic.part(table, SECRET)) / statistic.spread
    return np.linalg.norm(moved[-10:]) / statistic.loss * np.sqrt(statistic.n_rounds)


def test_the_farthest_moves_of_a_round_of_hazards_are_near_what_its_noise_was_made_for():
    """A row that is expected to have very many events, for one that has its event at once at the other corner."""
    n = 200
    others = {"age": np.full(n, 20.0), "stage": np.repeat("I", n), "died": np.tile(["yes", "no"], n // 2)}
    others["years"] = np.tile(np.repeat(np.arange(10) / 2 + 0.5, 2), n // 20)
    # It leaves last, and each interval before has events of others.
    added = {"age": 80.0, "stage": "III", "died": "no", "years": 5.0}
    instead = {"age": 80.0, "stage": "III", "died": "yes", "years": 0.2}
    long, short = ({name: np.append(others[name], own[name]) for name in others} for own in (added, instead))
    later = replace(HAZARDS, before=RoundsSoFar(1, (8.0, 0.0, 0.0), 100.0, 50.0, EQUAL))
    assert 0.35 < share_of_noise(later, long, short) <= 1
    assert 0.5 < np.linalg.norm((later.part(long, SECRET) - later.part(short, SECRET))[-3:]) / later._score_moved <= 1
    # An event far from all others, which lie in one corner.
    everybody = {**others, "stage": np.repeat("II", n), "died": np.repeat("yes", n)}
    rows = [{"age": 80.0, "stage": "III", "died": died, "years": 1.0} for died in ("no", "yes")]
    near, far = ({name: np.append(everybody[name], own[name]) for name in others} for own in rows)
    moved = (HAZARDS.part(far, SECRET) - HAZARDS.part(near, SECRET))[-9:-3]
    assert 0.45 < np.sqrt(moved**2 @ [1, 2, 2, 1, 2, 1]) / HAZARDS._information_moved <= 1


def test_counts_of_a_round_move_no_farther_than_their_own_noise_was_made_for():
    table = make_times(sizes=(50,))[0]
    table |= {"stage": np.repeat(["II", "I"], [3, 47]), "died": np.repeat("no", 50), "years": np.full(50, 1.0)}
    table["died"] = table["died"].astype(object)
    table["stage"] = table["stage"].astype(object)
    table["stage"][0], table["died"][0] = "II", "yes"
    changed = {name: own.copy() for name, own in table.items()}
    changed["stage"][0], changed["years"][0] = "III", 3.0
    gone = {**table, "age": np.append(np.nan, table["age"][1:])}
    of_age = HazardRound([AGE], DIED, time=YEARS)
    for statistic, other in ((LOGISTIC, changed), (POISSON, changed), (HAZARDS, changed), (of_age, gone)):
        n_counts = (statistic.spread == statistic.noise_of_rows).sum()
        moved = np.sum((statistic.part(other) - statistic.part(table))[:n_counts] ** 2)
        of_counts = (statistic.loss**2 - (RIDGE_MOVED / statistic.noise) ** 2) * statistic.noise_of_rows**2
        assert 0.6 * of_counts < moved <= of_counts + 1e-6


def test_all_rounds_together_have_the_noise_of_one():
    losses = [replace(LOGISTIC, n_rounds=n).loss for n in (1, 2, 4)]
    assert losses == pytest.approx([losses[0]] * 3)
    spreads = [replace(LOGISTIC, n_rounds=n).spread[6:] for n in (1, 4)]
    np.testing.assert_allclose(spreads[1], 2 * spreads[0])


def test_a_plan_runs_a_round_under_masks_and_the_next_one_under_others():
    tables = make_parties(sizes=(700, 600, 500))
    names = ["north", "south", "west"]
    contexts = []
    statistic = LOGISTIC
    for _ in range(2):
        keys = {name: MaskKey.generate() for name in names}
        plan = StudyPlan({name: key.public for name, key in keys.items()}, [statistic])
        messages = [plan.message(name, table, keys[name]) for name, table in zip(names, tables, strict=True)]
        (result,) = plan.results(messages)
        contexts.append(plan.agreed.context)
        statistic = replace(statistic, before=getattr(result, "so_far", None))
    assert contexts[0] != contexts[1]
    params, errors = fit_pooled(tables)
    assert (np.abs(result.params - params) < 2 * errors).all()
    assert "an intercept for each party" in result.table().note


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda table: table | {"died": np.where(table["stage"] == "III", "no", table["died"])},
            "stage=III has less than 0.1 of the outcomes",
        ),
        (
            lambda table: table | {"died": np.where(table["stage"] == "I", "no", table["died"])},
            "stage=I has less than 0.1 of the outcomes",
        ),
        (
            lambda table: table | {"died": np.where(table["stage"] == "III", "yes", table["died"])},
            "stage=III has less than 0.1 of the outcomes",
        ),
        (
            lambda table: table | {"stage": np.where(table["stage"] == "III", "II", table["stage"])},
            "stage=III has fewer",
        ),
        (
            lambda table: table | {"died": np.where(np.arange(len(table["died"])) % 30, "no", table["died"])},
            "of the rarer outcome for 3 coefficients",
        ),
        (lambda table: table | {"age": np.full(len(table["age"]), 50.0)}, "'age' hardly varies"),
    ],
)
def test_a_regression_that_cannot_be_had_is_refused_in_its_first_round(change, says):
    tables = [change(each) for each in make_parties()]
    with pytest.raises(NumericalError, match=says):
        run(replace(LOGISTIC, n_rounds=2), tables, noise=1.0, rng=np.random.default_rng(1))


def test_rare_outcomes_of_a_level_that_is_mostly_in_one_party_are_no_separation():
    """Its party has more outcomes than the others, so that its rows have fewer than rows of all parties would."""
    rng = np.random.default_rng(5)
    tables = []
    for n, share, risk in ((300, 0.9, 0.4), (1200, 0.02, 0.05), (1200, 0.02, 0.05)):
        stage = np.where(rng.random(n) < share, "III", rng.choice(["I", "II"], n))
        odds = risk / (1 - risk) * np.where(stage == "III", 0.36, 1.0)
        died = np.where(rng.random(n) < odds / (1 + odds), "yes", "no")
        tables.append({"age": rng.uniform(20, 80, n), "stage": stage, "died": died})
    for _ in range(20):
        found = run(LOGISTIC, tables, noise=1.3, rng=rng)
        assert found.conf_int()[2, 0] < np.log(0.36) < found.conf_int()[2, 1] + 1


@pytest.mark.parametrize("n_new", [3, 8])
def test_a_level_of_few_rows_in_a_party_with_many_outcomes_is_refused(n_new):
    rng = np.random.default_rng(0)
    tables = make_parties(sizes=(1200, 1200, 200))
    tables[2] = tables[2] | {"stage": np.where(np.arange(200) < n_new, "III", "I"), "died": np.tile(["yes", "no"], 100)}
    for table in tables[:2]:
        table["stage"] = np.where(table["stage"] == "III", "II", table["stage"])
    for _ in range(20):
        with pytest.raises(NumericalError, match="stage=III"):
            run(LOGISTIC, tables, noise=1.3, rng=rng)


def test_a_ratio_that_had_not_come_to_rest_is_named():
    rng = np.random.default_rng(3)
    stage = rng.choice(["I", "II", "III"], 2000)
    died = rng.random(2000) < np.where(stage == "III", 0.9, 0.05)
    tables = [{"age": rng.uniform(20, 80, 2000), "stage": stage, "died": np.where(died, "yes", "no")}]
    assert any("stage=III had not come to rest" in each for each in run(LOGISTIC, tables).cautions)
    assert not run(replace(LOGISTIC, n_rounds=5), tables).cautions


@pytest.mark.parametrize(("share", "outcomes", "is_too_near"), [(0.33, 0.9, True), (0.1, 0.2, False)])
def test_a_ratio_that_had_not_come_to_rest_may_lie_on_either_side(share, outcomes, is_too_near):
    rng = np.random.default_rng(5)
    stage = np.where(rng.random(40_000) < share, "III", "I")
    died = rng.random(40_000) < np.where(stage == "III", outcomes, 0.05)
    tables = [{"stage": stage, "died": np.where(died, "yes", "no")}]
    statistic = LogisticRound([CategoryColumn("stage", ["I", "III"])], DIED)
    found = run(replace(statistic, n_rounds=2), tables)
    true = run(replace(statistic, n_rounds=8), tables).params
    assert (true > found.params) == is_too_near
    assert ["on either side" in each for each in found.cautions] == [True]


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("kind", [PoissonRound, HazardRound])
def test_few_whole_numbers_may_fill_the_ranges_of_columns_that_go_together(kind, most):
    """Two rounds, without noise, beside statsmodels on all rows with an indicator or a stratum of each party."""
    rng = np.random.default_rng(2)
    common = rng.normal(size=(2, 1500, 1))
    whole = np.floor((most + 1) * ndtr((common + 0.7 * rng.normal(size=(2, 1500, 5))) / 1.22))
    x = np.minimum(whole, most)
    time = rng.exponential(np.exp(2.5 - x @ [0.8, -0.6, 0.4, 0.3, -0.5] / most))
    years = np.minimum(time, 5.0)
    died = time <= 5.0
    names = ["a", "b", "c", "d", "e"]
    tables = [
        dict(zip(names, x[party].T, strict=True)) | {"years": years[party], "died": np.where(died[party], "yes", "no")}
        for party in range(2)
    ]
    found = run(kind([NumberColumn(name, 0, most) for name in names], DIED, time=YEARS), tables)
    X = x.reshape(3000, 5)
    party = np.repeat([0, 1], 1500)
    if kind is HazardRound:
        pooled = sm.PHReg(years.ravel(), X, died.ravel(), strata=party, ties="efron").fit(disp=0)
    else:
        X = np.column_stack([X, np.eye(2)[party]])
        pooled = sm.GLM(died.ravel(), X, family=sm.families.Poisson(), exposure=years.ravel()).fit()
    assert np.abs((found.params - pooled.params[:5]) / pooled.bse[:5]).max() < 0.6
    assert np.all(found.bse < 1.15 * pooled.bse[:5])


def test_events_that_count_in_part_are_told_from_those_there_are():
    """Rows that all have their event late are expected to have many, of which each counts for two."""
    rng = np.random.default_rng(1)
    died = np.repeat(["yes", "no"], [190, 10])
    table = {"age": rng.uniform(20, 80, 200), "stage": np.resize(["I", "II", "III"], 200), "died": died}
    table["years"] = np.where(died == "yes", rng.uniform(4.6, 4.9, 200), 5.0)
    with pytest.raises(NumericalError, match=r"about 5\d\d outcomes, which count as \d+ \(a row counts for 2 expected"):
        run(replace(HAZARDS, n_rounds=2), [table] * 3, noise=1.0, rng=rng)


@pytest.mark.parametrize(
    ("places", "value", "says"),
    [
        (slice(1, 2), 1e4, "more than rows"),
        (slice(1, 2), -100.0, "fewer outcomes than none"),
        (slice(6, 7), -50.0, "below zero"),
        (slice(6, 7), 5e3, "varies more than its declared range"),
        (slice(-1, None), 1e4, "farther from their means"),
    ],
)
def test_totals_that_no_rows_have_are_refused(places, value, says):
    total = np.sum([LOGISTIC.part(each) for each in make_parties()], axis=0)
    total[places] = value
    with pytest.raises(ShareError, match=says):
        LOGISTIC.result(total, n_parties=3)


def test_what_cannot_be_agreed_on_is_refused():
    with pytest.raises(AgreementError, match="two"):
        LogisticRound([AGE], STAGE)
    with pytest.raises(AgreementError, match="other than died"):
        LogisticRound([AGE, DIED], DIED)
    with pytest.raises(AgreementError, match="2 of 2 rounds are done"):
        replace(LOGISTIC, before=RoundsSoFar(2, (0.0, 0.0, 0.0), 100.0, 50.0))
    with pytest.raises(AgreementError, match="2 coefficients so far; expected 3"):
        replace(LOGISTIC, before=RoundsSoFar(1, (0.0, 0.0), 100.0, 50.0))
    with pytest.raises(AgreementError, match="begin at 0"):
        HazardRound([AGE], DIED, time=NumberColumn("years", 1, 5))
    for shares in ((), (0.1,) * 9, (0.2,) * 10, (-0.1, *[0.1] * 9)):
        with pytest.raises(AgreementError, match="shares of 10 intervals"):
            replace(HAZARDS, before=RoundsSoFar(1, (0.0, 0.0, 0.0), 100.0, 50.0, shares))
    with pytest.raises(AgreementError, match="at least one interval"):
        replace(HAZARDS, n_intervals=0)
    with pytest.raises(AgreementError, match="from 0"):
        PoissonRound([AGE], DIED, time=NumberColumn("years", 1, 5))
