"""How often intervals of odds, rate and hazard ratios from rounds hold, and how wide they are beside pooled ones.

Numbers, and categories that 30 % have, explain an outcome that is seen or not, or an event by time under observation.
Each party has a level of its own.  The noise is the usual one, raised for as many colluding parties as usual.  Each
study is answered in several ways:

* "pooled" is maximum likelihood on all rows in one place, with an indicator of each party; of hazards, Cox's partial
  likelihood with parties as strata, of exact times, also where rounds get times that were rounded up;
* "rounds" are two rounds under masks, and "one round" is one with the whole budget of noise;
* "parties' own" is the mean of the parties' own estimates by inverse variance, without noise; parties whose fit fails
  are left out;
* "by pattern" is a regression on counts by pattern, whose numbers are cut into thirds.  It estimates something else for
  numbers, so that only categories are judged.

Shown are the part of 95 % intervals that hold, the median width as a multiple of the pooled one's, how far estimates
are from the pooled ones, as a root mean square and as a mean away from 0, both in pooled standard errors, and the part
of studies without an answer.

```console
$ python -m datacollab_experiments.study.rounds_coverage
```
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from datacollab.errors import AgreementError, NumericalError
from datacollab.study import (
    CategoryColumn,
    GroupedLogistic,
    GroupedPoisson,
    HazardRound,
    LogisticRound,
    NumberColumn,
    PoissonRound,
    Statistic,
)

from ..harness import write_table
from ..sums.playing import noise_factor

Array = NDArray[np.float64]
Table = dict[str, Array]
Rounds = LogisticRound | PoissonRound | HazardRound

N_STUDIES = 500
SEEN = CategoryColumn("seen", (0, 1))
TIME = NumberColumn("time", 0, 1)
_RANGE = 6.0
"""Standard deviations of a number that its declared range is wide."""
_OF_CATEGORY = 0.3
_BETWEEN_PARTIES = 0.4
"""The standard deviation of parties' levels, in logarithms of odds or rates."""
_THIRDS = norm.ppf([1 / 3, 2 / 3])
_NUMBERS = (0.6, -0.4, 0.3, -0.2, 0.2)
_CATEGORIES = (0.7, -0.4, 0.3)
"""True coefficients, for a standard deviation, or for a category."""
_MOST_ITERATIONS = 25
_CONVERGED = 1e-8
# A coefficient of 10 is a ratio of 20,000: the likelihood has no maximum.
_SEPARATED = 10.0
KINDS = ("logistic", "events", "hazards")
WAYS = ("pooled", "rounds", "one round", "parties' own", "by pattern")
FIGURES = ("coverage", "width", "from pooled", "away from 0", "refused")


class Estimates(NamedTuple):
    """Coefficients and standard errors, each of shape (n_coefficients,)."""

    params: Array
    errors: Array


