"""From a table to the matrix of a schema: rules for entries that do not fit, their counts, and refusals."""

from __future__ import annotations

import difflib
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from .._entries import join_names
from .._frames import MISSING, MOST_OUTSIDE, UNKNOWN
from .._typing import FloatArray
from ..errors import ExchangeError
from ..targets import effect_target, no_target, survival_target
from ._column import OTHER, Column, Schema, Target
from ._values import (
    NotNumericError,
    as_numbers,
    blank_words,
    count_affected,
    label_codes,
    spelling_hint,
    unknown_labels,
)

_OUTSIDE = ("clipped_below", "clipped_above", "set_missing", "to_other")
_COUNTS = ("n_entries", *_OUTSIDE, "far_outside", "filled", "respelt")
"""Of a column; far outside is farther than the range is wide, filled are those that were set missing, too, and respelt
those that are an agreed category but for capital letters and blanks."""
FIRST_DAY = "; all parties alike may count an event on the first day as half a day."
"""The way on if a time is 0."""
_WIDER = "If they are possible, ask the owner for a wider range ({})."
_LEFT = "left_missing"
"""The count of missing entries in place of "filled", where they are left as they are."""


def n_outside(counts: Mapping[str, int]) -> int:
    """Return the number of entries of a column that were outside of the agreement."""
    return sum(counts.get(name, 0) for name in _OUTSIDE)


@dataclass(frozen=True, kw_only=True)
class Adjustments:
    """Counts of a table's entries that became something else, or of those in all its batches so far."""

    n_rows: int = 0
    n_rows_outside: int = 0
    """Rows with an entry outside of the agreement."""
    columns: Mapping[str, Counter[str]] = field(default_factory=dict)
    """Of each column: all entries, those outside by their new kind, those far outside, and those filled in."""

    def __add__(self, other: Adjustments) -> Adjustments:
        names = dict.fromkeys([*self.columns, *other.columns])
        none = Counter[str]()
        return Adjustments(
            n_rows=self.n_rows + other.n_rows,
            n_rows_outside=self.n_rows_outside + other.n_rows_outside,
            columns={name: self.columns.get(name, none) + other.columns.get(name, none) for name in names},
        )

    def to_dict(self, *, fills: bool = True) -> dict[str, Any]:
        """Return the counts for JSON, without the columns in which nothing was changed.

        `fills` is whether missing entries were filled in; a study leaves them missing.
        """
        names = {each: each if fills or each != "filled" else _LEFT for each in _COUNTS}
        columns = {
            name: {names[each]: counts[each] for each in _COUNTS if counts[each] or each == "n_entries"}
            for name, counts in self.columns.items()
            if n_outside(counts) or counts["filled"] or counts["respelt"]
        }
        return {"n_rows": self.n_rows, "n_rows_outside": self.n_rows_outside, "columns": columns}


def adjustments_text(counts: Mapping[str, Any]) -> str:
    """Return the result of `Adjustments.to_dict` as one line for people."""
    columns = [Counter(each) for each in counts["columns"].values()]
    total = sum(columns, Counter[str]())
    parts = []
    if n_outside(total):
        n_columns = sum(n_outside(each) > 0 for each in columns)
        words = _other_words(total)
        if n_clipped := total["clipped_below"] + total["clipped_above"]:
            words.insert(0, f"{_count(n_clipped, 'number')} clipped")
        rows = f"{counts['n_rows_outside']} of {_count(counts['n_rows'], 'row')}"
        parts.append(f"{rows} in {_count(n_columns, 'column')}: {', '.join(words)}")
    if total["far_outside"]:
        parts.append(f"{_count(total['far_outside'], 'number')} far outside")
    if n_missing := _n_missing(total):
        n_columns = sum(_n_missing(each) > 0 for each in columns)
        entries = _count(n_missing, "missing entry", "missing entries")
        done = "left missing" if total[_LEFT] else "filled in"
        parts.append(f"{entries} {done}, in {_count(n_columns, 'column')}")
    if total["respelt"]:
        parts.append(f"{total['respelt']} spelt otherwise than agreed")
    return "; ".join(parts) or "none"


