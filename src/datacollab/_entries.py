"""Entries that people write, such as those of a project file: checks, refusals, and classes that mean yes."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import date, datetime
from typing import Any

from .errors import ExchangeError

LARGEST = 2**53
"""Whole numbers up to this are exact as float64."""
NO_AND_YES = (("0", "1"), ("no", "yes"), ("No", "Yes"), ("false", "true"), ("False", "True"), ("FALSE", "TRUE"))
"""Pairs with an obvious meaning."""
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


def type_word(found: object) -> str:
    """Return the words for the type of an entry."""
    return _WORDS.get(type(found), type(found).__name__)


def invalid(where: str, sentence: str) -> ExchangeError:
    """Return the error for an impossible entry: its place, then a sentence on its fault and what to do."""
    return ExchangeError("SPEC_INVALID", f"{where}: {sentence}")


def refuse_if(fault: object, where: str, sentence: str) -> None:
    """Raise the error for an impossible entry if there is a fault."""
    if fault:
        raise invalid(where, sentence)


def join_names(names: Iterable[object], *, most: int = 10) -> str:
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
    # Line breaks are the only invisible characters, where a text may have lines.
    shown = text.replace("\n", " ") if lines else text
    refuse_if(
        not shown.isprintable(),
        where,
        "there is an invisible character (a line break, tab or control code). Remove it.",
    )


def check_choice(where: str, found: object, allowed: Sequence[str]) -> None:
    """Refuse a name that is none of those allowed."""
    got = repr(found) if isinstance(found, str) else type_word(found)
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
        is_large = isinstance(each, int) and abs(each) > LARGEST
        refuse_if(is_large, where, f"a {noun} is too large a number. Write it as text.")
    is_mixed = len({type(each) for each in labels}) > 1
    refuse_if(is_mixed, where, "some are text and some are numbers. Write all as text.")
    refuse_if(len(set(labels)) < len(labels), where, f"a {noun} occurs twice. Name each once.")


def check_no_others(where: str, table: Any, sort: str) -> None:
    """Refuse an entry that a table of this sort has not."""
    names = table.entry_names(vars(table))
    changed = [each.name for each in fields(table) if getattr(table, each.name) != each.default]
    if others := [name for name in changed if name not in names]:
        raise invalid(where, f"{sort} has no {join_names(others)}. Remove it, or take another kind.")


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


def positive_class(classes: Iterable[Any]) -> Any:
    """Return the class that means yes, of two that mean no and yes; None if their names do not say it."""
    # 0.0 and 1.0 are 0 and 1, as numbers of a table with gaps are read.
    found = {str(each).removesuffix(".0"): each for each in classes}
    return next((found[yes] for no, yes in NO_AND_YES if found.keys() == {no, yes}), None)
