"""One record of the party, before and after: for its own eyes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...exchange.project import Column, Project

if TYPE_CHECKING:
    from ...exchange.party_folder import Prepared

__all__ = ["Record", "record_of"]

_MOST = 32


@dataclass(frozen=True, kw_only=True)
class Record:
    """A row of the table, and what leaves in its place.

    Attributes
    ----------
    number : int
        Of the row, from 1 on.
    n_rows : int
    before : list of (str, str)
        Columns and entries, as the project reads them.
    after : list of float
        The row that leaves, or one of those that do.
    target : str
        That leaves with it.
    said : str
        What this row is to that one.
    """

    number: int
    n_rows: int
    before: list[tuple[str, str]]
    after: list[float]
    target: str
    said: str


def record_of(project: Project, prepared: Prepared, number: int) -> Record:
    """Lay a row of the table beside what would leave.

    Parameters
    ----------
    project : Project
    prepared : Prepared
    number : int
        Of the row, from 1 on; beyond the last one, the last.
    """
    X, order, share = prepared.own.X, prepared.order, prepared.share
    at = min(max(number, 1), len(X)) - 1
    places = np.flatnonzero(order == at) if order is not None else np.array([], dtype=np.intp)
    if order is None:
        place, said = 0, "A row that would leave. It is none of yours: a row of the anchor, in other columns."
    elif len(places) == 0:
        place, said = -1, "This row is kept back: nothing of it would leave."
    elif prepared.summary.stands_for == "one row":
        place, said = int(places[0]), "What would leave of this row: it stands for it alone."
    else:
        place, said = int(places[0]), "What would leave: a row that stands for this one and others of its group."
    return Record(
        number=at + 1,
        n_rows=len(X),
        before=list(_entries(project, X[at])),
        after=[] if place < 0 else [float(value) for value in share.representation[place][:_MOST]],
        target="" if place < 0 else _told(share.target[place]),
        said=said,
    )


def _entries(project: Project, row: Any) -> Iterator[tuple[str, str]]:
    start = 0
    for column in project.columns:
        yield column.name, _entry(column, row[start : start + column.n_features])
        start += column.n_features


def _entry(column: Column, block: Any) -> str:
    if column.flag_missing and block[-1]:
        return "missing"
    if column.kind == "number":
        return f"{block[0]:.10g} {column.unit}".rstrip()
    return column.levels[int(np.argmax(block[: len(column.levels)]))]


def _told(target: Any) -> str:
    if getattr(target, "dtype", None) is not None and target.dtype.names:
        return ", ".join(f"{name} {target[name]}" for name in target.dtype.names)
    return f"{target:.6g}" if isinstance(target, float | np.floating) else str(target)
