"""Entries of the project file: their types, checks that several of them share, and refusals."""

from __future__ import annotations

import difflib
import math
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime
from typing import Any

from ...bundle import PublicKey
from ...errors import ExchangeError

_LARGEST = 2**53
"""Whole numbers up to this are exact as float64."""
_LEFT_OUT = ("revision", "missing_words", "outside", "unknown", "statistics", "errors")
"""Entries that are not written at their default, so that an agreement has one spelling."""
_WORDS = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number with a point",
    list: "a list",
    dict: "a table",
    date: "a date",
    datetime: "a date with a time",
    type(None): "nothing",
}
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
        raise invalid(where, f"unknown: {listed(map(repr, unknown))}. Allowed: {', '.join(names)}.{hint}")
    return {name: entry_of(table[name], types[name], f"{where}, {name}") for name in names if name in table}


def entry_of(found: object, annotation: str, where: str) -> Any:
    """Return an entry of the type that a class declares, or refuse it; the entry itself is not repeated."""
    annotation = annotation.removesuffix(" | None")
    kind = _kind(annotation)
    expected, types = _TYPES[kind]
    # True is an int to Python, and a time with a day is a date.
    if type(found) not in types:
        raise invalid(where, f"expected {expected}, got {_word(found)}.")
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
    elif isinstance(found, int) and abs(found) > _LARGEST:
        raise invalid(where, f"the number is too large. Expected at most {_LARGEST}.")
    return found


def _kind(annotation: str) -> str:
    """Return the key in `_TYPES` of an annotation; all lists are one kind, and all tables."""
    start = annotation.partition("[")[0]
    return start if start in ("tuple", "dict") else annotation.removesuffix(" | None")


def _word(found: object) -> str:
    return _WORDS.get(type(found), type(found).__name__)


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


def invalid(where: str, sentence: str) -> ExchangeError:
    """Return the error for an impossible entry: its place, then a sentence on its fault and what to do."""
    return ExchangeError("SPEC_INVALID", f"{where}: {sentence}")


def refuse_if(fault: object, where: str, sentence: str) -> None:
    """Raise the error for an impossible entry if there is a fault."""
    if fault:
        raise invalid(where, sentence)


def listed(names: Iterable[object], *, most: int = 10) -> str:
    """Return the first names, with commas between, and the number of further ones."""
    texts = [str(name) for name in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def check_text(where: str, text: object, *, most: int = 200, empty: bool = False, lines: bool = False) -> None:
    """Refuse a text that is empty or long, or in which something invisible may hide."""
    if not isinstance(text, str):
        raise invalid(where, f"expected text, got {type(text).__name__}.")
    refuse_if(not text and not empty, where, "the text is empty. Write one.")
    refuse_if(len(text) > most, where, f"expected at most {most} characters, got {len(text)}. Shorten it.")
    is_plain = (text.replace("\n", " ") if lines else text).isprintable()
    refuse_if(not is_plain, where, "there is an invisible character (a line break, tab or control code). Remove it.")


def check_choice(where: str, found: object, allowed: Sequence[str]) -> None:
    """Refuse a name that is none of those allowed."""
    got = repr(found) if isinstance(found, str) else _word(found)
    refuse_if(found not in allowed, where, f"expected {', '.join(allowed[:-1])} or {allowed[-1]}, got {got}.")


def check_limits(where: str, number: float, least: float, most: float | None = None, *, why: str = "") -> None:
    """Refuse a number outside of the limits, both included."""
    limits = f"{least:g} or more" if most is None else f"{least:g} to {most:g}"
    is_inside = least <= number <= (number if most is None else most)
    refuse_if(not is_inside, where, f"expected {limits}, got {number:.10g}.{why}")


def check_range(where: str, minimum: float | None, maximum: float | None) -> None:
    """Refuse a declared range with a bound that is missing or not finite, or with bounds in the wrong order."""
    if minimum is None or maximum is None:
        raise invalid(where, "a number needs a minimum and a maximum. Declare what is possible, in its unit.")
    is_finite = math.isfinite(minimum) and math.isfinite(maximum)
    refuse_if(not is_finite, where, "minimum and maximum must be finite numbers.")
    order = f"minimum is {minimum:.10g} and maximum {maximum:.10g}; the maximum must be larger."
    refuse_if(minimum >= maximum, where, order)


def check_labels(
    where: str, labels: Sequence[object], noun: str, *, least: int = 1, types: tuple[type, ...] = (str, int)
) -> None:
    """Refuse labels that are too few, of several or other types, not to be shown, or given twice."""
    refuse_if(len(labels) < least, where, f"expected at least {least}, got {len(labels)}: list each {noun}.")
    expected = "text" if types == (str,) else "text or a whole number"
    for each in labels:
        refuse_if(type(each) not in types, where, f"each {noun} must be {expected}.")
        if isinstance(each, str):
            check_text(f"{where}, a {noun}", each)
        is_large = isinstance(each, int) and abs(each) > _LARGEST
        refuse_if(is_large, where, f"a {noun} is too large a number. Write it as text.")
    is_mixed = len({type(each) for each in labels}) > 1
    refuse_if(is_mixed, where, "some are text and some are numbers. Write all as text.")
    refuse_if(len(set(labels)) < len(labels), where, f"a {noun} occurs twice. Name each once.")


def check_no_others(where: str, table: Any, what: str) -> None:
    """Refuse an entry that is given, and that a table of this sort has not."""
    names = table.entry_names(vars(table))
    given = [each.name for each in fields(table) if getattr(table, each.name) != each.default]
    if others := [name for name in given if name not in names]:
        raise invalid(where, f"{what} has no {listed(others)}. Remove it, or take another kind.")


def check_no_formula(where: str, text: object) -> None:
    """Refuse a text that becomes an entry of tables and begins like a formula, which spreadsheets compute.

    Numbers may begin with a sign; signs alone, as in "+" and "-", are not computed.
    """
    # Spreadsheets in some languages take the wide forms of these signs, too.
    plain = unicodedata.normalize("NFKC", str(text)).strip()
    if not plain.startswith(("=", "+", "-", "@")) or not any(letter.isalnum() for letter in plain):
        return
    try:
        float(plain.removesuffix("%"))
    except ValueError:
        raise invalid(
            where,
            f"{text!r} begins with {str(text).strip()[0]!r} and is no number, so that a spreadsheet which opens "
            "predictions would compute it as a formula. Choose another name.",
        ) from None
