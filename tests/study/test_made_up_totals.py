"""Totals of a study that no rows give are refused, and those of rows never, with noise of any size."""

import functools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datacollab.errors import NumericalError, ShareError
from datacollab.study import (
    MAPPED,
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
    ModelValidation,
    NumberColumn,
    PoissonRound,
    StudyPlan,
    Survival,
)
from datacollab.sums import MaskKey

AGE, STAY, TIME = NumberColumn("age", 0, 100), NumberColumn("stay", 0, 40), NumberColumn("time", 0, 10)
ARM, WARD = CategoryColumn("arm", ("old", "new")), CategoryColumn("ward", ("a", "b", "c"))
SEEN = CategoryColumn("seen", (0, 1))
MODEL = {"intercept": -5.0, "age": 0.1, "ward=b": 1.0, "ward=c": -1.0}
STATISTICS = {
    "description": Description([AGE, WARD], ARM),
    "least squares": LeastSquares(STAY, [AGE, WARD]),
    "classical": LeastSquares(STAY, [AGE, ARM], errors="classical"),
    "survival": Survival(TIME, "seen"),
    "survival of two": Survival(TIME, "seen", ARM),
    "survival of three": Survival(TIME, "seen", WARD),
    "additive hazards": AdditiveHazards(TIME, "seen", [AGE, WARD]),
    "effect": Effect(ARM, STAY, 4, [AGE, WARD]),
    "validation": ModelValidation(SEEN, [AGE, WARD], MODEL),
    "counts": Counts([ARM, WARD]),
    "logistic regression": GroupedLogistic([ARM, WARD], SEEN),
    "poisson regression": GroupedPoisson([ARM, WARD], SEEN, TIME),
    "logistic round": LogisticRound([AGE, WARD], SEEN),
    "poisson round": PoissonRound([AGE, WARD], SEEN, time=TIME),
    "hazard round": HazardRound([AGE, WARD], SEEN, time=TIME),
}
NAMES = ("north", "south", "west")


def rows_of(n_rows, seed, alike=False):
    """Rows anywhere in the declared ranges, or at their ends; or all of them equal."""
    random = np.random.default_rng(seed)
    ends = random.random(n_rows) < random.choice([0.0, 0.5, 1.0])
    table = {
        each.name: np.where(ends, random.choice([each.low, each.high], n_rows), random.uniform(each.low, each.high))
        for each in (AGE, STAY, TIME)
    }
    table |= {each.name: random.choice(each.levels, n_rows).astype(object) for each in (ARM, WARD)}
    table["seen"] = random.integers(0, 2, n_rows)
    v = random.normal(size=(n_rows, 4))
    table[MAPPED] = v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-9)
    return {name: np.repeat(each[:1], n_rows, axis=0) if alike else each for name, each in table.items()}


@pytest.mark.parametrize("name", STATISTICS)
@settings(deadline=None, max_examples=30)
@given(st.integers(20, 200), st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([1e-9, 1.0, 30.0]))
@pytest.mark.slow
def test_no_total_of_rows_is_refused(name, n_rows, seed, alike, noise):
    """It may have no result, for few rows or much noise; nobody is said to have added something else."""
    statistic, random = STATISTICS[name], np.random.default_rng(seed)
    total = sum(statistic.part(rows_of(n_rows, seed + place, alike)) for place in range(3))
    total = total + noise * statistic.spread * random.normal(size=len(total))
    try:
        found = statistic.result(total, n_parties=3, noise=noise)
    except NumericalError:
        return
    assert found.fault is None


def of(part, places, factor):
    """The same sums, but for some that are multiplied."""
    changed = part.copy()
    changed[places] *= factor
    return changed


def made_up_groups(part, length):
    """The same for groups alone: their moments and weights, more than all rows have, or less than nothing."""
    places = np.arange(length, len(part))
    is_weight = places % length == 0
    for factor, words in ((40, "more than there are rows"), (-40, "of a group is far below zero")):
        yield of(part, places[~is_weight], factor), "least eigenvalue"
        yield of(part, places[is_weight], factor), words


