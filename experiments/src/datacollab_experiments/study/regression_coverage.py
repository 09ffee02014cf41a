"""How often intervals of a study's regression hold, and how wide they are beside those of all rows in one place.

Simulated studies have site effects, and residuals that vary alike, vary with a column, depend on each other within a
doctor's patients, or have heavy tails.  Compared are robust and classical errors.

Run ``python -m datacollab_experiments.study.regression_coverage --output FILE``.  It takes half an hour.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import stats

from datacollab.errors import NumericalError
from datacollab.study import LeastSquares, NumberColumn
from datacollab.study._least_squares import N_GROUPS

from ..harness import write_table
from ..sums.playing import noise_factor

WORLDS = ("alike", "unequal", "clustered", "heavy tails")
METHODS = ("robust", "classical")
NOISES = (0.1, 0.03)
N_COLUMNS = (3, 10, 20)
ROWS_PER_COLUMN = (10, 100, 300, 1000)
N_DOCTORS = 20
WITHIN = 0.2


@dataclass(frozen=True)
class SimulatedRows:
    """All rows of a simulated study, with each row's party and doctor, and the true coefficients."""

    X: np.ndarray
    y: np.ndarray
    party: np.ndarray
    doctor: np.ndarray
    true: np.ndarray


def simulate(world: str, n_rows: int, n_columns: int, n_parties: int, random: np.random.Generator) -> SimulatedRows:
    """Draw a study: columns of standard deviation 1 and range 6, an outcome of range 16, unequal parties."""
    parts = np.sqrt(np.arange(1, n_parties + 1))
    # Each party has a row at least, and sizes grow with the root of its number.
    party = np.sort(np.r_[np.arange(n_parties), random.choice(n_parties, n_rows - n_parties, p=parts / parts.sum())])
    # Doctors only matter where residuals are clustered.
    n_doctors = N_DOCTORS if world == "clustered" else 10
    doctor = n_doctors * party + random.integers(0, n_doctors, n_rows)
    X = random.normal(size=(n_rows, n_columns))
    X[:, 1] = 0.5 * X[:, 0] + math.sqrt(0.75) * X[:, 1]
    of_doctors = random.normal(size=(2, n_doctors * n_parties))[:, doctor]
    residuals = random.normal(size=n_rows)
    if world == "unequal":
        residuals *= 0.4 + 0.8 * np.abs(X[:, 0])
    elif world == "clustered":
        X[:, 0] = math.sqrt(0.5) * (X[:, 0] + of_doctors[0])
        residuals = math.sqrt(WITHIN) * of_doctors[1] + math.sqrt(1 - WITHIN) * residuals
    elif world == "heavy tails":
        residuals = random.standard_t(3, size=n_rows) / math.sqrt(3)
    X = np.clip(X + 0.3 * random.normal(size=(n_parties, n_columns))[party], -3, 3)
    true = np.r_[0.5, -0.25, np.zeros(n_columns - 2)]
    return SimulatedRows(
        X, np.clip(X @ true + random.normal(size=n_parties)[party] + residuals, -8, 8), party, doctor, true
    )


@dataclass(frozen=True)
class Intervals:
    """Coefficients, and half of the width of their intervals."""

    coefficients: np.ndarray
    half: np.ndarray


def in_one_place(rows: SimulatedRows, world: str) -> Intervals:
    """Return intervals of all rows in one place: HC3, or clustered by doctor."""
    X = rows.X.copy()
    y = rows.y.copy()
    sizes = np.bincount(rows.party)
    # Centred by party, site effects drop out.
    for values in (*X.T, y):
        values -= (np.bincount(rows.party, values) / sizes)[rows.party]
    n, p = X.shape
    left = n - p - len(sizes)
    inverse = np.linalg.inv(X.T @ X)
    beta = inverse @ X.T @ y
    residuals = y - X @ beta
    if world == "clustered":
        scores = np.array([np.bincount(rows.doctor, column * residuals) for column in X.T])
        m = len(np.unique(rows.doctor))
        middle = scores @ scores.T * (m / (m - 1) * (n - 1) / left)
        df = m - 1
    else:
        leverage = ((X @ inverse) * X).sum(axis=1) + 1 / sizes[rows.party]
        df = left
        scores = X * (residuals / np.maximum(1 - leverage, 1e-9))[:, None]
        middle = scores.T @ scores
    return Intervals(beta, stats.t.ppf(0.975, df) * np.sqrt(np.diag(inverse @ middle @ inverse)))


