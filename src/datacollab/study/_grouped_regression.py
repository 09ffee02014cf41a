r"""Logistic and Poisson regression from counts by pattern: rows with the same levels of all columns are one pattern.

Counts and sums of patterns are sufficient for a generalised linear model of columns with levels, so that one total
gives what all rows in one place would give.  With z the numbers of a pattern, x its row of the design and
:math:`\mu = h(x^\top\beta)`, the residual is :math:`r = y - t \mu`, where y and t are linear in z: rows with the
outcome and all rows, or events and person-time.  So noise in z makes noise in r with a mean of 0, and

.. math:: \sum t \mu' x \, r / V = 0, \quad V = t v(\mu) + \operatorname{var}(\text{noise of } r)

is an unbiased equation for the coefficients, whose weights are those of least variance [Heyde1997]_.  Their covariance
is the inverse of :math:`\sum (t \mu')^2 x x^\top / V`.  Without noise it is maximum likelihood.  Where t is a factor of
a weight, the part of it that goes with the noise of r is taken out: a weight must not depend on its own residual.

References
----------
.. [Heyde1997] Heyde (1997). Quasi-likelihood and its application. Springer.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.linalg
from scipy.special import expit

from .._typing import FloatArray
from ..errors import AgreementError, NumericalError
from ..linalg import largest_noise
from ..sums._recommended import MOST_PATTERNS
from ..sums._statistic import (
    COUNT_NOISE,
    RIDGE_MOVED,
    Statistic,
    StudyTable,
    refuse_total,
)
from ._columns import (
    CERTAINTY,
    FEWEST,
    USUAL_NOISE,
    CategoryColumn,
    NumberColumn,
    coefficient_names,
    design,
)
from ._ratios import RatioResult, try_columns

# A rule of thumb for regressions on outcomes that are seen or not.
_OUTCOMES_PER_COEFFICIENT = 10
# Times as large as without noise that a standard error may be; beyond, most patterns have fewer rows than noise, and
# simulated intervals no longer hold as often as they say.
_MOST_INFLATION = 2.2
# How far replacing a row moves the sum of times, which are moved to [-1/2, 1/2]: at most by their range.
_TIMES_MOVED = 1.0
# Times are often at one end of their range, where a row moves their sum by half of what it moves a count.  With half of
# the noise of a count, the sum less the count of one outcome tells that of the other with sqrt(2) times its noise: as
# half a copy does.
_OF_SUMS = 0.5
_COPIES_WITH_TIMES = 1.5
_MOST_ITERATIONS = 100
_CONVERGED = 1e-12
_ROUNDING = 1e-6
# Logarithms of rates are within it, so that none overflows.
_LARGEST = 50.0
# A coefficient of 15 is a ratio of three millions: the likelihood has no maximum.
_SEPARATED = 15.0


class _Patterns(NamedTuple):
    """The total as the equation needs it; M patterns and k numbers of each, whose noise has standard deviations."""

    numbers: FloatArray
    noise: FloatArray
    outcomes: FloatArray
    """How numbers give y, shape (k,)."""
    exposure: FloatArray
    """How numbers give t, shape (k,)."""


@dataclass(frozen=True)
class _GroupedRegression(Statistic):
    """Counts and sums by pattern, and the regression that follows from them."""

    of_ratios: ClassVar[str]

    columns: Sequence[CategoryColumn]

    def _check_columns(self, *others: str) -> None:
        """Refuse columns that make no patterns, or too many."""
        what = type(self).__name__
        names = [column.name for column in self.columns]
        if not names or set(names) & set(others) or len(set(names)) < len(names):
            raise AgreementError(f"{what}: expected columns of levels other than {', '.join(others)}, each once.")
        if self._n_patterns > MOST_PATTERNS:
            raise AgreementError(
                f"{what}: the levels of {', '.join(names)} make {self._n_patterns} patterns; expected {MOST_PATTERNS} "
                "at most. Merge levels, or leave out columns (entry factors of [sharing])."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of each coefficient."""
        return coefficient_names(self.columns)

    @property
    def _n_patterns(self) -> int:
        return math.prod(len(column.levels) for column in self.columns)

    @property
    def _design(self) -> FloatArray:
        """Return the design of all patterns, shape (n_patterns, 1 + n_coefficients), the last column's levels first."""
        patterns = itertools.product(*(column.levels for column in self.columns))
        entries = zip(*patterns, strict=True)
        names = (column.name for column in self.columns)
        table = {name: np.array(own, dtype=object) for name, own in zip(names, entries, strict=True)}
        return np.column_stack([np.ones(self._n_patterns), design(self.columns, table)])

    @property
    def _of_counts(self) -> float:
        return COUNT_NOISE * math.sqrt(self.copies)

    @property
    @abstractmethod
    def _spread_of_pattern(self) -> FloatArray:
        """Return the noise in each number of a pattern, shape (n_numbers_of_pattern,)."""

    @abstractmethod
    def _numbers_of_rows(self, table: StudyTable) -> FloatArray:
        """Return each row's numbers, shape (n_rows, n_numbers_of_pattern); NaN if an entry is missing."""

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        return np.tile(self._spread_of_pattern, self._n_patterns)

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return the numbers of all patterns, one after the other, shape (n_numbers,); rows with gaps are left out."""
        numbers = self._numbers_of_rows(table)
        levels = [column.indicators(table) for column in self.columns]
        complete = np.all([each.any(axis=1) for each in levels], axis=0) & ~np.isnan(numbers).any(axis=1)
        pattern = np.zeros(len(numbers), dtype=np.intp)
        for each in levels:
            pattern = pattern * each.shape[1] + each.argmax(axis=1)
        sums = np.zeros((self._n_patterns, numbers.shape[1]))
        np.add.at(sums, pattern[complete], numbers[complete])
        return sums.ravel()

    def _refuse_negative(self, counts: FloatArray, noise: float) -> None:
        """Raise a ShareError if a count is below zero by more than noise."""
        if counts.min() < -largest_noise(1, noise) - _ROUNDING:
            refuse_total("a count is far below zero", self.title)

    def _fit(self, patterns: _Patterns, start: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return coefficients by iteratively reweighted least squares, and their information with and without noise.

        It raises NumericalError if the equation has no solution.
        """
        X = self._design
        variances = patterns.noise**2
        y = patterns.numbers @ patterns.outcomes
        t = patterns.numbers @ patterns.exposure
        beta = np.zeros(X.shape[1])
        beta[0] = start
        for _ in range(_MOST_ITERATIONS):
            mu, slope = self._mean(X @ beta)
            # How each number goes into the residual of its pattern.
            into = patterns.outcomes - mu[:, None] * patterns.exposure
            of_noise = into**2 @ variances
            r = y - t * mu
            shared = np.divide(
                into @ (variances * patterns.exposure), of_noise, where=of_noise > 0, out=np.zeros_like(r)
            )
            of_size = patterns.exposure**2 @ variances - shared**2 * of_noise
            size = self._smooth(t - shared * r, of_size)
            # In both families the variance of one unit is the slope of the mean.
            sampled = size * slope
            V = np.maximum(sampled + of_noise, np.finfo(float).tiny)
            D = X * (size * slope)[:, None]
            information = D.T @ (D / V[:, None])
            without_noise = (X * (size * slope)[:, None]).T @ X
            if scipy.linalg.eigvalsh(without_noise)[0] <= 1e-10 * np.trace(without_noise):
                raise NumericalError(
                    f"{self.title.capitalize()}: levels of two columns nearly follow from each other, or the noise is "
                    "most of the table. Leave out a column (factors), merge levels, or agree on more rows."
                )
            step = np.linalg.solve(information, D.T @ (r / V))
            # Long steps overshoot where the likelihood is flat.
            step *= min(1.0, 3.0 / float(np.abs(step).max(initial=1e-300)))
            beta = beta + step
            if np.abs(beta[1:]).max() > _SEPARATED:
                break
            if np.abs(step).max() < _CONVERGED * (1 + np.abs(beta).max()):
                return beta, information, without_noise
        worst = self.names[int(np.abs(beta[1:]).argmax())]
        raise NumericalError(
            f"{self.title.capitalize()}: the outcome nearly follows from {worst} (separation), or patterns have so few "
            "rows that noise decides: its ratio has no limit. Merge the level with another, leave out columns "
            "(factors), or agree on more rows."
        )

    def _smooth(self, sizes: FloatArray, variances: FloatArray) -> FloatArray:
        """Return sizes of patterns, shrunk towards those of independent columns as far as noise explains the rest."""
        table = sizes.reshape([len(each.levels) for each in self.columns])
        independent = np.ones(())
        for place in range(table.ndim):
            margin = table.sum(axis=tuple(axis for axis in range(table.ndim) if axis != place))
            independent = np.multiply.outer(independent, np.maximum(margin, 0.0) / max(float(table.sum()), 1e-300))
        expected = independent.ravel() * table.sum()
        apart = sizes - expected
        # The part of their squared distances that is no noise (James and Stein).
        kept = max(0.0, 1 - float(variances.sum()) / max(float(apart @ apart), 1e-300)) if variances.any() else 1.0
        return np.asarray(np.maximum(expected + kept * apart, 0.0))

    @abstractmethod
    def _mean(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean of one unit, and its derivative by the linear predictor."""

    def _check_levels(self, words: str, counts: FloatArray, noise: float) -> None:
        """Raise NumericalError if a level has fewer than ten of what is counted by pattern, beyond noise of a count."""
        of_patterns = counts.reshape([len(each.levels) for each in self.columns])
        for place, column in enumerate(self.columns):
            of_levels = of_patterns.sum(axis=tuple(axis for axis in range(of_patterns.ndim) if axis != place))
            of_level = noise * math.sqrt(self._n_patterns / len(column.levels))
            least = FEWEST + CERTAINTY * of_level
            few = [str(level) for level, n in zip(column.levels, of_levels, strict=True) if n < least]
            if few:
                raise NumericalError(
                    f"{self.title.capitalize()}: {column.name}={', '.join(few)} has fewer than {FEWEST} {words} beyond "
                    f"noise (of {of_level:.1f}). Merge the level with another, or leave out the column (factors)."
                )

    def _check_outcomes(self, n_rarer: float, noise: float) -> None:
        """Raise NumericalError unless there are ten of the rarer outcome for each coefficient."""
        if n_rarer < _OUTCOMES_PER_COEFFICIENT * len(self.names) - 3 * noise:
            raise NumericalError(
                f"{self.title.capitalize()}: {n_rarer:.0f} of the rarer outcome for {len(self.names)} coefficients; "
                f"expected {_OUTCOMES_PER_COEFFICIENT} for each. Leave out columns (factors), or agree on more rows."
            )

    def _result_of(
        self, patterns: _Patterns, start: float, n_rows: float, n_outcomes: float, outcome: str
    ) -> RatioResult:
        """Return the regression of patterns; NumericalError if noise decides it."""
        beta, information, without_noise = self._fit(patterns, start)
        noise_of_rows = float(np.linalg.norm(patterns.noise[:2])) * math.sqrt(self._n_patterns)
        covariance = scipy.linalg.inv(information)
        errors = np.sqrt(np.diag(covariance))
        inflation = errors / np.sqrt(np.diag(scipy.linalg.inv(without_noise)))
        if inflation[1:].max() > _MOST_INFLATION:
            raise NumericalError(
                f"{self.title.capitalize()}: about {n_rows:.0f} rows in {self._n_patterns} patterns are too few for as "
                f"much noise, which would make errors {inflation[1:].max():.1f} times as large (expected "
                f"{_MOST_INFLATION:g} at most). Leave out columns (factors), merge levels, or agree on more rows."
            )
        return RatioResult(
            names=self.names,
            params=beta[1:],
            bse=errors[1:],
            covariance=covariance[1:, 1:],
            intercept=float(beta[0]),
            tests=try_columns(self.columns, beta[1:], covariance[1:, 1:]),
            inflation=inflation[1:],
            n_rows=n_rows,
            noise_of_rows=noise_of_rows,
            n_outcomes=n_outcomes,
            of_ratios=self.of_ratios,
            note=(
                f"Of {outcome}, with 95 % intervals, on about {n_rows:.0f} complete rows (noise {noise_of_rows:.1f}) "
                f"and {n_outcomes:.0f} outcomes. What differs between parties is not adjusted for."
            ),
        )


@dataclass(frozen=True)
class GroupedLogistic(_GroupedRegression):
    """Logistic regression of an outcome with two levels on columns of levels, from rows by pattern and outcome.

    Rows with a missing entry are left out.  One intercept is for all parties.

    Parameters
    ----------
    columns : sequence of CategoryColumn
        Each has a coefficient for each level but the first; all their levels together make 200 patterns at most.
    outcome : CategoryColumn
        Of two levels: odds are of the second.

    Raises
    ------
    AgreementError
        If the outcome has other than two levels or is one of the columns, or there are no columns or too many patterns.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.study import CategoryColumn, GroupedLogistic
    >>> drug, died = CategoryColumn("drug", ["old", "new"]), CategoryColumn("died", ["no", "yes"])
    >>> logistic = GroupedLogistic([drug], died)
    >>> table = {"drug": np.repeat(["old", "new"], 100)}
    >>> table["died"] = np.repeat(["no", "yes", "no", "yes"], [60, 40, 80, 20])
    >>> found = logistic.result(logistic.part(table), n_parties=1, noise=0.0)
    >>> np.exp(found.params).round(3)  # (20 / 80) / (40 / 60)
    array([0.375])
    """

    outcome: CategoryColumn

    title: ClassVar[str] = "logistic regression"
    tells: ClassVar[str] = "rows with and without the outcome, for each combination of the columns' levels"
    of_ratios: ClassVar[str] = "odds ratio"

    def __post_init__(self) -> None:
        if len(self.outcome.levels) != 2:
            raise AgreementError(
                f"GroupedLogistic: the outcome {self.outcome.name!r} has {len(self.outcome.levels)} levels; expected "
                "two. Merge the others."
            )
        self._check_columns(self.outcome.name)

    @property
    def _spread_of_pattern(self) -> FloatArray:
        return np.full(2, self._of_counts)

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise."""
        return math.sqrt(2) / self._of_counts

    def _numbers_of_rows(self, table: StudyTable) -> FloatArray:
        seen = self.outcome.indicators(table)
        return np.where(seen.any(axis=1, keepdims=True), seen, np.nan)

    def _mean(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = expit(eta)
        return p, p * expit(-eta)

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> RatioResult:
        """Return odds ratios.

        It raises NumericalError if a level has fewer than ten rows with or without the outcome, if there are fewer than
        ten outcomes for each coefficient, if the outcome nearly follows from levels, or if noise could decide.
        """
        rows = total.reshape(-1, 2)
        patterns = _Patterns(rows, noise * self._spread_of_pattern, np.array([0.0, 1.0]), np.ones(2))
        of_count = noise * self._of_counts
        self._refuse_negative(rows, of_count)
        without, seen = rows.sum(axis=0).tolist()
        self._check_levels("rows without the outcome", rows[:, 0], of_count)
        self._check_levels("rows with it", rows[:, 1], of_count)
        self._check_outcomes(min(without, seen), of_count * math.sqrt(self._n_patterns))
        outcome = f"{self.outcome.name}={self.outcome.levels[1]}"
        return self._result_of(patterns, math.log(seen / without), without + seen, seen, outcome)


@dataclass(frozen=True)
class GroupedPoisson(_GroupedRegression):
    """Poisson regression of an event on columns of levels, from rows with and without it and person-time by pattern.

    Rows with a missing entry are left out.  One intercept is for all parties.

    Parameters
    ----------
    columns : sequence of CategoryColumn
        Each has a coefficient for each level but the first; all their levels together make 200 patterns at most.
    outcome : CategoryColumn
        An event of two levels: the second says that it was seen.
    exposure : NumberColumn
        From 0: the time under observation.
    noise : float
        Of sums of times: a row is hidden at least as well as by this noise in `RidgeSums`.

    Raises
    ------
    AgreementError
        If the event has other than two levels, times do not begin at 0, or a column stands twice; or if there are no
        columns, or too many patterns.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.study import CategoryColumn, GroupedPoisson, NumberColumn
    >>> ward = CategoryColumn("ward", ["day", "night"])
    >>> poisson = GroupedPoisson([ward], CategoryColumn("fell", [0, 1]), NumberColumn("weeks", 0, 10))
    >>> table = {"ward": np.repeat(["day", "night"], 50), "weeks": np.repeat([4, 5], 50), "fell": np.tile([0, 1], 50)}
    >>> found = poisson.result(poisson.part(table), n_parties=1, noise=0.0)
    >>> np.exp(found.params).round(3)  # (25 / 250) / (25 / 200)
    array([0.8])
    """

    outcome: CategoryColumn
    exposure: NumberColumn
    noise: float = USUAL_NOISE

    title: ClassVar[str] = "poisson regression"
    tells: ClassVar[str] = "rows, events and time under observation, for each combination of the columns' levels"
    of_ratios: ClassVar[str] = "rate ratio"

    def __post_init__(self) -> None:
        if len(self.outcome.levels) != 2 or self.exposure.low != 0:
            raise AgreementError(
                f"GroupedPoisson: expected an outcome {self.outcome.name!r} of two levels, and an exposure "
                f"{self.exposure.name!r} from 0; got {len(self.outcome.levels)} levels, from {self.exposure.low:g}."
            )
        self._check_columns(self.outcome.name, self.exposure.name)

    @property
    def _of_counts(self) -> float:
        return COUNT_NOISE * math.sqrt(_COPIES_WITH_TIMES * self.copies)

    @property
    def _of_sums(self) -> float:
        return max(self.noise / RIDGE_MOVED * _TIMES_MOVED, _OF_SUMS * self._of_counts)

    @property
    def _spread_of_pattern(self) -> FloatArray:
        return np.array([self._of_counts, self._of_counts, self._of_sums])

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise."""
        return math.hypot(math.sqrt(2) / self._of_counts, _TIMES_MOVED / self._of_sums)

    def _numbers_of_rows(self, table: StudyTable) -> FloatArray:
        seen = self.outcome.indicators(table).astype(np.float64)
        is_missing = ~seen.any(axis=1)
        # An event after the longest time was not seen in the time that counts.
        seen[self.exposure.numbers(table) > self.exposure.high] = [1.0, 0.0]
        seen[is_missing] = np.nan
        return np.column_stack([seen, self.exposure.scale(table)])

    def _mean(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        mu = np.exp(np.clip(eta, -_LARGEST, _LARGEST))
        return mu, mu

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> RatioResult:
        """Return rate ratios.

        It raises NumericalError if a level has fewer than ten rows or events, if there are fewer than ten events for
        each coefficient, if events nearly follow from levels, or if noise could decide.
        """
        numbers = total.reshape(self._n_patterns, -1)
        spread = noise * self._spread_of_pattern
        # Events, and exposures as parts of the longest one: times are moved to [-1/2, 1/2].
        patterns = _Patterns(numbers, spread, np.array([0.0, 1.0, 0.0]), np.array([0.5, 0.5, 1.0]))
        of_count = noise * self._of_counts
        counts = numbers[:, :2]
        rows = counts.sum(axis=1)
        of_rows = of_count * math.sqrt(2)
        self._refuse_negative(counts, of_count)
        beyond = np.abs(numbers[:, 2]) - rows / 2
        if beyond.max() > largest_noise(1, math.hypot(noise * self._of_sums, of_rows / 2)) + _ROUNDING:
            refuse_total("sums of times are beyond their declared range", self.title)
        y = numbers @ patterns.outcomes
        of_y = float(np.linalg.norm(spread * patterns.outcomes))
        self._check_levels("rows", rows, of_rows)
        self._check_levels("events", y, of_y)
        of_total = math.sqrt(self._n_patterns)
        self._check_outcomes(float(y.sum()), of_y * of_total)
        time = float((numbers @ patterns.exposure).sum())
        if time <= CERTAINTY * float(np.linalg.norm(spread * patterns.exposure)) * of_total:
            raise NumericalError("Poisson regression: there is no more time under observation than noise.")
        start = math.log(float(y.sum()) / time)
        found = self._result_of(patterns, start, float(rows.sum()), float(y.sum()), self.outcome.name)
        assert found.intercept is not None
        return replace(found, intercept=found.intercept - math.log(self.exposure.high))
