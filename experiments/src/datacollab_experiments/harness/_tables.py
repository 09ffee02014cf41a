"""Tables of reports."""

import argparse
import csv
import gzip
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: bool = False) -> str:
    """Return a table in Markdown.

    Parameters
    ----------
    numbers : bool, default=False
        Whether the columns after the first are aligned to the right.
    """
    rule = ["---", *["---:" if numbers else "---"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (head, rule, *rows))


@contextmanager
def open_table(path: Path) -> Iterator[TextIO]:
    """Open a file of comma-separated values for writing; one whose name ends in .gz is packed."""
    if path.suffix != ".gz":
        with path.open("w", newline="", encoding="utf-8") as stream:
            yield stream
        return
    # Without a name and a date, equal rows give equal bytes.
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as stream,
    ):
        yield stream


def write_rows(rows: Iterable[Mapping[str, object]], path: Path) -> None:
    """Write rows of one form as a CSV file, numbers with five digits; each as soon as it is there."""
    with open_table(path) as stream:
        writer = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(stream, list(row))
                writer.writeheader()
            writer.writerow({name: f"{each:.5g}" if isinstance(each, float) else each for name, each in row.items()})
            # A study that is stopped keeps its rows; a packed file would be twice as long by it.
            if path.suffix != ".gz":
                stream.flush()
        if writer is None:
            # pandas reads no file without a header.
            csv.DictWriter(stream, ["dataset"]).writeheader()


def write_table(rows: Callable[..., Iterable[Mapping[str, object]]], **defaults: Any) -> None:
    """Be the program of a module that makes one table: print its rows, and write them to ``--output`` if that is given.

    Parameters
    ----------
    rows : callable
        Yields the rows.  It takes the options by keyword.
    **defaults : int, bool, tuple or None
        Options of the program: a number, a switch, some of the entries, or a folder of data sets.
    """
    parser = argparse.ArgumentParser(description=str(sys.modules[rows.__module__].__doc__).partition("\n")[0])
    parser.add_argument("--output", type=Path, metavar="FILE", help="file of comma-separated values")
    for name, default in defaults.items():
        how: dict[str, Any] = {"type": type(default)}
        if default is None:
            how = {"type": Path}
        elif default is False:
            how = {"action": "store_true"}
        elif isinstance(default, tuple):
            how = {"nargs": "+", "choices": default, "type": type(default[0])}
        parser.add_argument(f"--{name.replace('_', '-')}", default=default, **how)
    options = vars(parser.parse_args())
    output = options.pop("output") or Path(os.devnull)

    def print_rows() -> Iterator[Mapping[str, object]]:
        for row in rows(**options):
            print(dict(row), flush=True)
            yield row

    write_rows(print_rows(), output)
