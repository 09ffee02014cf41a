"""The columns that a table must have, the matrix that they become, and the columns that hold targets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._column import Column


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """A column that holds targets, or a part of them: labels, or numbers in a range."""

    part: str
    """The part that it holds: "target" for a class or number, or a name of `datacollab.targets`."""
    name: str
    labels: tuple[str | int, ...] = ()
    """All entries that it may have; none if it holds numbers."""
    values: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    """The target for each label, shape (n_labels,)."""
    minimum: float = 0.0
    maximum: float = math.inf
    """The possible range of numbers, in their unit."""
    unit: str = ""
    is_clipped: bool = False
    """Whether numbers outside the range become the nearer bound; otherwise they are refused."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of a table, in the order of the matrix that it becomes; a subclass may name targets."""

    columns: tuple[Column, ...]

    @property
    def targets(self) -> tuple[Target, ...]:
        """The columns that hold targets; none here."""
        return ()

    @property
    def labels(self) -> dict[str, tuple[str | int, ...]]:
        """The entries that each column may have, targets among them; none if it holds numbers."""
        labels: dict[str, tuple[str | int, ...]] = {column.name: column.categories for column in self.columns}
        return labels | {target.name: target.labels for target in self.targets}

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix, in order."""
        return tuple(name for column in self.columns for name in column.feature_names)

    @property
    def n_features(self) -> int:
        """Number of columns of the matrix."""
        return sum(column.n_features for column in self.columns)

    @property
    def n_free(self) -> int:
        """Numbers that determine a row; as many components of a linear map hide nothing."""
        return sum(column.n_free for column in self.columns)

    def blocks(self, X: NDArray[Any]) -> Iterator[tuple[Column, NDArray[Any]]]:
        """Yield each column, and its part of a matrix of shape (n_rows, n_features), or of one row."""
        start = 0
        for column in self.columns:
            yield column, X[..., start : start + column.n_features]
            start += column.n_features