def adjustments_lines(counts: Mapping[str, Any]) -> list[str]:
    """Return a line for each column in which something was changed, from the result of `Adjustments.to_dict`."""
    return [f"{name}: {'; '.join(_column_parts(Counter(each)))}" for name, each in counts["columns"].items()]


def _column_parts(counts: Counter[str]) -> list[str]:
    parts = []
    words = [f"{counts[f'clipped_{side}']} clipped {side}" for side in ("below", "above") if counts[f"clipped_{side}"]]
    words += _other_words(counts)
    if words:
        parts.append(f"of {counts['n_entries']} entries {', '.join(words)}")
    if counts["far_outside"]:
        parts.append(f"{counts['far_outside']} far outside")
    if n_missing := _n_missing(counts):
        parts.append(f"{n_missing} missing{'' if counts[_LEFT] else ' filled in'}")
    if counts["respelt"]:
        parts.append(f"{counts['respelt']} spelt otherwise than agreed")
    return parts


def _n_missing(counts: Mapping[str, int]) -> int:
    """Return the number of entries that were missing in the table; others were set missing, and are counted so."""
    return counts["filled"] + counts[_LEFT] - counts["set_missing"]


def _other_words(counts: Mapping[str, int]) -> list[str]:
    """Return the words for entries outside that were not clipped."""
    words = {"set_missing": "set missing", "to_other": "counted as other"}
    return [f"{counts[name]} {each}" for name, each in words.items() if counts[name]]


def _count(count: int, noun: str, plural: str = "") -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {plural or noun + 's'}"


_NEARLY_ALL = 0.9
"""Share of the numbers outside from which another unit is considered: a few exceptions do not tell a unit."""
_BROUGHT_INSIDE = 0.95
"""Share of the numbers that a conversion must bring inside: as many as the rules let pass."""
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
_SUBSTANCES = {"glucose": ("gluc", "gluk"), "cholesterol": ("chol",), "creatinine": ("crea", "krea")}
"""Substances of conversions, with letters that a column's name has if it is one, in English, German or French."""
_MOST_NAMED = 3
"""Conversions that a message names at most."""


def range_words(minimum: float | None, maximum: float | None, unit: str) -> str:
    """Return a range in words."""
    return f"{minimum:.10g} to {maximum:.10g}{unit and ' ' + unit}"


@dataclass(frozen=True)
class ColumnPlace:
    """A column in a file: its name in errors, how many rows of the file came before, and their counts."""

    name: str
    first_row: int | None = None
    before: Counter[str] = field(default_factory=Counter)

    def refuse(self, code: str, rows: NDArray[np.bool_], fault: str, advice: str, *, earlier: int = 0) -> None:
        """Raise the error if any row is True; the message counts them, and the earlier ones of the file."""
        if rows.any():
            affected = count_affected(rows, self.first_row, earlier=earlier)
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
            hint = _unit_hint(self.name, values[~np.isnan(values)], *limits)
            fault = f"has numbers outside the agreed range, {range_words(*limits)},"
            self.refuse(code, rows, fault, f".{hint}{advice}", earlier=n_outside(self.before))

    def refuse_labels(
        self, code: str, rows: NDArray[np.bool_], entries: Any, labels: Sequence[str | int], noun: str, advice: str
    ) -> None:
        """Refuse labels that were not agreed, with a possible reason."""
        if rows.any():
            fault = f"holds {noun} that were not agreed"
            advice = f".{spelling_hint(entries[rows], labels)} Agreed: {join_names(labels)}.{advice}"
            self.refuse(code, rows, fault, advice, earlier=n_outside(self.before))


