"""Arrays as bytes, by safetensors: numbers and names, and nothing that runs."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._require import require
from ..errors import ExchangeError
from ._json import parse_json

__all__ = ["arrays_to_bytes", "bytes_to_arrays"]

DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "I32": np.dtype(np.int32),
    "I64": np.dtype(np.int64),
    "F32": np.dtype(np.float32),
    "F64": np.dtype(np.float64),
}
"""Types by their names in the format."""

MAX_HEADER = 1024**2


def arrays_to_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Write arrays; equal arrays give equal bytes.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Of bool, int32, int64, float32 or float64, and any shape.

    Raises
    ------
    TypeError
        When an array is of another type.
    """
    safetensors = require("safetensors.numpy", "exchange")
    native = {name: array.dtype.newbyteorder("=") for name, array in arrays.items()}
    for name, array in arrays.items():
        if native[name] not in DTYPES.values():
            known = ", ".join(map(str, DTYPES.values()))
            raise TypeError(f"Array {name!r} is of type {array.dtype}; one of {known} is wanted.")
    # Not ascontiguousarray, which makes a vector of a single number.
    plain = {name: np.asarray(array, dtype=native[name], order="C") for name, array in arrays.items()}
    data: bytes = safetensors.save(plain)
    return data


def bytes_to_arrays(data: bytes, *, what: str) -> dict[str, NDArray[Any]]:
    """Read what `arrays_to_bytes` wrote; the arrays can be written to.

    Parameters
    ----------
    data : bytes
    what : str
        What an error calls the source.

    Raises
    ------
    ExchangeError
        ``BUNDLE_MALFORMED``, when the bytes are no arrays, arrays of other types, or more than arrays.
    """
    safetensors = require("safetensors", "exchange")
    _check_header(data, what)
    try:
        tensors = safetensors.deserialize(data)
    except (safetensors.SafetensorError, ValueError, OverflowError, TypeError, MemoryError):
        raise _malformed(what, "its list of arrays does not fit its bytes") from None
    return {name: _array(name, tensor, what) for name, tensor in sorted(tensors, key=itemgetter(0))}


def _check_header(data: bytes, what: str) -> None:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, MAX_HEADER):
        raise _malformed(what, "it does not start as a list of arrays")
    header = parse_json(data[8 : 8 + length], what=what)
    if not isinstance(header, dict) or "__metadata__" in header:
        raise _malformed(what, "it holds something besides arrays")


def _array(name: str, tensor: dict[str, Any], what: str) -> NDArray[Any]:
    if tensor["dtype"] not in DTYPES:
        raise _malformed(what, f"array {name!r} is of a type that is not accepted")
    dtype = DTYPES[tensor["dtype"]]
    raw = bytearray(tensor["data"])
    if dtype == np.bool_ and raw.translate(None, b"\x00\x01"):
        raise _malformed(what, f"array {name!r} is said to be logical and is not")
    try:
        array = np.frombuffer(raw, dtype=dtype.newbyteorder("<")).reshape(tensor["shape"])
    except (ValueError, OverflowError, TypeError):
        raise _malformed(what, f"array {name!r} has an impossible shape") from None
    return array.astype(dtype, copy=False)


def _malformed(what: str, reason: str) -> ExchangeError:
    return ExchangeError("BUNDLE_MALFORMED", f"{what} cannot be read: {reason}. Have it sent again.")
