r"""How well attackers tell who is in a study's totals, which no secret map protects.

Attackers know a person's whole row, the project, the number of rows, and up to 2,000 public rows of the kind.  From
these they compute f, by how much a row moves the total.  Either the row is one of the n in the total, or an average row
is.  A total is taken as normal with covariance n·C + e²·S², where C is that of f over the public rows, S the noise of
the statistic, and e how many times as large it is in the total.  The score is the likelihood ratio; if rows are dealt
to groups, its mean over the groups.

* "analyst" reads the total of all parties.
* "together" is the analyst with as many parties as the noise allows for, one of three or five of ten, whose rows and
  noise are taken off.  So do these parties alone, to whom the results go, if these give the total away.

Robust least squares send two kinds of numbers: moments of all rows, and those of groups, in which rows are compared
with others of their party.  There f is the mean of a row's comparisons with public rows.

An effect has the common map's columns, whose secret the parties know.  So the analyst alone reads but the numbers that
have none of these: moments of treatment and outcome, and how the treatment goes with columns.

Of a regression by rounds the totals of both rounds are read together.  The outcome is the event, or else the first
column of two levels.  If the first round is refused, the second is at the same coefficients.  Ratios by counts explain
by the first categories, and the model that is validated was fitted to public rows.

Members are rows of the other parties, strangers rows of nobody.  Reported are the area under the curve over all of
them, and over the tenth that stands out: those whose rows move the total farthest, beside the rest.  Rows are
dealt at random to parties of equal size.  A statistic has the noise that it has alone, the least: in a message of
several, counts have more.  Tables, seeds and the attack were fixed before the run that was published.

```console
$ python -m datacollab_experiments.study.membership --output output/study-membership.csv --ship
```

plays draws that the file lacks, and writes the figures of docs/threat-model.md and `datacollab party share`.  With
`--only "logistic regression"` it plays that set of statistics alone, and leaves other sets' figures as they are.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from datacollab import study
from datacollab.errors import NumericalError
from datacollab.study import (
    MAPPED,
    CategoryColumn,
    Effect,
    LeastSquares,
    LogisticRound,
    NumberColumn,
    RoundResult,
    RoundsSoFar,
    Statistic,
    effect_map,
)
from datacollab.study._columns import design
from datacollab.study._least_squares import N_GROUPS
from datacollab.sums._recommended import MOST_PATTERNS

from ..harness import markdown, r_table
from ..sums.playing import most_colluding, noise_factor

Array = NDArray[np.float64]
Index = NDArray[np.intp]

ROWS = (150, 300, 1000, 3000)
"""Of all parties together."""
PARTIES = (3, 10)
SEEDS = 20
"""Draws of each table."""
N_PUBLIC = 2000
"""Public rows at most."""
N_STRANGERS = 200
"""As many members are held against these, if there are as many."""
N_BASE = 500
"""Public rows that a row joins, to say how much it adds."""
N_SAMPLES = 20
"""Of public rows, that say by how much a party's numbers differ from the sum of its rows' additions."""
STANDS_OUT = 0.1
ROBUST = "least squares (robust)"
CLASSICAL = "least squares (classical)"
SETS_ON_PAGE = (
    *(("counts",), ("counts", "description"), ("counts", "description", ROBUST), ("counts", "description", CLASSICAL)),
    *(("survival",), ("effect",)),
)
LOGISTIC = "logistic regression"
BY_ROUNDS = (LOGISTIC, "poisson regression", "proportional hazards")
BY_COUNTS = ("logistic regression (counts)", "poisson regression (counts)")
VALIDATION = "validation"
SHOWN = (
    *(*SETS_ON_PAGE, ("additive hazards",), (ROBUST,), (CLASSICAL,)),
    *((name,) for name in (*BY_ROUNDS, *BY_COUNTS, VALIDATION)),
)
"""Sets of statistics that the program shows: counts go before a description."""
SETS = (*SHOWN, ("description",), ("description", ROBUST), ("description", CLASSICAL))
ATTACKERS = ("analyst", "together")
EFFECT = ("moments, {who}", "balance, {who}")
"""An effect's numbers that an attacker can compute: moments come in groups, the balance over all rows."""
ROUNDS = {title: (f"{title}, round 1", f"{title}, round 2") for title in BY_ROUNDS}
OWN_DRAWS = {
    name: 64 + place for place, name in enumerate((*(first for first, _ in ROUNDS.values()), *BY_COUNTS, VALIDATION))
}
"""Of numbers that are drawn by themselves: their figures are the same, whichever other sets are measured."""
OF_ROBUST = ("moments of all rows", "moments of groups")
"""The numbers of robust least squares."""
JOIN = " + "
SHIPPING = "Written by: python -m datacollab_experiments.study.membership --ship"
RESULTS = Path("docs/results/study/membership.csv")
PACKAGE = Path("src/datacollab/study/membership.csv")
PAGE = Path("docs/threat-model.md")
ROWS_ON_PAGE = (150, 1000, 3000)
_HEAD = "totals of"
_FACTS = ["statistics", "parties", "rows", "attacker"]
_FIGURES = ["AUC", "tenth"]

