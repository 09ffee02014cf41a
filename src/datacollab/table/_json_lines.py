"""Files with one JSON object in each line, as rows of text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from .._entries import join_names
from .._require import require
from ._limits import check_memory, check_size, unreadable
from ._statistics import TextRows

_REFERENCE = 8
"""Bytes of a cell, which a gap takes too."""


class _Decimal(str):
    """The text of a number with a point."""


def read_json_lines(path: Path) -> TextRows:
    """Return the table of a file with one flat JSON object in each line; a key may come late, or lack in a line.

    Raises
    ------
    ExchangeError
        TABLE_UNREADABLE if a line is no object, or holds lists or objects, TOO_LARGE beyond the limits.  The message
        names lines and keys, and quotes no entry.
    """
    n_bytes = path.stat().st_size
    check_size(path, n_bytes)
    places: dict[str, int] = {}
    pointed: set[str] = set()
    nested: set[str] = set()
    n_rows = 0
    for row in _rows_of(path):
        n_rows += 1
        for key, entry in row.items():
            places.setdefault(key, len(places))
            if isinstance(entry, _Decimal):
                pointed.add(key)
            elif isinstance(entry, dict | list):
                nested.add(key)
        # Every line may have another key.
        check_memory(path, _REFERENCE * n_rows * len(places), n_bytes)
    if not places:
        raise unreadable(path, "has no entries.")
    if nested:
        names = join_names(repr(key) for key in places if key in nested)
        raise unreadable(
            f"{path}: column {names}", "holds lists or objects. Give each of their parts a column, or leave them out."
        )
    return TextRows(
        names=list(places),
        chunks=partial(_chunks, path, list(places)),
        n_rows=n_rows,
        pointed={places[key] for key in pointed},
    )


def _rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the object of each line, with numbers as they are written; blank lines are none."""
    # Not a number, and infinity, are no JSON, and a gap to those who write them.
    options: dict[str, Any] = {"parse_float": _Decimal, "parse_constant": lambda _: None}
    with open(path, encoding="utf-8-sig", newline="\n") as file:
        try:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line, object_pairs_hook=_refuse_repeats, **options)
                except (ValueError, RecursionError):
                    row = None
                if not isinstance(row, dict):
                    raise unreadable(
                        f"{path}: line {number}",
                        "is no JSON object with one entry for each name. Write one object in each line.",
                    )
                yield row
        except UnicodeDecodeError:
            raise unreadable(path, "is not UTF-8. Save it as UTF-8.") from None


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs; of a key that comes twice Python would keep the last."""
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError
    return row


def _chunks(path: Path, names: list[str], n_rows: int) -> Iterator[Any]:
    """Yield frames of text, each of `n_rows` rows at most."""
    pandas = require("pandas", "cli")
    rows: list[list[str]] = []
    for row in _rows_of(path):
        rows.append([_text(row.get(name)) for name in names])
        if len(rows) == n_rows:
            yield pandas.DataFrame(rows, dtype=object)
            rows = []
    if rows:
        yield pandas.DataFrame(rows, dtype=object)


def _text(entry: Any) -> str:
    return "" if entry is None else str(entry)
