"""No count is readable below the noise that is said: the best linear reading of all numbers of a message together.

The oracle knows nothing of how statistics are made.  It asks what single rows add to each number, and which weights of
all numbers give a count, of any rows, exactly; of these it takes those with the least noise (Gauss and Markov).
"""

import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from datacollab.study import (
    COUNT_NOISE,
    AdditiveHazards,
    CategoryColumn,
    Counts,
    Description,
    Effect,
    GroupedLogistic,
    GroupedPoisson,
    HazardRound,
    LeastSquares,
    LogisticRound,
    MetaAnalysis,
    ModelValidation,
    NumberColumn,
    PoissonRound,
    StudyPlan,
    Survival,
)
from datacollab.sums import MaskKey

ROSTER = {place: MaskKey(bytes([place]) * 32).public for place in (1, 2, 3)}
AGE, MONTH, SCORE = NumberColumn("age", 0, 120), NumberColumn("month", 0, 24), NumberColumn("score", 0, 1)
COURSE = CategoryColumn("course", ("mild", "severe", "fatal"))
ARM, SEEN = CategoryColumn("arm", ("old", "new")), CategoryColumn("seen", (0, 1))
COLUMNS = (AGE, MONTH, COURSE, ARM, SEEN)
EXPLAINING = (AGE, COURSE, ARM)
EXACT = 1e-6


def rows_of(n_rows, seed, *, gaps=False, rare=False):
    """Rows anywhere in their ranges; of rare levels there are hardly any."""
    random = np.random.default_rng(seed)
    table = {each.name: random.uniform(each.low, each.high, n_rows).astype(object) for each in (AGE, MONTH, SCORE)}
    for each in (COURSE, ARM, SEEN):
        shares = np.full(len(each.levels), 0.01) if rare and each is not SEEN else np.ones(len(each.levels))
        shares[0] = 1 if rare else shares[0]
        place = random.choice(len(each.levels), n_rows, p=shares / shares.sum())
        table[each.name] = np.array(each.levels, dtype=object)[place]
    for name in ("age", "course", "arm") if gaps else ():
        table[name][random.random(n_rows) < 0.2] = None
    return table


def n_rows_of(rows):
    return len(next(iter(rows.values())))


def counts_in(statistic):
    """Return which numbers count rows; results say how closely the others, of moments and tests, may tell rows."""
    if isinstance(statistic, Counts | Description | ModelValidation | GroupedLogistic | GroupedPoisson):
        return np.arange(len(statistic.spread))
    if isinstance(statistic, Survival):
        return np.arange(4 * statistic.n_intervals * (1 if statistic.by is None else len(statistic.by.levels)))
    if isinstance(statistic, LogisticRound | PoissonRound):
        return np.arange(2 + 2 * sum(len(each.coefficient_names) for each in categories_of(statistic)))
    n_counts = {AdditiveHazards: 2, HazardRound: 1, LeastSquares: 1, Effect: 1}
    return np.arange(n_counts[type(statistic)])


def categories_of(statistic):
    return [each for each in statistic.columns if isinstance(each, CategoryColumn)]


def numbers_of(statistic, rows, base):
    """Return what each row adds to these numbers, shape (n_rows, n_numbers).

    Squares around the mean depend on the other rows, which are those of `base`.
    """
    summed = Counts | Description | Survival | ModelValidation | GroupedLogistic | GroupedPoisson
    if isinstance(statistic, summed | LogisticRound | PoissonRound):
        rest = base if isinstance(statistic, Counts) else {name: entries[:0] for name, entries in base.items()}
        each = ({name: np.r_[rest[name], rows[name][k : k + 1]] for name in rows} for k in range(n_rows_of(rows)))
        parts = np.array([statistic.part(one, bytes(32)) for one in each])
        return (parts - statistic.part(rest, bytes(32)))[:, counts_in(statistic)]
    # The first number is that of rows, which weights of a robust regression's groups tell, too; additive hazards have
    # the events.
    explaining = statistic.columns if isinstance(statistic, LeastSquares) else EXPLAINING
    complete = ~np.any([[entry is None for entry in rows[column.name]] for column in explaining], axis=0)
    own = np.ones(len(complete)) if isinstance(statistic, Effect) else complete
    further = [own * (rows["seen"] == 1)] if isinstance(statistic, AdditiveHazards) else []
    return np.column_stack([own, *further]).astype(float)


