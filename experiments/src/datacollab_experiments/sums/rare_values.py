"""Whether analyst and one party read the class of a person whose value nobody else in the total has.

Three parties have 100 or 500 rows each of eight normal columns and two categories, and two equally frequent classes
that no column tells.  One person has a category that nobody else has, a number eight standard deviations from the
mean, or a pair of levels that nobody else has together; of 300 anchor rows, some have it.  The analyst and a party of
the other two know all rows, as they are and as they were added up, and subtract the party's part and noise.  The party
alone has the model that comes back.

Run ``python -m datacollab_experiments.sums.rare_values --output FILE``; 200 draws take ten minutes on one core.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datacollab.sums import CommonMap, IsolatedRows, RidgeSums, recommended

from ..harness import write_table
from ..pays.tables import Array
from .crafted import from_total
from .playing import noise_factor, secret

N_PARTIES = 3
N_ANCHORS = 300
N_TIMES = 5
TOTALS = (300, 1500)
VALUES = ("usual", "category", "number", "pair")
IN_ANCHOR = (0, 3, 15)
LEVELS = (0.6, 0.25, 0.15, 0.0)
_FIRST = slice(8, 12)
_SECOND = slice(12, 16)
"""Columns of the two categories; the last level of each is nobody's."""
_FAR = 8.0


def _people(n: int, generator: np.random.Generator) -> Array:
    levels = [np.eye(4)[generator.choice(4, n, p=LEVELS)] for _ in range(2)]
    return np.hstack([generator.normal(size=(n, 8)), *levels])


def _without_pair(rows: Array) -> None:
    has_both = (rows[:, 10] == 1) & (rows[:, 14] == 1)
    rows[has_both, _SECOND] = np.eye(4)[0]


def _give(value: str, rows: Array, generator: np.random.Generator, *, is_person: bool) -> None:
    """Give the value to some rows."""
    if value == "category":
        rows[:, _FIRST] = np.eye(4)[3]
    elif value == "number":
        rows[:, 0] = _FAR
        if not is_person:
            # Public rows have such values, too, but not all of them the same.
            rows[:, 0] = generator.uniform(_FAR - 3, _FAR + 1, len(rows))
    elif value == "pair":
        rows[:, _FIRST] = rows[:, _SECOND] = np.eye(4)[2]


def play(value: str, total: int, in_anchor: int, seed: int) -> Iterator[dict[str, float]]:
    """Yield whether the person's class is read, and how often those of other parties' people are.

    People and map are drawn once, and classes and noise several times.  Each time, rows are added up as they are, and
    then shortened.
    """
    generator = np.random.default_rng([seed, 6])
    n = total // N_PARTIES
    X = _people(total, generator)
    anchor = _people(N_ANCHORS, generator)
    # Nobody else has both levels together: they lose the second.
    if value == "pair":
        _without_pair(X)
        _without_pair(anchor)
    usual_person = X[:1].copy()
    _give(value, X[:1], generator, is_person=True)
    _give(value, anchor[:in_anchor], generator, is_person=False)
    # Numbers count in quarters of a range of 24 standard deviations for the far one, and of eight for the others.
    unit = np.r_[np.full(8, 2.0), np.ones(8)]
    if value == "number":
        unit[0] = 6.0
    common = CommonMap.from_anchor(anchor / unit, secret(seed), n_components=recommended().n_components)
    statistic = RidgeSums(common.n_components, classes=(0, 1), noise=recommended().noise)
    v = common.transform(X / unit)
    v_without = common.transform(usual_person / unit)
    shortened = v.copy()
    # Each party shortens its own rows, without seeing the others'.
    for party in range(N_PARTIES):
        rows = slice(n * party, n * (party + 1))
        alone = IsolatedRows(statistic, N_PARTIES)
        alone.part(v[rows], np.arange(n) % 2)
        shortened[rows] = alone.shorten(v[rows])
    for _ in range(N_TIMES):
        y = generator.integers(2, size=total)
        noise = generator.normal(size=(2, statistic.n_numbers)) * statistic.noise_of_each
        for added in (v, shortened):
            yield _read(statistic, v, added, y, noise, v_without)


def _read(
    statistic: RidgeSums, v: Array, added: Array, y: NDArray[Any], noise: Array, v_without: Array
) -> dict[str, float]:
    """Return whether the first person's class is read, and others', if the rows `added` were added up for v."""
    others = slice(0, len(v) // N_PARTIES * (N_PARTIES - 1))
    own = slice(others.stop, None)
    all_noise = noise_factor(N_PARTIES)
    noise_of_others = noise_factor(N_PARTIES, known=1)
    of_others = statistic.part(added[others], y[others]) + noise_of_others * noise[0]
    of_own = statistic.part(added[own], y[own]) + math.sqrt(all_noise**2 - noise_of_others**2) * noise[1]
    # The attackers know the rows as they are, or how they were shortened.
    as_they_are = from_total(statistic, of_others, v[others], statistic.noise * noise_of_others)
    as_added = from_total(statistic, of_others, added[others], statistic.noise * noise_of_others)
    # A party alone asks the model about the person with and without the value.
    model = statistic.solve(of_others + of_own, noise=statistic.noise * all_noise)
    with_value, without = model.predict(np.vstack([v[:1], v_without])) @ (-1, 1)
    return {
        "as they are": float((as_they_are[0] > 0) == y[0]),
        "as added": float((as_added[0] > 0) == y[0]),
        "others": float(np.mean((as_added > 0) == y[others])),
        "party": float((with_value > without) == y[0]),
        "rows shortened": float(np.mean((added != v).any(axis=1))),
    }


def rows(draws: int) -> Iterator[dict[str, object]]:
    """Yield a row for each total, value, number of anchor rows, and whether rows are shortened."""
    for total, value, in_anchor in product(TOTALS, VALUES, IN_ANCHOR):
        if value == "usual" and in_anchor:
            continue
        both = [each for seed in range(draws // N_TIMES) for each in play(value, total, in_anchor, seed)]
        for shorten in (False, True):
            played = both[int(shorten) :: 2]
            mean = {name: float(np.mean([each[name] for each in played])) for name in played[0]}
            # Attackers do not know whether a row was shortened: the better guess of two counts.
            person = max(mean["as they are"], mean["as added"])
            yield {
                "rows": total,
                "value": value,
                "anchor rows": in_anchor,
                "shortened": shorten,
                "draws": len(played),
                "person": round(person, 3),
                "half of the interval": round(1.96 * math.sqrt(person * (1 - person) / len(played)), 3),
                "others": round(mean["others"], 3),
                "person, by a party": round(mean["party"], 3),
                "rows shortened": round(mean["rows shortened"], 3),
            }


if __name__ == "__main__":
    write_table(rows, draws=200)
