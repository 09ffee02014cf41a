"""Numbers in text: which entries are numbers, in which reading of points and commas, decided by whole columns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from .._require import require

MISSING_WORDS = frozenset(
    ("", "#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
)
"""Texts for a missing entry among numbers, and among categories unless a category has that name."""

POINT, COMMA, UNDECIDED = "points", "commas", "undecided"
"""What stands before the decimals of a column."""

_SHAPE = re.compile(
    r"""(?:
    (?P<zeros>0\d+(?:[.,]\d+)?)
    |(?P<short>[+-]?\d{1,3})
    |(?P<long>[+-]?\d{4,15})
    |(?P<huge>[+-]?\d{16,})
    |(?P<power>[+-]?\d+[eE][+-]?\d+|[+-]?(?:inf|infinity|Inf|INF|Infinity))
    |(?P<point_three>[+-]?[1-9]\d{0,2}\.\d{3})
    |(?P<comma_three>[+-]?[1-9]\d{0,2},\d{3})
    |(?P<point>[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<comma>[+-]?(?:\d+,\d*|,\d+)(?:[eE][+-]?\d+)?)
    |(?P<comma_groups>[+-]?[1-9]\d{0,2}(?:(?:,\d{3})+\.\d*|(?:,\d{3}){2,}))
    |(?P<point_groups>[+-]?[1-9]\d{0,2}(?:(?:\.\d{3})+,\d*|(?:\.\d{3}){2,}))
    |(?P<truth>true|false|True|False|TRUE|FALSE)
    )""",
    re.VERBOSE | re.ASCII,
)
_NINES = str.maketrans("12345678", "99999999")
POINT_SHAPES, _BY_COMMA = {"point", "comma_groups"}, {"comma", "point_groups"}
_EITHER = {"point_three", "comma_three"}
_WHOLE = {"short", "long"}
_NUMBERS = {*POINT_SHAPES, *_BY_COMMA, *_EITHER, *_WHOLE, "power"}


def is_any_number(text: str) -> bool:
    """Return whether a text is a number in some reading."""
    found = _SHAPE.fullmatch(text.strip())
    return found is not None and found.lastgroup != "truth"


@lru_cache(maxsize=2**16)
def _shape_of(pattern: str) -> str:
    text = pattern.strip()
    if text in MISSING_WORDS:
        return "word" if text else "empty"
    found = _SHAPE.fullmatch(text)
    return "text" if found is None else str(found.lastgroup)


def _shape(text: str) -> str:
    # Many numbers have few patterns.
    return _shape_of(text.translate(_NINES))


def shapes_of(entries: Any) -> set[str]:
    """Return the shapes that occur in a column of text."""
    return set(map(_shape, require("pandas", "cli").unique(entries)))


def readings(shapes: Mapping[Any, Iterable[str]], *, usual: str | None) -> dict[Any, str]:
    """Return what stands before the decimals in each column, from the shapes of its entries: point, comma, undecided.

    A number such as 1,234 can be read in two ways.  The rest of its column decides, or else the other columns; `usual`
    is what a point before three digits makes of them if nothing speaks against it.

    Examples
    --------
    >>> readings({"dose": {"comma"}, "weight": {"comma_three"}}, usual=None)
    {'dose': 'commas', 'weight': 'commas'}
    >>> readings({"weight": {"comma_three", "short"}}, usual=None)
    {'weight': 'undecided'}
    """
    kinds = {name: frozenset(each) for name, each in shapes.items()}
    pure = [each for each in kinds.values() if each <= _NUMBERS | {"empty", "word"}]
    seen = {POINT: any(each & POINT_SHAPES for each in pure), COMMA: any(each & _BY_COMMA for each in pure)}
    of_file = next((each for each in seen if seen[each]), None) if sum(seen.values()) == 1 else None
    found = {}
    for name, each in kinds.items():
        by_point, by_comma = bool(each & POINT_SHAPES), bool(each & _BY_COMMA)
        if by_point != by_comma:
            found[name] = POINT if by_point else COMMA
        elif by_point or not each & _EITHER:
            found[name] = of_file or POINT
        elif each & _EITHER == {"point_three"} and usual is not None and not seen[COMMA]:
            found[name] = usual
        else:
            found[name] = of_file or UNDECIDED
        groups = "comma_three" if found[name] == POINT else "point_three"
        if groups in each and "long" in each and found[name] != UNDECIDED:
            found[name] = UNDECIDED  # in thousands 1,234 contradicts 5678
    return found


def marks(shapes: set[str], reading: str) -> list[str]:
    """Return in words the marks of numbers that are not decimal points."""
    by_comma = reading == COMMA
    has_groups = shapes & ({"point_groups", "point_three"} if by_comma else {"comma_groups", "comma_three"})
    has_commas = by_comma and shapes & {*_BY_COMMA, "comma_three"}
    return ["decimal commas"] * bool(has_commas) + ["thousands marks"] * bool(has_groups)


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
    """

    def __init__(self, shapes: set[str], reading: str, *, is_declared: bool) -> None:
        held = shapes - {"empty", "word"}
        self.is_truth = not is_declared and held == {"truth"} and "word" not in shapes
        others = _BY_COMMA if reading == POINT else POINT_SHAPES
        self.is_pure = held <= _NUMBERS | {"zeros", "huge"} and not held & others
        is_number = is_declared or (self.is_pure and held <= _NUMBERS and bool(held or shapes <= {"empty"}))
        self.is_doubtful = is_number and reading == UNDECIDED
        self.is_number = is_number and not self.is_doubtful
        self.reading = reading
        self.is_whole = not is_declared and bool(shapes) and shapes <= _WHOLE

    def converted(self, entries: Any, *, missing: frozenset[str] = frozenset(("",))) -> Any:
        """Return a column of text, shape (n_rows,), as its type; what is declared as numbers and is none stays text.

        Entries of text that are in `missing` mean no entry.
        """
        pandas = require("pandas", "cli")
        codes, found = pandas.factorize(entries)
        if self.is_whole:
            return pandas.Series(np.array([int(text) for text in found], dtype=np.int64)[codes])
        if self.is_number:
            values = [self._number(text) if self.is_pure else self._value(text) for text in found]
        elif self.is_truth:
            values = [text.strip().lower() == "true" if text.strip() else math.nan for text in found]
        else:
            values = [math.nan if text in missing else text for text in found]
        kept = np.empty(len(values), dtype=object)
        kept[:] = values
        if self.is_number and not any(isinstance(each, str) for each in values):
            return pandas.Series(kept.astype(np.float64)[codes])
        if self.is_truth and not any(isinstance(each, float) for each in values):
            return pandas.Series(kept.astype(bool)[codes])
        kind = object if self.is_number or self.is_truth else pandas.Series(["text"]).dtype
        return pandas.Series(kept[codes], dtype=kind)

    def _value(self, text: str) -> float | str:
        shape = _shape(text)
        if shape == "truth":
            return float(text.strip().lower() == "true")
        if shape == "text" or shape in (_BY_COMMA if self.reading == POINT else POINT_SHAPES):
            return text
        return self._number(text)

    def _number(self, text: str) -> float:
        if text in MISSING_WORDS or not (text := text.strip()) or text in MISSING_WORDS:
            return math.nan
        return float(text.replace(",", "") if self.reading == POINT else text.replace(".", "").replace(",", "."))