def noise_in(plan):
    """Return the noise in these numbers of a plan's statistics, one after the other."""
    ends = np.cumsum([len(each.spread) for each in plan.statistics])[:-1]
    found = []
    for each, noise in zip(plan.statistics, np.split(plan.agreed.noise, ends), strict=True):
        told = noise[counts_in(each)]
        if isinstance(each, LeastSquares) and each.errors == "robust":
            # The number of all rows, and the sum of ten groups' weights, in which a row counts twice if none is far.
            whole, *groups = noise.reshape(11, -1)[:, 0]
            told = np.array([(whole**-2 + 2**2 / np.square(groups).sum()) ** -0.5])
        found.append(told)
    return np.concatenate(found)


def counted(statistics, rows):
    """Yield each count that a result states: a name, and which rows are counted."""
    n_rows = n_rows_of(rows)
    for each in statistics:
        groups = {None: np.ones(n_rows, dtype=bool)}
        if getattr(each, "by", None) is not None and not isinstance(each, Effect):
            groups |= {level: rows[each.by.name] == level for level in each.by.levels}
        if isinstance(each, Survival):
            place = np.ceil(rows["month"].astype(float) / 24 * each.n_intervals) - 1
            for (group, own), k, seen in itertools.product(groups.items(), range(each.n_intervals), (0, 1)):
                yield (each.title, group, k, seen), own & (place == k) & (rows["seen"] == seen)
            continue
        if isinstance(each, ModelValidation):
            yield from outcomes_by_part(each, rows)
        if isinstance(each, GroupedLogistic | GroupedPoisson):
            for levels in itertools.product(*(column.levels for column in (*each.columns, each.outcome))):
                same = [
                    rows[column.name] == level
                    for column, level in zip((*each.columns, each.outcome), levels, strict=True)
                ]
                yield (each.title, *levels), np.all(same, axis=0)
            continue
        if isinstance(each, LogisticRound | PoissonRound | HazardRound):
            yield from counted_in_rounds(each, rows)
            continue
        for group, own in groups.items():
            yield (each.title, group, "rows"), own
            for column in each.columns if isinstance(each, Counts | Description) else ():
                entries = rows[column.name]
                missing = np.array([entry is None for entry in entries])
                yield (each.title, group, column.name, "missing"), own & missing
                yield (each.title, group, column.name, "there"), own & ~missing
                if isinstance(column, CategoryColumn):
                    for level in column.levels:
                        yield (each.title, group, column.name, level), own & (entries == level)
                    continue
                parts = np.where(missing, np.nan, (entries.astype(float) - column.low) / column.width) * each.n_bins
                for k in range(each.n_bins):
                    yield (each.title, group, column.name, k), own & (np.floor(parts) == k)


def counted_in_rounds(statistic, rows):
    """Yield complete rows, those with the outcome, and those of each level."""
    complete = ~np.any([[entry is None for entry in rows[each.name]] for each in statistic.columns], axis=0)
    yield (statistic.title, "rows"), complete
    yield (statistic.title, "outcomes"), complete & (rows["seen"] == 1)
    for column in categories_of(statistic):
        for level in column.levels:
            own = complete & (rows[column.name] == level)
            yield (statistic.title, column.name, level), own
            yield (statistic.title, column.name, level, "outcomes"), own & (rows["seen"] == 1)
    if isinstance(statistic, HazardRound):
        place = np.ceil(rows["month"].astype(float) / 24 * statistic.n_intervals) - 1
        for k in range(statistic.n_intervals):
            yield (statistic.title, k, "outcomes"), complete & (place == k) & (rows["seen"] == 1)


