"""Tables as data frames by way of text: every entry is text first, and whole columns decide types."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._entries import join_names
from .._notices import notice
from .._require import require
from ._column import Schema
from ._delimited import Layout, header_place, layout_of
from ._exports import ResearchExport, is_export, look_at_export, refuse_labels
from ._json_lines import read_json_lines
from ._limits import ambiguous, check_memory, check_size, unreadable
from ._statistics import read_statistics
from ._values import (
    MISSING_WORDS,
    POINT,
    POINT_SHAPES,
    UNDECIDED,
    Numbers,
    find_readings,
    is_any_number,
    mark_words,
    shapes_of,
)
from ._workbook import read_sheet

_PLAN_ROWS = 16384
"""Rows in memory while columns are looked at."""
_FEW_ROWS = 50
"""Rows in which a header, or text, is looked for first."""
_LARGEST_WHOLE = 1e15
"""Longer numbers are identifiers, which stay text."""
_NOTHING = frozenset(("",))
_PLAIN = (["commas", "UTF-8"], ["one column", "UTF-8"])
"""Layouts that need no words."""
_THREE_DIGITS = (
    "has a mark before three digits in numbers: decimals, or thousands? Write one of them so that it can be only one "
    "(as 1.50 or 1,50 with other decimals, or 1500 without a mark)."
)
_ODD_CODES = (
    "has nothing but digits, an E and digits, of several lengths, as 1E30 and 5E0: codes, or powers of ten? Write "
    "numbers with a point or sign (5.0E0, 5E+0), and codes with a letter before them (ICD 5E0)."
)
AS_CAME = "\0"
"""Ends the name of a column as it came; no file of text holds this sign."""
_NO_NAME = (
    "has no name and holds entries. If it numbers the rows, remove it; if it is data, write a name for it into the "
    "header."
)


def _labels_of(schema: Schema | None) -> Mapping[str, Sequence[str | int]]:
    return {} if schema is None else schema.labels


def _numeric_places(names: Sequence[str], schema: Schema) -> set[int]:
    """Return the positions of columns that the schema says are numbers; its features are, if the file holds those."""
    labels = schema.labels
    numbers = {name for name, each in labels.items() if not each} | (set(schema.feature_names) - set(labels))
    return {place for place, name in enumerate(names) if name in numbers}


def settle_types(table: Any, schema: Schema | None) -> Any:
    """Make numbers of the schema float64, or a type could change after a first batch that has whole ones only.

    Columns that the schema keeps are added as they came, unless the reader has done so.
    """
    if schema is None:
        return table
    as_came = {each + AS_CAME: table[each] for each in schema.keep if each in table and each + AS_CAME not in table}
    # Other entries stay, for `encode_table` to refuse.
    numeric = {name for name, labels in schema.labels.items() if not labels}
    # Truth values and whole numbers: a later batch may have decimals or gaps.
    kinds = {name: dtype.kind for name, dtype in table.dtypes.items() if name in numeric}
    changed = {name: "float64" for name, kind in kinds.items() if kind in "biu"}
    # Without a change it would still copy the table.
    if changed:
        table = table.astype(changed)
    return table.assign(**as_came) if as_came else table


def take_kept(table: Any, keep: Sequence[str]) -> dict[str, Any]:
    """Take columns out of a frame as their source has them: texts letter by letter, whole numbers without a point.

    The frame was read by `Keeping` these; a frame in memory was not read, and its columns are as they came.
    """
    return {name: table.pop(name + AS_CAME) if name + AS_CAME in table else table[name] for name in keep}


def spell_names(path: object, names: Sequence[str], schema: Schema | None) -> list[str]:
    """Return names in Unicode's form NFC, or spelt as the schema spells them; empty for a column without a name."""
    spelling_of = {unicodedata.normalize("NFC", name): name for name in _labels_of(schema)}
    spelt = []
    for each in names:
        plain = unicodedata.normalize("NFC", each)
        name = spelling_of.get(plain, plain)
        # So pandas calls a column without a name.
        if not name.strip() or (name.startswith("Unnamed: ") and name not in spelling_of):
            name = ""
        spelt.append(name)
    # Where there is no header these would be entries, so only their places are shown.
    if repeated := [place for place, name in enumerate(spelt, start=1) if name and spelt.count(name) > 1]:
        raise unreadable(f"{path}:", f"columns {join_names(repeated)} share names with others. Rename or remove them.")
    return spelt


