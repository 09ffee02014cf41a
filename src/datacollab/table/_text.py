"""Tables of text and Excel workbooks as data frames: every entry is text first, and whole columns decide types."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._entries import join_names
from .._notices import notice
from .._require import require
from ._delimited import Layout, header_place, layout_of
from ._limits import ambiguous, check_memory, check_size, unreadable
from ._numbers import MISSING_WORDS, POINT, POINT_SHAPES, UNDECIDED, Numbers, is_any_number, marks, readings, shapes_of
from ._schema import Schema
from ._workbook import sheet_rows

_PLAN_ROWS, _FEW_ROWS = 16384, 50
_LARGEST_WHOLE = 1e15
"""Longer numbers are identifiers, which stay text."""
_NOTHING = frozenset(("",))
_PLAIN = (["commas", "UTF-8"], ["one column", "UTF-8"])
"""What needs no words."""
_THREE_DIGITS = (
    "has a mark before three digits in numbers: decimals, or thousands? Write one of them so that it can be only one "
    "(as 1.50 or 1,50 with other decimals, or 1500 without a mark)."
)
_NO_NAME = (
    "has no name and holds entries. If it numbers the rows, remove it; if it is data, write a name for it into the "
    "header."
)


def _declared_numbers(names: Sequence[str], schema: Schema) -> set[int]:
    """Return the positions of columns that the schema says are numbers; its features are, if the file holds those."""
    labels = schema.labels
    numbers = {name for name, each in labels.items() if not each} | (set(schema.feature_names) - set(labels))
    return {place for place, name in enumerate(names) if name in numbers}


def settled(table: Any, schema: Schema | None) -> Any:
    """Make numbers of the schema float64, or a type could change after a first batch that has whole ones only."""
    if schema is None:
        return table
    # Other entries stay, for `encode_table` to refuse.
    numeric = {name for name, labels in schema.labels.items() if not labels}
    kinds = {name: dtype.kind for name, dtype in table.dtypes.items() if name in numeric}
    return table.astype({name: "float64" for name, kind in kinds.items() if kind in "biu"})


def named(path: Path, found: Sequence[str], schema: Schema | None) -> list[str]:
    """Return names in Unicode's form NFC, or spelt as the schema spells them; empty for a column without a name."""
    known = () if schema is None else schema.labels
    spelt = {unicodedata.normalize("NFC", name): name for name in known}
    names = []
    for each in found:
        name = unicodedata.normalize("NFC", each)
        name = spelt.get(name, name)
        # So pandas calls a column without a name.
        names.append("" if not name.strip() or (name.startswith("Unnamed: ") and name not in spelt) else name)
    # Where there is no header these would be entries, so only their places are shown.
    if repeated := [place for place, name in enumerate(names, start=1) if name and names.count(name) > 1]:
        raise unreadable(f"{path}:", f"columns {join_names(repeated)} share names with others. Rename or remove them.")
    return names


@dataclass(kw_only=True)
class _Text:
    """A table whose entries are text."""

    path: Path
    names: list[str]
    chunks: Callable[[int], Iterator[Any]]
    """Return frames of a number of rows, with numbered columns."""
    n_rows: int
    usual: str | None
    """What stands before three digits if nothing else tells."""
    words: list[str]
    """What was understood."""
    said: list[str] = field(default_factory=list)
    """What was left out."""
    pointed: frozenset[int] = frozenset()
    """Positions of columns with numbers that have decimals, and are no text."""

    def tell(self) -> None:
        """Give notice of what was understood."""
        n_columns = sum(map(bool, self.names))
        columns = "1 column" if n_columns == 1 else f"{n_columns:,} columns"
        rows = "1 row" if self.n_rows == 1 else f"{self.n_rows:,} rows"
        understood = ", ".join(self.words) + "".join(f"; {each}" for each in self.said)
        is_plain = not self.said and self.words in _PLAIN
        notice(f"{self.path.name}: {rows}, {columns}; {understood}", is_plain=is_plain)


