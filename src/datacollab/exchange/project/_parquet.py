"""Reading Parquet files in batches of rows that are bounded before they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from ..._require import require
from ._parquet_pages import chunks, pages
from ._table_budget import TableBudget

__all__ = ["parquet_batches"]

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 0}
_MOST_AT_ONCE = 2**27
"""Bytes of a batch, of which several may be in memory."""

_PLAIN, _DICTIONARY, _DELTA_BYTE_ARRAY, _ALSO_DICTIONARY = 0, 2, 7, 8
"""Of the encodings of the Parquet format."""

_READ_AS_DICTIONARY = {_PLAIN, _DICTIONARY, _ALSO_DICTIONARY}
_TEXTS = ("STRING", "NONE", "ENUM", "JSON")


@dataclass(frozen=True)
class _Leaf:
    """A column without columns in it.

    Attributes
    ----------
    path : str
    width : int
        Bytes of an entry; 0 where entries differ.
    largest : int
        The most bytes of an entry that stands for one written elsewhere.
    n_entries : int or None
        The most in a group of rows, where a row may have any number of them.
    as_dictionary : bool
        Whether a reader can leave entries in the dictionary.
    """

    path: str
    width: int
    largest: int
    n_entries: int | None
    as_dictionary: bool

    def expanded(self, n_rows: int) -> int:
        """Bytes that entries may take which are written once and meant often."""
        return self.largest * (n_rows if self.n_entries is None else self.n_entries)


def parquet_batches(file: IO[bytes], batch_rows: int, budget: TableBudget) -> tuple[Any, Iterator[Any]]:
    """The columns of a Parquet file, and batches of its rows, some of whose texts may be in dictionaries.

    Raises
    ------
    ExchangeError
        ``TOO_LARGE``.
    ValueError
        When its pages are not what its end says.
    """
    parquet = require("pyarrow.parquet", "tables")
    opened = parquet.ParquetFile(file)
    leaves = _leaves(file, opened, budget)
    batch_rows = min(batch_rows, opened.metadata.num_rows)
    in_dictionaries = [leaf for leaf in leaves if leaf.as_dictionary and leaf.expanded(batch_rows) > _MOST_AT_ONCE]
    others = [leaf for leaf in leaves if leaf not in in_dictionaries]
    for leaf in others:
        if leaf.n_entries is not None:
            budget.check(leaf.expanded(batch_rows))
    row_bytes = 1 + sum(leaf.width + leaf.largest for leaf in others if leaf.n_entries is None)
    step = max(1, min(batch_rows, _MOST_AT_ONCE // row_bytes))
    reader = parquet.ParquetFile(file, read_dictionary=[leaf.path for leaf in in_dictionaries])
    return opened.schema_arrow, reader.iter_batches(batch_size=step)


def _leaves(file: IO[bytes], opened: Any, budget: TableBudget) -> list[_Leaf]:
    leaves, total = [], 0
    groups = chunks(file)
    if {len(columns) for columns in groups} - {opened.metadata.num_columns}:
        raise ValueError("a group of rows lacks columns")
    for place in range(opened.metadata.num_columns):
        about = opened.schema.column(place)
        width = about.length if about.physical_type == "FIXED_LEN_BYTE_ARRAY" else _WIDTHS[about.physical_type]
        encodings: set[int] = set()
        largest = most_entries = 0
        for columns in groups:
            n_entries = 0
            for page in pages(file, columns[place]):
                total += max(page.n_bytes, page.n_entries * width)
                n_entries += page.n_entries
                if page.is_dictionary or page.encoding == _DELTA_BYTE_ARRAY:
                    largest = max(largest, page.n_bytes)
                if not page.is_dictionary:
                    encodings.add(page.encoding)
            budget.check(total)
            most_entries = max(most_entries, n_entries)
        leaves.append(
            _Leaf(
                path=about.path,
                width=width,
                largest=0 if width else largest,
                n_entries=most_entries if about.max_repetition_level else None,
                as_dictionary=not width and encodings <= _READ_AS_DICTIONARY and about.logical_type.type in _TEXTS,
            )
        )
    return leaves