@dataclass(kw_only=True)
class _Text:
    """A table whose entries are text."""

    path: Path
    names: list[str]
    chunks: Callable[[int], Iterator[Any]]
    """Return frames of a number of rows, with numbered columns."""
    n_rows: int
    usual: str | None
    """The reading of a mark before three digits if nothing else tells."""
    words: list[str]
    """How the file was understood."""
    remarks: list[str] = field(default_factory=list)
    """Everything that was left out."""
    pointed: frozenset[int] = frozenset()
    """Positions of columns with numbers that have decimals, and are no text."""
    coded: frozenset[int] = frozenset()
    """Positions of columns whose numbers are codes, and stay text unless a schema says otherwise."""

    def tell(self) -> None:
        """Give notice of how the file was understood."""
        rows = _count(self.n_rows, "row")
        columns = _count(sum(map(bool, self.names)), "column")
        understood = ", ".join(self.words) + "".join(f"; {each}" for each in self.remarks)
        is_plain = not self.remarks and self.words in _PLAIN
        notice(f"{self.path.name}: {rows}, {columns}; {understood}", is_plain=is_plain)


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


def text_frames(path: Path, kind: str, *, batch_rows: int | None, schema: Schema | None) -> Iterator[Any]:
    """Read a table that is no Parquet or Arrow in batches of rows, or at once; one without rows is one empty batch.

    All rows are counted before the first batch, so that nothing is made of a file that was cut off.
    """
    if kind != "CSV":
        table = _read_workbook(path, schema) if kind == "Excel" else _read_foreign(path, kind, schema)
        yield from _read_by_columns(table, batch_rows, schema)
        return
    # One pass over the file, which also counts its rows.
    layout = layout_of(path)
    _check_header(path, layout.names)
    refuse_labels(path, layout.names)
    names = spell_names(path, layout.names, schema)
    table = _Text(
        path=path,
        names=names,
        chunks=partial(_text_chunks, layout),
        n_rows=layout.n_rows,
        # With commas between columns, a comma in a number would need quotation marks.
        usual=POINT if layout.separator == "," else None,
        words=layout.words,
        remarks=[*layout.remarks, *_spelling_remarks(layout.names, names)],
    )
    is_plain = layout.words in _PLAIN and not (layout.n_hollow or layout.has_comma_numbers or is_export(names))
    # The C parser makes numbers and gaps of entries at once, but for columns that the schema lacks.
    if schema is not None:
        is_plain = is_plain and not {*schema.keep} & {*schema.labels, *schema.feature_names}
    # It reads the plain case many times as fast, and alike.
    if is_plain and schema is not None and not layout.may_have(codes=False):
        table.tell()
        for chunk in layout.chunks(batch_rows, **_parser_options(names, schema)):
            yield settle_types(_finish_chunk(chunk, names, schema), schema)
        return
    if is_plain and batch_rows is None and not layout.may_have(codes=True):
        # Only empty entries are missing: words may be categories.
        (chunk,) = layout.chunks(None, keep_default_na=False, na_values=[""])
        if (frame := _take_parsed(chunk, table)) is not None:
            table.tell()
            yield frame
            return
    yield from _read_by_columns(table, batch_rows, schema)


def _check_header(path: Path, names: Sequence[str]) -> None:
    # 0, 1, 2, ... are names.
    if all(map(is_any_number, names)) and list(names) != [str(position) for position in range(len(names))]:
        raise unreadable(path, "has no header: its first row holds numbers. Add a row with the columns' names.")


def _spelling_remarks(in_file: Sequence[str], names: Sequence[str]) -> list[str]:
    is_other = any(name and name != each for each, name in zip(in_file, names, strict=True))
    return ["names in another Unicode form than here"] * is_other


