"""Checks that several rooms share, and the only door to scikit-learn's private validation."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils._param_validation import HasMethods, Hidden, Interval, StrOptions

from .errors import AgreementError, MissingExtraError, RepresentationError

__all__ = [
    "FloatArray",
    "HasMethods",
    "Hidden",
    "Interval",
    "PartyName",
    "StrOptions",
    "check_parties",
    "check_representation",
    "count_missing",
    "require",
]

FloatArray = NDArray[np.float64]
PartyName = str | int
"""How a party is named: a string, or its position where the parties came as a plain sequence."""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it.

    Raises
    ------
    MissingExtraError
        When the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"This needs the package {module.partition('.')[0]!r}, which is not installed. "
            f"Install it with: pip install 'datacollab[{extra}]'"
        ) from error


def count_missing(values: NDArray[Any]) -> int:
    """Entries that are None or NaN."""
    if values.dtype.kind in "fc":
        return int(np.isnan(values).sum())
    if values.dtype.kind != "O":
        return 0
    # NaN is what differs from itself; pandas.NA compares to neither True nor False.
    return sum(value is None or type(value).__name__ == "NAType" or value != value for value in values.ravel())


def check_representation(
    values: ArrayLike, party: PartyName, *, what: str = "representation", n_features: int | None = None
) -> FloatArray:
    """Turn one party's rows into a finite, two-dimensional float64 array.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_intermediate)
    party : str or int
        Whom an error names.
    what : str
        What an error calls the array.
    n_features : int, optional
        The number of columns wanted.

    Raises
    ------
    RepresentationError
        When the array is not numeric, not two-dimensional, empty, not finite, or has the wrong number of columns.
    """
    if sparse.issparse(values):
        raise RepresentationError(
            f"Party {party!r}: the {what} is a sparse matrix; a dense array is wanted. Call .toarray() on it first."
        )
    try:
        array = np.asarray(values)
        if np.iscomplexobj(array):
            raise TypeError
        array = array.astype(np.float64, copy=False)
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
    if not np.isfinite(array).all():
        bad = int((~np.isfinite(array)).any(axis=1).sum())
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


def check_parties(
    representations: Mapping[Any, ArrayLike] | Sequence[ArrayLike], *, what: str = "anchor representation"
) -> dict[PartyName, FloatArray]:
    """Key several parties' arrays by name, and check each of them.

    A mapping keeps its keys; a plain sequence is keyed ``0..K-1``.

    Raises
    ------
    TypeError
        When neither a mapping nor a sequence of arrays is given.
    AgreementError
        When there is no party at all.
    RepresentationError
        When one party's array cannot be used; see `check_representation`.
    """
    if isinstance(representations, Mapping):
        named = dict(representations)
    elif isinstance(representations, Sequence) and not isinstance(representations, str | bytes):
        named = dict(enumerate(representations))
    else:
        raise TypeError(
            f"Several parties' {what}s are wanted, as a mapping {{party: array}} or a list of arrays; "
            f"got {type(representations).__name__}."
        )
    if not named:
        raise AgreementError(f"No party gave an {what}; at least two are wanted.")
    return {party: check_representation(values, party, what=what) for party, values in named.items()}