def _unit_hint(name: str, numbers: FloatArray, minimum: float, maximum: float, unit: str) -> str:
    """Return a sentence on the conversion that would bring the numbers inside; empty if most are inside.

    It names the conversion of the column's substance or to the agreed unit, or else the one that brings the median
    nearest to the middle of the range.  Where that is of a substance which the column's name does not tell, it names
    others that fit, too.  A conversion is no entry of the data: it tells the unit only.
    """
    if _n_inside(numbers, minimum, maximum) > (1 - _NEARLY_ALL) * numbers.size:
        return ""
    told = _substances_in(name)
    fitting = []
    for words, units, convert in _CONVERSIONS:
        # A conversion to another unit than the agreed one explains nothing, nor does one of another substance.
        leads_to_unit = unit.casefold() in units.split()
        of = {substance for substance in _SUBSTANCES if substance in words}
        if (unit and units and not leads_to_unit) or (of and told and not of & told):
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            converted = convert(numbers)
        if _n_inside(converted, minimum, maximum) >= _BROUGHT_INSIDE * numbers.size:
            # Several may fit; the middle of the range is where most people are.
            distance = abs(float(np.median(converted)) - (minimum + maximum) / 2)
            fitting.append((not of & told, not leads_to_unit, distance, words))
    if not fitting:
        return " Nearly all are outside, so the column may be in another unit."
    names = [words for *_, words in sorted(fitting)]
    is_guessed = not told and any(substance in names[0] for substance in _SUBSTANCES)
    shown = names[:_MOST_NAMED] if is_guessed else names[:1]
    return (
        f" Nearly all are outside: a mix-up of units? Nearly all would fit if they were {', or '.join(shown)}. That is "
        "a guess by arithmetic: convert only if that is your unit."
    )


def _substances_in(name: str) -> set[str]:
    """Return the substances that a column's name tells."""
    letters = name.casefold()
    return {substance for substance, roots in _SUBSTANCES.items() if any(root in letters for root in roots)}


def _n_inside(numbers: FloatArray, minimum: float, maximum: float) -> int:
    return int(np.count_nonzero((numbers >= minimum) & (numbers <= maximum)))


_LEVEL = 0.01
"""How often chance may exceed the limit on exceptions, where the true share is the largest that is allowed."""
_FEW_ENTRIES = 20
"""Below that, one number is more than the share, and may be in another unit as well as an exception."""
_RULE_WORDS = {"clip": "clipped", "missing": "set missing", "other": "counted as other"}
_BECOMES = {OTHER: "to_other", "missing": "set_missing", "refuse": "set_missing"}
"""The count of unknown categories, by the rule for them."""
_RowsByKind = dict[str, NDArray[np.bool_]]


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedTable:
    """A table as the matrix of its schema."""

    X: FloatArray = field(repr=False)
    """Shape (n_rows, n_features), in the order of `Schema.feature_names`."""
    target: NDArray[Any] | None = field(repr=False)
    """Shape (n_labelled,): classes as declared, numbers, or `datacollab.targets`; None if it was not asked for."""
    labelled: NDArray[np.bool_] = field(repr=False)
    """Shape (n_rows,): which rows have a target; all, unless some may lack it."""
    n_rows: int
    adjusted: Adjustments = field(default_factory=Adjustments, repr=False)
    """Counts of the entries that became something else, in this table and the batches before it."""


