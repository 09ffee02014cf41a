"""The entries of a column as labels and as numbers; words that stand for missing entries."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._entries import join_names
from .._frames import MISSING, UNKNOWN, label_finder, label_text, relax
from .._require import require
from .._typing import FloatArray
from ._numbers import MISSING_WORDS

_NO_LABEL = object()
_MOST_LETTERS = 80
_MOST_COMPARED = 50
"""Letters of an entry, and entries, that are compared with labels: it takes long."""
_NO_NUMBERS = {"M": "dates", "m": "durations", "c": "complex numbers"}
"""Kinds of NumPy's types that are no numbers, in words."""
_WORDS = "nil missing unk unknown unbekannt k.a. fehlt ? ?? - -- . .. #div/0! #value! #ref! #name? #num! #null!"
_USUAL_WORDS = frozenset((*_WORDS.split(), *map(str.casefold, MISSING_WORDS)))


def count_affected(rows: NDArray[np.bool_], first_row: int | None, *, earlier: int = 0) -> str:
    """Count the rows that are True, in the words of a refusal.

    `first_row` rows of the file came before, None if these are all; `earlier` of them are counted too.
    """
    before = first_row or 0
    of_all = "" if first_row is None else "the first "
    counted = f"{earlier + np.count_nonzero(rows)} of {of_all}{before + rows.size} rows"
    if earlier or (not before and rows.all()):
        return counted
    return f"{counted} (the first: row {before + int(np.argmax(rows)) + 1})"


def label_codes(column: Any, labels: Sequence[str | int], *, relaxed: bool = False) -> NDArray[np.int64]:
    """Return the position of every entry among the labels, `MISSING` for no entry, `UNKNOWN` for no label.

    An entry is a label that it equals as text, in any form of Unicode.  Failing that, numbers are compared as numbers,
    so that the label "1" is found in a file that holds 1, 1.0 or "1.0", and truth values are 1 and 0.  If `relaxed`,
    capital letters and blanks do not count where one label alone differs by them.
    """
    pandas = require("pandas", "cli")
    if type(column.dtype).__name__ == "CategoricalDtype":
        column = column.astype(object)
    try:
        codes, entries = pandas.factorize(column, use_na_sentinel=True)
    except TypeError:
        # Lists and the like have no place in a table; they are no label either.
        column = column.map(lambda entry: entry if isinstance(entry, Hashable) else _NO_LABEL)
        codes, entries = pandas.factorize(column)
    # pandas gives missing entries the code -1, which takes the last position.
    positions = np.array([*map(label_finder(labels, relaxed), entries), MISSING], dtype=np.int64)
    return positions[np.asarray(codes, dtype=np.int64)]


def unknown_labels(column: Any, labels: Sequence[str | int]) -> list[tuple[str, int, str]]:
    """Return each entry that is no label, how many rows have it, and the nearest label; "" if none is near.

    Entries are data of the table's owner: they are shown to nobody else.
    """
    unknown = column[label_codes(column, labels, relaxed=True) == UNKNOWN]
    known = {relax(str(label)): str(label) for label in labels}
    rows = []
    for text, count in unknown.map(label_text).value_counts().items():
        # Seven letters of ten alike: a slip of the keyboard, and seldom another word.
        near = difflib.get_close_matches(relax(text[:_MOST_LETTERS]), known, n=1, cutoff=0.7)
        rows.append((text, int(count), known[near[0]] if near else ""))
    return rows


def spelling_hint(column: Any, labels: Sequence[str | int]) -> str:
    """Return a sentence if unknown entries are near to labels; it names labels, and no entry."""
    n_unknown = np.count_nonzero(label_codes(column, labels) == UNKNOWN)
    n_strange = np.count_nonzero(label_codes(column, labels, relaxed=True) == UNKNOWN)
    hint = ""
    if n_unknown > n_strange:
        hint = f" {n_unknown - n_strange} of them differ from agreed ones by capital letters or spaces alone."
    near = sorted({label for _, _, label in unknown_labels(column, labels)[:_MOST_COMPARED] if label})
    return f"{hint} Nearest to them: {join_names(near)}." if near else hint


