"""Entries of the project file: their types in TOML, and their contents for a digest."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date
from typing import Any

from .._entries import LARGEST, invalid, join_names, type_word
from ..bundle import PublicKey
from ..errors import ExchangeError

_LEFT_OUT = ("revision", "missing_words", "outside", "unknown", "statistics", "errors")
"""Entries that are not written at their default, so that an agreement has one spelling."""
_TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "str": ("text", (str,)),
    "bool": ("true or false", (bool,)),
    "int": ("a whole number", (int,)),
    "float": ("a number", (int, float)),
    "float | str": ("a number or text", (int, float, str)),
    "str | int": ("text or a whole number", (str, int)),
    "date": ("a date such as 2027-01-31, without quotes or time", (date,)),
    "PublicKey": ("a public key as text", (str,)),
    "list": ("a list of tables", (list,)),
    "tuple": ("a list", (list,)),
    "dict": ("a table of entries", (dict,)),
}
"""Words and types of TOML for the annotations of the classes that a file is read into."""


def table_of(kind: Any, found: dict[str, Any], where: str) -> Any:
    """Read a table of the file into a class, whose fields are the entries."""
    return kind(**entries_of(found, types_of(kind), where, kind.entry_names(found), kind.OPTIONAL))


def types_of(kind: type[Any]) -> dict[str, str]:
    """Return the annotations of a class's fields."""
    return {each.name: str(each.type) for each in fields(kind)}


def entries_of(
    found: object, types: Mapping[str, str], where: str, names: Sequence[str], optional: Collection[str] = ()
) -> dict[str, Any]:
    """Return the entries of a table by their types; an unknown one must not silently become a default."""
    table = entry_of(found, "dict", where)
    if missing := [name for name in names if name not in table and name not in optional]:
        raise invalid(where, f"{missing[0]} is missing. Add it: {_TYPES[_kind(types[missing[0]])][0]}.")
    if unknown := sorted(set(table) - set(names)):
        near = difflib.get_close_matches(unknown[0], names, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise invalid(where, f"unknown: {join_names(map(repr, unknown))}. Allowed: {', '.join(names)}.{hint}")
    return {name: entry_of(table[name], types[name], f"{where}, {name}") for name in names if name in table}


def entry_of(found: object, annotation: str, where: str) -> Any:
    """Return an entry of the type that a class declares, or refuse it; the entry itself is not repeated."""
    annotation = annotation.removesuffix(" | None")
    kind = _kind(annotation)
    expected, types = _TYPES[kind]
    # True is an int to Python, and a time with a day is a date.
    if type(found) not in types:
        raise invalid(where, f"expected {expected}, got {type_word(found)}.")
    if isinstance(found, list) and annotation.startswith("tuple["):
        inner = annotation.removeprefix("tuple[").removesuffix(", ...]")
        return tuple(entry_of(each, inner, where) for each in found)
    if isinstance(found, dict) and annotation.startswith("dict["):
        inner = annotation.removeprefix("dict[str, ").removesuffix("]")
        return {name: entry_of(each, inner, f"{where}, {name}") for name, each in found.items()}
    if kind == "PublicKey":
        try:
            return PublicKey.from_text(str(found))
        except ExchangeError as error:
            raise ExchangeError(error.code, f"{where}: {error}") from None
    if isinstance(found, int | float) and "float" in kind:
        try:
            found = float(found)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            raise invalid(where, "expected a finite number.")
    elif isinstance(found, int) and abs(found) > LARGEST:
        raise invalid(where, f"the number is too large. Expected at most {LARGEST}.")
    return found


def _kind(annotation: str) -> str:
    """Return the key in `_TYPES` of an annotation; all lists are one kind, and all tables."""
    start = annotation.partition("[")[0]
    return start if start in ("tuple", "dict") else annotation.removesuffix(" | None")


def content_of(table: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return entries of an object for JSON, with every default written out; those that are None are left out."""
    types, defaults = types_of(type(table)), {each.name: each.default for each in fields(table)}
    found = {name: getattr(table, name) for name in names}
    return {
        name: _plain(value, types.get(name, ""))
        for name, value in found.items()
        if value is not None and not (name in _LEFT_OUT and value == defaults[name])
    }


def _plain(value: Any, annotation: str) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each, "") for name, each in value.items()}
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, PublicKey):
        return value.text
    if isinstance(value, date):
        return value.isoformat()
    # So that 1 and 1.0 are the same agreement; 0 is added to lose the sign of -0.0.
    return float(value) + 0.0 if "float" in annotation and not isinstance(value, str) else value