def outcomes_by_part(validation, rows):
    """Yield complete rows with each outcome, in all and by part of the predictions."""
    complete = ~np.any([[entry is None for entry in rows[each.name]] for each in validation.columns], axis=0)
    part = np.searchsorted(validation.thresholds, expit(validation.predict(rows)), side="right")
    for level in validation.outcome.levels:
        own = complete & (rows[validation.outcome.name] == level)
        yield (validation.title, level, "rows"), own
        for k in range(len(validation.thresholds) + 1):
            yield (validation.title, level, k), own & (part == k)


def readings(numbers, noise, wanted):
    """Return the least noise of an exact reading of each wanted sum, infinite if there is none, and its weights."""
    assert numbers.shape[1] < len(numbers), "there are more rows than numbers"
    scaled, *_ = np.linalg.lstsq(numbers / noise, wanted, rcond=1e-9)
    is_exact = np.abs((numbers / noise) @ scaled - wanted).max(axis=0) < EXACT
    return np.where(is_exact, np.linalg.norm(scaled, axis=0), np.inf), scaled / noise[:, None]


def survival(by=None):
    return Survival(MONTH, "seen", by, n_intervals=6)


# Log odds from -4 to 4, in each of four parts; and such that all rows lie near one end.
MODEL = {"intercept": -3.0, "age": 0.05, "course=severe": 0.5, "course=fatal": 1.0, "arm=new": -0.5}
SURE = {"intercept": 9.0, "age": 0.0, "course=severe": 0.0, "course=fatal": 0.0, "arm=new": 0.0}


def validation(model):
    return ModelValidation(SEEN, EXPLAINING, model, (0.2, 0.4, 0.7))


STATISTICS = {
    "counts": Counts(COLUMNS, n_bins=10),
    "description": Description(COLUMNS, n_bins=7),
    "description by arm": Description(COLUMNS, ARM, n_bins=5),
    "least squares": LeastSquares(SCORE, EXPLAINING),
    "classical": LeastSquares(SCORE, EXPLAINING, errors="classical"),
    "survival": survival(),
    "survival by arm": survival(ARM),
    "additive hazards": AdditiveHazards(MONTH, "seen", EXPLAINING),
    "effect": Effect(ARM, SCORE, 2),
    "validation": validation(MODEL),
    "logistic": GroupedLogistic([COURSE, ARM], SEEN),
    "poisson": GroupedPoisson([COURSE, ARM], SEEN, MONTH),
    "logistic round": LogisticRound(EXPLAINING, SEEN),
    "poisson round": PoissonRound(EXPLAINING, SEEN, time=MONTH),
    "hazard round": HazardRound(EXPLAINING, SEEN, time=MONTH),
}
PAIRS = [
    (one, other)
    for one, other in itertools.combinations([name for name, each in STATISTICS.items() if not each.is_alone], 2)
    if STATISTICS[one].title != STATISTICS[other].title
]
ALL = ("description by arm", "classical", "survival by arm", "additive hazards", "effect", "logistic")


ROWS = {gaps: rows_of(150, 0, gaps=gaps) for gaps in (False, True)}


def structure(statistic, rows, *, rare):
    """Return what rows add to a statistic's numbers, the names of the counts that it states, and who is counted."""
    names, wanted = zip(*((count, own) for count, own in counted([statistic], rows) if own.any()), strict=True)
    return numbers_of(statistic, rows, rows_of(100, 1, rare=rare)), names, np.array(wanted, dtype=float).T


@functools.cache
def structure_of(name, gaps, rare):
    return structure(STATISTICS[name], ROWS[gaps], rare=rare)


