"""Ridge regression in the common map as the one statistic of a message, and the model that follows from its total."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from .._typing import FloatArray
from ._recommended import TABLE
from ._ridge_sums import RidgeFromSums, RidgeSums, TotalFigures
from ._statistic import MAPPED, ResultTable, Statistic, StatisticResult, StudyTable, entries_of
from ._sums_model import SumsModel

TARGET = "target"
"""The name under which a party's table holds the targets of a model."""
RECIPE = 1
"""Version of all that turns rows into a total, and a total into a model."""


@dataclass(frozen=True, eq=False)
class RidgeResult(StatisticResult):
    """A total of ridge regression, and the model that follows from it when somebody asks for it.

    Attributes
    ----------
    statistic : RidgeRegression
    total : ndarray of shape (n_numbers,)
    noise : float
        Standard deviation of all noise on the diagonal of the total.
    """

    statistic: RidgeRegression
    total: FloatArray
    noise: float

    @cached_property
    def figures(self) -> TotalFigures:
        """Return the numbers of rows that the total tells, beside the model."""
        return self.statistic.sums.figures(self.total)

    @property
    def size(self) -> tuple[float, float]:
        """Return the number of all rows, and the standard deviation of its noise."""
        return self.figures.n_rows, self.statistic.sums.noise_of_n_rows(self.noise)

    @property
    def fault(self) -> str | None:
        """Return why no rows can give this total, as the end of a sentence; None if rows can."""
        return self.statistic.sums.impossible(self.total, noise=self.noise)

    @property
    def class_counts(self) -> dict[Any, float]:
        """Return the rows of each class; empty for numbers."""
        return dict(zip(self.statistic.sums.classes or (), self.figures.class_counts, strict=True))

    @cached_property
    def fit(self) -> RidgeFromSums:
        """Return the fit; NumericalError as `RidgeSums.solve` raises it."""
        return self.statistic.sums.solve(self.total, noise=self.noise, least_penalty=self.statistic.least_penalty)

    def model(self, context: bytes) -> SumsModel:
        """Return the model that goes back to the parties of the sum of this `context`."""
        sums = self.statistic.sums
        classes = None if sums.classes is None else tuple(sums.classes)
        return SumsModel(self.fit, classes, sums.limits, context, sums.scale)

    def table(self) -> ResultTable:
        """Return the number of rows, and those of each class."""
        counts = {"all": self.figures.n_rows} | self.class_counts
        return ResultTable(("class", "rows"), [(str(name), f"{n:.0f}") for name, n in counts.items()], "")


@dataclass(frozen=True)
class RidgeRegression(Statistic):
    """Ridge regression in the common map, which makes the model that goes back.

    A party's table holds its rows in the common map under `MAPPED`, and their targets under `TARGET`.

    Parameters
    ----------
    sums : RidgeSums
        The matrix of sums that a party adds up.
    least_penalty : float
        See `RidgeSums.solve`.
    """

    sums: RidgeSums
    least_penalty: float = TABLE.least_penalty

    title: ClassVar[str] = "ridge regression"
    tells: ClassVar[str] = ""
    # Its number of rows has a fifth of the noise of a count: beside others it would tell all of them.
    is_alone: ClassVar[bool] = True

    @property
    def unit(self) -> float:
        """Return s, the noise on the diagonal."""
        return self.sums.noise

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation of the noise in each number of the total, shape (n_numbers,)."""
        return self.sums.noise_of_each

    def spread_at(self, noise: float) -> FloatArray:
        """Return the same if epsilon raises the noise from `unit` to `noise`."""
        return replace(self.sums, noise=noise).noise_of_each

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves the matrix of sums at most, in the Frobenius norm."""
        return self.sums.sensitivity

    def agreement(self) -> dict[str, Any]:
        """Return its entries in the agreement on a message, in the form that all versions wrote."""
        sums = self.sums
        return {
            "recipe": RECIPE,
            "statistic": self.title,
            "n_components": sums.n_components,
            "classes": sums.classes and list(sums.classes),
            "limits": sums.limits and list(sums.limits),
            "scale": sums.scale,
            "least_penalty": self.least_penalty,
        }

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return the sums over some rows, shape (n_numbers,), as `RidgeSums.part` does."""
        return self.sums.part(entries_of(table, MAPPED), entries_of(table, TARGET))

    def result(self, total: FloatArray, *, n_parties: int, noise: float = TABLE.noise) -> RidgeResult:
        """Return the number of rows, and the model once it is asked for."""
        return RidgeResult(self, total, noise)