def encode_table(
    schema: Schema,
    table: Any,
    *,
    where: str,
    with_target: bool = True,
    partly: bool = False,
    before: Adjustments | None = None,
) -> EncodedTable:
    """Make a schema's matrix, such as a project's, from a table; nothing is learnt from its rows.

    Entries that are missing, outside their range or unknown are changed by the schema's rules, each row by itself.
    Columns that the schema does not name are left out.

    All is refused if more than one entry of a column, and more than one in twenty (of categories `most_unknown`), is
    outside of the agreement, or one in so few that nobody can tell an exception from another unit.  With targets it is
    also refused if as many are filled in, and no further column says where.

    Errors call the table `where`, its file.  If `partly`, rows may lack a class or number to predict, as public ones
    may; if all do, there is no target.  `before` are counts of the batches before, if the table is one, so that an
    error names the row of the file.

    Raises
    ------
    ExchangeError
        If a column is missing or holds something that the schema does not allow.  The message counts rows and names
        columns, and quotes no entry.

    Examples
    --------
    >>> import pandas as pd
    >>> from datacollab.table import Column, Schema, encode_table
    >>> age = Column(name="age", kind="number", minimum=0, maximum=120)
    >>> ward = Column(name="ward", kind="category", categories=("north", "south"), unknown="other")
    >>> table = pd.DataFrame({"age": [20, 60, 40], "ward": ["north", "south", "west"]})
    >>> schema = Schema(columns=(age, ward))
    >>> encode_table(schema, table, where="public.csv", with_target=False).X.shape, schema.feature_names
    ((3, 4), ('age', 'ward=north', 'ward=south', 'ward=other'))
    """
    targets = schema.targets if with_target else ()
    position_of = find_columns(schema, table, where, targets)
    # A frame gives its columns much faster in a row than one by one.
    entries_of = [entries for _, entries in table.items()]
    earlier = before or Adjustments()
    # Only of one batch among several it matters where its rows stand in the file.
    first_row = None if before is None else before.n_rows
    X = np.empty((len(table), schema.n_features))
    counts: dict[str, Counter[str]] = {}
    outside_rows = np.zeros(len(table), dtype=bool)
    refusals: list[tuple[str, ExchangeError]] = []
    for column, block in schema.blocks(X):
        name = column.name
        place = ColumnPlace(f"{where}: column {name!r}", first_row, earlier.columns.get(name, Counter()))
        try:
            entries = entries_of[position_of[name]]
            outside, counts[name] = _encode_column(block, column, entries, place, is_limited=with_target)
        # All columns are looked at, so that one answer names all faults.
        except ExchangeError as error:
            refusals.append((name, error))
        else:
            outside_rows |= outside
    parts: dict[str, NDArray[Any]] = {}
    labelled = np.ones(len(table), dtype=bool)
    for target in targets:
        name = target.name
        place = ColumnPlace(f"{where}: target {name!r}", first_row, earlier.columns.get(name, Counter()))
        entries = blank_words(entries_of[position_of[name]], target.missing_words)
        try:
            if partly and target.part == "target":
                labelled = label_codes(entries, ()) != MISSING
                entries = _fill_unlabelled(entries, labelled, target)
            # Clipped targets are adjusted entries like any other.
            values, clipped = encode_target(target, entries, place)
            parts[target.part] = values[labelled]
            if target.is_clipped:
                counts[name] = clipped
                outside_rows |= values != as_numbers(entries)
        except ExchangeError as error:
            refusals.append((name, error))
    _raise_first(refusals)
    together = None
    if partly and not labelled.any():
        labelled = ~labelled
    elif with_target:
        together = _join_parts(parts, len(table))
    here = Adjustments(n_rows=len(table), n_rows_outside=int(np.count_nonzero(outside_rows)), columns=counts)
    return EncodedTable(X=X, target=together, labelled=labelled, n_rows=len(table), adjusted=earlier + here)


def _raise_first(refusals: Sequence[tuple[str, ExchangeError]]) -> None:
    """Raise the first refusal, if there is one; it names the other columns too, so that all can be mended at once."""
    if not refusals:
        return
    first = refusals[0][1]
    message = str(first)
    if others := [name for name, _ in refusals[1:]]:
        message += f" Look at these columns too: {join_names(others)}."
    raise ExchangeError(first.code, message)


def _join_parts(parts: dict[str, NDArray[Any]], n_rows: int) -> NDArray[Any]:
    """Return the targets of the parts that a table has, shape (n_labelled,)."""
    if not parts:
        return no_target(n_rows)
    if "target" in parts:
        return parts["target"]
    if "treatment" in parts:
        return effect_target(**parts)
    return survival_target(**parts)