def check(statistics, structures):
    """Check that no count is read with less noise than is said, and return the weights of all readings."""
    numbers, counts, wanted = zip(*structures, strict=True)
    noise, weights = readings(np.hstack(numbers), noise_in(StudyPlan(ROSTER, statistics)), np.hstack(wanted))
    least = np.argmin(noise)
    copies = (COUNT_NOISE / noise[least]) ** 2 * sum(each.own_copies for each in statistics)
    said = f"{[*itertools.chain(*counts)][least]} would be hidden if all `own_copies` were {copies:.2f} together"
    assert noise[least] >= COUNT_NOISE * (1 - 1e-6), said
    return np.hstack(numbers), np.hstack(wanted), weights


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("names", [*((name,) for name in STATISTICS), *PAIRS, ALL], ids=" and ".join)
def test_no_count_is_readable_below_the_noise_that_is_said(names, gaps):
    """Neither by itself nor from all numbers together, whether or not entries may be missing."""
    for rare in (False, True) if "counts" in names else (False,):
        check([STATISTICS[name] for name in names], [structure_of(name, gaps, rare) for name in names])


@pytest.mark.slow
@given(
    levels=st.lists(st.integers(2, 5), min_size=1, max_size=2),
    n_bins=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    chosen=st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True),
    by=st.booleans(),
    gaps=st.booleans(),
    rare=st.booleans(),
    count_noise=st.sampled_from([COUNT_NOISE, 3.0]),
)
@settings(max_examples=8)
def test_it_holds_for_any_levels_and_parts(levels, n_bins, chosen, by, gaps, rare, count_noise):
    """The first column of categories groups rows."""
    random = np.random.default_rng(0)
    categories = [CategoryColumn(f"c{place}", range(n)) for place, n in enumerate(levels)]
    rows, base = ({"x": random.uniform(0, 1, n).astype(object)} for n in (200, 60))
    for table in (rows, base):
        for each in categories:
            shares = np.r_[1.0, np.full(len(each.levels) - 1, 0.02 if rare and table is base else 1.0)]
            table[each.name] = random.choice(len(each.levels), len(table["x"]), p=shares / shares.sum()).astype(object)
            if gaps and table is rows:
                table[each.name][random.random(200) < 0.2] = None
    columns = (NumberColumn("x", 0, 1), *categories)
    possible = [
        Counts(columns, n_bins=n_bins[0], count_noise=count_noise),
        Description(columns, categories[0] if by else None, n_bins=n_bins[1], count_noise=count_noise),
        LeastSquares(columns[0], categories),
    ]
    statistics = [possible[place] for place in chosen]
    numbers = [numbers_of(each, rows, base) for each in statistics]
    names, wanted = zip(*((count, own) for count, own in counted(statistics, rows) if own.any()), strict=True)
    noise, _ = readings(np.hstack(numbers), noise_in(StudyPlan(ROSTER, statistics)), np.array(wanted, dtype=float).T)
    of_rows = [noise[place] for place, name in enumerate(names) if name[0] != "least squares"]
    assert min(of_rows, default=np.inf) >= count_noise * (1 - 1e-6)


def test_a_row_counts_twice_in_the_weights_of_groups():
    """Of 100 rows that lie near each other, one is missing, which takes off 2 less a fiftieth."""
    statistic = LeastSquares(NumberColumn("y", 0, 1), [NumberColumn("x", 0, 1)])
    y = np.random.default_rng(0).uniform(0.4, 0.6, 100)
    with_gap = np.r_[np.nan, y[1:]]
    rows, others = (statistic.part({"x": y, "y": each}, bytes(32)).reshape(11, -1)[:, 0] for each in (y, with_gap))
    assert rows[0] - others[0] == 1
    assert (rows - others)[1:].sum() == pytest.approx(2 - 2 / 100)


