"""A refusal of an entry of the project file."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from ...errors import ExchangeError

__all__ = ["check_no_formula", "check_text", "invalid", "listed"]


def invalid(where: str, sentence: str) -> ExchangeError:
    """The error for an entry that cannot be: where it stands, what is wrong, what is wanted."""
    return ExchangeError("SPEC_INVALID", f"{where}: {sentence}")


def listed(names: Iterable[object], *, most: int = 10) -> str:
    """The first names, with commas between, and how many more there are."""
    texts = [str(name) for name in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def check_text(where: str, text: object, *, most: int = 200, empty: bool = False, lines: bool = False) -> None:
    """Check a text that programs show: nothing invisible may hide in it.

    Parameters
    ----------
    where : str
        What an error calls the entry.
    text : object
    most : int
        The most characters wanted.
    empty, lines : bool
        Whether the text may be empty, and have several lines.

    Raises
    ------
    ExchangeError
        When it is no such text.
    """
    if not isinstance(text, str):
        raise invalid(where, f"text is wanted, not {type(text).__name__}.")
    if not text and not empty:
        raise invalid(where, "the text is empty. Write one.")
    if len(text) > most:
        raise invalid(where, f"{len(text)} characters, at most {most} are wanted. Shorten it.")
    shown = text.replace("\n", " ") if lines else text
    if not shown.isprintable():
        raise invalid(where, "there is an invisible character (a line break, tab or control code). Remove it.")


def check_no_formula(where: str, text: str) -> None:
    """Check a text of other people that becomes entries of tables: spreadsheets compute what begins like a formula.

    Numbers may begin with a sign, and signs alone, as in "+" and "-", are computed by nobody.

    Raises
    ------
    ExchangeError
        When it is no such text.
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