class NotNumericError(Exception):
    """Some entries are no numbers; the words count them, and quote none."""

    def __init__(self, kind: str, rows: NDArray[np.bool_] | None = None) -> None:
        super().__init__(kind, rows)
        self.kind = kind
        self.rows = rows

    def __str__(self) -> str:
        return self.words(None)

    def words(self, first_row: int | None) -> str:
        """Return the words, for rows that came after `first_row` others of the file; None if these are all."""
        if self.rows is None:
            return f"holds {self.kind}"
        return f"holds {self.kind} in {count_affected(self.rows, first_row)}"


def check_no_dates(column: Any) -> None:
    """Raise a NotNumericError if the type of a column is of dates, durations or complex numbers."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in _NO_NUMBERS:
        raise NotNumericError(_NO_NUMBERS[kind])


def as_numbers(column: Any) -> FloatArray:
    """Return the entries of a column in float64, missing ones as NaN and truth values as 0 and 1.

    A NotNumericError is raised if some entries are text, dates or anything else.
    """
    check_no_dates(column)
    if getattr(column.dtype, "kind", "O") in "biuf":
        missing = {} if isinstance(column.dtype, np.dtype) else {"na_value": np.nan}
        return np.asarray(column.to_numpy(dtype=np.float64, **missing))
    entries = column.astype(object).tolist()
    converted = np.full(len(entries), np.nan)
    texts: dict[int, str] = {}
    others: list[int] = []
    for position, entry in enumerate(entries):
        if isinstance(entry, str):
            if entry.strip():
                texts[position] = entry
        elif isinstance(entry, numbers.Real | Decimal | np.bool_):
            try:
                converted[position] = float(entry)
            except (OverflowError, ValueError):
                others.append(position)
        elif entry is not None and type(entry).__name__ not in ("NAType", "NaTType"):
            others.append(position)
    if others:
        raise _not_numeric("something other than numbers", [*others, *texts], len(entries))
    if texts:
        raise _text_error(texts, len(entries))
    return converted


def _text_error(texts: dict[int, str], n_entries: int) -> NotNumericError:
    """Return the error for texts among numbers, by position, with the most likely reason."""
    unread = {position: text for position, text in texts.items() if not is_number(text)}
    if not unread:
        return _not_numeric("numbers that were saved as text", texts, n_entries)
    if all(is_number(text.replace(".", "").replace(",", ".")) for text in unread.values()):
        return _not_numeric("decimal commas instead of points", unread, n_entries)
    if all(map(is_missing_word, unread.values())):
        return _not_numeric("words for missing entries", unread, n_entries)
    return _not_numeric("text", unread, n_entries)


def _not_numeric(kind: str, positions: Any, n_entries: int) -> NotNumericError:
    return NotNumericError(kind, np.isin(np.arange(n_entries), list(positions)))


def is_missing_word(text: str) -> bool:
    """Return whether a text usually stands for a missing entry; the reader knows the first few of these words."""
    return text.strip().casefold() in _USUAL_WORDS


def is_number(text: str) -> bool:
    """Return whether a text is a number as Python writes it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def blank_words(column: Any, words: Sequence[str]) -> Any:
    """Return a column in which entries that mean missing are missing; texts of numbers beside them become numbers."""
    if not words:
        return column
    is_word = label_codes(column, words, relaxed=True) >= 0
    if not is_word.any():
        return column
    kept = column.astype(object).where(~is_word, None)
    is_text = kept.map(lambda entry: isinstance(entry, str) and bool(entry.strip())).to_numpy(dtype=bool)
    # A column that held words beside numbers was read as text.
    if all(map(is_number, kept[is_text])):
        read = [float(entry) if each else None for each, entry in zip(is_text, kept, strict=True)]
        kept = kept.where(~is_text, read)
    return kept