def _encode_column(
    block: FloatArray, column: Column, entries: Any, place: ColumnPlace, *, is_limited: bool
) -> tuple[NDArray[np.bool_], Counter[str]]:
    """Write a column into its block of the matrix; return the rows outside of the agreement, and the counts."""
    entries = blank_words(entries, column.missing_words)
    if column.kind == "number":
        values, missing, outside, counts = _read_numbers(column, entries, place)
    else:
        values, missing, outside, counts = _read_levels(column, entries, place)
    # Here "refuse" has no outside entries left.
    if column.rule in ("refuse", "missing"):
        missing |= outside
    counts["filled"] = int(np.count_nonzero(missing))
    # Predictions come row by row, so the limit on gaps holds for tables with targets alone.
    if is_limited and not column.flag_missing:
        _check_filled(missing, place)
    if column.kind == "number":
        block[:, 0] = values
        if column.fill is not None:
            block[missing, 0] = column.fill
    else:
        if isinstance(column.fill, str):
            values[missing] = column.levels.index(column.fill)
        block[:, : len(column.levels)] = values[:, np.newaxis] == np.arange(len(column.levels))
    if column.flag_missing:
        block[:, -1] = missing
    return outside, counts


def _read_numbers(
    column: Column, entries: Any, place: ColumnPlace
) -> tuple[FloatArray, NDArray[np.bool_], NDArray[np.bool_], Counter[str]]:
    """Return numbers by the column's rule, which rows have none, which are outside, and counts."""
    assert column.minimum is not None
    assert column.maximum is not None
    low = column.minimum
    high = column.maximum
    values = place.numbers(entries, "SCHEMA_DTYPE")
    missing = np.isnan(values)
    # Far entries are counted apart, as they may tell another unit.
    rows = _find_beyond(values, low, high)
    outside = rows["clipped_below"] | rows["clipped_above"]
    if column.rule != "clip":
        rows = {"set_missing": outside, "far_outside": rows["far_outside"]}
    counts = _count_rows(column, rows, missing, place)
    if outside.any() and (reason := _why_refused(column.rule, place.before + counts)) is not None:
        advice = f"{reason} Check the unit; correct or leave out the rows. {_WIDER.format('minimum and maximum')}"
        place.refuse_numbers("SCHEMA_RANGE", outside, values, (low, high, column.unit), advice)
    if column.rule == "clip":
        values = np.clip(values, low, high)
    return values, missing, outside, counts


def _read_levels(
    column: Column, entries: Any, place: ColumnPlace
) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_], Counter[str]]:
    """Return positions among the column's levels by its rule, which rows have none, which are unknown, and counts."""
    codes = label_codes(entries, column.levels)
    n_respelt = 0
    unknown = codes == UNKNOWN
    # Exact spellings first: a relaxed one may only decide where no label is equal.
    if unknown.any():
        codes = label_codes(entries, column.levels, relaxed=True)
        n_respelt = int(np.count_nonzero(unknown & (codes >= 0)))
    missing = codes == MISSING
    outside = codes == UNKNOWN
    counts = _count_rows(column, {_BECOMES[column.rule]: outside}, missing, place)
    counts["respelt"] = n_respelt
    if outside.any() and (reason := _why_refused(column.rule, place.before + counts, column.most_unknown)) is not None:
        way = "add them to the project"
        if column.rule != "refuse":
            way += " or raise most_unknown of the column"
        advice = (
            f"{reason} If they are new, ask the owner to {way}; if they are agreed ones spelt otherwise, write them as "
            "agreed. `datacollab party check --show-levels` lists them on your screen alone."
        )
        place.refuse_labels("SCHEMA_CATEGORY_UNKNOWN", outside, entries, column.categories, "categories", advice)
    if column.rule == OTHER:
        codes[outside] = column.other
    return codes, missing, outside, counts