def text_frames(path: Path, *, is_workbook: bool, batch_rows: int | None, schema: Schema | None) -> Iterator[Any]:
    """Read a text table or a workbook in batches of rows, or at once; a table without rows is one empty batch.

    All rows are counted before the first batch, so that nothing is made of a file that was cut off.
    """
    if is_workbook:
        yield from _planned(_of_workbook(path, schema), batch_rows, schema)
        return
    layout = layout_of(path)
    _check_header(path, layout.names)
    names = named(path, layout.names, schema)
    table = _Text(
        path=path,
        names=names,
        chunks=partial(_text_chunks, layout),
        n_rows=layout.n_rows,
        usual=POINT if layout.separator == "," else None,
        words=layout.words,
        said=[*layout.said, *_respelt(layout.names, names)],
    )
    is_plain = layout.words in _PLAIN and not (layout.n_hollow or layout.has_comma_numbers)
    # The C parser reads the plain case many times as fast, and alike.
    if is_plain and schema is not None:
        table.tell()
        for chunk in layout.chunks(batch_rows, **_options(names, schema)):
            yield settled(_declared(chunk, names, schema), schema)
        return
    if is_plain and batch_rows is None and not layout.has_leading_zeros():
        (chunk,) = layout.chunks(None, keep_default_na=False, na_values=[""])
        if (frame := _guessed(chunk, table)) is not None:
            table.tell()
            yield frame
            return
    yield from _planned(table, batch_rows, schema)


def _check_header(path: Path, names: Sequence[str]) -> None:
    # 0, 1, 2, ... are names.
    if all(map(is_any_number, names)) and list(names) != [str(position) for position in range(len(names))]:
        raise unreadable(path, "has no header: its first row holds numbers. Add a row with the columns' names.")


def _respelt(found: Sequence[str], names: Sequence[str]) -> list[str]:
    is_other = any(name and name != each for each, name in zip(found, names, strict=True))
    return ["names in another Unicode form than here"] * is_other


def _text_chunks(layout: Layout, n_rows: int) -> Iterator[Any]:
    for chunk in layout.chunks(n_rows, dtype=object, na_filter=False):
        if layout.n_hollow:
            chunk = chunk[(chunk.map(str.strip) != "").any(axis=1)].reset_index(drop=True)
        yield chunk


def _of_workbook(path: Path, schema: Schema | None) -> _Text:
    """Return the table of a workbook."""
    n_bytes = path.stat().st_size
    check_size(path, n_bytes)
    rows, last_merged, said, pointed = sheet_rows(path, lambda taken: check_memory(path, taken, n_bytes))
    filled = [(line, row) for line, row in enumerate(rows) if any(entry.strip() for entry in row)]
    width = max(place for _, row in filled for place, entry in enumerate(row, start=1) if entry.strip())
    place, _ = header_place([[*row[:width]] for _, row in filled[:_FEW_ROWS]])
    line, header = filled[place]
    if last_merged >= line:
        raise ambiguous(path, "has merged cells in the table. Split them, and fill each cell, before it is read.")
    header = header[:width]
    _check_header(path, header)
    names = named(path, header, schema)
    entries = np.array([row[:width] for _, row in filled[place + 1 :]], dtype=object).reshape(-1, width)
    pandas = require("pandas", "cli")

    def chunks(n_rows: int) -> Iterator[Any]:
        for start in range(0, max(len(entries), 1), n_rows):
            yield pandas.DataFrame(entries[start : start + n_rows])

    said = [f"header in line {line + 1}"] * (line > 0) + said + _respelt(header, names)
    return _Text(
        path=path,
        names=names,
        chunks=chunks,
        n_rows=len(entries),
        usual=None,
        words=["Excel workbook"],
        said=said,
        pointed=frozenset(pointed),
    )


def _options(names: Sequence[str], schema: Schema) -> dict[str, Any]:
    """Return options of pandas with which an entry is read alike in every batch."""
    labels, columns = schema.labels, dict(enumerate(names))
    numeric = _declared_numbers(names, schema)
    missing = {place: MISSING_WORDS if place in numeric else _missing(name, labels) for place, name in columns.items()}
    # Text stays as it is, in columns that the schema does not know as well: 007 is not 7.
    texts = {place: str for place in columns if place not in numeric}
    return {"dtype": texts, "keep_default_na": False, "na_values": missing}


def _missing(name: str, labels: Mapping[str, Sequence[str | int]]) -> frozenset[str]:
    """Return the texts that are no entry in a column of text; a category may have such a name: NA is Namibia, too."""
    return MISSING_WORDS.difference(map(str, labels[name])) if name in labels else _NOTHING


def _declared(chunk: Any, names: Sequence[str], schema: Schema) -> Any:
    """Make numbers of what the C parser left as text among the schema's, and name the columns."""
    for place in _declared_numbers(names, schema):
        if chunk[place].dtype.kind == "O":
            entries = chunk[place].astype(object).map(lambda each: "" if each != each else str(each))
            chunk[place] = Numbers(shapes_of(entries), POINT, is_declared=True).converted(entries)
    return _selected(chunk, names)


