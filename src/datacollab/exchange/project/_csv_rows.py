"""Whether all rows of a CSV file are whole; pandas would fill up one that was cut off, and say nothing."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from ...errors import ExchangeError
from ._csv_refusals import unreadable_csv

__all__ = ["check_rows"]


def check_rows(path: Path) -> None:
    """Check that every row has as many entries as the header; one pass, in which a single row is in memory.

    Raises
    ------
    ExchangeError
        With the line of the first row that has fewer or more; also when the file is not UTF-8.
    """
    try:
        _check(path)
    except UnicodeDecodeError as error:
        raise unreadable_csv(path, error) from None


def _check(path: Path) -> None:
    width = None
    with open(path, encoding="utf-8-sig", newline="") as file:
        for line, n_entries in _rows(path, file):
            if width is None:
                width = n_entries
            if n_entries < width:
                raise ExchangeError(
                    "TABLE_UNREADABLE",
                    f"{path}: line {line} has {n_entries} of {width} entries; the file may be cut off. Export it "
                    "again, with as many entries in every row.",
                )
            if n_entries > width:
                raise ExchangeError(
                    "TABLE_UNREADABLE",
                    f"{path}: line {line} has {n_entries} entries, and the header names {width} columns. Name every "
                    "column, and put entries with commas into quotation marks.",
                )


def _rows(path: Path, file: Iterable[str]) -> Iterator[tuple[int, int]]:
    """The line in which each row begins, from 1, and how many entries it has; blank lines are no rows."""
    number, lines = 1, iter(file)
    for line in lines:
        # Counting commas takes a quarter of the time, and most lines have no quotation mark.
        if '"' not in line:
            if line.strip(" \t\r\n"):
                yield number, line.count(",") + 1
            number += 1
            continue
        reader = csv.reader(chain((line,), lines))
        try:
            entries = next(reader)
        except csv.Error:
            raise ExchangeError(
                "TABLE_UNREADABLE",
                f"{path}: a quotation mark in line {number} is not closed within {csv.field_size_limit()} characters. "
                "Close it, or export the file again.",
            ) from None
        yield number, len(entries)
        number += reader.line_num
