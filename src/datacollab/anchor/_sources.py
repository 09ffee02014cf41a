"""Sources and targets of anchors, and equality of whole rows; errors show shapes and types, never an entry."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array, check_random_state

from .._frames import are_missing, plain_column, plain_table, row_keys
from .._require import require
from .._validation import FloatArray, check_single_targets, fresh_generator
from ..errors import AnchorError


def drawing_generator(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    """Return the generator that draws an anchor: the operating system's by default, not NumPy's.

    Anyone with the anchor can invert the parties' shares, and can test a guess of it against one.
    """
    if random_state is None:
        return fresh_generator()
    generator: np.random.RandomState = check_random_state(random_state)
    return generator


def check_table(values: ArrayLike | None, what: str, error: type[ValueError] = AnchorError) -> FloatArray:
    """Return a table as a finite, two-dimensional float64 array, or raise an error that names it by `what`."""
    if sparse.issparse(values):
        raise error(f"{what} is a sparse matrix; expected a dense table. Call .toarray() on it first.")
    values = plain_table(values, what, error)
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
        raise error(
            f"{what} must be a table of real numbers; got {type(values).__name__} that cannot be read as such. "
            "Encode categories, impute missing values and drop identifiers first."
        ) from None
    if table.ndim != 2:
        raise error(
            f"{what} must be two-dimensional (rows, columns); got shape {table.shape}. "
            "Reshape your data: one row is array.reshape(1, -1), one column array.reshape(-1, 1)."
        )
    if 0 in table.shape:
        raise error(f"{what} is empty (shape {table.shape}); expected at least one row and one column.")
    if not np.isfinite(table).all():
        bad = int((~np.isfinite(table)).any(axis=1).sum())
        raise error(
            f"{what} contains NaN or infinity in {bad} of {table.shape[0]} rows. Impute or drop missing values first."
        )
    return table


def as_given(rows: FloatArray, source: Any) -> Any:
    """Return rows as a data frame with the source's column names if the source is one; else as they are."""
    package = type(source).__module__.partition(".")[0]
    if not hasattr(source, "columns") or package not in ("pandas", "polars"):
        return rows
    module = require(package, "cli")
    if package == "polars":
        return module.DataFrame(rows, schema=source.columns)
    return module.DataFrame(rows, columns=source.columns)


def check_target(y_source: ArrayLike, n_sources: int) -> NDArray[Any]:
    """Turn the sources' targets into a one-dimensional array with one entry per source row, or raise an AnchorError."""
    y = plain_column(y_source)
    check_single_targets(y, "y_source", AnchorError)
    if y.shape != (n_sources,):
        raise AnchorError(
            f"y_source has shape {y.shape}, but X_source has {n_sources} rows; expected one target per row, "
            f"shape ({n_sources},)."
        )
    if are_missing(y).any() or (y.dtype.kind in "fc" and not np.isfinite(y).all()):
        raise AnchorError("y_source contains NaN or infinity. Drop the source rows whose target is missing.")
    return y


def as_numbers(y: NDArray[Any]) -> FloatArray:
    """Read targets as finite float64 numbers, or raise an AnchorError."""
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
    """Return sorted class labels, and the position of every row's label among them, or raise an AnchorError."""
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError:
        raise AnchorError(
            f"The class labels in y_source (dtype {y.dtype}) cannot be sorted: they mix types or some are missing. "
            "Use labels of one type and drop the source rows whose label is missing."
        ) from None
    return classes, codes


def split_equally(n_samples: int, n_classes: int) -> NDArray[np.intp]:
    """Split `n_samples` equally over the classes, at least one each; the first ones take the remainder."""
    if n_samples < n_classes:
        raise AnchorError(
            f"n_samples={n_samples} is below the number of classes in y_source, {n_classes}, so some would have no "
            f"anchor row. Set n_samples to at least {n_classes}."
        )
    totals = np.full(n_classes, n_samples // n_classes, dtype=np.intp)
    # In sorted order, so that the same table gives the same totals everywhere.
    totals[: n_samples % n_classes] += 1
    return totals


def distinct_rows(table: FloatArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where each distinct row first occurs, and which of these every row equals."""
    numbers: dict[bytes, int] = {}
    inverse = np.array([numbers.setdefault(key, len(numbers)) for key in row_keys(table)], dtype=np.intp)
    _, first = np.unique(inverse, return_index=True)
    return first, inverse  # (n_distinct,), (n_rows,)
