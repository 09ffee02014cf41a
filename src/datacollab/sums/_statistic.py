"""A statistic: numbers that each party adds up over its rows, and the result that follows from their total."""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, NamedTuple

from numpy.typing import ArrayLike, NDArray

from .._frames import plain_column, plain_table
from .._typing import FloatArray
from ..errors import AgreementError, ShareError
from ._masked_sum import not_of_rows
from ._ridge_sums import RidgeSums
from ._sums_model import SumsModel

MAPPED = "rows in the common map"
"""The name under which a party's table holds them."""
COUNT_NOISE = 2.0
"""Standard deviation of the noise with which a count can be read from all counts of a message, in rows."""
RIDGE_MOVED = RidgeSums(1, limits=(0.0, 1.0)).sensitivity
"""How far replacing one row moves the sums of ridge regression at most, in whose unit the ledger keeps noise."""
StudyTable = Mapping[str, ArrayLike]
"""A party's columns by name, all equally long, or a frame; NaN, None or a mask is a missing entry."""


def new_secret() -> bytes:
    """Draw the secret from the operating system that deals rows to groups in one message."""
    return secrets.token_bytes(32)


def columns_of(table: Any) -> StudyTable:
    """Return the columns of a frame of any library by their names; a mapping as it is."""
    if isinstance(table, Mapping):
        return table
    frame = plain_table(table, "The table")
    return {name: frame[name] for name in getattr(frame, "columns", ())}


def entries_of(table: StudyTable, name: str) -> NDArray[Any]:
    """Return a column of a table; missing entries are NaN."""
    try:
        return plain_column(table[name])
    except KeyError:
        raise AgreementError(f"The table lacks column {name!r}. Give all columns that were agreed on.") from None


class ResultTable(NamedTuple):
    """A result as people read it: the heads of its columns, its rows of texts, and a note.

    `bars` are rows in equal parts of a range, for a small histogram in a cell, by place of its row and column; `noise`
    is the standard deviation of the noise in each of them.
    """

    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str
    bars: Mapping[tuple[int, int], FloatArray] = {}
    noise: float = 0.0


class StatisticResult(ABC):
    """The result that follows from the total of one statistic."""

    @property
    def size(self) -> tuple[float, float] | None:
        """Return the number of all rows, and the standard deviation of its noise; None if the total does not say."""
        return None

    @property
    def complete(self) -> tuple[float, float] | None:
        """Return the number of rows that were added up, those with gaps left out, and its noise; as in `size`."""
        return self.size

    @property
    def fault(self) -> str | None:
        """Return why no rows can give this total, as the end of a sentence; None if rows can."""
        return None

    @property
    def rare(self) -> tuple[tuple[str, Any], ...]:
        """Return columns and levels that may have fewer than ten rows."""
        return ()

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return sentences on points to look at before the result is used."""
        return ()

    @property
    def class_counts(self) -> Mapping[Any, float]:
        """Return the rows of each class that a model tells apart; empty if there is no model of classes."""
        return {}

    def model(self, context: bytes) -> SumsModel | None:
        """Return the model that goes back to the parties of the sum of this `context`; None if there is none.

        It raises NumericalError if no model can be had from the total.
        """
        return None

    @abstractmethod
    def table(self) -> ResultTable:
        """Return the result as people read it, one figure in a cell."""

    def article_table(self) -> ResultTable:
        """Return the result as an article prints it."""
        return self.table()


def refuse_total(wrong: str | None, title: str) -> None:
    """Raise a ShareError if something is wrong with the total of a statistic that no rows can explain."""
    if wrong:
        raise ShareError(not_of_rows(wrong, title))


@dataclass(frozen=True)
class Refused(StatisticResult):
    """Why one statistic of several cannot be had from their total."""

    reason: str

    def table(self) -> ResultTable:
        """Return the reason."""
        return ResultTable(("no result",), [(self.reason,)], "")


@dataclass(frozen=True)
class Statistic(ABC):
    """Numbers that each party adds up over its rows, and the result that follows from their total.

    Parameters
    ----------
    copies : float, default=1
        How many times a message has each count, at most; the noise in counts grows with its square root.  `StudyPlan`
        adds up the `own_copies` of its statistics.
    """

    copies: float = field(default=1.0, kw_only=True)

    title: ClassVar[str]
    tells: ClassVar[str]
    """A line for approvers on what the total says; empty if the summary has one of its own."""
    own_copies: ClassVar[float] = 1.0
    """How many times it has counts that others have, too; with twice the noise, a count is a quarter of one.

    It is more if counts of levels add up to all rows, which it also has; `tests/study/test_readable_counts.py` decides.
    """
    is_alone: ClassVar[bool] = False
    """Whether it needs a message of its own."""
    keeps_rows: ClassVar[bool] = False
    """Whether `add_up` returns complete rows, as the numbers follow from all rows of a party together."""

    @property
    def noise_of_rows(self) -> float:
        """Return the noise in the number of rows of a regression, twice that of counts, as few figures need it."""
        return 2 * COUNT_NOISE * math.sqrt(self.copies)

    @property
    def unit(self) -> float:
        """Return the unit of the noise in a message: with as much, it is that of `spread`."""
        return 1.0

    @property
    @abstractmethod
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""

    def spread_at(self, noise: float) -> FloatArray:
        """Return the same if epsilon raises the noise from `unit` to `noise`."""
        return noise * self.spread

    @property
    @abstractmethod
    def loss(self) -> float:
        """Return how far replacing one row moves the numbers at most, in the unit of the noise."""

    def facts(self) -> dict[str, Any]:
        """Return all that was agreed on, for JSON."""
        return asdict(self)

    def agreement(self) -> dict[str, Any]:
        """Return the entries of `facts` in the agreement on a message."""
        return {self.title: self.facts()}

    @abstractmethod
    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return sums over some rows of a party; `join` makes one of those of two batches.

        `secret`, 32 bytes that are drawn for one message, deals rows to groups if the statistic has groups.
        """

    def join(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return the sums over the rows of both batches."""
        return first + second

    def finish(self, sums: FloatArray, noise: float = 1.0) -> FloatArray:
        """Return the numbers that a party masks, shape (n_numbers,), from the sums over all its rows.

        `noise` is that of the message, as in `spread_at`, for numbers that have noise of the party's own.
        """
        return sums

    def fault(self, sums: FloatArray) -> str | None:
        """Return why the sums over all rows of a party must not go into a total; None if they may."""
        return None

    def part(self, table: StudyTable, secret: bytes | None = None) -> FloatArray:
        """Return the numbers that a party with these rows masks, shape (n_numbers,)."""
        return self.finish(self.add_up(columns_of(table), secret or new_secret()), self.unit)

    @abstractmethod
    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> StatisticResult:
        """Return the result of a total whose noise is `spread_at(noise)`; ShareError if no rows can give it."""
