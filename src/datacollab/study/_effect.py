r"""The effect of a treatment on a number, from cross-fitted sums in the common map.

The model is partially linear [1]_: with T the treatment (0 or 1), v a row in the common map and a an intercept of each
party,

.. math:: Y = \theta T + g(v) + a + \varepsilon, \qquad T = m(v) + b + \nu.

Each party deals its rows to groups at random, centres u = [v; T; Y] within each group, so that its intercepts drop out,
and adds up :math:`\sum u u^\top` of each group.  From the totals of all other groups the analyst fits ridge regression
of T and of Y on v; the total of the group itself has the moments of their residuals, and so the orthogonal score [2]_.
The noise of that total is independent of the fit, so that it adds no bias.  The standard error is the jackknife's:
each group in turn is left out of both fit and scores.  Deviations are taken from the mean of these estimates [4]_: from
the estimate itself, they would hold the bias that fewer groups add.

Ridge regression shrinks confounding, and the score's bias is a product of two such errors.  Each is about inverse to
the number of rows.  The generalised jackknife [5]_ extrapolates the estimate, and the mean of those with a group left
out, to no such bias.

Whether the effect differs with a column s is a coefficient of :math:`T s` beside that of T, both less their fits on v.
It is not extrapolated: with few rows, its intervals would be too short.

References
----------
.. [1] Robinson (1988). Root-N-consistent semiparametric regression. Econometrica 56(4), 931-954.
.. [2] Chernozhukov et al. (2018). Double/debiased machine learning for treatment and structural parameters.
   Econometrics Journal 21(1), C1-C68.
.. [3] Newey, Hsieh and Robins (2004). Twicing kernels and a small bias property of semiparametric estimators.
   Econometrica 72(3), 947-962.
.. [4] Efron and Stein (1981). The jackknife estimate of variance. Annals of Statistics 9(3), 586-596.
.. [5] Schucany, Gray and Owen (1971). On bias reduction in estimation. Journal of the American Statistical Association
   66(335), 524-533.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from .._typing import FloatArray
from ..errors import AgreementError, NumericalError
from ..linalg import below_zero, largest_noise
from ..sums import CommonMap
from ..sums._ridge_sums import check_mapped
from ..sums._statistic import (
    MAPPED,
    RIDGE_MOVED,
    ResultTable,
    Statistic,
    StatisticResult,
    StudyTable,
    entries_of,
    refuse_total,
)
from ._columns import (
    FARTHEST,
    USUAL_NOISE,
    CategoryColumn,
    NumberColumn,
    number_text,
    p_text,
)
from ._groups import alone, deal

# The most columns of the common map: the noise of each group grows with them.
_COMPONENTS = 20
# Directions of little spread hold bends of the confounding, and the noise is the same in all.
_FLATTEN = 0.5
# Of the ridge, as a multiple of the operator norm of the noise.
_LEAST_PENALTY = 0.7
# Width of treatment and outcome beside the unit ball of the common map: noise of their moments counts most.
_SCALE = 2.0
# The part of what hides a row (one over squared noise) that the balance of columns uses up.
_OF_BALANCE = 0.1
# With more, intervals are shorter where rows are many, and longer where they are few.
_N_GROUPS = 5
# Times the effect less the mean with a group left out: a bias inverse to the square of the number of rows.
_EXTRAPOLATED = 1 / ((_N_GROUPS / (_N_GROUPS - 1)) ** 2 - 1)
_FEWEST_ROWS = 100
_PENALTIES = np.geomspace(1e-3, 1e3, 37)
# The least share of the treatment's variance that columns leave unexplained, below which there is a warning.
_LEAST_OVERLAP = 0.2


class Difference(NamedTuple):
    """How an effect differs between two levels, or the ends of a declared range, with a 95 % interval."""

    name: str
    value: float
    error: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, eq=False)
class EffectResult(StatisticResult):
    """The effect of a treatment, within parties.

    Attributes
    ----------
    estimand : str
        The name of the effect.
    effect, error : float
        In the unit of the outcome.  The standard error comes from leaving out each group, and holds the noise.
    low, high, p_value : float
        95 % interval and test by Student's distribution with one degree of freedom less than groups.
    difference : Difference or None
        How the effect differs with the column `by`; None if there is no such column, or noise could decide.
    noise : float
        Standard error that the noise of the total has by itself, to first order.
    overlap : float
        Share of the treatment's variance within parties that columns leave unexplained.
    balance : dict of str to (float, float)
        How far the mean of each column (a number, or ``column=level``) differs between arms of one party, in standard
        deviations within parties: in all rows, and weighted as in the effect.
    n_rows, noise_of_rows : float
        All rows, with noise, and its standard deviation.
    noise_of_arms : float
        Standard deviation of the noise with which moments may tell the rows of a small arm.
    """

    estimand: str
    effect: float
    error: float
    low: float
    high: float
    p_value: float
    difference: Difference | None
    noise: float
    overlap: float
    balance: dict[str, tuple[float, float]]
    n_rows: float
    noise_of_rows: float
    noise_of_arms: float

    @property
    def size(self) -> tuple[float, float]:
        """Return the number of all rows, and the standard deviation of its noise."""
        return self.n_rows, self.noise_of_rows

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return that there is little overlap, if so."""
        if self.overlap >= _LEAST_OVERLAP:
            return ()
        return (
            f"Columns explain all but {self.overlap:.0%} of who is treated: the effect rests on few rows, and on the "
            "model.",
        )

    @property
    def _tested(self) -> str:
        if self.difference is None:
            return "Whether they differ is not tested: no column was named for it, or noise could decide."
        return "Whether they differ is tested along one column alone, and as a straight line."

    @property
    def _why_empty(self) -> str:
        if not any(math.isnan(each) for differences in self.balance.values() for each in differences):
            return ""
        return "; it is left empty where noise could be most of a column's variance, which a narrower range would help"

    def table(self) -> ResultTable:
        """Return a line for the effect, one for the overlap, and one for the balance of each column."""
        estimates = [(self.estimand, self.effect, self.error, self.low, self.high, self.p_value)]
        if self.difference is not None:
            estimates.append(self.difference)
        rows = [(name, *map(number_text, figures), p_text(p), "", "") for name, *figures, p in estimates]
        rows.append(("variance of treatment left by columns", number_text(self.overlap), *[""] * 6))
        for name, differences in self.balance.items():
            rows.append((f"balance of {name}", *[""] * 5, *(number_text(round(each, 2) + 0.0) for each in differences)))
        note = (
            f"A weighted average over about {self.n_rows:.0f} rows: a row weighs more, the less the columns explain "
            "its treatment. If effects differ between rows, this is not the average over all rows. "
            f"{self._tested} Standard errors come from {_N_GROUPS} random groups of rows: residuals may vary "
            f"unequally. Of the effect's squared error about {min((self.noise / max(self.error, 1e-300)) ** 2, 1):.0%} "
            "is noise of the total. Balance is the difference of the arms' means within parties, in standard "
            f"deviations, before and after adjustment{self._why_empty}. Moments may tell the rows of an arm with noise "
            f"of {self.noise_of_arms:.2g} rows."
        )
        heads = ("figure", "value", "standard error", "95 % low", "95 % high", "p", "before", "after")
        return ResultTable(heads, rows, note)


