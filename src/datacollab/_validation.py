"""Checks that several rooms share, and the only door to scikit-learn's private validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils._param_validation import HasMethods, Hidden, Interval, StrOptions
from sklearn.utils._set_output import ADAPTERS_MANAGER

from ._require import require
from ._typing import FloatArray, PartyName
from .errors import AgreementError, RepresentationError

__all__ = ["FloatArray", "HasMethods", "Hidden", "Interval", "PartyName", "StrOptions", "array_library"]
__all__ += ["check_parties", "check_representation", "check_single_targets", "count_missing", "in_frame"]
__all__ += ["name_parties", "require", "to_numpy"]

_ARRAY_LIBRARIES = ("torch", "cupy")
"""Libraries whose arrays may lie on a graphics processor."""


def array_library(values: object) -> str | None:
    """Return "torch" or "cupy" for an array of theirs; None for other values."""
    roots = (base.__module__.partition(".")[0] for base in type(values).__mro__)
    return next((root for root in roots if root in _ARRAY_LIBRARIES), None)


def in_frame(library: str, rows: FloatArray, names: NDArray[Any], like: Any) -> Any:
    """Return rows as a data frame of "pandas" or "polars", with the index of their table, if it has one."""
    return ADAPTERS_MANAGER.adapters[library].create_container(to_numpy(rows), like, columns=names)


def to_numpy(values: ArrayLike) -> NDArray[Any]:
    """Return the values in main memory, as a NumPy array; uncopied if they are one."""
    library, array = array_library(values), cast(Any, values)
    if library == "torch":
        array = array.detach().cpu().numpy()
    elif library == "cupy":
        array = array.get()
    return np.asarray(array)


def count_missing(values: NDArray[Any]) -> int:
    """Count entries that are None or NaN."""
    if values.dtype.kind in "fc":
        return int(np.isnan(values).sum())
    if values.dtype.kind != "O":
        return 0
    # NaN is what differs from itself; pandas.NA compares to neither True nor False.
    return sum(value is None or type(value).__name__ == "NAType" or value != value for value in values.ravel())


def check_single_targets(values: NDArray[Any], what: str, error: type[ValueError]) -> None:
    """Refuse targets of several values each, such as the event and time of a survival analysis.

    Every record would be a class of its own, and nothing would say so.  ``what`` names them in the error.
    """
    several = (tuple, list, dict, np.void, np.ndarray)
    fields = values.dtype.names or ()
    if fields or (values.dtype.kind == "O" and any(isinstance(value, several) for value in values.ravel())):
        named = f" ({', '.join(fields)})" if fields else ""
        raise error(
            f"{what} has several values per row{named}; such targets, as the event and time of a survival analysis, "
            "are not supported. Give one number or class per row."
        )


def check_representation(
    values: ArrayLike,
    party: PartyName,
    *,
    what: str = "representation",
    n_features: int | None = None,
) -> FloatArray:
    """Turn one party's rows into a finite, two-dimensional float64 array.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_intermediate)
    party : str or int
        Shown in error messages.
    what : str
        Name of the array in error messages.
    n_features : int, optional
        The expected number of columns.

    Raises
    ------
    RepresentationError
        If the array is not numeric, not two-dimensional, empty, not finite, or has the wrong number of
        columns.
    """
    if sparse.issparse(values):
        raise RepresentationError(
            f"Party {party!r}: the {what} is a sparse matrix; expected a dense array. Call .toarray() on it first."
        )
    try:
        array = _as_numpy(values)
    except (TypeError, ValueError):
        # numpy's own message may quote an entry, so it is dropped.
        raise RepresentationError(
            f"Party {party!r}: the {what} must be an array of real numbers; got {type(values).__name__} that cannot "
            "be read as such. Encode categories and drop identifiers before obfuscation."
        ) from None
    if array.ndim != 2:
        raise RepresentationError(
            f"Party {party!r}: the {what} must be two-dimensional (rows, columns); got shape {array.shape}. "
            "Reshape your data: one row is array.reshape(1, -1), one column array.reshape(-1, 1)."
        )
    if 0 in array.shape:
        raise RepresentationError(f"Party {party!r}: the {what} is empty (shape {array.shape}).")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        bad = int((~finite).sum())
        raise RepresentationError(
            f"Party {party!r}: the {what} contains NaN or infinity in {bad} of {array.shape[0]} rows. "
            "Impute or drop missing values before obfuscation."
        )
    if n_features is not None and array.shape[1] != n_features:
        raise RepresentationError(
            f"Party {party!r}: the {what} has {array.shape[1]} columns but {n_features} are expected; "
            "transform all rows with the same fitted obfuscator."
        )
    return array


def _as_numpy(values: ArrayLike) -> FloatArray:
    array = to_numpy(values)
    if np.iscomplexobj(array):
        raise TypeError
    return array.astype(np.float64, copy=False)


def name_parties(
    representations: Mapping[Any, ArrayLike] | Sequence[ArrayLike], *, what: str = "anchor representation"
) -> dict[PartyName, ArrayLike]:
    """Key several parties' arrays by name: a mapping keeps its keys, a plain sequence is keyed ``0..K-1``.

    Raises
    ------
    TypeError
        If neither a mapping nor a sequence of arrays is given.
    AgreementError
        If there is no party at all.
    """
    if isinstance(representations, Mapping):
        named = dict(representations)
    elif isinstance(representations, Sequence) and not isinstance(representations, str | bytes):
        named = dict(enumerate(representations))
    else:
        raise TypeError(
            f"Expected several parties' {what}s, as a mapping {{party: array}} or a list of arrays; got "
            f"{type(representations).__name__}."
        )
    if not named:
        raise AgreementError(f"No party gave an {what}; expected at least two.")
    return named


def check_parties(
    representations: Mapping[Any, ArrayLike] | Sequence[ArrayLike],
    *,
    what: str = "anchor representation",
) -> dict[PartyName, FloatArray]:
    """Key several parties' arrays by name as in `name_parties`, and check each of them as in `check_representation`."""
    named = name_parties(representations, what=what)
    return {party: check_representation(values, party, what=what) for party, values in named.items()}
