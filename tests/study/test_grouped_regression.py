"""Logistic and Poisson regression from counts by pattern, against statsmodels on all rows in one place."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from datacollab.errors import AgreementError, NumericalError, ShareError
from datacollab.study import CategoryColumn, Counts, GroupedLogistic, GroupedPoisson, NumberColumn, StudyPlan
from datacollab.sums import MaskKey

WARD = CategoryColumn("ward", ("a", "b", "c"))
SEX = CategoryColumn("sex", ("f", "m"))
DIED = CategoryColumn("died", ("no", "yes"))
FELL = CategoryColumn("fell", (0, 1))
YEARS = NumberColumn("years", 0, 4)
TRUE = np.array([0.4, -0.5, 0.7])
EXCESS = math.sqrt(5 / 2)
LOGISTIC = GroupedLogistic([WARD, SEX], DIED)
EVENTS = GroupedPoisson([WARD, SEX], FELL, YEARS)
STATISTICS = {"logistic": LOGISTIC, "events": EVENTS}


def table_of(n_rows, seed, *, gaps=0.0):
    """Rows whose log odds and log rates are linear in ward and sex."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"ward": random.choice(WARD.levels, n_rows, p=[0.5, 0.3, 0.2]).astype(object)})
    frame["sex"] = random.choice(SEX.levels, n_rows).astype(object)
    eta = design_of(frame)[:, 1:] @ TRUE
    frame["died"] = np.where(random.random(n_rows) < 1 / (1 + np.exp(0.5 - eta)), "yes", "no").astype(object)
    left = random.uniform(0.2, 6, n_rows).clip(max=4)
    time = random.exponential(1 / (0.25 * np.exp(eta)))
    frame["years"] = np.minimum(time, left)
    frame["fell"] = (time <= left).astype(object)
    for name in ("ward", "died", "years") if gaps else ():
        frame.loc[random.random(n_rows) < gaps, name] = None
    return frame


def design_of(frame):
    """An intercept, and levels but the first."""
    columns = [np.ones(len(frame)), frame["ward"] == "b", frame["ward"] == "c", frame["sex"] == "m"]
    return np.column_stack(columns).astype(float)


def pooled(statistic, frames, noise=0.0, random=None):
    total = sum(statistic.part(frame) for frame in frames)
    if random is not None:
        total = total + noise * statistic.spread * random.normal(size=len(total))
    return statistic.result(total, n_parties=len(frames), noise=noise)


def in_one_place(name, frame):
    """Return a fit of statsmodels."""
    X = design_of(frame)
    if name == "logistic":
        return sm.GLM((frame["died"] == "yes").astype(float), X, family=sm.families.Binomial()).fit(tol=1e-12)
    family = sm.families.Poisson()
    return sm.GLM(frame["fell"].astype(float), X, family=family, exposure=frame["years"].astype(float)).fit(tol=1e-12)


@pytest.mark.parametrize("name", STATISTICS)
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), gaps=st.sampled_from([0.0, 0.1]), n_parties=st.integers(1, 4))
def test_without_noise_it_is_the_generalised_linear_model_of_all_rows(name, seed, gaps, n_parties):
    frames = [table_of(400, seed + place, gaps=gaps) for place in range(n_parties)]
    frame = pd.concat(frames)
    used = {"logistic": ["died"], "events": ["fell", "years"]}[name]
    frame = frame.dropna(subset=["ward", *used])
    found = pooled(STATISTICS[name], frames)
    expected = in_one_place(name, frame)
    assert found.names == ("ward=b", "ward=c", "sex=m")
    assert_allclose([found.intercept, *found.params], expected.params, rtol=1e-8, atol=1e-8)
    assert_allclose(found.bse, expected.bse[1:], rtol=1e-7)
    z = found.params / found.bse
    assert_allclose(found.pvalues, 2 * stats.norm.sf(np.abs(z)), rtol=1e-8)
    for place, sign in enumerate((-1, 1)):
        assert_allclose(found.conf_int()[:, place], found.params + sign * 1.959964 * found.bse, atol=1e-6)
    wald = expected.wald_test(np.eye(4)[1:3], scalar=True).statistic
    chi_square, df, p = found.tests["ward"]
    assert (df, chi_square, p) == (2, pytest.approx(wald, rel=1e-6), pytest.approx(stats.chi2.sf(wald, 2), rel=1e-5))
    assert found.complete == (len(frame), 0.0)
    assert_allclose(found.inflation, 1.0)