def _count_rows(column: Column, rows: _RowsByKind, missing: NDArray[np.bool_], place: ColumnPlace) -> Counter[str]:
    """Count the entries of each kind, and all; refuse missing ones if the column has no rule for them."""
    if column.missing == "refuse":
        why = ", and the project fills none in. Fill them in, or leave out the rows."
        place.refuse("SCHEMA_MISSING_ENTRY", missing, "has no entry", why)
    counts = Counter({name: int(np.count_nonzero(each)) for name, each in rows.items()})
    counts["n_entries"] = len(missing) - int(np.count_nonzero(missing))
    return counts


def _check_filled(missing: NDArray[np.bool_], place: ColumnPlace) -> None:
    """Refuse more gaps than are filled in without a column that says where."""
    n_filled = place.before["filled"] + int(np.count_nonzero(missing))
    if _are_too_many(n_filled, (place.first_row or 0) + len(missing)):
        advice = (
            f". More than {100 * MOST_OUTSIDE:g} % of a column are not filled in unseen. Complete it, or ask the owner "
            "to set flag_missing = true, which tells filled entries apart, or to leave the column out."
        )
        place.refuse("SCHEMA_MISSING_ENTRY", missing, "has no entry", advice, earlier=place.before["filled"])


def _find_beyond(values: FloatArray, low: float, high: float) -> _RowsByKind:
    """Return which numbers are below a range, above it, and farther outside than it is wide."""
    below = values < low
    above = values > high
    far = below | above
    if far.any():
        with np.errstate(over="ignore"):
            far = np.maximum(low - values, values - high) > high - low
    return {"clipped_below": below, "clipped_above": above, "far_outside": far}


def _are_too_many(n_found: int, n_entries: int, most: float = MOST_OUTSIDE) -> bool:
    """Return whether so many entries are more than the largest share that is allowed, beyond chance.

    Small tables of the public rows' kind often have more than that share by chance.
    """
    return n_found > 1 and bool(n_found > scipy.stats.binom.isf(_LEVEL, n_entries, most))


def _why_refused(rule: str, counts: Counter[str], most: float = MOST_OUTSIDE) -> str | None:
    """Return a sentence on why entries outside are refused in spite of the rule; None if they are exceptions."""
    if rule == "refuse":
        return ""
    if _are_too_many(n_outside(counts), counts["n_entries"], most):
        return f" More than {100 * most:g} % of a column are no exceptions that could be {_RULE_WORDS[rule]}."
    if counts["far_outside"] and counts["n_entries"] < _FEW_ENTRIES:
        return (
            f" It is farther outside than the range is wide, and among fewer than {_FEW_ENTRIES} entries nobody can "
            f"tell whether that is an exception, which could be {_RULE_WORDS[rule]}, or another unit."
        )
    return None


def _fill_unlabelled(entries: Any, labelled: NDArray[np.bool_], target: Target) -> Any:
    """Return entries in which whatever fits stands for a missing one, so that refusals count rows as the file does."""
    if labelled.all():
        return entries
    fitting = (*target.labels, target.minimum)[0]
    return entries.astype(object).where(labelled, fitting)


