"""Tables of reports."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

__all__ = ["markdown", "write_rows"]


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


def write_rows(rows: Sequence[Mapping[str, object]], path: Path) -> None:
    """Write rows of one form as a CSV file, numbers with five digits."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]) if rows else ["dataset"])
        writer.writeheader()
        writer.writerows({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