@pytest.mark.nightly
@pytest.mark.parametrize("name", STATISTICS)
def test_intervals_hold_with_noise(name):
    """With the noise of five parties; the experiment study.ratio_coverage counts more studies."""
    random = np.random.default_rng(3)
    statistic = STATISTICS[name]
    held, squared = [], []
    for seed in range(40):
        found = pooled(statistic, [table_of(1500, 1000 + seed)], EXCESS, random)
        held.append(np.abs(found.params - TRUE) <= 1.96 * found.bse)
        squared.append(((found.params - TRUE) / found.bse) ** 2)
        assert (found.inflation > 1).all()
    assert 0.89 < np.mean(held) <= 1
    assert 0.6 < np.mean(squared) < 1.4


ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.floats(0, 4)),
    min_size=1,
    max_size=6,
)


def rows_in(rows):
    ward, sex, died, fell, years = zip(*rows, strict=True)
    table = {"ward": [WARD.levels[each] for each in ward], "sex": [SEX.levels[each] for each in sex]}
    table |= {"died": [DIED.levels[each] for each in died], "fell": list(fell), "years": list(years)}
    return {name: np.array(each, dtype=object) for name, each in table.items()}


@pytest.mark.parametrize("name", STATISTICS)
@settings(deadline=None, max_examples=40)
@given(rows=ROWS, other=ROWS)
def test_no_row_moves_the_numbers_farther_than_said(name, rows, other):
    statistic = STATISTICS[name]
    moved = statistic.part(rows_in(rows)) - statistic.part(rows_in([*rows[:-1], other[0]]))
    assert np.linalg.norm(moved / statistic.spread) <= statistic.loss * (1 + 1e-9)


@pytest.mark.parametrize("name", STATISTICS)
def test_a_row_is_hidden_better_than_in_sums_for_a_model(name):
    from datacollab.study import RIDGE_MOVED

    assert STATISTICS[name].loss < RIDGE_MOVED / 0.1


def test_one_message_carries_both_beside_counts_and_batches_join():
    keys = {party: MaskKey.generate() for party in ("north", "south", "west")}
    plan = StudyPlan({party: key.public for party, key in keys.items()}, [Counts([WARD, SEX]), LOGISTIC, EVENTS])
    frames = {party: table_of(2000, place) for place, party in enumerate(keys)}
    counts, logistic, poisson = plan.results([plan.message(party, frames[party], key) for party, key in keys.items()])
    assert counts.rare == ()
    for found, name in ((logistic, "logistic"), (poisson, "events")):
        expected = in_one_place(name, pd.concat(frames.values()))
        assert (np.abs(found.params - expected.params[1:]) < 6 * found.bse).all()
        assert abs(found.complete[0] - 6000) < 6 * found.complete[1]
    frame = frames["north"]
    batches = [
        EVENTS.add_up(part, bytes(32)) for part in ({n: frame[n] for n in frame}, {n: frame[n][:9] for n in frame})
    ]
    assert_allclose(EVENTS.join(*batches)[0::3].sum(), batches[0][0::3].sum() + batches[1][0::3].sum())


def test_the_table_has_ratios_and_a_joint_test_of_several_levels():
    found = pooled(LOGISTIC, [table_of(1000, 0)])
    table = found.table()
    assert table.heads[:2] == ("column", "odds ratio")
    assert [row[0].partition(":")[0] for row in table.rows] == ["ward=b", "ward=c", "sex=m", "ward"]
    assert float(table.rows[0][1]) == pytest.approx(math.exp(found.params[0]), rel=1e-3)
    assert "died=yes" in table.note
    assert "between parties is not adjusted for" in table.note
    frame = found.to_frame()
    assert_allclose(frame["odds ratio"], np.exp(found.params))
    assert_allclose(frame[["low", "high"]], np.exp(found.conf_int()))
    assert pooled(EVENTS, [table_of(1000, 0)]).table().heads[1] == "rate ratio"


def lacking(frame, **entries):
    """Rows of one ward, with one outcome."""
    frame = frame.copy()
    for name, entry in entries.items():
        frame.loc[frame["ward"] == "b", name] = entry
    return frame


@pytest.mark.parametrize(
    ("statistic", "frame", "words"),
    [
        (LOGISTIC, lacking(table_of(600, 0), died="no"), r"ward=b has fewer than 10 rows with it .*Merge the level"),
        (LOGISTIC, lacking(table_of(600, 0), died="yes"), "ward=b has fewer than 10 rows without the outcome"),
        (LOGISTIC, table_of(600, 0).assign(ward="a"), "ward=b, c has fewer than 10"),
        (EVENTS, lacking(table_of(600, 0), fell=0), "ward=b has fewer than 10 events"),
        (EVENTS, lacking(table_of(600, 0), ward="a"), "ward=b has fewer than 10 rows"),
    ],
)
def test_levels_without_enough_of_both_outcomes_are_refused_in_words(statistic, frame, words):
    with pytest.raises(NumericalError, match=words):
        pooled(statistic, [frame])