def _text_chunks(layout: Layout, n_rows: int) -> Iterator[Any]:
    for chunk in layout.chunks(n_rows, dtype=object, na_filter=False):
        if layout.n_hollow:
            chunk = chunk[(chunk.map(str.strip) != "").any(axis=1)].reset_index(drop=True)
        yield chunk


def _read_workbook(path: Path, schema: Schema | None) -> _Text:
    """Return the table of a workbook."""
    n_bytes = path.stat().st_size
    check_size(path, n_bytes)
    # A workbook is a small archive that may unpack to gigabytes.
    sheet = read_sheet(path, lambda taken: check_memory(path, taken, n_bytes))
    # Empty rows and columns around a table are formatting.
    filled = [(line, row) for line, row in enumerate(sheet.rows) if any(entry.strip() for entry in row)]
    width = max(place for _, row in filled for place, entry in enumerate(row, start=1) if entry.strip())
    place, _ = header_place([[*row[:width]] for _, row in filled[:_FEW_ROWS]])
    line, header = filled[place]
    if sheet.last_merged >= line:
        raise ambiguous(path, "has merged cells in the table. Split them, and fill each cell, before it is read.")
    header = header[:width]
    _check_header(path, header)
    refuse_labels(path, header)
    names = spell_names(path, header, schema)
    entries = np.array([row[:width] for _, row in filled[place + 1 :]], dtype=object).reshape(-1, width)
    pandas = require("pandas", "cli")

    def chunks(n_rows: int) -> Iterator[Any]:
        for start in range(0, max(len(entries), 1), n_rows):
            yield pandas.DataFrame(entries[start : start + n_rows])

    of_header = [f"header in line {line + 1}"] * (line > 0)
    return _Text(
        path=path,
        names=names,
        chunks=chunks,
        n_rows=len(entries),
        usual=None,
        words=["OpenDocument table" if path.suffix.lower() == ".ods" else "Excel workbook"],
        remarks=[*of_header, *sheet.remarks, *_spelling_remarks(header, names)],
        pointed=frozenset(sheet.pointed),
    )


def _read_foreign(path: Path, kind: str, schema: Schema | None) -> _Text:
    """Return the table of JSON lines, or of a file of SPSS, Stata or SAS."""
    known = None if schema is None else {*schema.labels, *schema.feature_names, *schema.keep}
    found = read_json_lines(path) if kind == "JSON" else read_statistics(path, known)
    names = spell_names(path, found.names, schema)
    return _Text(
        path=path,
        names=names,
        chunks=found.chunks,
        n_rows=found.n_rows,
        usual=None,
        words=["JSON lines" if kind == "JSON" else f"{kind} file"],
        remarks=[*found.remarks, *_spelling_remarks(found.names, names)],
        pointed=frozenset(found.pointed),
        coded=frozenset(found.coded),
    )


def _parser_options(names: Sequence[str], schema: Schema) -> dict[str, Any]:
    """Return options of pandas with which an entry is read alike in every batch."""
    labels = schema.labels
    numeric = _numeric_places(names, schema)
    missing = {place: _missing_texts(name, labels) for place, name in enumerate(names)}
    missing |= dict.fromkeys(numeric, MISSING_WORDS)
    # Text stays as it is, in columns that the schema does not know as well: 007 is not 7.
    texts = {place: str for place in range(len(names)) if place not in numeric}
    return {"dtype": texts, "keep_default_na": False, "na_values": missing}


def _missing_texts(name: str, labels: Mapping[str, Sequence[str | int]]) -> frozenset[str]:
    """Return the texts that are no entry in a column of text; a category may have such a name: NA is Namibia, too."""
    return MISSING_WORDS.difference(map(str, labels[name])) if name in labels else _NOTHING


def _finish_chunk(chunk: Any, names: Sequence[str], schema: Schema) -> Any:
    """Make numbers of what the C parser left as text among the schema's, and name the columns."""
    for place in _numeric_places(names, schema):
        if chunk[place].dtype.kind == "O":
            entries = chunk[place].astype(object).fillna("").map(str)
            chunk[place] = Numbers(shapes_of(entries), POINT, is_declared=True).convert(entries)
    return _take_named(chunk, names)