@dataclass(frozen=True)
class Effect(Statistic):
    """The effect of a treatment on a number, with an intercept for each party in all models.

    A party's table holds its rows in the common map (of `effect_map`) under the name `MAPPED`, beside its
    columns.  Treatment and outcome may have no gap; gaps of numbers count as the middle of their range in the balance.

    Parameters
    ----------
    treatment : CategoryColumn
        Of two levels; rows of the second are treated.
    outcome : NumberColumn
    n_components : int
        Columns of the common map.
    columns : sequence of NumberColumn and CategoryColumn, default=()
        Columns whose balance is shown.
    cluster : str, optional
        A column whose equal entries are one cluster of rows: standard errors then allow for rows of one
        cluster to depend on each other.
    by : NumberColumn or CategoryColumn of two levels, optional
        A column of the map: whether the effect differs with it is tested.  Gaps count as the middle.
    noise : float
        A row is hidden as well as by this noise in `RidgeSums`.

    Raises
    ------
    AgreementError
        If the treatment, or the column `by`, has not two levels.
    """

    treatment: CategoryColumn
    outcome: NumberColumn
    n_components: int
    columns: Sequence[NumberColumn | CategoryColumn] = ()
    cluster: str | None = None
    by: NumberColumn | CategoryColumn | None = None
    noise: float = USUAL_NOISE

    title: ClassVar[str] = "effect"
    tells: ClassVar[str] = (
        "how the outcome differs with the treatment, within parties, and how the arms differ in columns; and more "
        "closely than counts do, how many rows each arm has"
    )
    own_copies: ClassVar[float] = 0.25

    def __post_init__(self) -> None:
        for what, column in (("treatment", self.treatment), ("column by", self.by)):
            if isinstance(column, CategoryColumn) and len(column.levels) != 2:
                raise AgreementError(f"Effect: expected a {what} of two levels, got {len(column.levels)}.")

    @property
    def _size(self) -> int:
        return self.n_components + 2 + (self.by is not None)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(name for column in self.columns for name in _names_in_balance(column))

    @property
    def _n_balanced(self) -> int:
        """Return how many numbers of a row, the treatment among them, have cross moments."""
        return len(self._names) + 1 if self.columns else 0

    @property
    def _moved(self) -> tuple[float, float, float]:
        """Return how far replacing one row moves groups' moments, columns' cross moments and their squares.

        In the Frobenius norm.  All rows u lie in a ball of radius r.  With m the mean of the other rows, a = u - m and
        b = u' - m, moments of n + 1 rows change by n/(n + 1) times aaᵀ - bbᵀ, whose norm is at most 4r².  With
        clusters the row may go to another group: then two of them change by at most 4r² each.  Cross moments of x and
        w are a block of the moments of [cx; w/c], which holds them twice.
        """
        # Squared radii: of [v; T], of Y, and of T s.
        w = 1 + _SCALE**2 / 4
        outcomes = _SCALE**2 / 4
        if self.by is not None:
            outcomes += _SCALE**2 / 16
        x = 0.25 + sum(map(_square_in_balance, self.columns))
        moments = 4 * (w + outcomes)
        if self.cluster is not None:
            moments *= math.sqrt(2)
        return moments, 4 * math.sqrt(2 * w * x), 4 * x

    @property
    def _noises(self) -> tuple[float, float, float, float]:
        """Return the noise of a count of rows, of the diagonal of moments, of cross moments and of squares."""
        unit = self.noise / RIDGE_MOVED
        moments, cross, squares = self._moved
        if not self.columns:
            return self.noise_of_rows, unit * moments, 0.0, 0.0
        of_balance = math.sqrt(2 / _OF_BALANCE)
        of_moments = 1 / math.sqrt(1 - _OF_BALANCE)
        return self.noise_of_rows, unit * moments * of_moments, unit * cross * of_balance, unit * squares * of_balance

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        rows, moments, cross, squares = self._noises
        i, j = np.triu_indices(self._size)
        group = np.where(i == j, moments, moments / math.sqrt(2))
        p = self._n_balanced
        of_columns = np.repeat([cross, squares], [p * (self.n_components + 1), p])
        return np.asarray(np.r_[rows, np.tile(group, _N_GROUPS), of_columns])

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in units of the noise; it leaves their count."""
        moved = zip(self._moved, self._noises[1:], strict=True)
        return math.hypot(*(farthest / noise for farthest, noise in moved if noise))

    @property
    def _noise_of_arms(self) -> float:
        """Return the noise with which moments tell the rows of a small arm; the balance has it twice more."""
        _, moments, cross, squares = self._noises
        told = [_SCALE**2 / (moments * math.sqrt(_N_GROUPS))]
        if self.columns:
            told += [_SCALE / cross, 1 / squares]
        return 1 / math.hypot(*told)

    def facts(self) -> dict[str, Any]:
        """Return all that was agreed on, for JSON."""
        return super().facts() | {"n_groups": _N_GROUPS, "flatten": _FLATTEN}

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return moments over some rows of a party: of [1, v, T, Y, T s] by group, and of [1, v, T] with [1, x, T].

        Raises
        ------
        AgreementError
            If the table does not fit, a treatment or outcome is missing, or rows are none of the common map.
        """
        v = np.asarray(entries_of(table, MAPPED), dtype=np.float64)
        check_mapped(v, self.n_components, "Effect")
        arms = self.treatment.indicators(table)
        y = self.outcome.scale(table)
        if not arms.any(axis=1).all() or np.isnan(y).any():
            raise AgreementError("Effect: a treatment or outcome is missing. Leave such rows out.")
        one = np.ones(len(v))
        t = _SCALE * (arms[:, 1] - 0.5)
        u = np.column_stack([one, v, t, _SCALE * y])
        if self.by is not None:
            u = np.column_stack([u, t * self._modifier(table)])
        X = one[:, None]
        if self.columns:
            X = np.column_stack([one, *(_block_in_balance(each, table) for each in self.columns), arms[:, 1] - 0.5])
        clusters = None if self.cluster is None else entries_of(table, self.cluster)
        groups = deal(len(v), _N_GROUPS, secret, clusters)
        moments = [u[groups == g].T @ u[groups == g] for g in range(_N_GROUPS)]
        return np.concatenate(
            [np.ravel(moments), (X.T @ u[:, : self.n_components + 2]).ravel(), (X[:, 1:] ** 2).sum(axis=0)]
        )

    def _modifier(self, table: StudyTable) -> FloatArray:
        """Return s, from -1/2 to 1/2."""
        assert self.by is not None
        if isinstance(self.by, NumberColumn):
            return np.nan_to_num(self.by.scale(table))
        return np.asarray(self.by.indicators(table) @ [-0.5, 0.5])

    def fault(self, sums: FloatArray) -> str | None:
        """Return that clusters are so few that a group's total might be that of one party, if they are."""
        moments = sums[: _N_GROUPS * (self._size + 1) ** 2].reshape(_N_GROUPS, -1)
        return alone(moments[:, 0], self.cluster)

    def finish(self, sums: FloatArray, noise: float = 1.0) -> FloatArray:
        """Return a party's rows, and moments centred within each of its groups, and over all of them."""
        m = self._size
        p = self._n_balanced
        each = sums[: _N_GROUPS * (m + 1) ** 2].reshape(_N_GROUPS, m + 1, m + 1)
        cross = sums[each.size : len(sums) - p].reshape(-1, self.n_components + 2)
        squares = sums[len(sums) - p :]
        n = float(each[:, 0, 0].sum())
        moments = np.array([_centre(M, M[:, 0], M[0]) for M in each])[:, 1:, 1:]
        i, j = np.triu_indices(m)
        C = _centre(cross, cross[:, 0], cross[0])
        own = squares - cross[1:, 0] ** 2 / max(n, 1.0)
        return np.asarray(np.r_[n, moments[:, i, j].ravel(), C[1:, 1:].ravel(), own])

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> EffectResult:
        """Return the effect.

        Raises
        ------
        NumericalError
            If there are fewer than 100 rows, or treatments within parties vary so little, or follow so nearly from
            columns, that noise could decide.
        """
        m = self._size
        G = _N_GROUPS
        D = self.n_components
        of_rows, sigma, _, of_squares = (noise * each for each in self._noises)
        n = float(total[0])
        i, j = np.triu_indices(m)
        moments = np.zeros((G, m, m))
        moments[:, i, j] = moments[:, j, i] = total[1 : 1 + G * len(i)].reshape(G, -1)
        # Each group's moments around its parties' means are sums of squares and products over its rows.
        refuse_total(below_zero(moments, sigma), self.title)
        # All rows lie in a ball, whose squared radius is a quarter of the first of `_moved`.
        most = self._moved[0] / 4
        varied = float(np.trace(moments.sum(axis=0)))
        spare = largest_noise(1, math.hypot(math.sqrt(G * m) * sigma, most * of_rows))
        if varied > most * n + spare + 1e-6 * varied:
            refuse_total("rows vary more than the common map and declared ranges allow", self.title)
        if n < _FEWEST_ROWS - 3 * of_rows:
            raise NumericalError(f"Effect: {n:.0f} rows; expected {_FEWEST_ROWS} at least. Agree on more rows.")
        least = _LEAST_PENALTY * sigma * math.sqrt(2 * D * (G - 1))
        penalties = [self._penalty(moments, column, least) for column in range(D, m)]
        # One penalty for each of T, Y (and T s); the jackknife keeps them.
        r, products = self._cross_fit(moments, penalties)
        w, z = r[:2]
        # The variance of the treatment, and that part of it that columns leave unexplained.
        treated = float(moments[:, D, D].sum())
        d = float(products[:, 0, 0].sum())
        of_left = sigma * math.sqrt(float((np.sum(w**2, axis=1) ** 2).sum()))
        if d <= max(FARTHEST * of_left, 1e-8 * treated):
            raise NumericalError(
                "Effect: treatments hardly vary within parties, or nearly follow from the columns, for as much noise. "
                "Agree on more rows, on columns that do not decide the treatment, or on a narrower population."
            )
        estimates = _coefficients(products)
        theta = float(estimates[0])
        jackknife = [_coefficients(self._cross_fit(np.delete(moments, g, 0), penalties)[1]) for g in range(G)]
        # The generalised jackknife takes off a bias inverse to the square of the number of rows [5]_.
        estimates[0] += _EXTRAPOLATED * (theta - np.mean(jackknife, axis=0)[0])
        errors = np.sqrt((G - 1) * np.var(jackknife, axis=0))
        # To first order, noise E of a group moves its score by w'E (z - theta w).
        left = z - theta * w
        crossed = (w**2).sum(1) * (left**2).sum(1) + (w * left).sum(1) ** 2
        of_noise = sigma * math.sqrt(float(crossed.sum()) / 2) / d
        unit = self.outcome.width
        name = f"effect of {self.treatment.name} on {self.outcome.name}"
        effect, *others = (_interval(*each) for each in zip(estimates * unit, errors * unit, strict=True))
        difference = None
        if others and self._has_difference(r, products, sigma):
            difference = Difference(self._between(name), *others[0])
        return EffectResult(
            f"{name}, weighted by overlap (partially linear)",
            *effect,
            difference=difference,
            noise=of_noise * unit,
            overlap=min(d / max(treated, 1e-12), 1.0),
            balance=self._balance(total[1 + G * len(i) :], w.mean(axis=0), n - n_parties, FARTHEST * of_squares),
            n_rows=n,
            noise_of_rows=of_rows,
            noise_of_arms=self._noise_of_arms * noise,
        )

    def _between(self, name: str) -> str:
        """Return the name of the difference."""
        assert self.by is not None
        low, high = (self.by.low, self.by.high) if isinstance(self.by, NumberColumn) else self.by.levels
        return f"{name}: {self.by.name} {high} less {low} (linear, weighted by overlap)"

    def _has_difference(self, r: FloatArray, products: FloatArray, sigma: float) -> bool:
        """Return whether the part of T s that T leaves unexplained is beyond noise."""
        (a, b), (_, c) = products.sum(axis=0)[np.ix_([0, 2], [0, 2])]
        along = r[2] - b / a * r[0]
        of_left = sigma * math.sqrt(float((np.sum(along**2, axis=1) ** 2).sum()))
        return bool(c - b * b / a > max(FARTHEST * of_left, 1e-8 * c))

    def _cross_fit(self, moments: FloatArray, penalties: Sequence[float]) -> tuple[FloatArray, FloatArray]:
        """Return factors of u for residuals of T, Y (and T s), and each group's moments of these residuals."""
        r = self._residuals(moments, penalties, np.arange(self.n_components, self._size))
        return r, np.asarray(np.einsum("agi,gij,bgj->gab", r, moments, r, optimize=True))

    def _penalty(self, moments: FloatArray, column: int, least: float) -> float:
        """Choose the penalty whose residuals have the least sum of squares, each in the group left out."""
        grid = np.array([max(least, 1e-9), *_PENALTIES[least < _PENALTIES]])
        found = self._residuals(moments, grid, np.full(len(grid), column))
        return float(grid[np.argmin(np.einsum("kgi,gij,kgj->k", found, moments, found, optimize=True))])

    def _residuals(self, moments: FloatArray, penalties: ArrayLike, columns: ArrayLike) -> FloatArray:
        """Return factors that make residuals of columns of u, fitted on all other groups; (n_columns, n_groups, size).

        The residuals of ridge regression are fitted once more, which leaves less bias ("twicing" [3]_).
        """
        D = self.n_components
        of = np.asarray(columns)
        others = moments.sum(axis=0) - moments
        e, Q = np.linalg.eigh(others[:, :D, :D])
        along = Q.swapaxes(1, 2) @ others[:, :D, of]
        penalty = np.asarray(penalties)
        shrunk = 1 / (np.maximum(e, 0.0)[:, :, None] + penalty)
        r = np.zeros((len(of), len(moments), self._size))
        r[np.arange(len(of)), :, of] = 1
        r[:, :, :D] = -np.moveaxis(Q @ (along * shrunk * (1 + penalty * shrunk)), 2, 0)
        return r

    def _balance(self, numbers: FloatArray, w: FloatArray, df: float, least: float) -> dict[str, tuple[float, float]]:
        """Return the balance of each column; NaN if its sum of squares is not above the least."""
        p = self._n_balanced
        C = numbers[: len(numbers) - p].reshape(p, self.n_components + 1)
        squares = numbers[len(numbers) - p :]
        deviation = np.sqrt(np.where(squares > least, squares, np.nan) / max(df, 1.0))
        # The last row is that of the treatment itself.
        before, after = (each / (each[-1:] * deviation) for each in (C[:, -1], C @ w[: C.shape[1]]))
        return dict(zip(self._names, zip(before.tolist(), after.tolist(), strict=True), strict=False))


