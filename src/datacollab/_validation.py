"""Checks that rooms share, and the source of their secrets."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ._frames import are_missing, plain_column
from ._require import require
from ._typing import Array, FloatArray, PartyName
from .errors import AgreementError, RepresentationError

__all__ = ["Array", "FloatArray", "PartyName", "array_library", "array_namespace"]
__all__ += ["check_parties", "check_representation", "check_single_targets", "count_missing"]
__all__ += ["fresh_generator", "name_parties", "require", "to_numpy"]

_ARRAY_LIBRARIES = ("torch", "cupy", "array_api_strict")
"""Libraries other than NumPy whose arrays are computed with where they lie; others become NumPy arrays."""


def array_library(values: object) -> str | None:
    """Return the name of the library, other than NumPy, that computes with these values; None for NumPy."""
    roots = (base.__module__.partition(".")[0] for base in type(values).__mro__)
    return next((root for root in roots if root in _ARRAY_LIBRARIES), None)


def array_namespace(values: Array) -> Any:
    """Return the functions of the array API standard for an array of `array_library`; otherwise NumPy.

    NumPy 1 lacks some of the standard's names; code for both keeps to those of both.  Raise MissingExtraError if
    scikit-learn is too old to bring array-api-compat along, and that is not installed.
    """
    if array_library(values) is None:
        return np
    try:
        compat = importlib.import_module("sklearn.externals.array_api_compat")
    except ImportError:
        compat = require("array_api_compat", "gpu")
    return compat.array_namespace(values)


def to_numpy(values: ArrayLike) -> NDArray[Any]:
    """Return the values in main memory, as a NumPy array; uncopied if they are one."""
    library = array_library(values)
    array = cast(Any, values)
    if library == "torch":
        # torch refuses to convert what still records gradients, or lies on another device.
        array = array.detach().cpu().numpy()
    elif library == "cupy":
        array = array.get()
    elif library == "array_api_strict":
        array = array.to_device(array_namespace(array).Device("CPU_DEVICE"))
    # NumPy would drop the mask, and masked entries would count as values.
    if isinstance(array, np.ma.MaskedArray):
        return plain_column(array)
    return np.asarray(array)


def count_missing(values: NDArray[Any]) -> int:
    """Count entries that are None or NaN."""
    return int(are_missing(values).sum())


def check_single_targets(values: NDArray[Any], what: str, error: type[ValueError]) -> None:
    """Refuse targets of several values each, such as the event and time of a survival analysis.

    Every record would be a class of its own, and nothing would say so.  ``what`` names them in the error.
    """
    several = (tuple, list, dict, np.void, np.ndarray)
    fields = values.dtype.names or ()
    if fields or (values.dtype.kind == "O" and any(isinstance(value, several) for value in values.ravel())):
        named = ""
        if fields:
            named = f" ({', '.join(fields)})"
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
    beside: Array | None = None,
    keep_single: bool = False,
) -> FloatArray:
    """Turn one party's rows, called `what` in errors, into a finite, two-dimensional float64 array.

    If `beside` is an array of `array_library`, the rows must be of the same library and on the same device, and so is
    the result; otherwise that is a NumPy array.  With `keep_single`, NumPy's float32 stays as it is.

    Raise RepresentationError if the rows are not numeric, not two-dimensional, empty, not finite, not where `beside`
    is, or have other than `n_features` columns.
    """
    # Filling it with zeros here might take more memory than there is, so the party decides.
    if sparse.issparse(values):
        raise RepresentationError(
            f"Party {party!r}: the {what} is a sparse matrix; expected a dense array. Call .toarray() on it first."
        )
    if array_library(beside) is not None and _place(values) != _place(beside):
        raise RepresentationError(
            f"Party {party!r}: the {what} is {_place(values)}; expected {_place(beside)}, as for all else in this "
            "integration. Keep all parties' arrays in one library and on one device."
        )
    try:
        array = _as_numpy(values, keep_single) if array_library(beside) is None else _real(values)
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
    xp = array_namespace(array)
    finite = xp.all(xp.isfinite(array), axis=1)
    if not xp.all(finite):
        bad = int((~to_numpy(finite)).sum())
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


def _as_numpy(values: ArrayLike, keep_single: bool) -> FloatArray:
    array = to_numpy(values)
    # A conversion would drop the imaginary part with no more than a warning.
    if np.iscomplexobj(array):
        raise TypeError
    if keep_single and array.dtype == np.float32:
        return array
    return array.astype(np.float64, copy=False)


def _real(values: Array) -> Array:
    """Return an array of another library in float64, without torch's record for gradients."""
    xp = array_namespace(values)
    if not xp.isdtype(values.dtype, ("bool", "integral", "real floating")):
        raise TypeError
    if array_library(values) == "torch":
        values = values.detach()
    return xp.astype(values, xp.float64, copy=False)


def _place(values: Any) -> str:
    """Say where an array is, for an error."""
    library = array_library(values)
    if library is None:
        return "a NumPy array"
    return f"a {library} array on {values.device}"


def name_parties(
    representations: Mapping[Any, ArrayLike] | Sequence[ArrayLike], *, what: str = "anchor representation"
) -> dict[PartyName, ArrayLike]:
    """Key several parties' arrays by name: a mapping keeps its keys, a plain sequence is keyed ``0..K-1``.

    Raise TypeError if neither is given, and AgreementError if there is no party at all.
    """
    if isinstance(representations, Mapping):
        named = dict(representations)
    # An array is no sequence here: its rows would be taken for parties.
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
    keep_library: bool = False,
) -> dict[PartyName, FloatArray]:
    """Key several parties' arrays by name as in `name_parties`, and check each of them as in `check_representation`.

    With `keep_library`, arrays of `array_library` and NumPy's float32 arrays stay as and where they are; otherwise all
    become NumPy's in float64.
    """
    named = name_parties(representations, what=what)
    kept = (values for values in named.values() if keep_library and array_library(values) is not None)
    # The first array of another library says where all others must lie.
    beside = next(kept, None)
    return {
        party: check_representation(values, party, what=what, beside=beside, keep_single=keep_library)
        for party, values in named.items()
    }


def fresh_generator() -> np.random.RandomState:
    """Return a generator for secrets: 128 bits from the operating system, regardless of NumPy's global one."""
    # `np.random.seed`, which any library may have called, makes the global generator no secret.
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence()))
