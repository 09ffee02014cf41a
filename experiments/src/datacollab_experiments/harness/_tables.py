"""Tables of reports."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

__all__ = ["markdown", "shown", "write_rows"]


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False) -> str:
    """A table in Markdown.

    Parameters
    ----------
    head : sequence of str
    rows : iterable of sequence of str
    numbers : bool, default=False
        Whether the columns after the first are aligned to the right.
    """
    rule = ["---", *["---:" if numbers else "---"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def shown(rows: Iterable[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    """Yield rows, and print each."""
    for row in rows:
        print(dict(row), flush=True)
        yield row


def write_rows(rows: Iterable[Mapping[str, object]], path: Path) -> None:
    """Write rows of one form as a CSV file, numbers with five digits; each as soon as it is there."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(stream, list(row))
                writer.writeheader()
            writer.writerow({name: f"{each:.5g}" if isinstance(each, float) else each for name, each in row.items()})
            stream.flush()
        if writer is None:
            csv.DictWriter(stream, ["dataset"]).writeheader()