@dataclass(frozen=True)
class RoundsWorld:
    """Parties of these sizes, and the part of rows with the outcome."""

    kind: str
    """One of `KINDS`."""
    sizes: tuple[int, ...]
    share: float
    n_numbers: int = 2
    n_categories: int = 1
    shape: float = 1.0
    """Of Weibull's times; below 1, events are early."""
    n_times: int = 0
    """How many different times there are, for hazards; 0 for exact ones."""

    @property
    def name(self) -> str:
        parties = ", ".join(f"{n:,}" for n in self.sizes)
        if len(set(self.sizes)) == 1:
            parties = f"{len(self.sizes)} x {self.sizes[0]:,}"
        times = f", {self.n_times} times" if self.n_times else ""
        early = ", early" if self.shape < 1 else ""
        return f"{self.kind}, {parties}, {self.share:.0%}, {len(self.true)} columns{early}{times}"

    @property
    def numbers(self) -> list[NumberColumn]:
        return [NumberColumn(f"number {place}", -_RANGE / 2, _RANGE / 2) for place in range(self.n_numbers)]

    @property
    def categories(self) -> list[CategoryColumn]:
        """Return the columns of two levels."""
        return [CategoryColumn(f"category {place}", (0, 1)) for place in range(self.n_categories)]

    @property
    def columns(self) -> list[NumberColumn | CategoryColumn]:
        """Return all columns, in the order of the coefficients."""
        return [*self.numbers, *self.categories]

    @property
    def true(self) -> Array:
        """Return the true coefficients, shape (n_numbers + n_categories,)."""
        return np.array([*_NUMBERS[: self.n_numbers], *_CATEGORIES[: self.n_categories]])

    @property
    def are_categories(self) -> NDArray[np.bool_]:
        """Return which coefficients are those of categories, shape (n_coefficients,)."""
        return np.arange(len(self.true)) >= self.n_numbers

    def rounds(self, n_rounds: int) -> Rounds:
        """Return the first round of so many."""
        if self.kind == "logistic":
            return LogisticRound(self.columns, SEEN, n_rounds)
        if self.kind == "hazards":
            return HazardRound(self.columns, SEEN, n_rounds, time=TIME)
        return PoissonRound(self.columns, SEEN, n_rounds, time=TIME)

    def by_pattern(self) -> GroupedLogistic | GroupedPoisson:
        """Return the regression on counts by pattern; AgreementError if there is none, or too many patterns."""
        if self.kind == "hazards":
            raise AgreementError("Counts by pattern have no times.")
        columns = [CategoryColumn(f"third of {each.name}", range(3)) for each in self.numbers] + self.categories
        if self.kind == "logistic":
            return GroupedLogistic(columns, SEEN)
        return GroupedPoisson(columns, SEEN, TIME)

    def draw_design(self, n_rows: int, random: np.random.Generator) -> Array:
        """Draw rows of numbers and categories, shape (n_rows, n_coefficients)."""
        numbers = random.normal(size=(n_rows, self.n_numbers)).clip(-_RANGE / 2, _RANGE / 2)
        categories = random.random((n_rows, self.n_categories)) < _OF_CATEGORY
        return np.hstack([numbers, categories])

    def table(self, n_rows: int, random: np.random.Generator) -> Table:
        X = self.draw_design(n_rows, random)
        eta = _intercept(self) + _BETWEEN_PARTIES * random.normal() + X @ self.true
        table = dict(zip((each.name for each in self.columns), X.T, strict=True))
        for each in self.numbers:
            table[f"third of {each.name}"] = np.searchsorted(_THIRDS, table[each.name])
        if self.kind == "logistic":
            return table | {"seen": (random.random(n_rows) < expit(eta)).astype(int)}
        event = (random.exponential(size=n_rows) / np.exp(eta)) ** (1 / self.shape)
        left = _draw_ends(n_rows, random)
        exact = np.minimum(event, left)
        # Times in months are rounded up.
        time = np.ceil(exact * self.n_times) / self.n_times if self.n_times else exact
        return table | {"exact": exact, "time": time, "seen": (event <= left).astype(int)}

    def design(self, table: Table) -> Array:
        """Return the numbers and categories of a table, shape (n_rows, n_coefficients)."""
        return np.column_stack([table[each.name] for each in self.columns])


def _draw_ends(n_rows: int, random: np.random.Generator) -> Array:
    """Draw when each row leaves observation, shape (n_rows,)."""
    return random.uniform(0.2, 1.0, n_rows)


@lru_cache
def _intercept(world: RoundsWorld) -> float:
    """Return the intercept with which the wished part of rows has the outcome."""
    random = np.random.default_rng(0)
    n = 100_000
    eta = world.draw_design(n, random) @ world.true + _BETWEEN_PARTIES * random.normal(size=n)
    ends = _draw_ends(n, random)

    def beyond(intercept: float) -> float:
        if world.kind == "logistic":
            return float(expit(intercept + eta).mean()) - world.share
        return float(-np.expm1(-np.exp(intercept + eta) * ends**world.shape).mean()) - world.share

    return float(brentq(beyond, -10.0, 5.0, xtol=1e-4))


def fit_likelihood(X: Array, y: Array, exposure: Array | None = None) -> Estimates | None:
    """Return maximum likelihood, logistic or, with an exposure, Poisson; None if it has no maximum.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_coefficients)
        With a column of ones, or indicators of parties.
    y : ndarray of shape (n_rows,)
    exposure : ndarray of shape (n_rows,), optional
    """
    beta = np.linalg.lstsq(X, np.full(len(y), _link(float(y.sum()), exposure, len(y))), rcond=None)[0]

    def derive(beta: Array) -> tuple[Array, Array]:
        eta = X @ beta
        if exposure is None:
            mean = expit(eta)
            weights = mean * (1 - mean)
        else:
            mean = weights = exposure * np.exp(np.minimum(eta, 50.0))
        return X.T @ (y - mean), (X * weights[:, None]).T @ X

    return _maximise(derive, beta)


def _maximise(derive: Callable[[Array], tuple[Array, Array]], beta: Array) -> Estimates | None:
    """Return the maximum of a likelihood by Newton's method, from its score and information; None if it has none."""
    for _ in range(_MOST_ITERATIONS):
        score, information = derive(beta)
        try:
            step = np.linalg.solve(information, score)
        except np.linalg.LinAlgError:
            return None
        beta = beta + step
        if not np.abs(beta).max() < _SEPARATED:
            return None
        if np.abs(step).max() < _CONVERGED:
            return Estimates(beta, np.sqrt(np.diag(np.linalg.inv(information))))
    return None