def statistics_of(n_columns: int, noise: float, world: str) -> dict[str, LeastSquares]:
    """Return the statistics that parties add up, by the kind of errors."""
    columns = [NumberColumn(f"x{place}", -3, 3) for place in range(n_columns)]
    outcome = NumberColumn("y", -8, 8)
    cluster = "doctor" if world == "clustered" else None
    return {
        "robust": LeastSquares(outcome, columns, noise=noise, cluster=cluster),
        "classical": LeastSquares(outcome, columns, noise=noise, errors="classical"),
    }


def by_sums(
    rows: SimulatedRows, world: str, noise: float, random: np.random.Generator, parts: dict[str, np.ndarray]
) -> dict[str, Intervals | None]:
    """Return intervals of each method, or None if it refuses; `parts` are totals without noise."""
    n_parties = int(rows.party[-1]) + 1
    excess = noise_factor(n_parties)
    intervals: dict[str, Intervals | None] = dict.fromkeys(METHODS)
    for method, statistic in statistics_of(rows.X.shape[1], noise, world).items():
        try:
            noisy = parts[method] + excess * statistic.spread * random.normal(size=len(parts[method]))
            result = statistic.result(noisy, n_parties=n_parties, noise=excess)
            intervals[method] = Intervals(result.coefficients, (result.high - result.low) / 2)
        except NumericalError:
            continue
    return intervals


def totals_of(rows: SimulatedRows, world: str, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the totals that parties' messages would have without noise."""
    statistic = statistics_of(rows.X.shape[1], 1.0, world)["robust"]
    total = np.zeros(len(statistic.spread))
    # Each party's message, added up; its first part is that of classical errors.
    for party in range(int(rows.party[-1]) + 1):
        own = rows.party == party
        table = {f"x{place}": column for place, column in enumerate(rows.X[own].T)}
        total += statistic.part(table | {"y": rows.y[own], "doctor": rows.doctor[own]}, random.bytes(32))
    return {"robust": total, "classical": total.reshape(1 + N_GROUPS, -1)[0]}


def settings() -> Iterator[tuple[str, int, int, int]]:
    """Yield worlds, rows, columns and parties."""
    for world, n_columns in product(WORLDS, N_COLUMNS):
        for per_column in ROWS_PER_COLUMN:
            yield world, per_column * n_columns, n_columns, 5
        for n_parties in (3, 10):
            yield world, 300 * n_columns, n_columns, n_parties


def figures(studies: int, worlds: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield for each setting, noise and method how many studies it answers, and how its intervals are."""
    for number, (world, n_rows, n_columns, n_parties) in enumerate(settings()):
        if world not in worlds:
            continue
        held = {each: list[np.ndarray]() for each in product(NOISES, METHODS)}
        width = {each: list[np.ndarray]() for each in held}
        whole = []
        for seed in range(studies):
            random = np.random.default_rng([number, seed])
            rows = simulate(world, n_rows, n_columns, n_parties, random)
            best = in_one_place(rows, world)
            totals = totals_of(rows, world, random)
            whole.append(np.abs(best.coefficients - rows.true) <= best.half)
            for noise in NOISES:
                for method, intervals in by_sums(rows, world, noise, random, totals).items():
                    if intervals is not None:
                        held[noise, method].append(np.abs(intervals.coefficients - rows.true) <= intervals.half)
                        width[noise, method].append(intervals.half / best.half)
        for (noise, method), each in held.items():
            of_columns = np.mean(each, axis=0) if each else np.full(n_columns, np.nan)
            yield {
                "residuals": world,
                "columns": n_columns,
                "rows": n_rows,
                "parties": n_parties,
                "noise": noise,
                "errors": method,
                "answered": round(len(each) / studies, 3),
                "coverage": round(float(of_columns.mean()), 3),
                "of the first column": round(float(of_columns[0]), 3),
                "width": round(float(np.median(width[noise, method])), 2) if each else math.nan,
                "in one place": round(float(np.mean(whole)), 3),
            }


if __name__ == "__main__":
    write_table(figures, studies=500, worlds=WORLDS)