def _take_named(chunk: Any, names: Sequence[str]) -> Any:
    """Return the columns that have a name, with it."""
    places = [place for place, name in enumerate(names) if name]
    if len(places) < len(names):
        chunk = chunk[places]
    return chunk.set_axis([names[place] for place in places], axis=1)


def _take_parsed(chunk: Any, table: _Text) -> Any:
    """Return the C parser's frame of a plain table, with types as whole columns decide; None if it cannot tell."""
    for place in range(len(table.names)):
        column = chunk[place]
        if column.dtype.kind in "iuf":
            # float64 rounds longer numbers, and two records would become one.
            if np.nanmax(np.abs(column.to_numpy(dtype=np.float64)), initial=0.0) >= _LARGEST_WHOLE:
                return None
        elif column.dtype.kind == "O" and not _starts_with_text(column):
            entries = column.fillna("").astype(object)
            shapes = shapes_of(entries)
            numbers = Numbers(shapes, POINT, is_declared=False)
            # The careful reader says so.
            if numbers.has_marks or (numbers.is_number and mark_words(shapes, POINT)):
                return None
            chunk[place] = numbers.convert(entries)
    empty = [bool(chunk[place].isna().all()) for place in range(len(table.names))]
    first = chunk[0].to_numpy()
    # A column without a name may count the rows, from 0 or 1.
    counts_rows = first.dtype.kind in "iu" and any(np.array_equal(first, np.arange(len(first)) + low) for low in (0, 1))
    _leave_out_nameless(table, empty, counts_rows=counts_rows)
    return _take_named(chunk, table.names)


def _starts_with_text(column: Any) -> bool:
    """Return whether a column of objects needs no closer look: truth values, or text among the first entries."""
    present = column.dropna().iloc[:_FEW_ROWS]
    return any(isinstance(each, bool) for each in present.iloc[:1]) or "text" in shapes_of(present)


def _leave_out_nameless(table: _Text, empty: Sequence[bool], *, counts_rows: bool) -> None:
    """Refuse a column without a name that holds entries, unless it is the first and counts the rows."""
    for place, name in enumerate(table.names):
        if name or empty[place]:
            continue
        if place or not counts_rows:
            raise ambiguous(f"{table.path}: column {place + 1}", _NO_NAME)
        table.remarks.append("the first column, which counts the rows, is left out")


def _read_by_columns(table: _Text, batch_rows: int | None, schema: Schema | None) -> Iterator[Any]:
    """Read the table twice: for the shapes of its entries, and for the frames."""
    names = table.names
    if is_export(names):
        _settle_export(table, schema)
    # Without a schema every column may be numbers, but for codes.
    declared = set(range(len(names))) - table.coded if schema is None else _numeric_places(names, schema)
    shapes, counts_rows = _look_at(table, declared, until_text=schema is None)
    if schema is None:
        empty = [shapes.get(place, set()) <= {"empty"} for place in range(len(names))]
        _leave_out_nameless(table, empty, counts_rows=counts_rows)
    columns = _decide_columns(table, {place: shapes[place] for place in declared if names[place]}, schema)
    style = _find_style(table, columns, shapes)
    table.tell()
    pandas = require("pandas", "cli")
    text = Numbers({"text"}, POINT, is_declared=False)
    labels = _labels_of(schema)
    missing = {place: _missing_texts(name, labels) for place, name in enumerate(names) if name}
    keep = {place: name + AS_CAME for place, name in enumerate(names) if schema is not None and name in schema.keep}
    parts = []
    letters: dict[str, Counter[str]] = {names[place]: Counter() for place, each in columns.items() if each.has_marks}
    for chunk in table.chunks(batch_rows or _PLAN_ROWS):
        entries = {
            names[place]: columns.get(place, text).convert(chunk[place].to_numpy(), missing=each)
            for place, each in missing.items()
        }
        entries |= {name: text.convert(chunk[place].to_numpy()) for place, name in keep.items()}
        frame = settle_types(pandas.DataFrame(entries, index=range(len(chunk))), schema)
        for place, each in columns.items():
            if each.has_marks:
                letters[names[place]].update(each.letters(chunk[place]))
        # Only the draft of a project asks for letters, by which parties' tables are then read alike.
        frame.attrs |= {"style": style, "letters": letters}
        if batch_rows is None:
            parts.append(frame)
        else:
            yield frame
    if parts:
        yield pandas.concat(parts, ignore_index=True)


