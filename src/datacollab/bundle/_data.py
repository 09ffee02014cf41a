"""Data as bytes: JSON with one spelling for each value, and arrays by safetensors; readers that trust nobody."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .._require import require
from ..errors import ExchangeError

_MOST_DEPTH = 32
"""Arrays and objects of JSON within one another."""
# A string that is never closed runs to the end, so that each character is looked at once.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|([\[{])|([\]}])', re.DOTALL)


def digest(data: bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def now() -> str:
    """Return the time in its one spelling in files: ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def time_of(text: str) -> datetime:
    """Return the time that `now` spelled; raise TypeError or ValueError for any other spelling."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None or time.astimezone(UTC).isoformat(timespec="seconds") != text:
        raise ValueError
    return time


def canonical_json(value: Any) -> bytes:
    """Return the one spelling of a value: keys sorted by code point, no spaces, UTF-8.

    It raises TypeError or ValueError for values that JSON cannot hold, keys that are no text, and numbers not finite.
    """
    _check_keys(value)
    return json.dumps(value, **_CANONICAL).encode()


def canonical_pieces(value: Any, *, default: Callable[[Any], Any]) -> Iterator[bytes]:
    """Yield the same piece by piece; `default` makes JSON of anything else, when its place has come."""
    _check_keys(value)
    return (piece.encode() for piece in json.JSONEncoder(**_CANONICAL, default=default).iterencode(value))


_CANONICAL: dict[str, Any] = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False, "allow_nan": False}


def _check_keys(value: Any) -> None:
    """Refuse keys that json.dumps would turn into text, so that two keys might become one."""
    if isinstance(value, dict):
        for key, entry in value.items():
            if not isinstance(key, str):
                raise TypeError(f"A key of JSON must be text; got {type(key).__name__}.")
            _check_keys(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            _check_keys(entry)


def parse_json(data: bytes, *, what: str) -> Any:
    """Read JSON of unknown origin, or raise BUNDLE_MALFORMED under the name that is given.

    A key given twice, a number that is not finite, and nesting deeper than 32 are refused, too.
    """
    try:
        text = data.decode("utf-8")
        # Before the parser, which would run out of stack.
        if _depth(text) > _MOST_DEPTH:
            raise ValueError(f"nested more deeply than {_MOST_DEPTH}")
        value = json.loads(
            text, object_pairs_hook=_no_twins, parse_constant=_no_constant, parse_float=_finite, parse_int=_integer
        )
        # Escapes can spell half a character, which no file can hold.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        reason = "not UTF-8 text"
    except json.JSONDecodeError as error:
        reason = f"not JSON at line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError) as error:
        reason = str(error)
    else:
        return value
    raise _unreadable(what, reason)


def _depth(text: str) -> int:
    deepest = depth = 0
    for match in _BRACKETS.finditer(text):
        depth += bool(match[1]) - bool(match[2])
        deepest = max(deepest, depth)
    return deepest


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # One reader would take the first of two equal keys, and another the last.
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is given twice")
    return value


def _no_constant(_: str) -> NoReturn:
    raise ValueError("a number that is not finite")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):  # 1e999
        raise ValueError("a number that is not finite")
    return value


def _integer(text: str) -> int:
    if len(text) > 40:  # Python's time for long ones grows with their square.
        raise ValueError("an integer of more than 40 digits")
    return int(text)


_DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "I32": np.dtype(np.int32),
    "I64": np.dtype(np.int64),
    "F32": np.dtype(np.float32),
    "F64": np.dtype(np.float64),
}
"""Types of arrays by their names in safetensors."""
_MOST_HEADER = 1024**2


def arrays_to_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Write arrays of any shape; equal arrays give equal bytes. It raises TypeError for types not in `_DTYPES`."""
    safetensors = require("safetensors.numpy", "exchange")
    plain = {}
    for name, array in arrays.items():
        native = array.dtype.newbyteorder("=")
        if native not in _DTYPES.values():
            known = ", ".join(map(str, _DTYPES.values()))
            raise TypeError(f"Array {name!r} is of type {array.dtype}; expected one of {known}.")
        # Not ascontiguousarray, which makes a vector of a single number.
        plain[name] = np.asarray(array, dtype=native, order="C")
    data: bytes = safetensors.save(plain)
    return data


def bytes_to_arrays(data: bytes, *, what: str) -> dict[str, NDArray[Any]]:
    """Read arrays that can be written to, or raise BUNDLE_MALFORMED under the name that is given."""
    safetensors = require("safetensors", "exchange")
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, _MOST_HEADER):
        raise _unreadable(what, "it does not start as a list of arrays")
    # Read here first, with our bounds, before the library sees it.
    header = parse_json(data[8 : 8 + length], what=what)
    if not isinstance(header, dict) or "__metadata__" in header:
        raise _unreadable(what, "it holds something besides arrays")
    try:
        tensors = safetensors.deserialize(data)
    except (safetensors.SafetensorError, ValueError, OverflowError, TypeError, MemoryError):
        raise _unreadable(what, "its list of arrays does not fit its bytes") from None
    return {name: _array(name, tensor, what) for name, tensor in sorted(tensors, key=itemgetter(0))}


def _array(name: str, tensor: dict[str, Any], what: str) -> NDArray[Any]:
    # Few types: each one more is one more that every reader has to take.
    if tensor["dtype"] not in _DTYPES:
        raise _unreadable(what, f"array {name!r} is of a type that is not accepted")
    dtype = _DTYPES[tensor["dtype"]]
    raw = bytearray(tensor["data"])
    # NumPy takes any byte for a truth value, and counts wrongly then.
    if dtype == np.bool_ and raw.translate(None, b"\x00\x01"):
        raise _unreadable(what, f"array {name!r} is said to be logical and is not")
    try:
        array = np.frombuffer(raw, dtype=dtype.newbyteorder("<")).reshape(tensor["shape"])
    except (ValueError, OverflowError, TypeError):
        raise _unreadable(what, f"array {name!r} has an impossible shape") from None
    return array.astype(dtype, copy=False)


def _unreadable(what: str, reason: str) -> ExchangeError:
    return ExchangeError("BUNDLE_MALFORMED", f"{what} cannot be read: {reason}. Have it sent again.")
