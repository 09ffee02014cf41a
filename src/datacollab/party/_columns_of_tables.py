"""Tables column by column, so that rows can be composed of others whatever their columns hold."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, PartyName
from ..errors import AgreementError
from ._batches import TableForm
from ._shapley import Coalitions

__all__ = ["ColumnTable", "Players", "checked_table", "place_of"]


@dataclass(frozen=True, eq=False)
class Players:
    """Columns, or groups of columns, that come and go together.

    Attributes
    ----------
    names : tuple of str
    of_column : ndarray of shape (n_columns,)
        Number of the player that each column belongs to.
    """

    names: tuple[str, ...]
    of_column: NDArray[np.intp]

    @classmethod
    def of(cls, groups: Mapping[str, Sequence[str | int]] | None, columns: Sequence[str], party: PartyName) -> Self:
        """Each column alone, but for those of a group; a group stands where its first column does.

        Raises
        ------
        AgreementError
            When a group is empty, or has a column that is not there, or is in another one.
        """
        group_of: dict[int, str] = {}
        for name, members in (groups or {}).items():
            places = [place_of(member, columns, party) for member in members]
            if not places or len(set(places)) < len(places) or group_of.keys() & set(places):
                raise AgreementError(
                    f"Party {party!r}: the group {name!r} must have columns, each of them once and in no other group; "
                    f"it has {len(places)}."
                )
            group_of |= dict.fromkeys(places, name)
        numbers: dict[tuple[bool, str | int], int] = {}
        keys = [(True, group_of[place]) if place in group_of else (False, place) for place in range(len(columns))]
        of_column = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)
        names = tuple(str(key) if is_group else columns[int(key)] for is_group, key in numbers)
        return cls(names, of_column)

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False, repr=False)
class ColumnTable:
    """The columns of an array or frame.

    Attributes
    ----------
    columns : list of ndarray, arrays of pandas, or series of polars
    labels : list
        As the frame has them.
    frame : type or None
        What is made of the columns again; None for an array.
    """

    columns: list[Any]
    labels: list[Any]
    frame: Any

    @classmethod
    def of(cls, X: Any, form: TableForm, party: PartyName, *, below: Any = None) -> Self:
        """A table, in the form that the party was fitted on, and another one below it.

        Raises
        ------
        ObfuscationError
            When columns are missing.
        AgreementError
            When it is no table, or both are not alike.
        """
        tables = [checked_table(table, form, party) for table in (X, below) if table is not None]
        kinds = {type(table) if hasattr(table, "columns") else np.ndarray for table in tables}
        if len(kinds) > 1 or len({np.shape(table)[1] for table in tables}) > 1:
            found = ", ".join(f"{type(table).__name__} of shape {np.shape(table)}" for table in tables)
            raise AgreementError(
                f"Party {party!r}: rows and background must be tables of the same kind with the same columns; got "
                f"{found}."
            )
        if kinds == {np.ndarray}:
            array = np.concatenate([np.asarray(table) for table in tables])
            return cls(list(array.T), [f"column {place}" for place in range(array.shape[1])], None)
        stacked = _one_below_the_other(tables)
        columns = [_values(stacked[label]) for label in stacked.columns]
        return cls(columns, list(stacked.columns), type(stacked))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns; an array's are numbered from 0."""
        return tuple(str(label) for label in self.labels)

    def __len__(self) -> int:
        return len(self.columns[0])

    def composed(self, kept: Coalitions, rows: NDArray[np.intp], others: NDArray[np.intp], players: Players) -> Any:
        """Rows that have their own columns where these are kept, and another row's elsewhere.

        Parameters
        ----------
        kept : ndarray of shape (n, n_players)
        rows, others : ndarray of shape (n,)
            Positions in this table.
        players : Players

        Returns
        -------
        array or frame of n rows
            As a party's obfuscator takes it.
        """
        sources = [np.where(column, rows, others) for column in kept.T]
        return self._table(
            [_taken(column, sources[player]) for column, player in zip(self.columns, players.of_column, strict=True)]
        )

    def taken(self, rows: NDArray[np.intp]) -> Any:
        """Some of the rows, as an array or frame."""
        return self._table([_taken(column, rows) for column in self.columns])

    def table(self) -> Any:
        """All rows, as an array or frame."""
        return self._table(self.columns)

    def with_column(self, place: int, values: FloatArray) -> Any:
        """The table with other numbers in one column."""
        return self._table([*self.columns[:place], values, *self.columns[place + 1 :]])

    def column_of_numbers(self, place: int) -> FloatArray:
        """A column that is known to be numbers."""
        return np.asarray(self.columns[place], dtype=np.float64)

    def numbers(self, place: int) -> FloatArray | None:
        """A column as numbers, or None where it holds something else."""
        values = np.asarray(self.columns[place])
        return values.astype(np.float64) if values.dtype.kind in "biuf" else None

    def _table(self, columns: list[Any]) -> Any:
        if self.frame is None:
            return np.column_stack(columns)
        return self.frame(dict(zip(self.labels, columns, strict=True)))


def place_of(member: str | int, columns: Sequence[str], party: PartyName) -> int:
    """Position of a column that is given by its name or position.

    Raises
    ------
    AgreementError
        When there is none, or more than one of this name.
    """
    if isinstance(member, str) and list(columns).count(member) == 1:
        return list(columns).index(member)
    if not isinstance(member, str) and 0 <= member < len(columns):
        return int(member)
    raise AgreementError(
        f"Party {party!r}: {member!r} is none of the {len(columns)} columns. Give a name, or a position from 0 on."
    )


def checked_table(X: Any, form: TableForm, party: PartyName) -> Any:
    """A table in the form that the party was fitted on."""
    X = form.bring(X, party)
    if len(np.shape(X)) != 2 or 0 in np.shape(X):
        raise AgreementError(f"Party {party!r}: a table of rows and columns is wanted; got shape {np.shape(X)}.")
    return X


def _one_below_the_other(frames: list[Any]) -> Any:
    library = type(frames[0]).__module__.partition(".")[0]
    if len(frames) == 1:
        return frames[0]
    how = {"how": "vertical_relaxed"} if library == "polars" else {}
    return importlib.import_module(library).concat(frames, **how)


def _values(series: Any) -> Any:
    return series.array if hasattr(series, "array") else series


def _taken(column: Any, places: NDArray[np.intp]) -> Any:
    return column.gather(places) if hasattr(column, "gather") else column.take(places)
