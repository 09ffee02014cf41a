"""Which rows a party has shared, so that it does not share them again unawares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from .._validation import PartyName
from ..errors import SharedBeforeError
from ._own_rows import OwnRows

__all__ = ["FittedTable", "Ledger"]


@dataclass(eq=False)
class FittedTable:
    """The table of one fit.

    Attributes
    ----------
    rows : OwnRows
        Digests of its rows.
    earlier : list of (FittedTable, int)
        Tables fitted before that have rows in common with it, and how many.
    shared : bool
        Whether something of it has left.
    mu : float or None
        What was spent then; see `PrivacyGuarantee`.  None where nothing was promised.
    """

    rows: OwnRows
    earlier: list[tuple[FittedTable, int]] = field(default_factory=list)
    shared: bool = False
    mu: float | None = None

    @property
    def shared_before(self) -> list[FittedTable]:
        """Tables with rows in common of which something has left."""
        return [table for table, _ in self.earlier if table.shared]

    def check(self, party: PartyName, *, allowed: bool) -> None:
        """Raise SharedBeforeError where rows would leave once more, unless that is allowed."""
        n_rows = max((n for table, n in self.earlier if table.shared), default=0)
        if n_rows and not allowed and not self.shared:
            raise SharedBeforeError(
                f"Party {party!r}: {n_rows} of its rows were shared after an earlier fit. Shared once more, with "
                "other noise or in other groups, they can be told from the difference of the two. Share what was "
                "fitted first; or set share_again=True, by which whatever was promised for each share adds up."
            )


class Ledger:
    """The tables that a party was fitted on.  Copies of the party, deep or not, have the same one."""

    def __init__(self) -> None:
        self._tables: list[FittedTable] = []

    def add(self, X: Any) -> FittedTable:
        """Enter a table."""
        found = [(table, table.rows.count_in(X)) for table in self._tables]
        table = FittedTable(OwnRows(X), [(table, n) for table, n in found if n])
        self._tables.append(table)
        return table

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return f"Ledger({len(self._tables)} tables)"
