r"""Which columns a collaboration representation still tells, and how it moves with each of them.

.. math:: D_j = \frac{1}{n_a} \sum_{a} \bigl[ g(f(a + \tfrac{1}{2} \sigma_j e_j)) - g(f(a - \tfrac{1}{2} \sigma_j e_j))
   \bigr] .

A column of two values goes from one to the other instead, and the difference is brought to one standard deviation: no
row in between exists.  For affine maps this is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from .._validation import FloatArray
from ._columns_of_tables import ColumnTable, Players

__all__ = [
    "AFFINE_R2",
    "MOST_LEAKAGE",
    "MOST_LOST_LEAKAGE",
    "OTHER_R2",
    "column_steps",
    "determination",
    "faded_share",
    "is_additive",
    "leakage",
    "lost_leakage",
    "numbers_of_table",
    "r2_of_columns",
    "smallest_of_groups",
]

AFFINE_R2, OTHER_R2 = 0.99, 0.95
"""Share of a column from which on it counts as identified: where maps are affine, and elsewhere."""
MOST_LEAKAGE = 0.1
"""Leakage up to which intervals of effects hold what they promise (benchmarks/downstream/column_coverage.py)."""
MOST_LOST_LEAKAGE = 0.05
"""Leakage of lost columns up to which an effect is shown, chance in the anchor included: their effects are unknown."""
_ROUNDING = 1e-7
_RANK = 1e-10


def column_steps(table: ColumnTable, place: int, transform: Callable[[Any], FloatArray]) -> tuple[FloatArray, float]:
    """Move one column by a standard deviation, at every row of a table.

    Parameters
    ----------
    table : ColumnTable
        The anchor.
    place : int
        Position of a column of numbers that is not constant.
    transform : callable
        From a table to collaboration representations.

    Returns
    -------
    step : ndarray of shape (n_components,)
        D_j.
    deviation : float
        The column's standard deviation over the table.
    """
    column = table.column_of_numbers(place)
    deviation = float(column.std())
    levels = np.unique(column)
    if len(levels) == 2:
        low, high, width = np.full_like(column, levels[0]), np.full_like(column, levels[1]), levels[1] - levels[0]
    else:
        low, high, width = column - deviation / 2, column + deviation / 2, deviation
    moved = transform(table.with_column(place, high)) - transform(table.with_column(place, low))
    return np.asarray(moved.mean(axis=0) * (deviation / width)), deviation


def is_additive(table: ColumnTable, transform: Callable[[Any], FloatArray]) -> bool:
    """Whether rows that exchange some columns are mapped to the same sum as before, as by affine maps.

    Such rows are in no column unlike the table's, so that encoders of categories know what to do with them.
    """
    n_rows, n_columns = len(table), len(table.labels)
    kept = np.random.default_rng(0).random((n_rows, n_columns)) < 0.5
    alone = Players(table.names, np.arange(n_columns))
    rows, others = np.arange(n_rows), np.roll(np.arange(n_rows), n_rows // 2)
    before = transform(table.table())
    together = before + before[others]
    exchanged = sum(transform(table.composed(mask, rows, others, alone)) for mask in (kept, ~kept))
    spread = np.abs(before - before.mean(axis=0)).max()
    return bool(np.abs(exchanged - together).max() <= _ROUNDING * spread)


def r2_of_columns(table: ColumnTable, representation: FloatArray) -> FloatArray:
    """`determination` of each column of a table, shape (n_columns,); of categories the smallest of any indicator."""
    found = np.empty(len(table.labels))
    for place in range(len(table.labels)):
        column = table.numbers(place)
        told = determination(representation, _indicators(table.columns[place]) if column is None else column[:, None])
        found[place] = np.nan if np.isnan(told).all() else np.nanmin(told)
    return found


def numbers_of_table(table: ColumnTable) -> tuple[FloatArray, NDArray[np.intp]]:
    """All columns in standard deviations, categories as indicators, and which of the table's columns each one is.

    Missing numbers are taken for the mean of their column.

    Returns
    -------
    columns : ndarray of shape (n_rows, n_numbers)
        Centred; without constant ones.
    places : ndarray of shape (n_numbers,)
    """
    columns, places = [], []
    for place in range(len(table.labels)):
        column = table.numbers(place)
        # All indicators but one say what all do.
        each = _indicators(table.columns[place])[:, 1:] if column is None else _filled(column)[:, None]
        each = each[:, each.min(axis=0) < each.max(axis=0)]
        columns.append((each - each.mean(axis=0)) / each.std(axis=0))
        places += [place] * each.shape[1]
    return np.concatenate(columns, axis=1), np.array(places, dtype=np.intp)


def leakage(step: FloatArray, representation: FloatArray, columns: FloatArray, column: int) -> float:
    r"""How far a step of one column is read as a step of others.

    With B the least squares coefficients of all columns on the representation, a model whose predictor is
    :math:`\sum_l b_l x_l` is learnt as :math:`\hat x^\top B b`, so that column j is found to have the effect
    :math:`D_j^\top B b = b_j + \sum_l c_l b_l`, with :math:`c = B^\top D_j - e_j`.  Leakage is :math:`\|c\|`: no
    effect is further off, for this reason, than leakage times :math:`\|b\|`, the effects of lost columns included.

    Parameters
    ----------
    step : ndarray of shape (n_components,)
        D_j, of one standard deviation.
    representation : ndarray of shape (n_rows, n_components)
    columns : ndarray of shape (n_rows, n_numbers)
        Centred, in standard deviations.
    column : int
        Which of them the step is of.
    """
    centred = representation - representation.mean(axis=0)
    read = np.linalg.lstsq(centred, columns, rcond=None)[0].T @ step
    read[column] -= 1.0
    return float(np.linalg.norm(read))


def lost_leakage(step: FloatArray, representation: FloatArray, lost: FloatArray) -> float:
    r"""How far a step of one column may be read as a step of lost ones: the 95 % limit of the length of their c.

    With :math:`P` the regression of the lost columns on the representation, :math:`c = P^\top D_j` is a sum over the
    anchor's rows, in which the lost columns' residuals, of covariance :math:`\Sigma` and rank q, have the weights
    :math:`w` that give :math:`D_j^\top P`.  Over anchors c varies with covariance :math:`\|w\|^2 \Sigma`, so that

    .. math:: \|c\| \le \|\hat c\| + \|w\| \sqrt{\lambda_{\max}(\Sigma) \chi^2_{q, .95}}

    for 95 % of anchors, where residuals vary alike everywhere and there are rows enough for sums to be normal.

    Parameters
    ----------
    step : ndarray of shape (n_components,)
        D_j, of one standard deviation.
    representation : ndarray of shape (n_rows, n_components)
        At least two rows more than its rank.
    lost : ndarray of shape (n_rows, n_lost)
        Centred, in standard deviations.

    Returns
    -------
    float
        0 where nothing was lost.
    """
    if not lost.shape[1]:
        return 0.0
    U, singular_values, Vt = _directions(representation)
    weights = U @ (Vt @ step / singular_values)
    residuals = lost - U @ (U.T @ lost)
    variances = np.linalg.eigvalsh(residuals.T @ residuals) / (len(lost) - U.shape[1] - 1)
    rank = int((variances > _RANK * variances.max()).sum())
    chance = np.linalg.norm(weights) * np.sqrt(variances.max() * chi2.ppf(0.95, rank))
    return float(np.linalg.norm(lost.T @ weights) + chance)


def determination(representation: FloatArray, columns: FloatArray) -> FloatArray:
    """R² of columns in linear regression on a representation, adjusted for the number of its components.

    Parameters
    ----------
    representation : ndarray of shape (n_rows, n_components)
    columns : ndarray of shape (n_rows, n_columns)

    Returns
    -------
    ndarray of shape (n_columns,)
        NaN for a constant column, and for all where there are too few rows for so many components.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.party._identification import determination
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> determination(X[:, :2], X).round(1) + 0.0
    array([1., 1., 0.])
    """
    n_rows = len(representation)
    U, _, _ = _directions(representation)
    free = n_rows - U.shape[1] - 1
    targets = columns - columns.mean(axis=0)
    varies = columns.min(axis=0) < columns.max(axis=0)
    if free < 1:
        return np.full(columns.shape[1], np.nan)
    left = ((targets - U @ (U.T @ targets)) ** 2).sum(axis=0) / free
    total = (targets**2).sum(axis=0) / (n_rows - 1)
    return np.asarray(1.0 - np.divide(left, total, out=np.full(len(left), np.nan), where=varies))


def faded_share(anchor: FloatArray, masked: FloatArray) -> float:
    """Share of made-up rows whose representation is shorter than that of all but 1 % of the anchor's rows."""
    shortest = np.quantile(np.linalg.norm(anchor, axis=1), 0.01)
    return float((np.linalg.norm(masked, axis=1) < shortest).mean())


def smallest_of_groups(values: FloatArray, of_column: NDArray[np.intp]) -> FloatArray:
    """Smallest value of the columns of each group; NaN where a column has none."""
    return np.array([values[of_column == player].min() for player in range(of_column.max() + 1)])


def _directions(representation: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Singular vectors and values of a centred representation, without those of rounding."""
    U, singular_values, Vt = np.linalg.svd(representation - representation.mean(axis=0), full_matrices=False)
    kept = singular_values > singular_values.max(initial=0.0) * _RANK
    return U[:, kept], singular_values[kept], Vt[kept]


def _filled(column: FloatArray) -> FloatArray:
    missing = np.isnan(column)
    return column if missing.all() or not missing.any() else np.where(missing, column[~missing].mean(), column)


def _indicators(column: Sequence[Any]) -> FloatArray:
    _, codes = np.unique(np.asarray(column).astype(str), return_inverse=True)
    return np.eye(codes.max() + 1)[codes]