def made_up_round(name, part):
    """The same for one round of a regression."""
    # Rows and outcomes, in all and in two levels, then of hazards events by interval and those that count, six
    # numbers of the information, and the score.
    start = len(part) - 9
    yield of(part, 1, -40), "fewer outcomes than none"
    yield of(part, slice(start, start + 6), -40), "a square is below zero"
    yield of(part, slice(start, start + 6), 40), "than its declared range"
    yield of(part, slice(start + 6, None), 400), "farther from their means"
    for factor in (-40, 40) if name == "hazard round" else ():
        yield of(part, start - 1, factor), "fewer events count than none, or more than there are"


def made_up(name, part):
    """What a party adds in place of its part, and a part of the words of the refusal."""
    size = STATISTICS[name]._size if name in ("least squares", "classical", "effect") else 0
    triangle = [*zip(*np.triu_indices(size), strict=True)]
    match name:
        case "least squares" | "classical":
            # Products of columns and outcome, of all rows and in each group; or all moments.
            length = 1 + len(triangle)
            products = [1 + place for place, (i, j) in enumerate(triangle) if j == size - 1 and i < j]
            starts = range(0, len(part), length)
            yield of(part, [start + place for start in starts for place in products], -40), "least eigenvalue"
            moments = [start + 1 + place for start in starts for place in range(len(triangle))]
            yield of(part, moments, 40), "than its declared range allows"
            if name == "least squares":
                yield from made_up_groups(part, length)
        case "effect":
            products = [1 + place for place, (i, j) in enumerate(triangle) if (i, j) == (4, 5)]
            starts = range(0, 5 * len(triangle), len(triangle))
            yield of(part, [start + place for start in starts for place in products], -400), "least eigenvalue"
            yield of(part, slice(1, 1 + 5 * len(triangle)), 40), "rows vary more"
        case "description":
            # Rows, then of age those missing, nineteen numbers of parts of the range, the sum and the squares.
            yield part + 2000 * (np.arange(len(part)) == 21), "sums of 'age' are beyond"
            yield of(part, 22, 200), "sums of 'age' are beyond"
        case "survival of two" | "survival of three" | "survival":
            yield of(part, slice(20, 40), -40), "a count is far below zero"
            if name != "survival":
                n_counts = 4 * 20 * (2 if name == "survival of two" else 3)
                yield of(part, slice(n_counts, n_counts + 2), 1000), "more events than there are"
                yield of(part, slice(n_counts + 2, None), -40), "least eigenvalue"
            if name == "survival of two":
                # Of about 310 events in each group, and parts of about 150.
                second, first = np.eye(len(part))[n_counts : n_counts + 2]
                for each in (second, first):
                    yield part - 300 * each, "a part of the hazard ratio is far below zero"
                    yield part + 300 * each, "more events than its group"
        case "validation":
            # Rows without the event, and with it, each with numbers of twenty parts; predictions; squared errors.
            yield of(part, 0, -40), "a count is far below zero"
            for place, name in ((40, "predictions"), (41, "squared errors")):
                for factor in (-5, 40):
                    yield of(part, place, factor), f"the sum of {name} does not fit"
        case "additive hazards":
            yield of(part, slice(1, 2), 40), "more events than rows"
            yield of(part, slice(2, 8), -40), "least eigenvalue"
            yield of(part, slice(8, 11), -400), "least eigenvalue"
        case "logistic round" | "poisson round" | "hazard round":
            yield from made_up_round(name, part)
        case "counts" | "logistic regression" | "poisson regression":
            yield of(part, slice(0, 2), -40), "a count is far below zero"
        case _:
            raise AssertionError(f"no made-up sums of {name}")


@pytest.mark.parametrize("name", STATISTICS)
def test_one_partys_made_up_sums_are_refused_and_nobody_is_accused(name):
    statistic = STATISTICS[name]
    random = np.random.default_rng(0)
    tables = [rows_of(400, place) for place in range(3)]
    for table in tables:
        # Outcomes that follow from age and arm, so that their products with these are not near zero.
        follows = table["age"] / 4 + 10 * (table["arm"] == "new") + random.normal(0, 2, 400)
        table["stay"] = np.clip(follows, 0, 40)
        table["time"] = np.clip(random.exponential(1 + table["age"] / 20), 0.01, 10)
    parts = [statistic.part(table) for table in tables]
    for bad, words in made_up(name, parts[2]):
        keys = {party: MaskKey.generate() for party in NAMES}
        plan = StudyPlan({party: key.public for party, key in keys.items()}, [statistic])
        sums = zip(keys.items(), [*parts[:2], bad], strict=True)
        messages = [plan.agreed.mask(party, part, key) for (party, key), part in sums]
        with pytest.raises(ShareError, match=words) as found:
            plan.results(messages)
        assert f"The total of {statistic.title} is not one of rows" in str(found.value)
        assert "nobody can tell who. Ask all of them" in str(found.value)


