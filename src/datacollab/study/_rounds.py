r"""Regressions by rounds, and the logistic one, with an intercept of each party that stays at home.

In each round the parties add up the score U and the information I of the coefficients :math:`\beta` so far,

.. math:: U = \sum_i x_i e_i, \quad I = \sum_i w_i (x_i - c)(x_i - c)^\top, \quad e_i = y_i - m(a + x_i^\top \beta)

where a party's intercept a solves :math:`\sum_i e_i = 0` over its own rows, and c is the mean of its x weighted by w.
The analyst adds :math:`I^{-1} U` to the coefficients: Newton's method on the likelihood in which a is profiled out.

Adding a row r moves a, and with it the means of all other rows, all in one direction and together by the residual
:math:`e_r` of the new row.  So U moves by :math:`(x_r - c') e_r`, with c' a mean of the others' x, and no more.  In I
the row itself adds at most :math:`w_r |x_r - c|^2`.  The weights w are the derivatives of the means by a, and change by
no more than the means do: they move I by :math:`|e_r|` times the largest variance of x.  Replacing a row does so twice.

A party whose outcomes are all alike has U and I of 0: its intercept is infinite, and it tells nothing of ratios.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import expit

from .._typing import FloatArray
from ..errors import AgreementError, NumericalError
from ..linalg import largest_noise
from ..sums._statistic import RIDGE_MOVED, ResultTable, Statistic, StatisticResult, StudyTable, refuse_total
from ._columns import (
    CERTAINTY,
    FEWEST,
    USUAL_NOISE,
    CategoryColumn,
    Column,
    coefficient_names,
    coefficient_widths,
    design,
    refuse_undetermined,
)
from ._rare_levels import too_few
from ._ratios import RatioResult, try_columns

# A rule of thumb for regressions on outcomes that are seen or not.
_OUTCOMES_PER_COEFFICIENT = 10
# The part of a round's budget that the information gets, whose noise decides whether there is a result: with it,
# 1,000 rows with a tenth of events are enough for three columns, and intervals grow by 5 % at most.
_OF_INFORMATION = 0.7
# Times the largest eigenvalue of noise that the least of the information has to be: simulated intervals hold from 2 on.
_LEAST_EIGENVALUE = 2.0
# Times as heavy as the mean row that the rows of a party may be: outcomes differ between parties.
_HEAVIER = 2.0
# A level with less than a tenth of the outcomes that its rows would have, or of the others: few rounds do not tell such
# a ratio from one without limit.
_SEPARATED = 0.1
# A step that is longer in its last round, in logarithms of a ratio across a column's range, has not come to rest: where
# a ratio has no limit, each step is about 1.
_LAST_STEP = 0.7
# Logarithms of odds or rates at which a mean is 0 or 1 in double precision.
_FARTHEST_INTERCEPT = 60.0
_ROUNDING = 1e-6


@dataclass(frozen=True)
class RoundsSoFar:
    """The state of a regression after a round, which the analyst sends to the parties for the next one.

    Attributes
    ----------
    n_done : int
        Rounds that are done.
    coefficients : tuple of float
        Across the declared range of each column, by coefficient.
    n_rows, n_outcomes : float
        Of all parties, with the noise of the first round.
    shares : tuple of float
        The part of all events that each interval of proportional hazards has, about.
    """

    n_done: int
    coefficients: tuple[float, ...]
    n_rows: float
    n_outcomes: float
    shares: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class RoundResult(StatisticResult):
    """The state after a round that is not the last."""

    so_far: RoundsSoFar
    n_rounds: int
    noise_of_rows: float

    @property
    def complete(self) -> tuple[float, float]:
        """Return the number of complete rows, and the standard deviation of its noise."""
        return self.so_far.n_rows, self.noise_of_rows

    def table(self) -> ResultTable:
        """Return how far the regression has come."""
        n = self.so_far.n_done
        rows = [(f"{n} of {self.n_rounds}", f"about {self.so_far.n_rows:.0f}", f"about {self.so_far.n_outcomes:.0f}")]
        return ResultTable(("round", "rows", "outcomes"), rows, "Ratios follow after the last round.")


@dataclass(frozen=True)
class RegressionRound(Statistic):
    """Score and information of one round, and the regression that follows from the last."""

    columns: Sequence[Column]
    outcome: CategoryColumn
    n_rounds: int = 2
    noise: float = USUAL_NOISE
    before: RoundsSoFar | None = None

    is_alone: ClassVar[bool] = True
    keeps_rows: ClassVar[bool] = True
    of_ratios: ClassVar[str]
    _has_others: ClassVar[bool]
    """Whether rows without the outcome are as many as outcomes may be."""
    _part_of_information: ClassVar[float]
    """That the information gets of a round's budget."""
    _part_of_others: ClassVar[float] = 0.0
    """The same for other numbers that leave in each round."""
    _most_of_information: ClassVar[float] = 0.25
    """The most of a column's information for each outcome, in units of its range squared."""
    _own: ClassVar[str] = "an intercept"
    """That each party has for itself."""

    def _check(self, *others: str) -> None:
        what = type(self).__name__
        names = [column.name for column in self.columns]
        taken = {self.outcome.name, *others}
        if not names or taken & set(names) or len(set(names)) < len(names):
            raise AgreementError(f"{what}: expected columns other than {', '.join(sorted(taken))}, each once.")
        if len(self.outcome.levels) != 2:
            raise AgreementError(
                f"{what}: the outcome {self.outcome.name!r} has {len(self.outcome.levels)} levels; expected two. Merge "
                "the others."
            )
        if self.n_rounds < 1 or self._n_done >= self.n_rounds:
            raise AgreementError(f"{what}: {self._n_done} of {self.n_rounds} rounds are done; expected fewer.")
        if self.before is not None and len(self.before.coefficients) != len(self.names):
            raise AgreementError(
                f"{what}: there are {len(self.before.coefficients)} coefficients so far; expected {len(self.names)}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name of each coefficient."""
        return coefficient_names(self.columns)

    @property
    def _n_done(self) -> int:
        return 0 if self.before is None else self.before.n_done

    @property
    def _is_first(self) -> bool:
        return self.before is None

    @property
    def _are_levels(self) -> NDArray[np.bool_]:
        """Return which coefficients are those of levels, shape (n_coefficients,)."""
        each = ([isinstance(column, CategoryColumn)] * len(column.coefficient_names) for column in self.columns)
        return np.concatenate([*each])

    @property
    def _n_counts(self) -> int:
        """Return how many counts of rows and outcomes a message has: they leave once, in the first round."""
        return self._is_first * (2 + 2 * int(self._are_levels.sum()))

    @property
    def _spread_of_head(self) -> FloatArray:
        """Return the noise of the numbers before information and score, shape (n_of_head,)."""
        return np.full(self._n_counts, self.noise_of_rows)

    @property
    def _so_far(self) -> FloatArray:
        if self.before is None:
            return np.zeros(len(self.names))
        return np.array(self.before.coefficients)

    @property
    def _diameter_squared(self) -> float:
        """Return the largest squared distance of two rows: 1 for a number or two levels, 2 for more levels."""
        return float(sum(min(len(column.coefficient_names), 2) for column in self.columns))

    @property
    @abstractmethod
    def _information_moved(self) -> float:
        """Return how far replacing one row moves I at most, in the Frobenius norm."""

    @property
    @abstractmethod
    def _score_moved(self) -> float:
        """Return how far replacing one row moves U at most."""

    @property
    def _unit(self) -> float:
        """Return the noise of a round in numbers that a row moves by 1: the budget is that of all rounds together."""
        return self.noise / RIDGE_MOVED * math.sqrt(self.n_rounds)

    @property
    def _of_information(self) -> float:
        return self._unit * self._information_moved / math.sqrt(self._part_of_information)

    @property
    def _of_score(self) -> float:
        return self._unit * self._score_moved / math.sqrt(1 - self._part_of_information - self._part_of_others)

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        p = len(self.names)
        i, j = np.triu_indices(p)
        of_information = np.where(i == j, self._of_information, self._of_information / math.sqrt(2))
        return np.concatenate([self._spread_of_head, of_information, np.full(p, self._of_score)])

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers of all rounds at most, in units of the noise."""
        # The noise of each round grows with the number of rounds, so that all together tell as much as one would.
        return math.hypot(RIDGE_MOVED / self.noise, math.sqrt(self._counts_moved) / self.noise_of_rows)

    @property
    def _counts_moved(self) -> float:
        """Return how far replacing one row moves counts at most, squared."""
        n_categories = sum(isinstance(column, CategoryColumn) for column in self.columns)
        # Rows and outcomes change by 1 each, in all, and in two levels of each category.
        return 2.0 + 4 * n_categories

    def join(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return the rows of both batches."""
        return np.concatenate([first, second])

    def _count(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Return rows and outcomes, in all, and in each level but the first, shape (n_counts,)."""
        levels = X[:, self._are_levels]
        return np.concatenate([[len(y), y.sum()], levels.sum(axis=0), y @ levels])[: self._n_counts]

    def _rarer(self, n_rows: float, n_outcomes: float) -> float:
        """Return the number of outcomes that decides how much can be known."""
        if self._has_others:
            return min(n_outcomes, n_rows - n_outcomes)
        return n_outcomes

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> RoundResult | RatioResult:
        """Return the state after this round, or ratios after the last.

        It raises NumericalError if there are fewer than ten outcomes for each coefficient or rows of a level, if the
        outcome nearly follows from a level, or if noise could decide.
        """
        p = len(self.names)
        of_rows = noise * self.noise_of_rows
        n_rows, n_outcomes = self._counts(total)
        n_of_head = len(self._spread_of_head)
        head = total[:n_of_head]
        numbers = total[n_of_head:]
        i, j = np.triu_indices(p)
        information = np.zeros((p, p))
        information[i, j] = information[j, i] = numbers[: len(i)]
        score = numbers[len(i) :]
        of_score = noise * self._of_score
        self._check_total(n_rows, n_outcomes, information, score, noise)
        part = self._part_that_counts(head, n_outcomes, noise)
        information *= part
        of_information = part * noise * self._of_information
        rarer = part * self._rarer(n_rows, n_outcomes)
        name = self.title.capitalize()
        if rarer < _OUTCOMES_PER_COEFFICIENT * p - 3 * of_rows:
            raise NumericalError(
                f"{name}: {self._outcomes_text(rarer, n_outcomes)} for {p} coefficients; expected "
                f"{_OUTCOMES_PER_COEFFICIENT} for each. Agree on fewer columns, or on more rows."
            )
        if self._is_first:
            self._check_levels(head[: self._n_counts], score, of_rows)
            self._check_first(n_rows, n_outcomes, information, noise)
        way_on = (
            f"There are {self._outcomes_text(rarer, n_outcomes)}. Agree on fewer columns, on narrower ranges, or on "
            "more rows."
        )
        refuse_undetermined(name, self.names, information, of_information, way_on=way_on, least=_LEAST_EIGENVALUE)
        inverse = scipy.linalg.inv(information)
        step = scipy.linalg.solve(self._at_mean_ratio(head, information), score, assume_a="pos")
        beta = self._so_far + step
        n_done = self._n_done + 1
        if n_done < self.n_rounds:
            so_far = RoundsSoFar(n_done, tuple(beta.tolist()), n_rows, n_outcomes, self._shares(head))
            return RoundResult(so_far, self.n_rounds, of_rows)
        # Noise E in I and f in U moves the coefficients by inv(I) (f - E step), to first order.
        moved = of_score**2 * np.eye(p)
        moved += of_information**2 / 2 * ((step @ step) * np.eye(p) + np.outer(step, step))
        unit = 1 / coefficient_widths(self.columns)
        scaled = np.outer(unit, unit) * (inverse @ (information + moved) @ inverse)
        errors = np.sqrt(np.diag(scaled))
        params = unit * beta
        return RatioResult(
            names=self.names,
            params=params,
            bse=errors,
            covariance=scaled,
            intercept=None,
            tests=try_columns(self.columns, params, scaled),
            inflation=errors / (unit * np.sqrt(np.diag(inverse))),
            n_rows=n_rows,
            noise_of_rows=of_rows,
            n_outcomes=n_outcomes,
            of_ratios=self.of_ratios,
            note=(
                f"Of {self.outcome.name}, in {self.n_rounds} rounds, with 95 % intervals and {self._own} for "
                f"each party, on about {n_rows:.0f} complete rows (noise {of_rows:.1f}) and {n_outcomes:.0f} outcomes. "
                "Moments may tell rows of a level more closely."
            ),
            looks=self._restless(step, np.sqrt(np.diag(inverse))),
        )

    def _part_that_counts(self, head: FloatArray, n_outcomes: float, noise: float) -> float:
        """Return the part of all outcomes that the information is of."""
        return 1.0

    def _outcomes_text(self, rarer: float, n_outcomes: float) -> str:
        """Return in words how many outcomes decide."""
        return f"{rarer:.0f} of the rarer outcome"

    def _at_mean_ratio(self, head: FloatArray, information: FloatArray) -> FloatArray:
        """Return the information by which a step is made."""
        return information

    def _shares(self, head: FloatArray) -> tuple[float, ...]:
        """Return the part of all events that each interval has; none if there are no intervals."""
        return ()

    def _check_first(self, n_rows: float, n_outcomes: float, information: FloatArray, noise: float) -> None:
        """Raise NumericalError if the first round shows that there can be no regression."""

    def _counts(self, total: FloatArray) -> tuple[float, float]:
        if self.before is None:
            return float(total[0]), float(total[1])
        return self.before.n_rows, self.before.n_outcomes

    def _check_total(
        self, n_rows: float, n_outcomes: float, information: FloatArray, score: FloatArray, noise: float
    ) -> None:
        """Raise a ShareError if no rows have these sums."""
        of_rows = noise * self.noise_of_rows
        slack = largest_noise(1, of_rows)
        if not -slack <= n_outcomes <= n_rows + largest_noise(1, math.sqrt(2) * of_rows):
            refuse_total("there are fewer outcomes than none, or more than rows", self.title)
        p = len(score)
        most = max(self._rarer(n_rows, n_outcomes), 0.0) + slack
        of_information = noise * self._of_information
        if scipy.linalg.eigvalsh(information)[0] < -largest_noise(p, of_information) - _ROUNDING:
            refuse_total("a square is below zero", self.title)
        # Weights, and means of either outcome, add up to the rarer outcome at most, and a range is 1 wide.
        if np.diag(information).max() > self._most_of_information * most + largest_noise(1, of_information) + _ROUNDING:
            refuse_total("a column varies more than its declared range allows", self.title)
        if np.abs(score).max() > most + largest_noise(1, noise * self._of_score) + _ROUNDING:
            refuse_total("outcomes are farther from their means than their number allows", self.title)

    def _check_levels(self, counts: FloatArray, score: FloatArray, noise: float) -> None:
        """Raise NumericalError if a level has too few rows to hide these, or hardly any outcomes, or others."""
        n_rows, n_outcomes, *of_levels = counts.tolist()
        rows, outcomes = np.reshape(of_levels, (2, -1))
        beyond = score[self._are_levels]
        start = 0
        for column in self.columns:
            if not isinstance(column, CategoryColumn):
                continue
            own = slice(start, start + len(column.coefficient_names))
            start = own.stop
            # The first level has what the others leave, and the noise of all of them.
            of_column = np.array([rows[own], outcomes[own], beyond[own]])
            wholes = np.array([n_rows, n_outcomes, 0.0])
            n, seen, more = np.column_stack([wholes - of_column.sum(axis=1), of_column])
            of_level = np.full(len(n), noise)
            of_level[0] *= math.sqrt(len(n))
            thin = FEWEST + CERTAINTY * of_level > n
            if thin.any():
                worst = column.levels[int(thin.argmax())]
                raise NumericalError(
                    f"{self.title.capitalize()}: {column.name}={worst} has fewer than {FEWEST} rows beyond noise (of "
                    f"{of_level[int(thin.argmax())]:.1f}). Merge the level with another, or leave out the column."
                )
            # At ratios of 1, the score of a level is its outcomes beyond those that its rows would have.
            separated = (seen < _SEPARATED * (seen - more)) & (more < 0)
            if self._has_others:
                separated |= (n - seen < _SEPARATED * (n - seen + more)) & (more > 0)
            if separated.any():
                worst = column.levels[int(separated.argmax())]
                raise NumericalError(
                    f"{self.title.capitalize()}: {column.name}={worst} has less than {_SEPARATED:g} of the outcomes "
                    "that its rows have at a ratio of 1, or of the others (separation, or nearly so): rounds cannot "
                    "tell its ratio. Merge the level with another, or leave out the column."
                )

    def _restless(self, step: FloatArray, errors: FloatArray) -> tuple[str, ...]:
        """Return which coefficients moved so far in the last round that one more would move them again."""
        moving = [
            name
            for name, length, error in zip(self.names, np.abs(step), errors, strict=True)
            if length > max(_LAST_STEP, 2 * error)
        ]
        if not moving:
            return ()
        # Steps may go too far in turn, or not far enough: the last one does not tell on which side the ratio ends.
        return (
            f"{', '.join(moving)} had not come to rest after {self.n_rounds} rounds: the ratio may be farther from the "
            "one of all rows, on either side, than its interval says. Agree on a round more with new rows.",
        )


@dataclass(frozen=True)
class LogisticRound(RegressionRound):
    """One round of a logistic regression with an intercept of each party, which stays there.

    Rows with a missing entry are left out.  Numbers are clipped to their declared ranges.

    Parameters
    ----------
    columns : sequence of NumberColumn and CategoryColumn
        A category has a coefficient for each level but the first.
    outcome : CategoryColumn
        Of two levels: odds are of the second.
    n_rounds : int, default=2
        With two, coefficients are within a tenth of a standard error of the maximum likelihood; more share its noise.
    noise : float
        Of all rounds together: a row is hidden about as well as by this noise in `RidgeSums`.
    before : RoundsSoFar, optional
        The state after the rounds before this one.

    Raises
    ------
    AgreementError
        If the outcome has other than two levels or is one of the columns, or all rounds are done.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import replace
    >>> from datacollab.study import CategoryColumn, LogisticRound
    >>> drug, died = CategoryColumn("drug", ["old", "new"]), CategoryColumn("died", ["no", "yes"])
    >>> table = {"drug": np.repeat(["old", "new"], 100)}
    >>> table["died"] = np.repeat(["no", "yes", "no", "yes"], [60, 40, 80, 20])
    >>> round = LogisticRound([drug], died, n_rounds=5)
    >>> for _ in range(4):
    ...     state = round.result(round.part(table), n_parties=1, noise=0.0).so_far
    ...     round = replace(round, before=state)
    >>> np.exp(round.result(round.part(table), n_parties=1, noise=0.0).params).round(6)  # (20 / 80) / (40 / 60)
    array([0.375])
    """

    title: ClassVar[str] = "logistic regression"
    tells: ClassVar[str] = (
        "how the odds of the outcome change with the other columns, within parties, after each round; and more closely "
        "than counts do, how many rows each level has, and how many of them have the outcome"
    )
    of_ratios: ClassVar[str] = "odds ratio"
    _has_others: ClassVar[bool] = True
    _part_of_information: ClassVar[float] = _OF_INFORMATION

    def __post_init__(self) -> None:
        self._check()

    @property
    def _largest_variance(self) -> float:
        """Return the largest trace of a covariance of rows: 1/4 for a number or two levels, 1 - 1/k for k others."""
        n_each = [len(column.coefficient_names) for column in self.columns]
        return math.fsum(0.25 if n == 1 else 1 - 1 / n for n in n_each)

    @property
    def _information_moved(self) -> float:
        # Both rows may have any residual e; what each adds or takes is positive, so that their norms add in squares.
        e = np.linspace(0.0, 1.0, 1001)
        moved = math.sqrt(2) * e * (1 - e) * self._diameter_squared + 2 * e * self._largest_variance
        return float(moved.max())

    @property
    def _score_moved(self) -> float:
        return 2 * math.sqrt(self._diameter_squared)

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return the complete rows themselves, one after the other: the intercept follows from all of them.

        Each has x and y, shape (n_complete * (n_coefficients + 1),).
        """
        levels = self.outcome.indicators(table)
        y = np.where(levels.any(axis=1), levels[:, 1], np.nan)
        rows = np.column_stack([design(self.columns, table), y])
        return np.asarray(rows[~np.isnan(rows).any(axis=1)].ravel())

    def finish(self, sums: FloatArray, noise: float = 1.0) -> FloatArray:
        """Return a party's counts, in the first round, its information and its score, shape (n_numbers,).

        The counts are those of rows and of outcomes, in all, and in each level but the first.
        """
        p = len(self.names)
        rows = sums.reshape(-1, p + 1)
        X = rows[:, :p]
        y = rows[:, p]
        i, j = np.triu_indices(p)
        means, weights = _fit_means(X @ self._so_far, y)
        total = weights.sum()
        centred = X
        if total > 0:
            centred = X - (weights @ X) / total
        information = (centred * weights[:, None]).T @ centred
        score = X.T @ (y - means)
        return np.concatenate([self._count(X, y), information[i, j], score])

    def _check_first(self, n_rows: float, n_outcomes: float, information: FloatArray, noise: float) -> None:
        # At ratios of 1, all rows of a party have one weight; where outcomes are frequent, more than the mean one.
        share = n_outcomes / n_rows
        of_row = _HEAVIER * share * (1 - share)
        enough = FEWEST * (1 - FEWEST / n_rows) * of_row
        if few := too_few(self.columns, information, enough, noise * self._of_information):
            raise NumericalError(f"{self.title.capitalize()}: {few}.")


def _fit_means(eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means and weights of the rows of a party, with the intercept at which means and outcomes agree."""
    n_outcomes = float(y.sum())
    if not 0 < n_outcomes < len(y):
        # The intercept is infinite, and the outcome of each row follows from the party.
        return y, np.zeros(len(y))

    def excess(a: float) -> float:
        return float(expit(a + eta).sum()) - n_outcomes

    # At the ends, means are 0 or 1 in double precision, whatever the coefficients.
    a = scipy.optimize.brentq(excess, -_FARTHEST_INTERCEPT - eta.max(), _FARTHEST_INTERCEPT - eta.min(), xtol=1e-13)
    means = np.asarray(expit(a + eta))
    return means, means * (1 - means)
