"""What to say where columns are missing: perhaps they are there under another spelling."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from ._refusals import listed

__all__ = ["missing_columns"]


def missing_columns(where: str, lacking: Sequence[str], found: Sequence[str], wanted: Sequence[str]) -> str:
    """The sentence on missing columns, with what each might be called in the table.

    Parameters
    ----------
    where : str
        What the table is called.
    lacking : sequence of str
        Columns that are missing.
    found, wanted : sequence of str
        All columns of the table, and of the project.
    """
    taken = set(wanted)
    candidates = {_plain(name): name for name in reversed(found) if name not in taken}
    described = []
    for name in lacking:
        near = difflib.get_close_matches(_plain(name), candidates, n=1, cutoff=0.7)
        described.append(f"{name!r} (there is {candidates[near[0]]!r})" if near else repr(name))
    return (
        f"{where} lacks {len(lacking)} of {len(wanted)} columns of the project: {listed(described, most=20)}. Add or "
        "rename them."
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
