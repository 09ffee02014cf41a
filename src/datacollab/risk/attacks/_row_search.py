"""Whether an array holds rows of a table, as they are or under the usual changes of units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray

__all__ = ["RowSearch"]

_LOOSE, _STRICT = 1e-5, 1e-9
"""Difference between entries, relative to the row's largest; with fewer than three columns rows coincide easily."""

_MOST_CANDIDATES = 200
_MOST_COLUMNS = 2000
_MOST_BYTES = 2**32
"""Bytes compared in the search of files that are not understood."""


@dataclass(frozen=True, eq=False)
class _Form:
    """The table under one change of units.

    Attributes
    ----------
    name : str
    rows : ndarray of shape (n_rows, n_features)
    usable : ndarray of shape (n_rows,)
        Rows that are not constant, as which too much else could be taken.
    """

    name: str
    rows: FloatArray
    usable: NDArray[np.bool_]


class RowSearch:
    """Look for the rows of one table in many arrays.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    affine : bool
        Whether to look for rows in other units as well.
    """

    def __init__(self, X: FloatArray, *, affine: bool) -> None:
        self._X = X
        self._exact = _form("as they are", X)
        self._others = list(_other_forms(X)) if affine else []
        self._affine = affine
        mean = X.mean(axis=0)[None, :]
        # Of a table in standard units the mean is zero, as much else is.
        self._mean = _form("mean", mean) if np.abs(mean).max() > 1e-9 * np.abs(X).max() and X.shape[1] > 1 else None
        # Few small whole numbers coincide with others by chance; such rows count only if they come in numbers.
        several = np.array([len(np.unique(row)) for row in X]) >= 3
        fractional = (np.round(X) != X).any(axis=1)
        self._telling = (several | fractional) & (X.shape[1] > 1)

    def rows(self, array: NDArray[np.generic]) -> tuple[str, int] | None:
        """In which form, and how many, of the table's rows the array holds; None for none."""
        for name, found in self._matches(array):
            distinct = len(np.unique(self._X[found], axis=0)) if found.any() else 0
            if (found & self._telling).any() or (
                self._X.shape[1] >= 8 and distinct >= 5 and 2 * found.sum() >= len(found)
            ):
                return name, int(found.sum())
        return None

    def mean(self, array: NDArray[np.generic]) -> bool:
        """Whether the array holds the mean of the table's rows."""
        views = _views(array, self._X.shape[1]) if self._mean is not None else ()
        return any(_found(self._mean, view).any() for view in views if self._mean is not None)

    def raw(self, blob: bytes) -> int:
        """How many rows, of those looked for, stand byte by byte in a file that is not understood.

        A column of many values, in one piece, gives all rows away.
        """
        few = max(4, _MOST_BYTES // max(1, 4 * len(blob)))
        rows = self._X[self._telling & self._exact.usable]
        columns = self._X.T[[len(np.unique(column)) >= 8 for column in self._X.T]]
        if any(_count_in(blob, columns, few, dtype) for dtype in ("<f8", "<f4")):
            return len(self._X)
        return max(_count_in(blob, rows, few, dtype) for dtype in ("<f8", "<f4"))

    def _matches(self, array: NDArray[np.generic]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        views = list(_views(array, self._X.shape[1]))
        for form in (self._exact, *self._others):
            for view in views:
                yield form.name, _found(form, view)
        if self._affine:
            for view in views:
                if len(view) == len(self._X) > 2:
                    yield "each column in units of its own", _found(_form("", _standard(self._X)), _standard(view))
            if self._is_affine_image(array):
                yield "invertible affine image", np.ones(len(self._X), dtype=np.bool_)

    def _is_affine_image(self, array: NDArray[np.generic]) -> bool:
        """Whether an affine map takes the array's rows to the table's, in the same order."""
        n = len(self._X)
        # With as many columns as rows, any array could be taken to any other.
        if array.ndim != 2 or len(array) != n or not 2 * (array.shape[1] + 1) < n or array.shape[1] > _MOST_COLUMNS:
            return False
        with np.errstate(all="ignore"):
            B, X = _finite(array), self._X - self._X.mean(axis=0)
            B = B - B.mean(axis=0)
            lengths = np.linalg.norm(B, axis=0)
            B = B / np.where(lengths > 0, lengths, 1.0)
            coefficients, *_ = np.linalg.lstsq(B, X, rcond=1e-10)
            return bool(np.linalg.norm(X - B @ coefficients) < _LOOSE * np.linalg.norm(X))


def _count_in(blob: bytes, rows: FloatArray, few: int, dtype: str) -> int:
    """How many of a few of the rows stand in bytes."""
    if len(rows) == 0:
        return 0
    chosen = rows[np.linspace(0, len(rows) - 1, min(few, len(rows))).astype(int)]
    return sum(row.astype(dtype).tobytes() in blob for row in chosen)


def _form(name: str, rows: FloatArray) -> _Form:
    return _Form(name, rows, np.ptp(rows, axis=1) > 1e-3 * np.abs(rows).max(axis=1, initial=0.0))


def _other_forms(X: FloatArray) -> Iterator[_Form]:
    low, high = X.min(axis=0), X.max(axis=0)
    units = {
        "": X,
        "less their mean": X - X.mean(axis=0),
        "in standard units": _standard(X),
        "between 0 and 1": (X - low) / np.where(high > low, high - low, 1.0),
        "over their largest": X / np.where(np.abs(X).max(axis=0) > 0, np.abs(X).max(axis=0), 1.0),
    }
    for name, rows in units.items():
        if name:
            yield _form(name, rows)
        # Directions of few columns coincide easily.
        if X.shape[1] >= 5:
            yield _form(f"{name}, at unit length".lstrip(", "), _directions(rows))
            centred = rows - rows.mean(axis=1, keepdims=True)
            yield _form(f"{name}, centred and at unit length".lstrip(", "), _directions(centred))


def _standard(X: FloatArray) -> FloatArray:
    centred = X - X.mean(axis=0)
    spread = centred.std(axis=0)
    # A constant column is left with rounding, which must not be blown up.
    return np.asarray(centred / np.where(spread > 1e-12 * np.abs(X).max(axis=0), spread, np.inf))


def _directions(X: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(lengths > 1e-12 * np.abs(X).max(), lengths, np.inf))


def _views(array: NDArray[np.generic], width: int) -> Iterator[FloatArray]:
    """The array as tables of so many columns, in the ways that rows could lie in it."""
    if array.ndim > 2:
        flat = {array.shape[0]: array.reshape(array.shape[0], -1), -1: array.reshape(-1, array.shape[-1])}
        tables = list(flat.values())
    elif array.ndim == 1:
        if array.size < width or array.size % width:
            return
        tables = [array.reshape(-1, width)]
        if array.size > width > 1:
            tables.append(array.reshape(width, -1).T)
    else:
        tables = [array] if array.ndim == 2 else []
        if array.ndim == 2 and array.shape[0] in (width, width + 1):
            tables.append(array.T)
    for table in tables:
        if 0 in table.shape or table.shape[1] < width:
            continue
        rows = _finite(table)
        yield rows[:, :width]
        # Targets or marks may stand beside the features, on either side.
        if table.shape[1] > width:
            yield rows[:, -width:]


def _finite(array: NDArray[np.generic]) -> FloatArray:
    return np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def _found(form: _Form, table: FloatArray) -> NDArray[np.bool_]:
    """For each row of the form, whether it occurs in the table.

    Rows are sorted by one projection, so only few have to be compared, however large the table is.
    """
    tolerance = _LOOSE if form.rows.shape[1] >= 3 else _STRICT
    direction = np.random.default_rng(0).normal(size=form.rows.shape[1])
    with np.errstate(all="ignore"):
        keys, wanted = table @ direction, form.rows @ direction
    order = np.argsort(keys)
    keys = keys[order]
    allowed = tolerance * np.abs(form.rows).max(axis=1)
    # By the entries' differences, the keys differ by at most this.
    reach = allowed * np.abs(direction).sum()
    first, last = np.searchsorted(keys, wanted - reach), np.searchsorted(keys, wanted + reach, side="right")
    found = np.zeros(len(form.rows), dtype=np.bool_)
    for i in np.flatnonzero((last > first) & form.usable):
        candidates = table[order[first[i] : min(last[i], first[i] + _MOST_CANDIDATES)]]
        found[i] = bool((np.abs(candidates - form.rows[i]) <= allowed[i]).all(axis=1).any())
    return found