SOURCES: dict[str, tuple[str, ...]] = {
    "AER/NMES1988": ("health", "visits"),
    "AER/HealthInsurance": ("ethnicity", "age"),
    "survival/flchain": ("sex", "creatinine", "futime", "death"),
    "survival/nafld1": ("male", "weight", "futime", "status"),
}
"""Tables of R packages: the column that groups rows, the outcome of regressions, times and events."""
_LEFT_OUT = ["rownames", "id", "case.id", "chapter", "bmi"]
"""Numbers of records, causes of death, and columns that follow from weight and height."""


def messages_of(names: Sequence[str], who: str) -> Sequence[str]:
    """Return what an attacker reads of a set of statistics, by the names of rows' additions."""
    messages = {"effect": [name.format(who=who) for name in EFFECT], ROBUST: OF_ROBUST, **ROUNDS}
    return [each for name in names for each in messages.get(name, (name,))]


@lru_cache(maxsize=len(SOURCES))
def table_of(name: str, sets: tuple[tuple[str, ...], ...]) -> StudiedTable:
    """Return a table of R with its rows' additions."""
    frame = r_table(name).drop(columns=_LEFT_OUT, errors="ignore")
    # Adding up single rows takes the time: no more than a draw has.
    most = max(ROWS) + N_STRANGERS + N_PUBLIC
    return StudiedTable(frame.sample(min(most, len(frame)), random_state=0), *SOURCES[name], sets=sets)


def draft(values: pd.Series[Any]) -> NumberColumn | CategoryColumn:
    """Return a column with the range that `datacollab project new` drafts; two values are a category."""
    if values.dtype.kind not in "iuf" or values.nunique() <= 2:
        return CategoryColumn(str(values.name), sorted(values.dropna().unique()))
    low = float(values.min())
    high = float(values.max())
    half = (high - low) / 2
    # Drafts take a column that was never negative to be so.
    least = low - half if low < 0 else max(low - half, 0.0)
    return NumberColumn(str(values.name), least, high + half)


class StudiedTable:
    """The rows of a table, and each one's addition to each statistic."""

    def __init__(
        self,
        frame: pd.DataFrame,
        by: str,
        outcome: str,
        time: str = "",
        event: str = "",
        *,
        sets: tuple[tuple[str, ...], ...] = SETS,
    ) -> None:
        columns: dict[str, Any] = {str(name): draft(frame[name]) for name in frame}
        every = [*columns.values()]
        number = columns[outcome]
        explaining = [each for name, each in columns.items() if name not in (outcome, time, event)]
        statistics: dict[str, Statistic] = {
            "counts": study.Counts(every),
            "description": study.Description(every, columns[by]),
            OF_ROBUST[0]: AllRows(number, explaining, errors="classical"),
            OF_ROBUST[1]: Groups(number, explaining),
            CLASSICAL: LeastSquares(number, explaining, errors="classical"),
        }
        if time:
            months = NumberColumn(time, 0.0, columns[time].high)
            statistics["survival"] = study.Survival(months, event, columns[by])
            statistics["additive hazards"] = study.AdditiveHazards(months, event, [*explaining, number])
        table = {str(name): frame[name].to_numpy() for name in frame}
        treatment = next(each for each in explaining if isinstance(each, CategoryColumn) and len(each.levels) == 2)
        others = [each for each in explaining if each is not treatment]
        X = np.nan_to_num(np.hstack([each.design(table) for each in others]))
        common = effect_map(X[:N_BASE], bytes(32))
        table[MAPPED] = common.transform(X)
        statistics |= statistics_of_effects(others, treatment, number, common.n_components)
        # Outcomes are events where there are any.
        if time:
            statistics |= statistics_of_events([*explaining, number], columns[event], table, months)
        else:
            statistics |= statistics_of_events([*others, number], treatment, table)
        self.n_rows = len(frame)
        # Parties leave out rows without an outcome; here these have a usual one, so that all statistics have all rows.
        self.effect_rows = table | {outcome: frame[outcome].fillna(frame[outcome].median()).to_numpy()}
        # A second round follows from the first.
        known = {*statistics, *(second for first, second in ROUNDS.values() if first in statistics)}
        self.sets = [names for names in sets if known >= {*messages_of(names, "analyst")}]
        read = {name for names, who in product(self.sets, ATTACKERS) for name in messages_of(names, who)}
        self.added = {
            name: add_each(each, self.effect_rows if isinstance(each, Effect) else table, self.n_rows)
            for name, each in statistics.items()
            if name in read
        }