def _find_style(table: _Text, columns: Mapping[int, Numbers], shapes: Mapping[int, set[str]]) -> dict[str, str]:
    """Return how predictions beside such a table are written, as `pandas.DataFrame.to_csv` takes it."""
    if table.words[0] != "semicolons":
        return {}
    has_points = any(each.reading == POINT and shapes[place] & POINT_SHAPES for place, each in columns.items())
    return {"sep": ";", "decimal": "." if has_points else ","}


def _settle_export(table: _Text, schema: Schema | None) -> None:
    """Make gaps of all that means none in an export of a research database; numbers of concepts are codes."""
    # A project may have a level "0" as well.
    kept = {name for name, labels in _labels_of(schema).items() if "0" in map(str, labels)}
    export = look_at_export(table.path, table.names, table.chunks, kept)
    table.chunks = partial(_change_chunks, table.chunks, export)
    table.remarks += export.remarks
    table.coded |= {place for place, name in enumerate(table.names) if name.endswith("_concept_id")}


def _change_chunks(chunks: Callable[[int], Iterator[Any]], export: ResearchExport, n_rows: int) -> Iterator[Any]:
    yield from map(export.change, chunks(n_rows))


def _look_at(table: _Text, places: set[int], *, until_text: bool) -> tuple[dict[int, set[str]], bool]:
    """Return the shapes of the entries in columns, and whether a first column without a name counts the rows."""
    shapes: dict[int, set[str]] = {place: set() for place in places}
    n_before = 0
    lows = {0, 1}
    for chunk in table.chunks(_PLAN_ROWS):
        for place in places:
            # A column with a text stays text, whatever follows.
            if not (until_text and "text" in shapes[place]):
                shapes[place] |= shapes_of(chunk[place])
        if not table.names[0]:
            first = chunk[0].tolist()
            lows = {low for low in lows if first == [str(low + n_before + row) for row in range(len(first))]}
        n_before += len(chunk)
    return shapes, bool(lows)


def _decide_columns(table: _Text, shapes: dict[int, set[str]], schema: Schema | None) -> dict[int, Numbers]:
    """Return the reading of each column by its shapes, or refuse one with two readings."""
    names = table.names
    reading_of = find_readings(
        {place: each for place, each in shapes.items() if place not in table.pointed}, usual=table.usual
    )
    reading_of |= dict.fromkeys(shapes.keys() & table.pointed, POINT)
    # Excel's own numbers have points, so a comma before three digits of a text beside them is in doubt.
    reading_of |= {place: UNDECIDED for place in shapes.keys() & table.pointed if "comma_three" in shapes[place]}
    columns = {
        place: Numbers(each, reading_of[place], is_declared=schema is not None) for place, each in shapes.items()
    }
    if doubtful := [names[place] for place in sorted(columns) if columns[place].is_doubtful]:
        raise ambiguous(f"{table.path}: column {join_names(map(repr, doubtful))}", _THREE_DIGITS)
    if odd := [names[place] for place in sorted(columns) if columns[place].has_odd_codes]:
        raise ambiguous(f"{table.path}: column {join_names(map(repr, odd))}", _ODD_CODES)
    if marked := [names[place] for place in sorted(columns) if columns[place].has_marks]:
        table.remarks.append(f"marks such as .a are gaps in {join_names(map(repr, marked))}")
    marks = {
        mark for place, each in columns.items() if each.is_number for mark in mark_words(shapes[place], each.reading)
    }
    # After the separator, as decimal commas go with it.
    table.words[1:1] = sorted(marks)
    return columns
