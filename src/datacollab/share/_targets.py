"""Targets, single ones or with fields, as arrays that a bundle can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import PartyName
from ..errors import ExchangeError
from ..targets import TargetKind, target_kind

_OF_ANCHOR = "anchor_"

_STORED = {
    "bool": np.bool_,
    "float16": np.float32,
    "float32": np.float32,
    "float64": np.float64,
    "int8": np.int32,
    "int16": np.int32,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.int32,
    "uint16": np.int32,
    "uint32": np.int64,
}
"""Types of numbers, and a type that stores each without loss."""

_CHARACTER = np.dtype("U1").itemsize
_TEXTS = ("str", "object")
_MOST_TEXT = 200
"""Characters of a class: NumPy gives the room of the longest to every row."""
_MOST_BYTES = 2**30
"""The most bytes of texts, one for each row."""


def encode_targets(
    party: PartyName, target: NDArray[Any], anchor_target: NDArray[Any] | None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return targets as facts and arrays that a bundle can hold; texts become codes of classes, fields an array each.

    It raises SHARE_MALFORMED for targets that are neither texts nor numbers.
    """
    kind = target_kind(target)
    if kind is not TargetKind.SINGLE:
        fields = {name: target[name] for name in target.dtype.names or ()}
        if anchor_target is not None:
            fields |= {f"{_OF_ANCHOR}{name}": anchor_target[name] for name in anchor_target.dtype.names or ()}
        return {"kind": kind.value}, {name: np.ascontiguousarray(values) for name, values in fields.items()}
    targets = {"target": target}
    if anchor_target is not None:
        targets[f"{_OF_ANCHOR}target"] = anchor_target
    dtype = _dtype_name(target)
    if dtype is None or any(_dtype_name(values) != dtype for values in targets.values()):
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"Party {party!r}: targets must all be texts or all be numbers of one type; got "
            f"{[str(values.dtype) for values in targets.values()]!r}. Convert them, and share again.",
        )
    if dtype not in _TEXTS:
        return {"dtype": dtype}, {name: values.astype(_STORED[dtype]) for name, values in targets.items()}
    # One list of classes for rows and anchor, so that equal texts have one code.
    classes = np.unique(np.concatenate([values.astype(str) for values in targets.values()]))
    # A long text is no class, and may be a note on a person.
    if classes.dtype.itemsize // _CHARACTER > _MOST_TEXT:
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"Party {party!r}: a class has a name of more than {_MOST_TEXT} characters. Shorten it, and share again.",
        )
    codes = {name: np.searchsorted(classes, values.astype(str)).astype(np.int64) for name, values in targets.items()}
    return {"dtype": dtype, "classes": classes.tolist()}, codes


def decode_targets(
    facts: Any, arrays: Mapping[str, NDArray[Any]], n_rows: int, n_anchors: int
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return targets of the rows and of the anchor from the facts and arrays of `encode_targets`.

    The share checks the meaning of their entries.  It raises SHARE_MALFORMED or TOO_LARGE.
    """
    if isinstance(facts, Mapping) and "kind" in facts:
        return _decode_fields(facts, arrays, n_rows, n_anchors)
    if not {"target"} <= arrays.keys() <= {"target", f"{_OF_ANCHOR}target"}:
        raise _target_error("not one array")
    dtype, classes = _check_facts(facts)
    targets = {name: _decode(values, dtype, classes) for name, values in arrays.items()}
    return targets["target"], targets.get(f"{_OF_ANCHOR}target")


def _decode_fields(
    facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_rows: int, n_anchors: int
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    kinds = {kind.value: kind.dtype for kind in TargetKind if kind is not TargetKind.SINGLE}
    kind = facts["kind"]
    # The manifest is another party's: its kind may be anything, also what no dictionary can look up.
    dtype = kinds.get(kind) if isinstance(kind, str) else None
    if dtype is None or facts.keys() != {"kind"}:
        raise _target_error("of no known kind")
    own: set[str] = set(dtype.names or ())
    anchor = {f"{_OF_ANCHOR}{name}" for name in own}
    if arrays.keys() not in (own, own | anchor):
        raise _target_error(f"of kind {kind}, but its arrays are {sorted(arrays)}")
    target = _fill(dtype, arrays, "", n_rows)
    if not anchor or not anchor <= arrays.keys():
        return target, None
    return target, _fill(dtype, arrays, _OF_ANCHOR, n_anchors)


def _fill(dtype: np.dtype[Any], arrays: Mapping[str, NDArray[Any]], prefix: str, n_rows: int) -> NDArray[Any]:
    target = np.zeros(n_rows, dtype=dtype)
    for name in dtype.names or ():
        values = arrays[prefix + name]
        if values.dtype != dtype[name] or values.shape != (n_rows,):
            raise _target_error(f"of a field {name} that is not of {dtype[name]}, one for each row")
        target[name] = values
    return target


def _check_facts(facts: Any) -> tuple[str, NDArray[Any] | None]:
    """Return the type of the targets, and the classes if they are texts."""
    dtype = facts.get("dtype") if isinstance(facts, Mapping) else None
    if isinstance(dtype, str) and dtype in _STORED:
        return dtype, None
    if dtype not in _TEXTS or not isinstance(facts.get("classes"), list) or not facts["classes"]:
        raise _target_error("of no known type")
    classes = facts["classes"]
    # NumPy drops a trailing null character, which would make two classes one.
    if any(not isinstance(name, str) or len(name) > _MOST_TEXT or name.endswith("\0") for name in classes):
        raise _target_error("of classes that are no short texts")
    if len(set(classes)) != len(classes):
        raise _target_error("of a class that is listed twice")
    return dtype, np.array(classes, dtype=str if dtype == "str" else object)


def _decode(values: NDArray[Any], dtype: str, classes: NDArray[Any] | None) -> NDArray[Any]:
    stored = _STORED[dtype] if classes is None else np.int64
    if values.dtype != stored or values.ndim != 1:
        raise _target_error("of another type than its manifest says")
    if classes is not None:
        if values.size and not 0 <= values.min() <= values.max() < len(classes):
            raise _target_error("of classes that are not listed")
        # Before the texts are made: a small file must not fill the memory.
        if values.size * max(map(len, classes)) * _CHARACTER > _MOST_BYTES:
            raise too_large(f"targets take more than {_MOST_BYTES} bytes as texts")
        return np.asarray(classes[values])
    with np.errstate(over="ignore"):
        decoded = values.astype(dtype)
    # Whole numbers are stored wider than they were.
    if values.dtype.kind != "f" and not np.array_equal(decoded, values):
        raise _target_error("beyond the range of their type")
    return decoded


def _dtype_name(values: NDArray[Any]) -> str | None:
    if values.dtype.kind == "U":
        return "str"
    if values.dtype == object:
        return "object" if all(isinstance(value, str) for value in values) else None
    return values.dtype.name if values.dtype.name in _STORED else None


def _target_error(fault: str) -> ExchangeError:
    return ExchangeError("SHARE_MALFORMED", f"The share cannot be used: its targets are {fault}. Have it made again.")


def too_large(fault: str) -> ExchangeError:
    """Return the error for a share that takes more memory than it may."""
    return ExchangeError("TOO_LARGE", f"The share cannot be used: its {fault}. Have a smaller one made.")
