"""What every anchor sampler looks like.

* Reading sources and targets; an error shows shapes and types, never an entry.
* Equality of whole rows, by hashing their bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state

from .._require import require
from .._secrets import fresh_generator
from .._validation import FloatArray, check_single_targets
from ..errors import AnchorError

__all__ = [
    "AnchorSampler",
    "as_given",
    "as_numbers",
    "balanced_totals",
    "check_table",
    "check_target",
    "distinct_rows",
    "drawing_generator",
    "encode_classes",
    "rows_among",
]


def drawing_generator(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    """What an anchor is drawn by: by default the operating system, whatever was done to NumPy's generator.

    Who knows the anchor can invert what parties share, and a guess of it can be tested against a share.
    """
    if random_state is None:
        return fresh_generator()
    generator: np.random.RandomState = check_random_state(random_state)
    return generator


class AnchorSampler(BaseEstimator, ABC):
    """Base of the samplers: parameters as in scikit-learn, and one method that draws an anchor.

    A sampler learns nothing that outlives `sample`, so it never holds the source rows.
    """

    @abstractmethod
    def sample(
        self,
        X_source: ArrayLike,
        y_source: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> tuple[FloatArray, NDArray[Any] | None]:
        """Draw an anchor from public or synthetic source rows.

        Parameters
        ----------
        X_source : array-like of shape (n_sources, n_features)
        y_source : array-like of shape (n_sources,), optional
            Targets of the source rows.
        random_state : int, RandomState instance or None
            The same int gives the same anchor; None draws from the operating system.

        Returns
        -------
        anchor : ndarray of shape (n_samples, n_features)
            A data frame with the same columns where `X_source` is one.
        anchor_target : ndarray of shape (n_samples,) or None
            None where no target can be assigned.
        """


def check_table(values: ArrayLike, what: str) -> FloatArray:
    """Turn an array, a list or a data frame into a finite, two-dimensional float64 array.

    Raises
    ------
    AnchorError
        When it is sparse, not numeric, not two-dimensional, empty or not finite; the message names it by `what`.
    """
    if sparse.issparse(values):
        raise AnchorError(f"{what} is a sparse matrix; a dense table is wanted. Call .toarray() on it first.")
    try:
        table: FloatArray = check_array(
            values,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=0,
            ensure_min_features=0,
        )
    except (TypeError, ValueError):
        # The original message may quote an entry, so it is dropped.
        raise AnchorError(
            f"{what} must be a table of real numbers; got {type(values).__name__} that cannot be read as such. "
            "Encode categories, impute missing values and drop identifiers first."
        ) from None
    if table.ndim != 2:
        raise AnchorError(
            f"{what} must be two-dimensional (rows, columns); got shape {table.shape}. "
            "Reshape your data: one row is array.reshape(1, -1), one column array.reshape(-1, 1)."
        )
    if 0 in table.shape:
        raise AnchorError(f"{what} is empty (shape {table.shape}); at least one row and one column are wanted.")
    if not np.isfinite(table).all():
        bad = int((~np.isfinite(table)).any(axis=1).sum())
        raise AnchorError(
            f"{what} contains NaN or infinity in {bad} of {table.shape[0]} rows. Impute or drop missing values first."
        )
    return table


def as_given(rows: FloatArray, source: Any) -> Any:
    """Rows as a frame of the source's kind where it is one, so that columns keep their names; else as they are."""
    package = type(source).__module__.partition(".")[0]
    if not hasattr(source, "columns") or package not in ("pandas", "polars"):
        return rows
    frames = require(package, "cli")
    return (
        frames.DataFrame(rows, columns=source.columns)
        if package == "pandas"
        else frames.DataFrame(rows, schema=source.columns)
    )


def check_target(y_source: ArrayLike, n_sources: int) -> NDArray[Any]:
    """Turn the sources' targets into a one-dimensional array with one entry per source row.

    Raises
    ------
    AnchorError
        When the shape is another one, or a numeric target is not finite.
    """
    y = np.asarray(y_source)
    check_single_targets(y, "y_source", AnchorError)
    if y.shape != (n_sources,):
        raise AnchorError(
            f"y_source has shape {y.shape}, but X_source has {n_sources} rows; one target per row is wanted, "
            f"shape ({n_sources},)."
        )
    if y.dtype.kind in "fc" and not np.isfinite(y).all():
        raise AnchorError("y_source contains NaN or infinity. Drop the source rows whose target is missing.")
    return y


def as_numbers(y: NDArray[Any]) -> FloatArray:
    """Read targets as finite float64 numbers.

    Raises
    ------
    AnchorError
        When they are none.
    """
    try:
        numbers: FloatArray = y.astype(np.float64)
        readable = bool(np.isfinite(numbers).all())
    except (TypeError, ValueError):
        readable = False
    if not readable:
        raise AnchorError(
            f"y_source (dtype {y.dtype}) must hold finite numbers for regression. Drop the source rows whose target is "
            "missing, or set task='classification' if it holds labels."
        )
    return numbers


def encode_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Sorted class labels, and the position of every row's label among them.

    Raises
    ------
    AnchorError
        When the labels have no common order: mixed types, or missing values.
    """
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError:
        raise AnchorError(
            f"The class labels in y_source (dtype {y.dtype}) cannot be sorted: they mix types or some are missing. "
            "Use labels of one type and drop the source rows whose label is missing."
        ) from None
    return classes, codes


def balanced_totals(n_samples: int, n_classes: int) -> NDArray[np.intp]:
    """Split `n_samples` equally over the classes; the first ones take the remainder.

    Raises
    ------
    AnchorError
        When a class would get none.
    """
    if n_samples < n_classes:
        raise AnchorError(
            f"n_samples={n_samples} is below the number of classes in y_source, {n_classes}, so some would have no "
            f"anchor row. Set n_samples to at least {n_classes}."
        )
    totals = np.full(n_classes, n_samples // n_classes, dtype=np.intp)
    totals[: n_samples % n_classes] += 1
    return totals


def _keys(table: FloatArray) -> Iterator[bytes]:
    """One hashable key per row; equal rows have equal keys."""
    # Adding zero turns -0.0 into 0.0, which compares equal to it but has other bytes.
    return ((row + 0.0).tobytes() for row in table)


def distinct_rows(table: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each distinct row first occurs, and which of these every row equals."""
    numbers: dict[bytes, int] = {}
    inverse = np.array([numbers.setdefault(key, len(numbers)) for key in _keys(table)], dtype=np.intp)
    _, first = np.unique(inverse, return_index=True)
    return first, inverse  # (n_distinct,), (n_rows,)


def rows_among(rows: FloatArray, table: FloatArray) -> NDArray[np.bool_]:
    """For each of `rows`, whether it equals some row of `table`."""
    keys = list(_keys(rows))
    shared = set(keys).intersection(_keys(table))
    return np.array([key in shared for key in keys], dtype=np.bool_)  # (n_rows,)