PARTS = slice(160, 162)
"""The parts of the hazard ratio, of the second group and the first, in the total of a survival of two."""
NO_EVENTS = {"time": np.full(4000, 5.0), "seen": np.zeros(4000, int), "arm": np.repeat(["old", "new"], 2000)}


@functools.cache
def noise_of_events():
    """How far noise of 1 moves the number of events of a group, found by drawing it."""
    statistic, random, moved = STATISTICS["survival of two"], np.random.default_rng(0), []
    total = statistic.part(NO_EVENTS)
    for _ in range(400):
        noisy = total.copy()
        noisy[: PARTS.start] += statistic.spread[: PARTS.start] * random.normal(size=PARTS.start)
        moved += [curve.events.sum() for curve in statistic.result(noisy, n_parties=3).curves]
    return np.std(moved)


@pytest.mark.parametrize("noise", [0.1, 1.0, 5.0])
@pytest.mark.parametrize(
    ("signs", "words"),
    [
        ((-1, 0), "part of the hazard ratio is far below zero"),
        ((0, -1), "part of the hazard ratio is far below zero"),
        ((1, 0), "more events than its group"),
        ((0, 1), "more events than its group"),
        ((1, 1), "the hazard ratio has more events than there are"),
    ],
)
def test_parts_of_a_hazard_ratio_are_refused_beyond_ten_standard_deviations_of_noise(signs, words, noise):
    """Nobody has an event, so that parts and events are 0 but for what is added."""
    statistic = STATISTICS["survival of two"]
    total = statistic.part(NO_EVENTS)
    assert not total[PARTS].any()
    of_part = noise * statistic.spread[PARTS][0]
    step = of_part if min(signs) < 0 else np.hypot(of_part, noise * noise_of_events())
    step *= np.sqrt(np.abs(signs).sum())
    changed = np.zeros(len(total))
    changed[PARTS] = np.array(signs) * step / np.abs(signs).sum()
    for factor in (0, 8):
        assert statistic.result(total + factor * changed, n_parties=3, noise=noise).fault is None
    with pytest.raises(ShareError, match=words):
        statistic.result(total + 11 * changed, n_parties=3, noise=noise)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 1.2])
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_parts_of_a_hazard_ratio_of_few_and_tied_rows_are_never_refused(data, noise):
    """A group may have no events, all of them, or no rows, and all times may be one."""
    statistic = STATISTICS["survival of two"]
    total = np.zeros(len(statistic.spread))
    for _ in range(3):
        rows = st.tuples(
            st.sampled_from([0.5, 1.0, 5.0, 10.0]), st.sampled_from([0, 1, 1]), st.sampled_from(ARM.levels)
        )
        time, seen, arm = zip(*data.draw(st.lists(rows, min_size=1, max_size=12)), strict=True)
        total += statistic.part({"time": np.array(time), "seen": np.array(seen), "arm": np.array(arm, object)})
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    total += noise * statistic.spread * random.normal(size=len(total))
    assert statistic.result(total, n_parties=3, noise=noise).fault is None


def test_complete_rows_are_said_with_their_noise():
    """Whatever the statistic, within its noise: so that the analyst can compare them with what parties agreed on."""
    frame = pd.DataFrame({name: list(each) for name, each in rows_of(900, 5).items() if name != MAPPED})
    frame["time"] = np.random.default_rng(0).uniform(0.1, 10, 900)
    for name in ("least squares", "classical", "survival of three", "additive hazards", "validation"):
        statistic = STATISTICS[name]
        total, random = statistic.part(frame), np.random.default_rng(1)
        draws = [total + statistic.spread * random.normal(size=len(total)) for _ in range(40)]
        n, noise = np.array([statistic.result(each, n_parties=1).complete for each in draws]).T
        assert abs(n.mean() - 900) < 4 * noise[0] / 40**0.5
        assert 0.6 < n.std() / noise[0] < 1.5