def test_separation_by_several_levels_together_is_refused_in_words():
    """Sex alone decides; or each level has both outcomes, and two levels together have one."""
    patterns = [("a", "f", "no"), ("a", "m", "yes"), ("b", "f", "no"), ("b", "m", "yes"), ("b", "m", "yes")]
    table = pd.DataFrame(patterns * 20, columns=["ward", "sex", "died"], dtype=object)
    two = GroupedLogistic([CategoryColumn("ward", ("a", "b")), SEX], DIED)
    with pytest.raises(NumericalError, match="sex=. has fewer than 10"):
        pooled(two, [table])
    ends = [
        ("a", "m", "no"),
        ("a", "f", "no"),
        ("b", "m", "yes"),
        ("b", "f", "no"),
        ("c", "m", "yes"),
        ("c", "f", "yes"),
    ]
    table = pd.DataFrame(ends * 20, columns=["ward", "sex", "died"], dtype=object)
    table.loc[table["ward"] == "c", "died"] = "yes"
    more = pd.DataFrame([("c", "f", "no"), ("a", "m", "yes")] * 20, columns=["ward", "sex", "died"], dtype=object)
    with pytest.raises(NumericalError, match=r"separation.*Merge the level"):
        pooled(LOGISTIC, [pd.concat([table, more])])


def test_columns_that_follow_from_each_other_are_refused_in_words():
    frame = table_of(600, 0)
    twin = CategoryColumn("twin", SEX.levels)
    with pytest.raises(NumericalError, match="nearly follow from each other"):
        pooled(GroupedLogistic([SEX, twin], DIED), [frame.assign(twin=frame["sex"])])


def test_a_table_sparser_than_noise_is_refused_in_words():
    columns = [CategoryColumn(f"c{place}", range(2)) for place in range(7)]
    random = np.random.default_rng(4)
    frame = pd.DataFrame({each.name: random.integers(0, 2, 400) for each in columns})
    frame["died"] = random.choice(DIED.levels, 400)
    with pytest.raises(NumericalError, match="too few for as much noise") as found:
        pooled(GroupedLogistic(columns, DIED), [frame], EXCESS, random)
    assert "rows in 128 patterns" in str(found.value)


@pytest.mark.parametrize("name", STATISTICS)
@settings(deadline=None, max_examples=15)
@given(n_rows=st.integers(20, 200), seed=st.integers(0, 2**32 - 1), noise=st.sampled_from([1e-9, 1.0, 30.0]))
def test_no_total_of_rows_is_accused(name, n_rows, seed, noise):
    """It may have no result; nobody is said to have added something else."""
    try:
        pooled(STATISTICS[name], [table_of(n_rows, seed)], noise, np.random.default_rng(seed))
    except NumericalError:
        return


@pytest.mark.parametrize(
    ("statistic", "places", "factor", "words"),
    [
        (LOGISTIC, slice(0, 2), -40, "a count is far below zero"),
        (EVENTS, slice(2, 3), 500, "beyond their declared range"),
    ],
)
def test_made_up_totals_are_refused(statistic, places, factor, words):
    total = statistic.part(table_of(900, 0))
    total[places] *= factor
    with pytest.raises(ShareError, match=words):
        statistic.result(total, n_parties=3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GroupedLogistic([], DIED),
        lambda: GroupedLogistic([DIED], DIED),
        lambda: GroupedLogistic([SEX, SEX], DIED),
        lambda: GroupedLogistic([SEX], WARD),
        lambda: GroupedPoisson([SEX], WARD, YEARS),
        lambda: GroupedPoisson([WARD, FELL], FELL, YEARS),
        lambda: GroupedPoisson([SEX], FELL, NumberColumn("years", 1, 2)),
        lambda: GroupedLogistic([CategoryColumn(f"c{place}", range(6)) for place in range(3)], DIED),
    ],
)
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(AgreementError, match=r"Grouped\w+: "):
        make()


def test_an_event_after_the_longest_time_is_not_counted():
    """As if all rows were watched to that time and no longer."""
    late = table_of(900, 0)
    censored = late.assign(years=late["years"].clip(upper=2.0), fell=np.where(late["years"] > 2, 0, late["fell"]))
    short = GroupedPoisson([WARD, SEX], FELL, NumberColumn("years", 0, 2))
    assert_allclose(short.part(late), short.part(censored))
    assert late["fell"].sum() > censored["fell"].sum()