@pytest.mark.parametrize("intercept", [-9.0, 9.0])
def test_sums_of_a_validation_tell_the_rows_of_an_outcome_no_more_closely(intercept):
    """With all predictions near 0, squared errors count events; near 1, they count the others, and predictions all."""
    statistic = validation(SURE | {"intercept": intercept})
    # Rows of each outcome, of four parts each, and both sums; to three digits, predictions are 0 or 1.
    places = [0, 4, 8, 9]
    numbers = numbers_of(statistic, ROWS[False], ROWS[False])[:, places].round(3)
    wanted = np.array([own for (_, _, part), own in counted([statistic], ROWS[False]) if part == "rows"], dtype=float).T
    noise, _ = readings(numbers, statistic.spread[places], wanted)
    assert COUNT_NOISE <= noise.min() < 1.2 * COUNT_NOISE


@pytest.mark.slow
def test_a_meta_analysis_tells_rows_no_more_closely():
    """A reader at its best knows a party's noisy counts, from which its figures follow, beside all others."""
    statistics = [STATISTICS["counts"], validation(MODEL), MetaAnalysis(validation(MODEL))]
    copies = sum(each.own_copies for each in statistics)
    counts, tried, across = (replace(each, copies=copies) for each in statistics)
    # So many rows that no part has but a few.
    rows = rows_of(800, 0)
    carried = (counts, tried, across.own_validation)
    numbers = np.hstack([numbers_of(each, rows, rows_of(100, 1)) for each in carried])
    wanted = np.array([own for each in carried for _, own in counted([each], rows) if own.sum() > 5], dtype=float).T
    noise, _ = readings(numbers, np.concatenate([each.spread for each in carried]), wanted)
    assert COUNT_NOISE * (1 - 1e-6) <= noise.min() < 1.5 * COUNT_NOISE


def test_times_at_their_end_tell_rows_no_more_closely():
    """All rows of a pattern were observed to the end, or hardly at all, which nobody need know."""
    statistic = STATISTICS["poisson"]
    for month in (0.0, 24.0):
        rows = ROWS[False] | {"month": np.full(150, month)}
        wanted = np.array([own for _, own in counted([statistic], rows)], dtype=float).T
        noise, _ = readings(numbers_of(statistic, rows, rows), noise_in(StudyPlan(ROSTER, [statistic])), wanted)
        assert COUNT_NOISE * (1 - 1e-9) <= noise.min() < 1.5 * COUNT_NOISE


def test_simulated_readings_have_the_noise_that_is_said():
    """400 messages of three parties with entries missing: errors of the best readings of all counts."""
    names = ("description by arm", "least squares", "survival")
    statistics = [STATISTICS[name] for name in names]
    numbers, wanted, weights = check(statistics, [structure_of(name, True, False) for name in names])
    plan = StudyPlan(ROSTER, statistics)
    drawn = noise_in(plan) * plan.agreed.excess * np.random.default_rng(0).normal(size=(400, len(weights)))
    errors = (numbers.sum(axis=0) + drawn) @ weights - wanted.sum(axis=0)
    assert np.std(errors, axis=0).min() > 0.9 * COUNT_NOISE * plan.agreed.excess
    assert np.abs(np.mean(errors, axis=0) / np.std(errors, axis=0)).max() < 0.25


@pytest.mark.parametrize("n_columns", [5, pytest.param(20, marks=pytest.mark.nightly)])
@pytest.mark.slow
def test_whether_a_group_has_one_person_is_not_read_from_the_entries_of_columns(n_columns):
    """The mean of a group's rows with an entry, over all columns, is no closer than its number of rows."""
    random, status = np.random.default_rng(0), CategoryColumn("status", ("neg", "pos"))
    statistic = Description([NumberColumn(f"n{place}", 0, 1) for place in range(n_columns)], status)
    table = {each.name: random.normal(0.5, 0.15, 300).clip(0, 1) for each in statistic.columns}
    total = statistic.part(table | {"status": np.array(["pos"] + ["neg"] * 299, dtype=object)})
    errors = []
    for _ in range(200):
        found = statistic.result(total + statistic.spread * random.normal(size=len(total)), n_parties=3)
        errors.append(np.mean([each.n for each in found.entries if each.group == "pos"]) - 1)
    assert np.std(errors) > 0.9 * found.count_noise
    assert found.count_noise == COUNT_NOISE