def fit_cox(X: Array, time: Array, seen: Array, stratum: NDArray[np.int_]) -> Estimates | None:
    """Return the maximum of Cox's partial likelihood with strata, of times without ties; None if it has none.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_coefficients)
    time, seen, stratum : ndarray of shape (n_rows,)
    """
    # From the last time on, so that sums up to a row are those of its risk set.
    strata = [rows[np.argsort(-time[rows])] for rows in (np.flatnonzero(stratum == k) for k in np.unique(stratum))]

    def derive(beta: Array) -> tuple[Array, Array]:
        score = np.zeros(len(beta))
        information = np.zeros((len(beta), len(beta)))
        for rows in strata:
            Z = X[rows]
            risk = np.exp(Z @ beta)
            events = seen[rows] == 1
            at_risk = np.cumsum(risk)[events]
            means = np.cumsum(risk[:, None] * Z, axis=0)[events] / at_risk[:, None]
            squares = np.cumsum(risk[:, None, None] * Z[:, :, None] * Z[:, None], axis=0)[events]
            score += (Z[events] - means).sum(axis=0)
            information += (squares / at_risk[:, None, None]).sum(axis=0) - means.T @ means
        return score, information

    return _maximise(derive, np.zeros(X.shape[1]))


def _link(n_seen: float, exposure: Array | None, n_rows: int) -> float:
    """Return the logarithm of the odds or the rate of all rows, kept from infinity."""
    # Half an outcome more, as continuity corrections have it.
    if exposure is None:
        return math.log((n_seen + 0.5) / (n_rows - n_seen + 0.5))
    return math.log((n_seen + 0.5) / float(exposure.sum()))


def pool(world: RoundsWorld, tables: Sequence[Table]) -> Estimates | None:
    """Return maximum likelihood on all rows, with an indicator of each party."""
    # A party whose outcomes are all alike has an indicator without limit, and says nothing of odds ratios, nor one
    # without events of rate ratios.
    most = 1.0 if world.kind == "logistic" else math.inf
    telling = [each for each in tables if 0 < each["seen"].mean() < most]
    party = np.repeat(np.arange(len(telling)), [len(each["seen"]) for each in telling])
    if world.kind == "hazards":
        return _fit_times(world, telling, party)
    X = np.hstack([np.vstack([world.design(each) for each in telling]), np.eye(len(telling))[party]])
    exposure = None
    if world.kind == "events":
        exposure = np.concatenate([each["time"] for each in telling])
    return fit_likelihood(X, np.concatenate([each["seen"] for each in telling]), exposure)


def _fit_times(world: RoundsWorld, tables: Sequence[Table], stratum: NDArray[np.int_]) -> Estimates | None:
    X = np.vstack([world.design(each) for each in tables])
    time, seen = (np.concatenate([each[name] for each in tables]) for name in ("exact", "seen"))
    return fit_cox(X, time, seen, stratum)


def average_own(world: RoundsWorld, tables: Sequence[Table]) -> Estimates | None:
    """Return the mean of parties' own estimates by inverse variance, with a fixed effect; None if none has any."""
    own = list[Estimates]()
    for table in tables:
        found = _fit_own(world, table)
        if found is not None:
            own.append(found)
    if not own:
        return None
    p = len(world.true)
    params = np.array([each.params[:p] for each in own])
    weights = np.array([each.errors[:p] for each in own]) ** -2
    return Estimates((weights * params).sum(axis=0) / weights.sum(axis=0), weights.sum(axis=0) ** -0.5)


def _fit_own(world: RoundsWorld, table: Table) -> Estimates | None:
    """Return the maximum likelihood of one party; None if it has none."""
    X = world.design(table)
    if world.kind == "hazards":
        return _fit_times(world, [table], np.zeros(len(X), dtype=int))
    return fit_likelihood(np.column_stack([X, np.ones(len(X))]), table["seen"], table.get("time"))


def run_rounds(statistic: Rounds, tables: Sequence[Table], random: np.random.Generator) -> Estimates | None:
    """Return the ratios after all rounds with noise; None if they are refused."""
    result: Any = None
    for _ in range(statistic.n_rounds):
        result = read(statistic, tables, random)
        if result is None:
            return None
        statistic = replace(statistic, before=getattr(result, "so_far", None))
    return Estimates(result.params, result.bse)


