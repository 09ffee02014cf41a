"""The entries of a column as numbers and labels: readings of points and commas, and words for missing entries."""

from __future__ import annotations

import difflib
import math
import numbers
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._entries import join_names
from .._frames import MISSING, UNKNOWN, label_finder, label_text, relax
from .._require import require
from .._typing import FloatArray

MISSING_WORDS = frozenset(
    ("", "#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
)
"""Texts for a missing entry among numbers, and among categories unless a category has that name."""

POINT = "points"
COMMA = "commas"
UNDECIDED = "undecided"
"""The sign before the decimals of a column."""

_SHAPE = re.compile(
    r"""(?:
    (?P<zeros>0\d+(?:[.,]\d+)?)
    |(?P<short>[+-]?\d{1,3})
    |(?P<long>[+-]?\d{4,15})
    |(?P<huge>[+-]?\d{16,})
    |(?P<code>\d+[eE]\d+)
    |(?P<power>[+-]?\d+[eE][+-]?\d+|[+-]?(?:inf|infinity|Inf|INF|Infinity))
    |(?P<point_three>[+-]?[1-9]\d{0,2}\.\d{3})
    |(?P<comma_three>[+-]?[1-9]\d{0,2},\d{3})
    |(?P<point>[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<comma>[+-]?(?:\d+,\d*|,\d+)(?:[eE][+-]?\d+)?)
    |(?P<comma_groups>[+-]?[1-9]\d{0,2}(?:(?:,\d{3})+\.\d*|(?:,\d{3}){2,}))
    |(?P<point_groups>[+-]?[1-9]\d{0,2}(?:(?:\.\d{3})+,\d*|(?:\.\d{3}){2,}))
    |(?P<grouped_point>[+-]?[1-9]\d{0,2}(?:['\u2019\xa0\u2009\u202f]\d{3})+\.\d*)
    |(?P<grouped_comma>[+-]?[1-9]\d{0,2}(?:['\u2019\xa0\u2009\u202f]\d{3})+,\d*)
    |(?P<grouped>[+-]?[1-9]\d{0,2}(?:['\u2019\xa0\u2009\u202f]\d{3})+)
    |(?P<mark>\.[a-zA-Z_]?)
    |(?P<letter>[A-Z_]|NI|INV|UNK|NASK|ASKU|NAV|MSK)
    |(?P<truth>true|false|True|False|TRUE|FALSE)
    )""",
    re.VERBOSE | re.ASCII,
)
_NINES = str.maketrans("12345678", "99999999")
_APART = str.maketrans("", "", "'\u2019\xa0\u2009\u202f")
"""Apostrophes and spaces that do not break, between thousands."""
POINT_SHAPES = {"point", "comma_groups", "grouped_point"}
_BY_COMMA = {"comma", "point_groups", "grouped_comma"}
_EITHER = {"point_three", "comma_three"}
_CONTRARY = {POINT: _BY_COMMA, COMMA: POINT_SHAPES, UNDECIDED: POINT_SHAPES}
"""Shapes that a reading excludes."""
_THOUSANDS = {POINT: "comma_three", COMMA: "point_three", UNDECIDED: "point_three"}
"""The shape that is of thousands in a reading."""
_WHOLE = {"short", "long"}
_NUMBERS = {*POINT_SHAPES, *_BY_COMMA, *_EITHER, *_WHOLE, "power", "grouped"}
_MEASURED = _NUMBERS - {"short", "power"}
"""Numbers that are no codes of a few categories; beside them a capital letter is SAS's mark of a gap."""
CODE = "code"
"""The first letters of the shapes of digits, an E and digits, as of 1E30 in ICD-11; their length follows."""


def is_any_number(text: str) -> bool:
    """Return whether a text is a number in some reading."""
    match = _SHAPE.fullmatch(text.strip())
    return match is not None and match.lastgroup not in ("truth", "mark", "letter")


@lru_cache(maxsize=2**16)
def _shape_of(pattern: str) -> str:
    text = pattern.strip()
    if not text:
        return "empty"
    if text in MISSING_WORDS:
        return "word"
    match = _SHAPE.fullmatch(text)
    if match is None:
        return "text"
    shape = str(match.lastgroup)
    return f"{CODE}{len(text)}" if shape == CODE else shape


def _shape(text: str) -> str:
    # Many numbers have few patterns, so that few of them are matched.
    return _shape_of(text.translate(_NINES))


def shapes_of(entries: Any) -> set[str]:
    """Return the shapes that occur in a column of text."""
    return set(map(_shape, require("pandas", "cli").unique(entries)))


def find_readings(shapes: Mapping[Any, Iterable[str]], *, usual: str | None) -> dict[Any, str]:
    """Return the sign before the decimals in each column, from the shapes of its entries: point, comma, undecided.

    A number such as 1,234 can be read in two ways.  The rest of its column decides, or else the other columns; `usual`
    is the reading of a point before three digits if nothing speaks against it.

    Examples
    --------
    >>> find_readings({"dose": {"comma"}, "weight": {"comma_three"}}, usual=None)
    {'dose': 'commas', 'weight': 'commas'}
    >>> find_readings({"weight": {"comma_three", "short"}}, usual=None)
    {'weight': 'undecided'}
    """
    kinds = {name: frozenset(_as_powers(each)) for name, each in shapes.items()}
    # Only columns of nothing but numbers are witnesses for others.
    pure = [each for each in kinds.values() if each <= _NUMBERS | {"empty", "word", "mark"}]
    has_points = any(each & POINT_SHAPES for each in pure)
    has_commas = any(each & _BY_COMMA for each in pure)
    of_file = None
    if has_points != has_commas:
        of_file = POINT if has_points else COMMA
    if has_commas:
        usual = None
    return {name: _find_reading(each, of_file, usual) for name, each in kinds.items()}


def code_shapes(shapes: Iterable[str]) -> set[str]:
    """Return the shapes that are codes or powers of ten, one for each length."""
    return {each for each in shapes if each.startswith(CODE)}


def _as_powers(shapes: Iterable[str]) -> set[str]:
    """Return shapes in which codes are powers of ten, as they are among other numbers."""
    return {"power" if each.startswith(CODE) else each for each in shapes}


def _find_marks(shapes: set[str]) -> set[str]:
    """Return the shapes that are marks of gaps in a column: of Stata or SAS, beside nothing but numbers."""
    marks = shapes & {"mark", "letter"}
    held = shapes - {"empty", "word", "mark", "letter"}
    # A letter beside few whole numbers may be a category, such as a blood group.
    is_number = bool(held) and held <= _NUMBERS and (marks == {"mark"} or bool(held & _MEASURED))
    return marks if is_number else set()


def _find_reading(shapes: frozenset[str], of_file: str | None, usual: str | None) -> str:
    """Return the reading of one column; `of_file` is that of all others, if they agree."""
    # A column that has both kinds of marks decides nothing by itself.
    by_point = bool(shapes & POINT_SHAPES)
    by_comma = bool(shapes & _BY_COMMA)
    doubtful = shapes & _EITHER
    if by_point != by_comma:
        reading = POINT if by_point else COMMA
    elif by_point or not doubtful:
        reading = of_file or POINT
    elif doubtful == {"point_three"} and usual is not None:
        reading = usual
    else:
        reading = of_file or UNDECIDED
    # In thousands 1,234 contradicts 5678.
    if _THOUSANDS[reading] in shapes and "long" in shapes:
        return UNDECIDED
    return reading


def mark_words(shapes: set[str], reading: str) -> list[str]:
    """Return in words the marks of numbers that are not decimal points."""
    words = []
    groups = {"comma_groups", "comma_three"}
    if reading == COMMA:
        groups = {"point_groups", "point_three"}
        if shapes & {*_BY_COMMA, "comma_three"}:
            words.append("decimal commas")
    if shapes & {*groups, "grouped", "grouped_point", "grouped_comma"}:
        words.append("thousands marks")
    return words


class Numbers:
    """A column of text as numbers, if it is one.

    Parameters
    ----------
    shapes : set of str
        Shapes of all entries of the column, not only of those that are converted.
    reading : {"points", "commas", "undecided"}
    is_declared : bool
        Whether the project says that it holds numbers; otherwise every entry has to be one, without leading zeros.

    Attributes
    ----------
    is_number : bool
    is_doubtful : bool
        Whether it would be numbers, and in two ways.
    has_odd_codes : bool
        Whether all entries are as 1E30 and 5E0, of several lengths: codes or powers of ten.
    has_marks : bool
        Whether marks of Stata or SAS are gaps among its numbers.
    """

    def __init__(self, shapes: set[str], reading: str, *, is_declared: bool) -> None:
        codes = code_shapes(shapes)
        # Nothing but entries as 1E30, of one length, are codes; numbers in this form have a sign or a point.
        is_code = not is_declared and bool(codes) and shapes - {"empty", "word"} == codes
        self.has_odd_codes = is_code and len(codes) > 1
        shapes = _as_powers(shapes)
        # A project's number leaves no doubt of a point, and an owner's letter is for the project to refuse.
        marks = shapes & {"mark"} if is_declared else _find_marks(shapes)
        self.has_marks = bool(marks)
        held = shapes - {"empty", "word"} - marks
        self.is_truth = not is_declared and held == {"truth"} and "word" not in shapes
        self._contrary = _CONTRARY[reading]
        self.is_pure = held <= _NUMBERS | {"zeros", "huge"} and not held & self._contrary
        # Undeclared numbers with leading zeros or 16 digits are identifiers.
        is_number = is_declared or (
            self.is_pure and not is_code and held <= _NUMBERS and bool(held or shapes <= {"empty"})
        )
        self.is_doubtful = is_number and reading == UNDECIDED
        self.is_number = is_number and not self.is_doubtful
        self.reading = reading
        # Only whole numbers without gaps keep an integer type.
        self.is_whole = not is_declared and bool(shapes) and shapes <= _WHOLE

    def convert(self, entries: Any, *, missing: frozenset[str] = frozenset(("",))) -> Any:
        """Return a column of text, shape (n_rows,), as its type; texts in a declared column of numbers stay texts.

        Entries of text that are in `missing` mean no entry.
        """
        pandas = require("pandas", "cli")
        # Each different text is converted once.
        codes, texts = pandas.factorize(entries)
        if self.is_whole:
            return pandas.Series(np.array([int(text) for text in texts], dtype=np.int64)[codes])
        values = [self._value(text, missing) for text in texts]
        kept = np.empty(len(values), dtype=object)
        kept[:] = values
        if self.is_number and not any(isinstance(each, str) for each in values):
            return pandas.Series(kept.astype(np.float64)[codes])
        if self.is_truth and not any(isinstance(each, float) for each in values):
            return pandas.Series(kept.astype(bool)[codes])
        if self.is_number or self.is_truth:
            return pandas.Series(kept[codes], dtype=object)
        # The type that this version of pandas has for texts.
        return pandas.Series(kept[codes], dtype=pandas.Series(["text"]).dtype)

    def letters(self, entries: Any) -> list[str]:
        """Return the entries that are no number, and a gap here by SAS's and REDCap's marks alone."""
        if not self.has_marks:
            return []
        return [text.strip() for text in entries if _shape(text) == "letter"]

    def _value(self, text: str, missing: frozenset[str]) -> float | bool | str:
        if self.is_number and self.is_pure:
            return self._number(text)
        if self.is_number:
            return self._number_or_text(text)
        if self.is_truth and text.strip():
            return text.strip().lower() == "true"
        return math.nan if self.is_truth or text in missing else text

    def _number_or_text(self, text: str) -> float | str:
        shape = _shape(text)
        if shape == "truth":
            return float(text.strip().lower() == "true")
        # Numbers in the other reading stay as well, for the caller to refuse.
        if shape in ("text", "letter") or shape in self._contrary:
            return text
        return self._number(text)

    def _number(self, text: str) -> float:
        plain = text.strip().translate(_APART)
        if not plain or plain in MISSING_WORDS or (self.has_marks and _shape(plain) in ("mark", "letter")):
            return math.nan
        if self.reading == POINT:
            return float(plain.replace(",", ""))
        return float(plain.replace(".", "").replace(",", "."))


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
    n_rows = str(before + rows.size)
    if first_row is not None:
        n_rows = f"the first {n_rows}"
    words = f"{earlier + np.count_nonzero(rows)} of {n_rows} rows"
    # The first one helps to find the fault, unless all are affected or it came before.
    if earlier or (not before and rows.all()):
        return words
    return f"{words} (the first: row {before + int(np.argmax(rows)) + 1})"


def label_codes(column: Any, labels: Sequence[str | int], *, relaxed: bool = False) -> NDArray[np.int64]:
    """Return the position of every entry among the labels, `MISSING` for no entry, `UNKNOWN` for no label.

    An entry is a label that it equals as text, in any form of Unicode.  Failing that, numbers are compared as numbers,
    so that the label "1" is found in a file that holds 1, 1.0 or "1.0", and truth values are 1 and 0.  If `relaxed`,
    capital letters and blanks do not count where one label alone differs by them.
    """
    pandas = require("pandas", "cli")
    # pandas would give codes of its own categories, in their order.
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
        rows.append((text, int(count), "".join(known[each] for each in near)))
    return rows


def spelling_hint(column: Any, labels: Sequence[str | int]) -> str:
    """Return a sentence if unknown entries are near to labels; it names labels, and no entry."""
    n_unknown = np.count_nonzero(label_codes(column, labels) == UNKNOWN)
    n_strange = np.count_nonzero(label_codes(column, labels, relaxed=True) == UNKNOWN)
    hint = ""
    if n_unknown > n_strange:
        hint = f" {n_unknown - n_strange} of them differ from agreed ones by capital letters or spaces alone."
    near = sorted({label for _, _, label in unknown_labels(column, labels)[:_MOST_COMPARED] if label})
    if near:
        hint += f" Nearest to them: {join_names(near)}."
    return hint


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
        # Objects may hold numbers of any library.
        elif isinstance(entry, numbers.Real | Decimal | np.bool_):
            try:
                converted[position] = float(entry)
            except (OverflowError, ValueError):
                others.append(position)
        elif entry is not None and type(entry).__name__ not in ("NAType", "NaTType"):
            others.append(position)
    # Other objects weigh more than texts, and are named first.
    if others:
        raise _not_numeric("something other than numbers", [*others, *texts], len(entries))
    if texts:
        raise _text_error(texts, len(entries))
    return converted


def _text_error(texts: dict[int, str], n_entries: int) -> NotNumericError:
    """Return the error for texts among numbers, by position, with the most likely reason."""
    unread = {position: text for position, text in texts.items() if not is_number(text)}
    # The commonest causes, each with its own remedy; "text" only if none fits.
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