def _selected(chunk: Any, names: Sequence[str]) -> Any:
    """Return the columns that have a name, with it."""
    places = [place for place, name in enumerate(names) if name]
    if len(places) < len(names):
        chunk = chunk[places]
    return chunk.set_axis([names[place] for place in places], axis=1)


def _guessed(chunk: Any, table: _Text) -> Any:
    """Return what the C parser made of a plain table, with types as `_planned` finds them; None if it has to decide."""
    for place in range(len(table.names)):
        column = chunk[place]
        if column.dtype.kind in "iuf":
            if np.nanmax(np.abs(column.to_numpy(dtype=np.float64)), initial=0.0) >= _LARGEST_WHOLE:
                return None
        elif column.dtype.kind == "O":
            present = column.dropna()
            if any(isinstance(each, bool) for each in present.iloc[:1]) or "text" in shapes_of(
                present.iloc[:_FEW_ROWS]
            ):
                continue
            entries = column.fillna("").astype(object)
            chunk[place] = Numbers(shapes_of(entries), POINT, is_declared=False).converted(entries)
    empty = [bool(chunk[place].isna().all()) for place in range(len(table.names))]
    first = chunk[0].to_numpy()
    counts = first.dtype.kind in "iu" and any(np.array_equal(first, np.arange(len(first)) + low) for low in (0, 1))
    _leave_out_nameless(table, empty, counts=counts)
    return _selected(chunk, table.names)


def _leave_out_nameless(table: _Text, empty: Sequence[bool], *, counts: bool) -> None:
    """Refuse a column without a name that holds entries, unless it is the first and counts the rows."""
    for place, name in enumerate(table.names):
        if name or empty[place]:
            continue
        if place or not counts:
            raise ambiguous(f"{table.path}: column {place + 1}", _NO_NAME)
        table.said.append("the first column, which counts the rows, is left out")


def _planned(table: _Text, batch_rows: int | None, schema: Schema | None) -> Iterator[Any]:
    """Read the table twice: for what stands in its columns, and for the frames."""
    names, labels = table.names, {} if schema is None else schema.labels
    declared = set() if schema is None else _declared_numbers(names, schema)
    looked_at = declared if schema is not None else set(range(len(names)))
    shapes: dict[int, set[str]] = {place: set() for place in looked_at}
    n_before, lows = 0, {0, 1}
    for chunk in table.chunks(_PLAN_ROWS):
        for place in looked_at:
            if schema is None and "text" in shapes[place]:
                continue
            shapes[place] |= shapes_of(chunk[place])
        if not names[0]:
            first = chunk[0].tolist()
            lows = {low for low in lows if first == [str(low + n_before + row) for row in range(len(first))]}
        n_before += len(chunk)
    if schema is None:
        _leave_out_nameless(table, [shapes[place] <= {"empty"} for place in range(len(names))], counts=bool(lows))
    looked_at = {place for place in looked_at if names[place]}
    found = readings({place: shapes[place] for place in looked_at - table.pointed}, usual=table.usual)
    found |= {place: UNDECIDED if "comma_three" in shapes[place] else POINT for place in looked_at & table.pointed}
    columns = {place: Numbers(shapes[place], found[place], is_declared=place in declared) for place in looked_at}
    if doubtful := [names[place] for place in sorted(looked_at) if columns[place].is_doubtful]:
        raise ambiguous(f"{table.path}: column {join_names(map(repr, doubtful))}", _THREE_DIGITS)
    used = [marks(shapes[place], each.reading) for place, each in columns.items() if each.is_number]
    table.words[1:1] = sorted({mark for each in used for mark in each})
    has_points = any(each.reading == POINT and shapes[place] & POINT_SHAPES for place, each in columns.items())
    style = {"sep": ";", "decimal": "." if has_points else ","} if table.words[0] == "semicolons" else {}
    table.tell()
    pandas = require("pandas", "cli")
    text = Numbers({"text"}, POINT, is_declared=False)
    parts = []
    for chunk in table.chunks(batch_rows or _PLAN_ROWS):
        made = {}
        for place, name in enumerate(names):
            if name:
                missing = _missing(name, labels) if schema is not None else _NOTHING
                made[name] = columns.get(place, text).converted(chunk[place].to_numpy(), missing=missing)
        frame = settled(pandas.DataFrame(made, index=range(len(chunk))), schema)
        frame.attrs["style"] = style
        if batch_rows is None:
            parts.append(frame)
        else:
            yield frame
    if parts:
        yield pandas.concat(parts, ignore_index=True)