def read(statistic: Statistic, tables: Sequence[Table], random: np.random.Generator) -> Any:
    """Return the result of a total with noise; None if it is refused."""
    noise = noise_factor(len(tables))
    total = np.sum([statistic.part(each) for each in tables], axis=0)
    total = total + statistic.spread_at(noise) * random.normal(size=len(total))
    try:
        return statistic.result(total, n_parties=len(tables), noise=noise)
    except NumericalError:
        return None


def read_patterns(world: RoundsWorld, tables: Sequence[Table], random: np.random.Generator) -> Estimates | None:
    """Return categories' ratios from counts by pattern, NaN for numbers; None if they are refused."""
    try:
        statistic = world.by_pattern()
    except AgreementError:
        # There are too many patterns.
        return None
    result = read(statistic, tables, random)
    if result is None:
        return None
    params = np.full(len(world.true), np.nan)
    errors = params.copy()
    params[world.are_categories] = result.params[-world.n_categories :]
    errors[world.are_categories] = result.bse[-world.n_categories :]
    return Estimates(params, errors)


def measure(world: RoundsWorld, seed: int, n_studies: int = N_STUDIES) -> dict[str, dict[str, float]]:
    """Return figures by way: coverage, width, root mean square and mean apart from pooled, and part refused."""
    random = np.random.default_rng(seed)
    judged: dict[str, list[Array]] = {way: [] for way in WAYS}
    n_pooled = 0
    for _ in range(n_studies):
        tables = [world.table(n, random) for n in world.sizes]
        ways = {
            "rounds": run_rounds(world.rounds(2), tables, random),
            "one round": run_rounds(world.rounds(1), tables, random),
            "parties' own": average_own(world, tables),
            "by pattern": read_patterns(world, tables, random),
        }
        pooled = pool(world, tables)
        # Without pooled estimates there is nothing to compare with.
        if pooled is None:
            continue
        n_pooled += 1
        for way, found in {"pooled": pooled, **ways}.items():
            if found is not None:
                judged[way].append(_judge(world, found, pooled))
    return {way: _summarise(own, n_pooled) for way, own in judged.items()}


def _judge(world: RoundsWorld, found: Estimates, pooled: Estimates) -> Array:
    """Return whether intervals hold, their widths, and how far estimates are off, away from 0: (3, n_coefficients)."""
    p = len(world.true)
    params = found.params[:p]
    errors = found.errors[:p]
    is_held = np.abs(params - world.true) <= norm.isf(0.025) * errors
    width = errors / pooled.errors[:p]
    apart = (params - pooled.params[:p]) / pooled.errors[:p] * np.sign(world.true)
    return np.array([np.where(np.isnan(params), np.nan, is_held), width, apart])


def _summarise(judged: Sequence[Array], n_studies: int) -> dict[str, float]:
    if not judged:
        return dict.fromkeys(FIGURES[:-1], math.nan) | {"refused": 1.0}
    held, width, apart = np.stack(judged, axis=1)
    figures = (np.nanmean(held), np.nanmedian(width), np.sqrt(np.nanmean(apart**2)), np.nanmean(apart))
    return dict(zip(FIGURES, [*map(float, figures), 1 - len(judged) / n_studies], strict=True))


def worlds() -> Iterator[RoundsWorld]:
    """Yield the worlds of the table."""
    for kind in KINDS:
        for sizes, share in product(((200,) * 5, (300,) * 10, (1200, 300, 150, 60, 40)), (0.1, 0.3)):
            yield RoundsWorld(kind, sizes, share)
        yield RoundsWorld(kind, (300,) * 10, 0.3, n_numbers=5, n_categories=3)
        yield RoundsWorld(kind, (60,) * 3, 0.3)
    for kind in KINDS[1:]:
        yield RoundsWorld(kind, (300,) * 10, 0.6)
    yield RoundsWorld("hazards", (300,) * 10, 0.3, shape=0.5)
    # Rounded up to whole quarters, and half years, of two years.
    for n_times in (8, 4):
        yield RoundsWorld("hazards", (300,) * 10, 0.3, n_times=n_times)


def rows(studies: int, kinds: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield the figures of each way in each world; where all studies are refused, nothing else can be said."""
    for seed, world in enumerate(worlds()):
        if world.kind not in kinds:
            continue
        for way, figures in measure(world, seed, studies).items():
            texts = {name: "" if math.isnan(each) else f"{each:.3f}" for name, each in figures.items()}
            yield {"study": world.name, "way": way, **texts}


if __name__ == "__main__":
    write_table(rows, studies=N_STUDIES, kinds=KINDS)