def statistics_of_effects(
    columns: Sequence[NumberColumn | CategoryColumn],
    treatment: CategoryColumn,
    outcome: NumberColumn,
    n_components: int,
) -> dict[str, Statistic]:
    """Return the parts of an effect's message, as each attacker reads them."""
    statistics: dict[str, Statistic] = {}
    for who in ATTACKERS:
        facts: dict[str, Any] = {"columns": columns, "knows_map": who != "analyst"}
        moments, balance = (name.format(who=who) for name in EFFECT)
        statistics[moments] = Moments(treatment, outcome, n_components, **facts)
        statistics[balance] = Balance(treatment, outcome, n_components, **facts)
    return statistics


def statistics_of_events(
    explaining: Sequence[NumberColumn | CategoryColumn],
    outcome: CategoryColumn,
    table: Mapping[str, NDArray[Any]],
    time: NumberColumn | None = None,
) -> dict[str, Statistic]:
    """Return regressions of an outcome of two levels, by rounds and by counts, and the validation of a model of it."""
    factors: list[CategoryColumn] = []
    for each in explaining:
        patterns = np.prod([len(every.levels) for every in factors], dtype=int)
        if isinstance(each, CategoryColumn) and patterns * len(each.levels) <= MOST_PATTERNS:
            factors.append(each)
    made: dict[str, Statistic] = {
        ROUNDS[LOGISTIC][0]: LogisticRound(explaining, outcome),
        BY_COUNTS[0]: study.GroupedLogistic(factors, outcome),
        VALIDATION: study.ModelValidation(outcome, explaining, fit_published(explaining, outcome, table)),
    }
    if time is not None:
        made[ROUNDS[BY_ROUNDS[1]][0]] = study.PoissonRound(explaining, outcome, time=time)
        made[ROUNDS[BY_ROUNDS[2]][0]] = study.HazardRound(explaining, outcome, time=time)
        made[BY_COUNTS[1]] = study.GroupedPoisson(factors, outcome, time)
    return made


def fit_published(
    explaining: Sequence[NumberColumn | CategoryColumn], outcome: CategoryColumn, table: Mapping[str, NDArray[Any]]
) -> dict[str, float]:
    """Return a logistic model of the first rows, which are public, as a validation tries it."""
    X = design(explaining, table)[:N_BASE]
    y = outcome.indicators(table)[:N_BASE, 1]
    complete = ~np.isnan(X).any(axis=1)
    fitted = LogisticRegression(max_iter=1000).fit(X[complete], y[complete])
    names = [name for each in explaining for name in each.coefficient_names]
    model = dict(zip(names, fitted.coef_[0].tolist(), strict=True))
    intercept = float(fitted.intercept_[0])
    for each in explaining:
        if isinstance(each, NumberColumn):
            # Numbers were scaled to their declared range, from -1/2 to 1/2.
            model[each.name] /= each.width
            intercept -= model[each.name] * (each.low + each.width / 2)
    return {"intercept": intercept, **model}


@dataclass(frozen=True)
class AllRows(LeastSquares):
    """The moments of all rows in a message of robust least squares: those of classical ones, with other noise."""

    @property
    def spread(self) -> Array:
        """Return the noise of all numbers, shape (n_numbers,)."""
        whole = LeastSquares(self.outcome, self.columns, noise=self.noise, copies=self.copies).spread
        return np.asarray(whole[: len(super().spread)])


