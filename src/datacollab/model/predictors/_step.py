"""One step of a predictor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from ..._typing import FloatArray
from ._parts import Parts

__all__ = ["Step"]


class Step(ABC):
    """A function of rows, one by one: a table of shape (n_rows, n_in) to one of shape (n_rows, n_out).

    Steps are made from arrays that are right (by `read`, which checks them, or from a fitted estimator), and do not
    look at them again.
    """

    kind: ClassVar[str]
    """Its name in files."""
    n_in: int
    n_out: int

    @property
    def work(self) -> float:
        """What one row costs, in nanoseconds, roughly."""
        return 10.0 * (self.n_in + self.n_out)

    @property
    def calls(self) -> int:
        """How many calls of compiled functions a batch of rows costs."""
        return 1

    @abstractmethod
    def __call__(self, rows: FloatArray) -> FloatArray:
        """The step's values, shape (n_rows, n_out)."""

    def facts(self) -> dict[str, Any]:
        """What JSON holds of it, besides its kind."""
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Its arrays by name."""
        return {}

    @classmethod
    @abstractmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        """The step that facts and arrays describe.

        Raises
        ------
        ExchangeError
            MODEL_MALFORMED or TOO_LARGE.
        """
