"""From a table to the matrix that a project makes of it: entries as labels and numbers, and counts of changed ones."""

from __future__ import annotations

import difflib
import math
import numbers
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from ..._frames import MISSING, MOST_OUTSIDE, UNKNOWN, label_finder, label_text, relax
from ..._require import require
from ..._typing import FloatArray
from ...errors import ExchangeError
from ...targets import effect_target, no_target, survival_target
from ._column import OTHER, Column
from ._entries import listed
from ._numbers import MISSING_WORDS
from ._project import Project
from ._task import Task

_NO_LABEL = object()
_LEVEL = 0.01
"""How often chance may exceed what is taken for chance, where the true share is the largest that is allowed."""


def _affected_rows(rows: NDArray[np.bool_], first_row: int | None, *, earlier: int = 0) -> str:
    """Count the rows that are True, in the words of a refusal.

    `first_row` rows of the file came before, None if these are all; `earlier` of them are counted too.
    """
    before = first_row or 0
    counted = (
        f"{earlier + np.count_nonzero(rows)} of {'' if first_row is None else 'the first '}{before + rows.size} rows"
    )
    if earlier or (not before and rows.all()):
        return counted
    return f"{counted} (the first: row {before + int(np.argmax(rows)) + 1})"


def range_words(minimum: float | None, maximum: float | None, unit: str) -> str:
    """Return a range in words."""
    return f"{minimum:.10g} to {maximum:.10g}{unit and ' ' + unit}"


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
        codes, found = pandas.factorize(column, use_na_sentinel=True)
    except TypeError:
        # Lists and the like have no place in a table; they are no label either.
        codes, found = pandas.factorize(column.map(lambda entry: entry if isinstance(entry, Hashable) else _NO_LABEL))
    positions = np.array([*map(label_finder(labels, relaxed), found), MISSING], dtype=np.int64)
    return positions[np.asarray(codes, dtype=np.int64)]


def unknown_labels(column: Any, labels: Sequence[str | int]) -> list[tuple[str, int, str]]:
    """Return each entry that is no label, how many rows have it, and the nearest label; "" if none is near.

    Entries are data of the table's owner: they are shown to nobody else.
    """
    unknown = column[label_codes(column, labels, relaxed=True) == UNKNOWN]
    known = {relax(str(label)): str(label) for label in labels}
    found = []
    for text, count in unknown.map(label_text).value_counts().items():
        near = difflib.get_close_matches(relax(text[:_MOST_LETTERS]), known, n=1, cutoff=0.7)
        found.append((text, int(count), known[near[0]] if near else ""))
    return found


def _spelling_hint(column: Any, labels: Sequence[str | int]) -> str:
    """Return a sentence if unknown entries are near to labels; it names labels, and no entry."""
    unknown, left = (label_codes(column, labels, relaxed=each) == UNKNOWN for each in (False, True))
    alike = int(np.count_nonzero(unknown) - np.count_nonzero(left))
    hint = f" {alike} of them differ from agreed ones by capital letters or spaces alone." if alike else ""
    near = sorted({label for _, _, label in unknown_labels(column, labels)[:_MOST_COMPARED] if label})
    return f"{hint} Nearest to them: {listed(near)}." if near else hint


_MOST_LETTERS, _MOST_COMPARED = 80, 50
"""Letters of an entry, and entries, that are compared with labels: it takes long."""


class NotNumericError(Exception):
    """Some entries are no numbers; the words count them, and quote none."""

    def __init__(self, what: str, rows: NDArray[np.bool_] | None = None) -> None:
        super().__init__(what, rows)
        self.what, self.rows = what, rows

    def __str__(self) -> str:
        return self.words(None)

    def words(self, first_row: int | None) -> str:
        """Return the words, for rows that came after `first_row` others of the file; None if these are all."""
        return f"holds {self.what}" + ("" if self.rows is None else f" in {_affected_rows(self.rows, first_row)}")