@dataclass(frozen=True)
class Groups(LeastSquares):
    """The weights and moments of groups in a message of robust least squares."""

    @property
    def spread(self) -> Array:
        """Return the noise of all groups' numbers, shape (n_groups * n_numbers,)."""
        noise = super().spread
        return np.asarray(noise[len(noise) // (1 + N_GROUPS) :])

    def finish(self, sums: Array, noise: float = 1.0) -> Array:
        """Return a party's numbers of all groups, shape (n_groups * n_numbers,)."""
        return np.asarray(super().finish(sums, noise)[-len(self.spread) :])

    def compare(self, table: Mapping[str, NDArray[Any]]) -> Array:
        """Return what each row adds to its group, compared with the first `N_BASE` rows, shape (n_rows, n_numbers)."""
        u = np.column_stack([design(self.columns, table), self.outcome.scale(table)])
        complete = np.asarray(~np.isnan(u).any(axis=1))
        u[~complete] = 0.0
        known = u[:N_BASE][complete[:N_BASE]]
        apart = ((u[:, None] - known) ** 2).sum(axis=2)
        weights = complete[:, None] * self._reach / np.maximum(apart, self._reach) / N_BASE
        # The mean product of differences to these rows: four sums of each product.
        i, j = np.triu_indices(u.shape[1])
        crossed = weights @ known
        of_row = weights.sum(axis=1)
        moments = of_row[:, None] * u[:, i] * u[:, j] + weights @ (known[:, i] * known[:, j])
        moments -= u[:, i] * crossed[:, j] + crossed[:, i] * u[:, j]
        return np.column_stack([of_row, moments])


@dataclass(frozen=True)
class Moments(Effect):
    """The moments by group of an effect's rows [1, v, T, Y]; without v, unless the attacker knows the map."""

    knows_map: bool = True
    n_groups: int = 5

    @property
    def _known(self) -> Index:
        """Return the places of 1, v, T and Y that the attacker can compute."""
        last = self.n_components + 2
        return np.arange(last + 1) if self.knows_map else np.array([0, last - 1, last])

    @property
    def spread(self) -> Array:
        """Return the noise of all groups' numbers, shape (n_groups * n_numbers,)."""
        m = self.n_components + 2
        noise = np.zeros((m + 1, m + 1))
        # A count of rows is first in an effect's message.
        noise[1:, 1:][np.triu_indices(m)] = super().spread[1 : 1 + m * (m + 1) // 2]
        return np.tile(_upper(noise[np.ix_(self._known, self._known)]), self.n_groups)

    def add_up(self, table: Any, secret: bytes) -> Array:
        """Return the moments over some rows in one group."""
        size = self.n_components + 3
        of_groups = super().add_up(table, secret)[: 5 * size**2].reshape(5, size, size)
        return np.asarray(of_groups.sum(axis=0)[np.ix_(self._known, self._known)].ravel())

    def finish(self, sums: Array, noise: float = 1.0) -> Array:
        """Return the moments around the means of each group."""
        size = len(self._known)
        groups = sums.reshape(self.n_groups, size, size)
        return np.concatenate([_upper(M - np.outer(M[:, 0], M[0]) / max(M[0, 0], 1.0)) for M in groups])


@dataclass(frozen=True)
class Balance(Effect):
    """How an effect's columns go with [v, T] over all rows; without v, unless the attacker knows the map."""

    knows_map: bool = True

    @property
    def _numbers(self) -> Index:
        """Return the places of the numbers in an effect's message that the attacker can compute."""
        m = self.n_components + 2
        n_moments = 1 + 5 * m * (m + 1) // 2
        n_numbers = len(super().spread)
        p = (n_numbers - n_moments) // m
        cross = (n_moments + np.arange(p * (m - 1))).reshape(p, m - 1)
        squares = np.arange(n_numbers - p, n_numbers)
        # The first columns of the cross moments are those of v, the last is that of T.
        return np.asarray(np.r_[cross.ravel() if self.knows_map else cross[:, -1], squares], dtype=np.intp)

    @property
    def spread(self) -> Array:
        """Return the noise of these numbers, shape (n_numbers,)."""
        return np.asarray(super().spread[self._numbers])

    def finish(self, sums: Array, noise: float = 1.0) -> Array:
        """Return the numbers of a party, shape (n_numbers,)."""
        return np.asarray(super().finish(sums, noise)[self._numbers])


def _upper(M: Array) -> Array:
    """Return the numbers of a symmetric matrix without its first row and column."""
    return np.asarray(M[1:, 1:][np.triu_indices(len(M) - 1)])


class Additions:
    """Each row's addition to a statistic, f, and the numbers of parties, in units of their noise.

    Parties deal rows to groups by `statistic`; with `ungrouped` all are in one.  Numbers that are 0 over all rows, such
    as those of empty bins, are left out.  f is of rows that join the first `N_BASE` ones, which are always public.
    """

    def __init__(self, statistic: Statistic, table: Mapping[str, NDArray[Any]], n_rows: int) -> None:
        self.statistic = self.ungrouped = statistic
        if isinstance(statistic, Moments):
            self.ungrouped = replace(statistic, n_groups=1)
        self.n_groups = len(statistic.spread) // len(self.ungrouped.spread)
        rows = ({name: values[k : k + 1] for name, values in table.items()} for k in range(n_rows))
        sums = [self.ungrouped.add_up(row, bytes(32)) for row in rows]
        # Risk sets and rounds keep the rows themselves, and none of a row with a gap: they are no matrix.
        self.sums = np.array(sums) if type(statistic).join is Statistic.join else sums
        self._measure(np.arange(n_rows))

    def _measure(self, index: Index) -> None:
        """Set f of some rows, and in which numbers and units it is."""
        base = self.over(np.arange(N_BASE))
        finish = self.ungrouped.finish
        self.kept = np.flatnonzero(finish(self.over(np.arange(len(self.sums)))))
        self.spread = self.statistic.spread[self.kept]
        joined = np.array([finish(self.ungrouped.join(base, self.sums[k]))[self.kept] for k in index])
        self.f = (joined - finish(base)[self.kept]) / self.spread

    def after(self, total: Array, index: Index, *, n_parties: int, noise: float) -> Additions:
        """Return the additions of some rows to the second round of a regression, which follows the first's total."""
        first = self.statistic
        assert isinstance(first, LogisticRound | study.PoissonRound | study.HazardRound)
        numbers = np.zeros(len(first.spread))
        numbers[self.kept] = total * self.spread
        try:
            result = first.result(numbers, n_parties=n_parties, noise=noise)
            assert isinstance(result, RoundResult)
            so_far = result.so_far
        except NumericalError:
            # A round that is refused gives no coefficients, but nobody can tell whether an analyst goes on.
            shares: tuple[float, ...] = ()
            if isinstance(first, study.HazardRound):
                shares = (1 / first.n_intervals,) * first.n_intervals
            so_far = RoundsSoFar(1, (0.0,) * len(first.names), float(numbers[0]), float(numbers[1]), shares)
        later = copy.copy(self)
        later.statistic = later.ungrouped = replace(first, before=so_far)
        later._measure(index)
        return later

    def over(self, index: Index) -> Array:
        """Return the sums over some rows in one group."""
        if isinstance(self.sums, np.ndarray):
            return np.asarray(self.sums[index].sum(axis=0))
        return np.concatenate([self.sums[k] for k in index])

    def part(self, index: Index) -> Array:
        """Return the numbers of a party whose rows are in one group, shape (n_numbers,)."""
        return np.asarray(self.ungrouped.finish(self.over(index))[self.kept] / self.spread)

    def deal(self, index: Index, random: np.random.Generator) -> Array:
        """Return the numbers of a party whose rows are dealt to groups, shape (n_groups, n_numbers)."""
        if self.n_groups == 1:
            return self.part(index)[None]
        groups = np.array_split(random.permutation(index), self.n_groups)
        numbers = self.statistic.finish(np.concatenate([self.over(group) for group in groups]))
        return np.asarray(numbers.reshape(self.n_groups, -1)[:, self.kept] / self.spread)


def add_each(statistic: Statistic, table: Mapping[str, NDArray[Any]], n_rows: int) -> Additions | ComparedAdditions:
    if isinstance(statistic, Groups):
        return ComparedAdditions(statistic, table)
    return Additions(statistic, table, n_rows)


class ComparedAdditions:
    """Each row's addition to its own group in robust least squares, f, and parties' numbers, as in `Additions`."""

    def __init__(self, statistic: Groups, table: Mapping[str, NDArray[Any]]) -> None:
        self.statistic = statistic
        self.n_groups = N_GROUPS
        self.table = table
        self.spread = statistic.spread[: len(statistic.spread) // N_GROUPS]
        self.f = statistic.compare(table) / self.spread

    def deal(self, index: Index, random: np.random.Generator) -> Array:
        """Return the numbers of a party whose rows are dealt to groups, shape (n_groups, n_numbers)."""
        rows = {name: values[index] for name, values in self.table.items()}
        return np.asarray(self.statistic.part(rows, random.bytes(32)).reshape(N_GROUPS, -1) / self.spread)


class TotalDistribution:
    """The normal distribution of a total with noise of 1, from public rows: shape (n_public, n_numbers).

    The number of rows in the total may vary, too: `uneven` is its variance over its mean.
    """

    def __init__(self, public: Array, uneven: float = 0.0) -> None:
        self.mean = public.mean(axis=0)
        C = np.cov(public.T, bias=True).reshape(2 * [public.shape[1]]) + uneven * np.outer(self.mean, self.mean)
        values, self.axes = np.linalg.eigh(C)
        self.values = np.maximum(values, 0.0)

    def ratio(self, moved: Array, residual: Array, *, n_rows: float, noise: float) -> tuple[Array, Array]:
        r"""Return :math:`f^\top \Sigma^{-1} r` and :math:`f^\top \Sigma^{-1} f` with Σ = n C + e².

        The logarithm of the likelihood ratio is the first less half of the second.  `moved` are candidates' additions,
        shape (n_candidates, n_numbers), and f those beyond the mean; r of shape (n_numbers,) or (n_numbers, n_totals).
        """
        along = (moved - self.mean) @ self.axes
        weighted = along / (n_rows * self.values + noise**2)
        return weighted @ (self.axes.T @ residual), (weighted * along).sum(axis=1)


class StudyDraw:
    """Rows of parties, of which the first are the members, as many strangers, and public rows."""

    def __init__(self, table: StudiedTable, seed: int) -> None:
        self.table = table
        self.seed = seed
        # The rows that f is measured beside are public in every draw.
        index = N_BASE + np.random.default_rng([seed, 61]).permutation(table.n_rows - N_BASE)
        self.pool, strangers, rest = np.split(index, [max(ROWS), max(ROWS) + N_STRANGERS])
        self.public = np.r_[:N_BASE, rest][:N_PUBLIC]
        self.candidates = np.r_[self.pool[:N_STRANGERS], strangers]
        self.f = {name: each.f[self.public] for name, each in table.added.items()}
        self.of_candidates = {name: each.f[self.candidates] for name, each in table.added.items()}
        self._known = dict[tuple[tuple[tuple[str, float], ...], float], TotalDistribution]()

    def figures(self, n_rows: int, n_parties: int) -> Iterator[dict[str, object]]:
        """Yield the areas under the curve of each set of statistics and attacker."""
        random = np.random.default_rng([self.seed, n_rows, n_parties, 63])
        parts = np.array_split(self.pool[:n_rows], n_parties)
        n_colluding = most_colluding(n_parties)
        n_others = sum(map(len, parts[:-n_colluding]))
        left = noise_factor(n_parties, known=n_colluding)
        every = noise_factor(n_parties)
        residuals: dict[str, dict[str, Array]] = {}
        after = dict(ROUNDS.values())
        for name, added in self.table.added.items():
            if name in OWN_DRAWS:
                random = np.random.default_rng([self.seed, n_rows, n_parties, OWN_DRAWS[name]])
            residuals[name], total = self._read(name, added, parts, random)
            if name in after:
                assert isinstance(added, Additions)
                later = added.after(total, np.r_[self.public, self.candidates], n_parties=n_parties, noise=every)
                self._replace(after[name], later.f)
                residuals[after[name]], _ = self._read(after[name], later, parts, random)
        unknown = dict(zip(ATTACKERS, ((parts, every), (parts[:-n_colluding], left)), strict=True))
        for names, (who, (own, e)) in product(self.table.sets, unknown.items()):
            read = {name: residuals[name][who] for name in messages_of(names, who)}
            score, far = self._scores(read, [*map(len, own)], noise=e)
            facts = dict(zip(_FACTS, (JOIN.join(names), n_parties, n_rows, who), strict=True))
            yield facts | dict(zip(_FIGURES, areas(score, far, min(n_others, N_STRANGERS)), strict=True))

    def _read(
        self, name: str, added: Additions | ComparedAdditions, parts: Sequence[Index], random: np.random.Generator
    ) -> tuple[dict[str, Array], Array]:
        """Return the groups' totals less their expectations, by attacker, and the analyst's total over all groups."""
        n_parties = len(parts)
        n_colluding = most_colluding(n_parties)
        others = parts[:-n_colluding]
        left = noise_factor(n_parties, known=n_colluding)
        every = noise_factor(n_parties)
        rest = np.sum([added.deal(each, random) for each in others], axis=0)
        noise, known_noise = random.normal(size=(2, *rest.shape))
        # Parties that attack with the analyst know their own part of the noise.
        rest += left * noise
        # The analyst's total has the noise of all, its helpers' included.
        known = np.sum([added.deal(each, random) for each in parts[-n_colluding:]], axis=0)
        total = rest + known + np.sqrt(every**2 - left**2) * known_noise
        mean = self.f[name].mean(axis=0)
        beside = self._beside(name, added, len(parts[-1]))
        n_others = sum(map(len, others))
        n_rows = sum(map(len, parts))
        residuals = {
            "together": rest - (n_others * mean + len(others) * beside) / added.n_groups,
            "analyst": total - (n_rows * mean + n_parties * beside) / added.n_groups,
        }
        return residuals, total.sum(axis=0)

    def _replace(self, name: str, f: Array) -> None:
        """Set f of the public rows and the candidates, where it depends on the draw of the noise."""
        self.f[name], self.of_candidates[name] = np.split(f, [len(self.public)])
        self._known = {key: each for key, each in self._known.items() if name not in dict(key[0])}

    def _beside(self, name: str, added: Additions | ComparedAdditions, n_rows: int) -> Array:
        """Return by how much numbers of a party with so many rows differ, in the mean, from the sum of f."""
        random = np.random.default_rng([self.seed, n_rows, 62])
        samples = [random.permutation(len(self.public))[:n_rows] for _ in range(N_SAMPLES)]
        apart = list[Array]()
        for each in samples:
            numbers = added.deal(self.public[each], random).sum(axis=0)
            apart.append(numbers - self.f[name][each].sum(axis=0))
        return np.asarray(np.mean(apart, axis=0))

    def _scores(self, residual: Mapping[str, Array], sizes: Sequence[int], *, noise: float) -> tuple[Array, Array]:
        """Return the log likelihood ratio of each candidate, and how far apart its hypotheses are, squared.

        `residual` are the groups' totals less their expectations, shape (n_groups, n_numbers), by statistic; `sizes`
        are the rows of each party.
        """
        n_rows = sum(sizes)
        # In a sum over groups, noise is the root of their number times as large.
        units = {name: float(np.sqrt(len(each))) for name, each in residual.items()}
        summed = np.concatenate([each.sum(axis=0) / units[name] for name, each in residual.items()])
        moved = np.hstack([self.of_candidates[name] / unit for name, unit in units.items()])
        n_uncertain = n_rows * (1 + n_rows / len(self.public))  # The public rows' mean is off by chance, too.
        along, far = self._distribution(units).ratio(moved, summed, n_rows=n_uncertain, noise=noise)
        score = along - far / 2
        for name, each in residual.items():
            if (n_groups := len(each)) > 1:
                # A member is in one group, nobody knows in which: how groups differ from their mean says more.
                apart = (each - each.mean(axis=0)).T
                n_in_group = n_rows / n_groups
                # Of each party some groups have one row more than others, nobody knows which.
                more = [size % n_groups / n_groups for size in sizes if name in OF_ROBUST]
                of_group = self._distribution({name: 1.0}, sum(part * (1 - part) for part in more) / n_in_group)
                along, square = of_group.ratio(self.of_candidates[name], apart, n_rows=n_in_group, noise=noise)
                square = (1 - 1 / n_groups) * square
                score = score + logsumexp(along - square[:, None] / 2, axis=1) - np.log(n_groups)
                far = far + square
        return score, far

    def _distribution(self, units: Mapping[str, float], uneven: float = 0.0) -> TotalDistribution:
        """Return the distribution of these statistics' numbers over their units."""
        key = (tuple(units.items()), uneven)
        if key not in self._known:
            public = np.hstack([self.f[name] / unit for name, unit in units.items()])
            self._known[key] = TotalDistribution(public, uneven)
        return self._known[key]


def areas(score: Array, far: Array, n_members: int) -> tuple[float, float]:
    """Return the area under the curve over all, and over the tenth that stands out; NaN if these are of one kind.

    The first half of the candidates are members, but only `n_members` of them are in the total; as many strangers are
    held against these.
    """
    half = len(score) // 2
    held = np.r_[:n_members, half : half + n_members]
    is_member = held < half
    score = score[held]
    far = far[held]
    # Attackers can tell beforehand whom they would recognise, from f alone.
    out = far >= np.quantile(far, 1 - STANDS_OUT)
    whole = float(roc_auc_score(is_member, score))
    if is_member[out].all() or not is_member[out].any():
        return whole, float("nan")
    return whole, float(roc_auc_score(is_member[out], score[out]))


def play(path: Path, n_seeds: int, sets: tuple[tuple[str, ...], ...] = SETS) -> None:
    """Append the draws that a file does not hold yet, all figures of a draw or none, and say how far the run is."""
    done = set[tuple[Any, ...]]()
    if path.exists():
        done = set(pd.read_csv(path)[["table", "seed"]].itertuples(index=False, name=None))
    waiting = [each for each in product(SOURCES, range(n_seeds)) if each not in done]
    waiting.sort(key=lambda each: each[1])  # A run that is stopped has about as many draws of each table.
    start = time.monotonic()
    for place, (name, seed) in enumerate(waiting, start=1):
        drawn = StudyDraw(table_of(name, sets), seed)
        figures = pd.DataFrame([each for n, k in product(ROWS, PARTIES) for each in drawn.figures(n, k)])
        # A table without times has no statistics of them.
        if len(figures):
            figures = figures.assign(table=name, seed=seed)
            figures.to_csv(path, mode="a", header=not path.exists(), index=False, float_format="%.5g")
        minutes = (time.monotonic() - start) / place * (len(waiting) - place) / 60
        print(f"step {place} of {len(waiting)}: {name}, seed {seed}; about {minutes:.0f} minutes left", flush=True)


def summarise(draws: pd.DataFrame) -> pd.DataFrame:
    """Return means over draws, with their standard errors."""
    by_facts = draws.groupby(["table", *_FACTS], sort=False)[_FIGURES]
    means = by_facts.mean().join(by_facts.sem().rename(columns="standard error of {}".format))
    return means.join(by_facts.count()[["AUC"]].rename(columns={"AUC": "draws"})).round(3).reset_index()


def merge(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return the old means of sets that are not among the new ones, and the new ones after them."""
    return pd.concat([old[~old["statistics"].isin(new["statistics"])], new], ignore_index=True)


def figures_of(means: pd.DataFrame, names: Sequence[str], n_rows: int) -> dict[tuple[str, str], float]:
    """Return the largest means over tables, and over three and ten parties, by attacker and figure.

    Analyst and parties together can do as the analyst does.
    """
    chosen = means[(means["statistics"] == JOIN.join(names)) & (means["rows"] == n_rows)]
    largest = chosen.groupby("attacker")[_FIGURES].max()
    largest.loc["together"] = largest.max()
    return {(who, each): float(largest.loc[who, each]) for who, each in product(ATTACKERS, _FIGURES)}


def package_file(means: pd.DataFrame) -> str:
    lines = [f"# {SHIPPING}", "statistics,n_rows,analyst,analyst_of_tenth,together,together_of_tenth"]
    for names, n in product(SHOWN, ROWS):
        figures = figures_of(means, names, n).values()
        lines.append(",".join([JOIN.join(names), str(n), *(f"{each:.3f}" for each in figures)]))
    return "\n".join(lines) + "\n"


def page_table(means: pd.DataFrame) -> str:
    """Return the table of the page: over all people, and in brackets over the tenth that stands out."""
    heads = [f"{who}, {n:,} rows" for who, n in product(("analyst alone", "with parties"), ROWS_ON_PAGE)]
    rows = list[list[str]]()
    for names in SETS_ON_PAGE:
        cells = list[str]()
        for who, n in product(ATTACKERS, ROWS_ON_PAGE):
            figures = figures_of(means, names, n)
            whole, tenth = (f"{max(figures[who, each], 0.5):.2f}".removeprefix("0") for each in _FIGURES)
            cells.append(f"{whole} ({tenth})")
        rows.append([", ".join(names), *cells])
    return markdown([_HEAD, *heads], rows)


def replace_table(page: str, table: str) -> str:
    """Return the page with its old table replaced; raise ValueError if it has none with this head."""
    before, head, rest = page.partition(f"| {_HEAD} |")
    if not head:
        raise ValueError(f"The page has no table whose first head is {_HEAD!r}. Add the line that begins it.")
    return f"{before}{table}\n\n{rest.partition(chr(10) * 2)[2]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play missing draws, write the files if asked, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m datacollab_experiments.study.membership", description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="file of all draws; a run goes on where it ended")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="draws of each table")
    parser.add_argument("--only", nargs="+", choices=[JOIN.join(names) for names in SETS], help="sets of statistics")
    parser.add_argument("--ship", action="store_true", help=f"write {RESULTS}, {PACKAGE} and the table of {PAGE}")
    options = parser.parse_args(arguments)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    sets = tuple(names for names in SETS if options.only is None or JOIN.join(names) in options.only)
    play(options.output, options.seeds, sets)
    means = summarise(pd.read_csv(options.output))
    if options.only:
        means = merge(pd.read_csv(RESULTS), means)
    if options.ship:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        means.to_csv(RESULTS, index=False)
        PACKAGE.write_text(package_file(means), encoding="utf-8")
        PAGE.write_text(replace_table(PAGE.read_text(encoding="utf-8"), page_table(means)), encoding="utf-8")
    print(page_table(means))
    return 0


if __name__ == "__main__":
    sys.exit(main())
