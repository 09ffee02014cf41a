"""The same matrix of numbers from every party's table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...errors import ExchangeError
from ._adjusted import Adjustments, ColumnCounts
from ._column_block import Place, fill_block
from ._column_names import missing_columns
from ._project import Project
from ._refusals import listed
from ._target_encoding import assembled_target, target_column

__all__ = ["EncodedTable", "encode_table"]


@dataclass(frozen=True, kw_only=True, eq=False)
class EncodedTable:
    """A table as the project's matrix.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        In float64, in the order of `Project.feature_names`.
    target : ndarray of shape (n_rows,) or None
        Classes as declared, text or int64; float64 for a regression; with the fields of `datacollab.targets` for
        times to events, effects and where there is nothing to predict; None where it was not wanted.
    n_rows : int
    adjusted : Adjustments
        How many entries became something else, in this table and the batches before it.
    """

    X: FloatArray = field(repr=False)
    target: NDArray[Any] | None = field(repr=False)
    n_rows: int
    adjusted: Adjustments = field(default_factory=Adjustments, repr=False)


def encode_table(
    project: Project,
    table: Any,
    *,
    where: str,
    with_target: bool = True,
    first_row: int | None = None,
    before: Adjustments | None = None,
) -> EncodedTable:
    """Make the project's matrix from a table; nothing is learnt from its rows.

    Numbers stay as they are, a category becomes columns of zeros and ones in the declared order, and entries that are
    missing, outside their range or unknown become what the project says: what a row becomes depends on no other row.
    Columns that the project does not name are left out.

    Where more than one entry of a column, and more than one in twenty, is outside of what was agreed, or one in so few
    that nobody can tell an exception from another unit, all is refused: that is no exception.

    Parameters
    ----------
    project : Project
    table : DataFrame
    where : str
        What an error calls the table: its file.
    with_target : bool, default=True
        Whether the target is wanted; for predictions it is not.
    first_row : int, optional
        Where the table is a batch of a file: how many rows of it came before, so that an error counts them too and
        names the row of the file.  Rows count from 1, the header not included.
    before : Adjustments, optional
        Where the table is a batch: what was adjusted in those before it.

    Raises
    ------
    ExchangeError
        When a column is missing or holds what the project does not allow.  The message counts rows and names columns,
        and quotes no entry.

    Examples
    --------
    >>> import pandas as pd
    >>> from datacollab.bundle import KeyPair
    >>> from datacollab.exchange.project import draft_project, encode_table
    >>> public = pd.DataFrame({"age": [20, 60, 40], "ward": ["north", "south", "north"], "ill": ["no", "yes", "no"]})
    >>> a, b, analyst = (KeyPair.generate().public for _ in range(3))
    >>> project = draft_project(
    ...     public, name="example", purpose="Shows.", target="ill", owner=a, analyst=analyst, parties={"a": a, "b": b}
    ... )
    >>> encode_table(project, public, where="public.csv").X
    array([[20.,  1.,  0.,  0.],
           [60.,  0.,  1.,  0.],
           [40.,  1.,  0.,  0.]])
    >>> project.feature_names
    ('age', 'ward=north', 'ward=south', 'ward=other')
    """
    position_of = _positions(project, table, where, with_target)
    X = np.empty((len(table), project.n_features))
    before = before or Adjustments()
    counts: dict[str, ColumnCounts] = {}
    outside_rows = np.zeros(len(table), dtype=bool)
    start, refused = 0, []
    for column in project.columns:
        block = X[:, start : start + column.n_features]
        start += column.n_features
        try:
            entries = table.iloc[:, position_of[column.name]]
            file = Place(f"{where}: column {column.name!r}", first_row, before.of(column.name))
            outside, counts[column.name] = fill_block(block, column, entries, file)
            outside_rows |= outside
        except ExchangeError as error:
            refused.append((column.name, error))
    parts: dict[str, NDArray[Any]] = {}
    for name in project.task.columns if with_target else ():
        try:
            entries = table.iloc[:, position_of[name]]
            parts[name] = target_column(project.task, name, entries, where, first_row=first_row)
        except ExchangeError as error:
            refused.append((name, error))
    if refused:
        raise _all_refused(refused)
    target = assembled_target(project.task, parts, len(table)) if with_target else None
    here = Adjustments(n_rows=len(table), n_rows_outside=int(np.count_nonzero(outside_rows)), columns=counts)
    return EncodedTable(X=X, target=target, n_rows=len(table), adjusted=before + here)


def _positions(project: Project, table: Any, where: str, with_target: bool) -> dict[str, int]:
    wanted = [column.name for column in project.columns]
    wanted += project.task.columns if with_target else ()
    found = [str(name) for name in table.columns]
    if lacking := [name for name in wanted if name not in set(found)]:
        raise ExchangeError("SCHEMA_MISSING_COLUMN", missing_columns(where, lacking, found, wanted))
    counts = Counter(found)
    if repeated := [name for name in wanted if counts[name] > 1]:
        raise ExchangeError(
            "TABLE_UNREADABLE", f"{where} has more than one column named {listed(repeated)}. Rename or remove them."
        )
    return {name: position for position, name in enumerate(found)}


def _all_refused(refused: list[tuple[str, ExchangeError]]) -> ExchangeError:
    """The first refusal, which also names the other columns, so that all can be mended at once."""
    _, first = refused[0]
    others = [name for name, _ in refused[1:]]
    more = f" Look at these columns too: {listed(others)}." if others else ""
    return ExchangeError(first.code, f"{first}{more}")