def as_numbers(column: Any) -> FloatArray:
    """Return the entries of a column in float64, missing ones as NaN and truth values as 0 and 1.

    A NotNumericError is raised if some entries are text, dates or anything else.
    """
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biuf":
        missing = {} if isinstance(column.dtype, np.dtype) else {"na_value": np.nan}
        return np.asarray(column.to_numpy(dtype=np.float64, **missing))
    if kind in "Mmc":
        raise NotNumericError({"M": "dates", "m": "durations", "c": "complex numbers"}[kind])
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
    if not (texts or others):
        return converted
    unread = {position: text for position, text in texts.items() if not is_number(text)}
    if others:
        what, positions = "something other than numbers", [*others, *texts]
    elif not unread:
        what, positions = "numbers that were saved as text", list(texts)
    elif all(is_number(text.replace(".", "").replace(",", ".")) for text in unread.values()):
        what, positions = "decimal commas instead of points", list(unread)
    elif all(map(is_missing_word, unread.values())):
        what, positions = "words for missing entries", list(unread)
    else:
        what, positions = "text", list(unread)
    raise NotNumericError(what, np.isin(np.arange(len(entries)), positions))


_WORDS = "nil missing unk unknown unbekannt k.a. fehlt ? ?? - -- . .. #div/0! #value! #ref! #name? #num! #null!"
_USUAL_WORDS = frozenset((*_WORDS.split(), *map(str.casefold, MISSING_WORDS)))


def is_missing_word(text: str) -> bool:
    """Return whether a text usually stands for a missing entry; the reader knows the first few of these words."""
    return text.strip().casefold() in _USUAL_WORDS


def without_words(column: Any, words: Sequence[str]) -> Any:
    """Return a column in which entries that mean missing are missing; texts of numbers beside them become numbers."""
    is_word = label_codes(column, words, relaxed=True) >= 0 if words else np.zeros(0, dtype=bool)
    if not is_word.any():
        return column
    left = column.astype(object).where(~is_word, None)
    texts = left.map(lambda entry: isinstance(entry, str) and bool(entry.strip())).to_numpy(dtype=bool)
    if all(map(is_number, left[texts])):
        left = left.where(~texts, [float(entry) if each else None for each, entry in zip(texts, left, strict=True)])
    return left


