"""Refusals of entries of the project file, and the checks that several entries share."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence

from ...errors import ExchangeError

__all__ = ["check_choice", "check_labels", "check_limits", "check_no_formula", "check_range", "check_text", "invalid"]
__all__ += ["LARGEST", "listed"]

LARGEST = 2**53
"""Whole numbers up to this are exact as float64."""


def invalid(where: str, sentence: str) -> ExchangeError:
    """Return the error for an impossible entry: its place, then a sentence on its fault and what to do."""
    return ExchangeError("SPEC_INVALID", f"{where}: {sentence}")


def listed(names: Iterable[object], *, most: int = 10) -> str:
    """Return the first names, with commas between, and the number of further ones."""
    texts = [str(name) for name in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def check_text(where: str, text: object, *, most: int = 200, empty: bool = False, lines: bool = False) -> None:
    """Refuse a text that is empty or long, or in which something invisible may hide."""
    if not isinstance(text, str):
        raise invalid(where, f"expected text, got {type(text).__name__}.")
    if not text and not empty:
        raise invalid(where, "the text is empty. Write one.")
    if len(text) > most:
        raise invalid(where, f"expected at most {most} characters, got {len(text)}. Shorten it.")
    shown = text.replace("\n", " ") if lines else text
    if not shown.isprintable():
        raise invalid(where, "there is an invisible character (a line break, tab or control code). Remove it.")


def check_choice(where: str, found: str, allowed: Sequence[str]) -> None:
    """Refuse a name that is none of those allowed."""
    if found not in allowed:
        raise invalid(where, f"expected {', '.join(allowed[:-1])} or {allowed[-1]}, got {found!r}.")


def check_limits(where: str, number: float, least: float, most: float | None = None, *, why: str = "") -> None:
    """Refuse a number outside of the limits, both included."""
    if not least <= number <= (number if most is None else most):
        limits = f"{least:g} or more" if most is None else f"{least:g} to {most:g}"
        raise invalid(where, f"expected {limits}, got {number:.10g}.{why}")


def check_range(where: str, minimum: float | None, maximum: float | None) -> None:
    """Refuse a declared range with a bound that is missing or not finite, or with bounds in the wrong order."""
    if minimum is None or maximum is None:
        raise invalid(where, "a number needs a minimum and a maximum. Declare what is possible, in its unit.")
    if not (math.isfinite(minimum) and math.isfinite(maximum)):
        raise invalid(where, "minimum and maximum must be finite numbers.")
    if minimum >= maximum:
        raise invalid(where, f"minimum is {minimum:.10g} and maximum {maximum:.10g}; the maximum must be larger.")


def check_labels(
    where: str, labels: Sequence[object], noun: str, *, least: int = 1, types: tuple[type, ...] = (str, int)
) -> None:
    """Refuse labels that are too few, of several or other types, not to be shown, or given twice."""
    if len(labels) < least:
        raise invalid(where, f"expected at least {least}, got {len(labels)}: list each {noun}.")
    for each in labels:
        if type(each) not in types:
            raise invalid(where, f"each {noun} must be {'text' if types == (str,) else 'text or a whole number'}.")
        if isinstance(each, str):
            check_text(f"{where}, a {noun}", each)
        elif isinstance(each, int) and abs(each) > LARGEST:
            raise invalid(where, f"a {noun} is too large a number. Write it as text.")
    if len({type(each) for each in labels}) > 1:
        raise invalid(where, "some are text and some are numbers. Write all as text.")
    if len(set(labels)) < len(labels):
        raise invalid(where, f"a {noun} occurs twice. Name each once.")


def check_no_formula(where: str, text: str) -> None:
    """Refuse a text that becomes an entry of tables and begins like a formula, which spreadsheets compute.

    Numbers may begin with a sign; signs alone, as in "+" and "-", are not computed.
    """
    # Spreadsheets in some languages take the wide forms of these signs, too.
    plain = unicodedata.normalize("NFKC", text).strip()
    if not plain.startswith(("=", "+", "-", "@")) or not any(letter.isalnum() for letter in plain):
        return
    try:
        float(plain.removesuffix("%"))
    except ValueError:
        raise invalid(
            where,
            f"{text!r} begins with {text.strip()[0]!r} and is no number, so that a spreadsheet which opens predictions "
            "would compute it as a formula. Choose another name.",
        ) from None