def encode_target(target: Target, entries: Any, place: ColumnPlace) -> tuple[NDArray[Any], Counter[str]]:
    """Return one column of targets, shape (n_rows,), and counts of the numbers that were clipped.

    They are classes, numbers, or 1 for seen or treated and 0 for not.
    """
    code = "TARGET_INVALID"
    correct = " Correct them, or leave out the rows."
    without = ". Leave out rows without a target."
    if target.labels:
        codes = label_codes(entries, target.labels)
        # A target is never filled in: it would be made up.
        place.refuse(code, codes == MISSING, "has no entry", without)
        if not isinstance(target.labels[0], str):
            correct += " If it is a number, such as of years or visits, ask the owner to draft with --task regression."
        place.refuse_labels(code, codes == UNKNOWN, entries, target.labels, "classes", correct)
        return target.values[codes], Counter()
    values = place.numbers(entries, code)
    place.refuse(code, np.isnan(values), "has no entry", without)
    if target.part == "time":
        place.refuse(code, values <= 0, "is 0 or less", f". Times begin after 0: correct them{FIRST_DAY}")
    rows = _find_beyond(values, target.minimum, target.maximum)
    outside = rows["clipped_below"] | rows["clipped_above"]
    counts = Counter({rule: int(np.count_nonzero(each)) for rule, each in rows.items()})
    counts["n_entries"] = len(values)
    if target.is_clipped:
        reason = _why_refused("clip", place.before + counts)
        if reason is None:
            return np.clip(values, target.minimum, target.maximum), counts
        correct = f"{reason}{correct}"
    else:
        # A time has no minimum in the file.
        bounds = "maximum in [task]" if target.part == "time" else "minimum and maximum in [task]"
        correct += f" {_WIDER.format(bounds)}"
    place.refuse_numbers(code, outside, values, (target.minimum, target.maximum, target.unit), correct)
    return values, counts


def unknown_levels(schema: Schema, table: Any) -> list[tuple[str, str, int, str]]:
    """Return the column, text, number of rows and nearest agreed category of entries that are no agreed categories.

    They are data of the table's owner, for the owner's eyes alone.

    Examples
    --------
    >>> import pandas as pd
    >>> from datacollab.table import Column, Schema, unknown_levels
    >>> ward = Column(name="ward", kind="category", categories=("north", "south"))
    >>> unknown_levels(Schema(columns=(ward,)), pd.DataFrame({"ward": ["north", "nroth", "West"]}))
    [('ward', 'nroth', 1, 'north'), ('ward', 'West', 1, '')]
    """
    position_of = find_columns(schema, table, "the table", ())
    rows: list[tuple[str, str, int, str]] = []
    for column in schema.columns:
        if column.categories:
            entries = blank_words(table.iloc[:, position_of[column.name]], column.missing_words)
            rows += [(column.name, *each) for each in unknown_labels(entries, column.levels)]
    return rows


def find_columns(schema: Schema, table: Any, where: str, targets: Sequence[Target]) -> dict[str, int]:
    """Return the position of each column of a table, by the schema's spelling; refuse missing and repeated ones."""
    declared = [*(column.name for column in schema.columns), *(target.name for target in targets)]
    # Two forms of Unicode are one name.
    spelling_of = {unicodedata.normalize("NFC", name): name for name in declared}
    names = [unicodedata.normalize("NFC", str(name)) for name in table.columns]
    if lacking := [name for name in spelling_of if name not in set(names)]:
        raise ExchangeError(
            "SCHEMA_MISSING_COLUMN",
            f"{where} lacks {len(lacking)} of {len(spelling_of)} columns of the project: "
            f"{join_names(_describe_lacking(lacking, names, set(spelling_of)), most=20)}. Add or rename them.",
        )
    # Columns that the schema does not name may repeat.
    counts = Counter(names)
    if repeated := [name for name in spelling_of if counts[name] > 1]:
        raise ExchangeError(
            "TABLE_UNREADABLE", f"{where} has more than one column named {join_names(repeated)}. Rename or remove them."
        )
    return {spelling_of.get(name, name): position for position, name in enumerate(names)}


def _describe_lacking(lacking: Sequence[str], names: Sequence[str], known: set[str]) -> list[str]:
    """Return each lacking name, with a column of nearly that name that the schema does not know."""
    candidates = {_letters_of(name): name for name in reversed(names) if name not in known}
    described = []
    for name in lacking:
        # Seven letters of ten alike: an abbreviation or another separator, and seldom another quantity.
        near = difflib.get_close_matches(_letters_of(name), candidates, n=1, cutoff=0.7)
        described.append(repr(name) + "".join(f" (there is {candidates[each]!r})" for each in near))
    return described


def _letters_of(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