def is_number(text: str) -> bool:
    """Return whether a text is a number as Python writes it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


_NEARLY_ALL, _BROUGHT_INSIDE = 0.9, 0.95
"""Share of the numbers outside from which another unit is considered, and that a conversion must bring inside."""
_CONVERSIONS: tuple[tuple[str, str, Callable[[FloatArray], FloatArray]], ...] = (
    *((f"multiplied by {factor:g}", "", partial(np.multiply, factor)) for factor in (10.0, 100.0, 1000.0)),
    *((f"multiplied by {factor:g}", "", partial(np.multiply, factor)) for factor in (0.1, 0.01, 0.001)),
    ("multiplied by 2.54 (inches to centimetres)", "cm", lambda x: x * 2.54),
    ("divided by 2.54 (centimetres to inches)", "in inch inches", lambda x: x / 2.54),
    ("multiplied by 0.4536 (pounds to kilograms)", "kg", lambda x: x * 0.4536),
    ("divided by 0.4536 (kilograms to pounds)", "lb lbs pounds", lambda x: x / 0.4536),
    ("multiplied by 18.0182 (glucose, mmol/L to mg/dL)", "mg/dl", lambda x: x * 18.0182),
    ("divided by 18.0182 (glucose, mg/dL to mmol/L)", "mmol/l", lambda x: x / 18.0182),
    ("multiplied by 38.67 (cholesterol, mmol/L to mg/dL)", "mg/dl", lambda x: x * 38.67),
    ("divided by 38.67 (cholesterol, mg/dL to mmol/L)", "mmol/l", lambda x: x / 38.67),
    ("multiplied by 88.4 (creatinine, mg/dL to umol/L)", "umol/l \u03bcmol/l", lambda x: x * 88.4),
    ("divided by 88.4 (creatinine, umol/L to mg/dL)", "mg/dl", lambda x: x / 88.4),
    ("taken from Fahrenheit to Celsius", "\u00b0c c celsius", lambda x: (x - 32.0) / 1.8),
    ("taken from Celsius to Fahrenheit", "\u00b0f f fahrenheit", lambda x: x * 1.8 + 32.0),
)
"""Conversions, and the units that each leads to, case folded; none if it may lead to any."""


def _unit_hint(numbers: FloatArray, minimum: float, maximum: float, unit: str) -> str:
    """Return a sentence on the conversion that would bring the numbers inside; empty if most are inside.

    Among the conversions to the agreed unit, or else among all, it names the one that brings the median nearest to the
    middle of the range.  A conversion is no entry of the data: it tells the unit only.
    """
    if _n_inside(numbers, minimum, maximum) > (1 - _NEARLY_ALL) * numbers.size:
        return ""
    fitting = []
    for words, units, convert in _CONVERSIONS:
        leads_to_unit = unit.casefold() in units.split()
        if unit and units and not leads_to_unit:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            converted = convert(numbers)
        if _n_inside(converted, minimum, maximum) >= _BROUGHT_INSIDE * numbers.size:
            distance = abs(float(np.median(converted)) - (minimum + maximum) / 2)
            fitting.append((not leads_to_unit, distance, words))
    if not fitting:
        return " Nearly all are outside, so the column may be in another unit."
    return (
        f" Nearly all are outside: a mix-up of units? Nearly all would fit if they were {min(fitting)[2]}. That is a "
        "guess by arithmetic: convert only if that is your unit."
    )


def _n_inside(numbers: FloatArray, minimum: float, maximum: float) -> int:
    return int(np.count_nonzero((numbers >= minimum) & (numbers <= maximum)))


_FEW_ENTRIES = 20
"""Below that, one number is more than the share, and may be in another unit as well as an exception."""
_RULE_WORDS = {"clip": "clipped", "missing": "set missing", "other": "counted as other"}
_OUTSIDE = ("clipped_below", "clipped_above", "set_missing", "to_other")
_COUNTS = ("n_entries", *_OUTSIDE, "far_outside", "filled", "respelt")
"""Of a column; far outside is farther than the range is wide, filled are those that were set missing, too, and respelt
those that are an agreed category but for capital letters and blanks."""


def _n_outside(counts: Mapping[str, int]) -> int:
    return sum(counts.get(name, 0) for name in _OUTSIDE)


@dataclass(frozen=True, kw_only=True)
class Adjustments:
    """Counts of a table's entries that became something else, or of those in all its batches so far."""

    n_rows: int = 0
    n_rows_outside: int = 0
    """Rows with an entry outside of what was agreed."""
    columns: Mapping[str, Counter[str]] = field(default_factory=dict)
    """Of each column: all entries, those outside by what they became, those far outside, and those filled in."""

    def __add__(self, other: Adjustments) -> Adjustments:
        names, none = dict.fromkeys([*self.columns, *other.columns]), Counter[str]()
        return Adjustments(
            n_rows=self.n_rows + other.n_rows,
            n_rows_outside=self.n_rows_outside + other.n_rows_outside,
            columns={name: self.columns.get(name, none) + other.columns.get(name, none) for name in names},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts for JSON, without the columns in which nothing was changed."""
        changed = {
            name: counts
            for name, counts in self.columns.items()
            if _n_outside(counts) or counts["filled"] or counts["respelt"]
        }
        columns = {
            name: {each: counts[each] for each in _COUNTS if counts[each] or each == "n_entries"}
            for name, counts in changed.items()
        }
        return {"n_rows": self.n_rows, "n_rows_outside": self.n_rows_outside, "columns": columns}


def adjusted_text(counted: Mapping[str, Any]) -> str:
    """Return the result of `Adjustments.to_dict` as one line for people."""
    columns = [Counter(counts) for counts in counted["columns"].values()]
    total = sum(columns, Counter[str]())
    parts = []
    if _n_outside(total):
        n_columns = sum(_n_outside(counts) > 0 for counts in columns)
        clipped = total["clipped_below"] + total["clipped_above"]
        found = ", ".join([f"{_counted(clipped, 'number')} clipped"] * (clipped > 0) + _words_besides(total))
        rows = f"{counted['n_rows_outside']} of {_counted(counted['n_rows'], 'row')}"
        parts.append(f"{rows} in {_counted(n_columns, 'column')}: {found}")
    if total["far_outside"]:
        parts.append(f"{_counted(total['far_outside'], 'number')} far outside")
    if n_missing := total["filled"] - total["set_missing"]:
        n_columns = sum(counts["filled"] > counts["set_missing"] for counts in columns)
        entries = "missing entry" if n_missing == 1 else "missing entries"
        parts.append(f"{n_missing} {entries} filled in, in {_counted(n_columns, 'column')}")
    if total["respelt"]:
        parts.append(f"{total['respelt']} spelt otherwise than agreed")
    return "; ".join(parts) or "none"


def adjusted_details(counted: Mapping[str, Any]) -> list[str]:
    """Return a line for each column in which something was changed, from the result of `Adjustments.to_dict`."""
    lines = []
    for name, found in counted["columns"].items():
        counts, parts = Counter(found), []
        clipped = [f"{counts[f'clipped_{side}']} clipped {side}" for side in ("below", "above")]
        if words := [each for each in clipped if not each.startswith("0 ")] + _words_besides(counts):
            parts.append(f"of {counts['n_entries']} entries {', '.join(words)}")
        if counts["far_outside"]:
            parts.append(f"{counts['far_outside']} far outside")
        if n_missing := counts["filled"] - counts["set_missing"]:
            parts.append(f"{n_missing} missing filled in")
        if counts["respelt"]:
            parts.append(f"{counts['respelt']} spelt otherwise than agreed")
        lines.append(f"{name}: {'; '.join(parts)}")
    return lines


def _words_besides(counts: Mapping[str, int]) -> list[str]:
    found = {"set_missing": "set missing", "to_other": "counted as other"}
    return [f"{counts[name]} {words}" for name, words in found.items() if counts[name]]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@dataclass(frozen=True)
class Place:
    """A column in a file: its name in errors, how many rows of the file came before, and their counts."""

    name: str
    first_row: int | None = None
    before: Counter[str] = field(default_factory=Counter)

    def refuse(self, code: str, rows: NDArray[np.bool_], fault: str, advice: str, *, earlier: int = 0) -> None:
        """Raise the error if any row is True; the message counts them, and the earlier ones of the file."""
        if rows.any():
            affected = _affected_rows(rows, self.first_row, earlier=earlier)
            raise ExchangeError(code, f"{self.name} {fault} in {affected}{advice}")

    def numbers(self, entries: Any, code: str) -> FloatArray:
        """Return the entries as numbers, or refuse them with the code."""
        try:
            return as_numbers(entries)
        except NotNumericError as error:
            raise ExchangeError(
                code,
                f"{self.name} {error.words(self.first_row)}; expected numbers. Write numbers with decimal points and "
                "nothing else; the owner can name words for missing entries in missing_words.",
            ) from None

    def refuse_numbers(
        self, code: str, rows: NDArray[np.bool_], values: FloatArray, limits: tuple[float, float, str], advice: str
    ) -> None:
        """Refuse numbers outside of least and largest, in a unit, with a possible reason."""
        if rows.any():
            hint = _unit_hint(values[~np.isnan(values)], *limits)
            fault = f"has numbers outside the agreed range, {range_words(*limits)},"
            self.refuse(code, rows, fault, f".{hint}{advice}", earlier=_n_outside(self.before))

    def refuse_labels(
        self, code: str, rows: NDArray[np.bool_], entries: Any, labels: Sequence[str | int], noun: str, advice: str
    ) -> None:
        """Refuse labels that were not agreed, with a possible reason."""
        if rows.any():
            fault, hint = f"holds {noun} that were not agreed", _spelling_hint(entries[rows], labels)
            advice = f".{hint} Agreed: {listed(labels)}.{advice}"
            self.refuse(code, rows, fault, advice, earlier=_n_outside(self.before))


def _encode_column(
    block: FloatArray, column: Column, entries: Any, place: Place, *, is_limited: bool
) -> tuple[NDArray[np.bool_], Counter[str]]:
    """Write a column into its block of the matrix; return the rows outside of what was agreed, and the counts."""
    is_numeric = column.kind == "number"
    rule = column.outside if is_numeric else column.unknown
    low, high = (math.nan if each is None else each for each in (column.minimum, column.maximum))
    entries = without_words(entries, column.missing_words)
    respelt = 0
    if is_numeric:
        values = place.numbers(entries, "SCHEMA_DTYPE")
        missing = np.isnan(values)
        found = _beyond(values, low, high)
        outside = found["clipped_below"] | found["clipped_above"]
        if rule != "clip":
            found = {"set_missing": outside, "far_outside": found["far_outside"]}
    else:
        codes = label_codes(entries, column.levels)
        if (unknown := codes == UNKNOWN).any():
            codes = label_codes(entries, column.levels, relaxed=True)
            respelt = int(np.count_nonzero(unknown & (codes >= 0)))
        missing = codes == MISSING
        outside = codes == UNKNOWN
        found = {"to_other" if rule == OTHER else "set_missing": outside}
    if column.missing == "refuse":
        why = ", and the project fills none in. Fill them in, or leave out the rows."
        place.refuse("SCHEMA_MISSING_ENTRY", missing, "has no entry", why)
    counts = Counter({name: int(np.count_nonzero(rows)) for name, rows in found.items()})
    counts["n_entries"] = len(missing) - int(np.count_nonzero(missing))
    counts["respelt"] = respelt
    if outside.any() and (why_not := _why_refused(rule, place.before + counts)) is not None:
        if is_numeric:
            advice = f"{why_not} Check the unit; correct or leave out the rows."
            place.refuse_numbers("SCHEMA_RANGE", outside, values, (low, high, column.unit), advice)
        advice = (
            f"{why_not} If they are new, ask the owner to add them to the project; if they are agreed ones spelt "
            "otherwise, write them as agreed. `datacollab party check --show-levels` lists them on your screen alone."
        )
        place.refuse_labels("SCHEMA_CATEGORY_UNKNOWN", outside, entries, column.categories, "categories", advice)
    if rule in ("refuse", "missing"):
        missing |= outside
    counts["filled"] = int(np.count_nonzero(missing))
    n_filled, n_rows = place.before["filled"] + counts["filled"], (place.first_row or 0) + len(missing)
    if is_limited and not column.flag_missing and _are_too_many(n_filled, n_rows):
        advice = (
            f". More than {100 * MOST_OUTSIDE:g} % of a column are not filled in unseen. Complete it, or ask the owner "
            "to set flag_missing = true, which tells filled entries apart, or to leave the column out."
        )
        place.refuse("SCHEMA_MISSING_ENTRY", missing, "has no entry", advice, earlier=place.before["filled"])
    if is_numeric:
        values = np.clip(values, low, high) if rule == "clip" else values
        block[:, 0] = values if column.fill is None else np.where(missing, column.fill, values)
    else:
        if rule == OTHER:
            codes[outside] = column.levels.index(OTHER) if column.other is None else column.other
        if isinstance(column.fill, str):
            codes[missing] = column.levels.index(column.fill)
        block[:, : len(column.levels)] = codes[:, np.newaxis] == np.arange(len(column.levels))
    if column.flag_missing:
        block[:, -1] = missing
    return outside, counts


def _beyond(values: FloatArray, low: float, high: float) -> dict[str, NDArray[np.bool_]]:
    """Return which numbers are below a range, above it, and farther outside than it is wide."""
    with np.errstate(over="ignore"):
        far = np.maximum(low - values, values - high) > high - low
    return {"clipped_below": values < low, "clipped_above": values > high, "far_outside": far}


def _are_too_many(n_found: int, n_entries: int) -> bool:
    """Return whether so many entries are more than the largest share that is allowed, beyond chance.

    Small tables of the public rows' kind often have more than that share by chance.
    """
    return bool(n_found > max(1, binom.isf(_LEVEL, n_entries, MOST_OUTSIDE)))


def _why_refused(rule: str, counts: Counter[str]) -> str | None:
    """Return a sentence on why entries outside are refused in spite of the rule; None if they are exceptions."""
    if rule == "refuse":
        return ""
    if _are_too_many(_n_outside(counts), counts["n_entries"]):
        return f" More than {100 * MOST_OUTSIDE:g} % of a column are no exceptions that could be {_RULE_WORDS[rule]}."
    if counts["far_outside"] and counts["n_entries"] < _FEW_ENTRIES:
        return (
            f" It is farther outside than the range is wide, and among fewer than {_FEW_ENTRIES} entries nobody can "
            f"tell whether that is an exception, which could be {_RULE_WORDS[rule]}, or another unit."
        )
    return None


def target_column(
    task: Task, name: str, entries: Any, place: Place, clipped: Counter[str] | None = None
) -> NDArray[Any]:
    """Return one column of targets, shape (n_rows,): classes, numbers, or 1 for seen or treated and 0 for not.

    With `clipped`, numbers outside the range are clipped as those of columns are, and counted there.
    """
    code, correct = "TARGET_INVALID", " Correct them, or leave out the rows."
    labels, values = task.labels[name], np.empty(0)
    if labels:
        codes = label_codes(entries, labels)
    else:
        values = place.numbers(entries, code)
    missing = codes == MISSING if labels else np.isnan(values)
    place.refuse(code, missing, "has no entry", ". Leave out rows without a target.")
    if labels:
        place.refuse_labels(code, codes == UNKNOWN, entries, labels, "classes", correct)
        if name in (task.event, task.treatment):
            return (codes >= len(task.not_seen if name == task.event else task.untreated)).astype(np.int64)
        return task.class_of_label[codes]
    if name == task.time:
        advice = (
            ". Times begin after 0: correct them; all parties alike may count an event on the first day as half a day."
        )
        place.refuse(code, values <= 0, "is 0 or less", advice)
    minimum, maximum = 0.0 if task.minimum is None else task.minimum, task.maximum
    assert maximum is not None  # a regression, a time and an outcome have a range
    found = _beyond(values, minimum, maximum)
    outside = found["clipped_below"] | found["clipped_above"]
    if clipped is not None:
        clipped.update({rule: int(np.count_nonzero(rows)) for rule, rows in found.items()}, n_entries=len(values))
        why_not = _why_refused("clip", place.before + clipped)
        if why_not is None:
            return np.clip(values, minimum, maximum)
        correct = f"{why_not}{correct}"
    place.refuse_numbers(code, outside, values, (minimum, maximum, task.unit), correct)
    return values


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedTable:
    """A table as the project's matrix."""

    X: FloatArray = field(repr=False)
    """Shape (n_rows, n_features), in the order of `Project.feature_names`."""
    target: NDArray[Any] | None = field(repr=False)
    """Shape (n_labelled,): classes as declared, numbers, or `datacollab.targets`; None if it was not asked for."""
    labelled: NDArray[np.bool_] = field(repr=False)
    """Shape (n_rows,): which rows have a target; all, unless some may lack it."""
    n_rows: int
    adjusted: Adjustments = field(default_factory=Adjustments, repr=False)
    """Counts of the entries that became something else, in this table and the batches before it."""


def encode_table(
    project: Project,
    table: Any,
    *,
    where: str,
    with_target: bool = True,
    partly: bool = False,
    before: Adjustments | None = None,
) -> EncodedTable:
    """Make the project's matrix from a table; nothing is learnt from its rows.

    Entries that are missing, outside their range or unknown are changed by the project's rules, each row by itself.
    Columns that the project does not name are left out.

    All is refused if more than one entry of a column, and more than one in twenty, is outside of what was agreed, or
    one in so few that nobody can tell an exception from another unit.  With targets it is also refused if as many are
    filled in, and no further column says where.

    Errors call the table `where`, its file.  If `partly`, rows may lack a class or number to predict, as public ones
    may; if all do, there is no target.  `before` are counts of the batches before, if the table is one, so that an
    error names the row of the file.

    Raises
    ------
    ExchangeError
        If a column is missing or holds something that the project does not allow.  The message counts rows and names
        columns, and quotes no entry.

    Examples
    --------
    >>> import pandas as pd
    >>> from datacollab.bundle import KeyPair
    >>> from datacollab.exchange.project import draft_project, encode_table
    >>> public = pd.DataFrame({"age": [20, 60, 40], "ward": ["north", "south", "north"], "ill": ["no", "yes", "no"]})
    >>> a, b, analyst = (KeyPair.generate().public for _ in range(3))
    >>> project = draft_project(
    ...     public, name="example", purpose="Shows.", target="ill", owner=a, analyst=analyst, parties={"a": a, "b": b}
    ... )
    >>> encode_table(project, public, where="public.csv").X.shape, project.feature_names
    ((3, 4), ('age', 'ward=north', 'ward=south', 'ward=other'))
    """
    position_of = _positions(project, table, where, with_target)
    X = np.empty((len(table), project.n_features))
    first_row, before = (None, Adjustments()) if before is None else (before.n_rows, before)
    counts: dict[str, Counter[str]] = {}
    outside_rows = np.zeros(len(table), dtype=bool)
    refused = []
    for column, block in project.blocks(X):
        place = Place(f"{where}: column {column.name!r}", first_row, before.columns.get(column.name, Counter()))
        try:
            entries = table.iloc[:, position_of[column.name]]
            outside, counts[column.name] = _encode_column(block, column, entries, place, is_limited=with_target)
        except ExchangeError as error:
            refused.append((column.name, error))
        else:
            outside_rows |= outside
    parts: dict[str, NDArray[Any]] = {}
    labelled = np.ones(len(table), dtype=bool)
    for part, name in project.task.fields.items() if with_target else ():
        try:
            place = Place(f"{where}: target {name!r}", first_row, before.columns.get(name, Counter()))
            entries = table.iloc[:, position_of[name]]
            if partly and project.task.is_single:
                labelled = label_codes(entries, ()) != MISSING
                if not labelled.all():
                    # Whatever fits stands there, so that refusals count rows as the file has them.
                    fitting = labels[0] if (labels := project.task.labels[name]) else project.task.minimum
                    entries = entries.astype(object).where(labelled, fitting)
            # Sums clip numbers to the range that the noise is a part of.
            clipped = Counter[str]() if project.sums_numbers else None
            values = target_column(project.task, name, entries, place, clipped)
            parts[part] = values[labelled]
            if clipped is not None:
                counts[name] = clipped
                outside_rows |= values != as_numbers(entries)
        except ExchangeError as error:
            refused.append((name, error))
    if refused:
        # The other columns are named too, so that all can be mended at once.
        first, others = refused[0][1], [name for name, _ in refused[1:]]
        more = f" Look at these columns too: {listed(others)}." if others else ""
        raise ExchangeError(first.code, f"{first}{more}")
    target = None
    if with_target and project.task.is_single:
        target = parts["target"]
    elif with_target and not parts:
        target = no_target(len(table))
    elif with_target:
        target = effect_target(**parts) if "treatment" in parts else survival_target(**parts)
    if partly and not labelled.any():
        target, labelled = None, ~labelled
    here = Adjustments(n_rows=len(table), n_rows_outside=int(np.count_nonzero(outside_rows)), columns=counts)
    return EncodedTable(X=X, target=target, labelled=labelled, n_rows=len(table), adjusted=before + here)


def unknown_levels(project: Project, table: Any) -> list[tuple[str, str, int, str]]:
    """Return the column, text, number of rows and nearest agreed category of entries that are no agreed categories.

    They are data of the table's owner, for the owner's eyes alone.

    Examples
    --------
    >>> import pandas as pd
    >>> from datacollab.exchange.project import Column
    >>> unknown_labels(pd.Series(["north", "nroth", "West"]), ("north", "south"))
    [('nroth', 1, 'north'), ('West', 1, '')]
    """
    position_of, found = _positions(project, table, "the table", with_target=False), []
    for column in project.columns:
        if column.categories:
            entries = without_words(table.iloc[:, position_of[column.name]], column.missing_words)
            found += [(column.name, *each) for each in unknown_labels(entries, column.levels)]
    return found


def _positions(project: Project, table: Any, where: str, with_target: bool) -> dict[str, int]:
    names = [*(column.name for column in project.columns), *(project.task.columns if with_target else ())]
    written = {unicodedata.normalize("NFC", name): name for name in names}
    expected = [*written]
    found = [unicodedata.normalize("NFC", str(name)) for name in table.columns]
    if lacking := [name for name in expected if name not in set(found)]:
        candidates = {_plain(name): name for name in reversed(found) if name not in set(expected)}
        described = []
        for name in lacking:
            near = difflib.get_close_matches(_plain(name), candidates, n=1, cutoff=0.7)
            described.append(f"{name!r} (there is {candidates[near[0]]!r})" if near else repr(name))
        raise ExchangeError(
            "SCHEMA_MISSING_COLUMN",
            f"{where} lacks {len(lacking)} of {len(expected)} columns of the project: {listed(described, most=20)}. "
            "Add or rename them.",
        )
    counts = Counter(found)
    if repeated := [name for name in expected if counts[name] > 1]:
        raise ExchangeError(
            "TABLE_UNREADABLE", f"{where} has more than one column named {listed(repeated)}. Rename or remove them."
        )
    return {written.get(name, name): position for position, name in enumerate(found)}


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