def effect_map(anchor: ArrayLike, secret: bytes, *, most: int = _COMPONENTS) -> CommonMap:
    """Return the common map for effects, of at most 20 columns; see `datacollab.sums.CommonMap.from_anchor`."""
    most = min(most, _COMPONENTS)
    return CommonMap.from_anchor(anchor, secret, n_components=most, n_columns=0, flatten=_FLATTEN, as_they_are=True)


def _names_in_balance(column: NumberColumn | CategoryColumn) -> list[str]:
    if isinstance(column, NumberColumn):
        return [column.name]
    return [f"{column.name}={level}" for level in column.levels]


def _block_in_balance(column: NumberColumn | CategoryColumn, table: StudyTable) -> FloatArray:
    """Return numbers, with gaps in the middle of the range, or indicators of levels; shape (n_rows, n_names)."""
    if isinstance(column, NumberColumn):
        return np.nan_to_num(column.design(table))
    return column.indicators(table).astype(np.float64)


def _square_in_balance(column: NumberColumn | CategoryColumn) -> float:
    """Return the largest square of a row of the block around its middle."""
    return 0.25 if isinstance(column, NumberColumn) else 1 - 1 / len(column.levels)


def _coefficients(products: FloatArray) -> FloatArray:
    """Return the effect, and how it differs; from moments of residuals of T, Y (and T s) by group."""
    A = products.sum(axis=0)
    effect = A[0, 1] / A[0, 0]
    if len(A) == 2:
        return np.array([effect])
    # Zero if the column is constant.
    left = max(float(A[2, 2] - A[0, 2] ** 2 / A[0, 0]), 1e-300)
    return np.array([effect, (A[1, 2] - A[0, 2] * effect) / left])


def _interval(value: float, error: float) -> tuple[float, float, float, float, float]:
    """Return value, error, 95 % interval and p by Student's distribution, with one degree less than groups."""
    half = float(scipy.stats.t.ppf(0.975, _N_GROUPS - 1)) * error
    p = float(2 * scipy.stats.t.sf(abs(value) / error, _N_GROUPS - 1)) if error else math.nan
    return value, error, value - half, value + half, p


def _centre(sums: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return sums of products of numbers less their means; both numbers begin with 1."""
    return np.asarray(sums - np.outer(first, second) / max(float(first[0]), 1.0))
