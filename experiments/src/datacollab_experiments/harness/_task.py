"""Units of work, and their outcomes."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from datacollab._validation import FloatArray

# A cell's hash and a seed: where the results keep an outcome.
Key = tuple[str, int]


def cell_id(definition: Mapping[str, Any]) -> str:
    """Hash of a cell's definition: all that determines a result but the seed, as JSON can hold it."""
    # Sorted keys and no blanks: equal definitions have equal text.
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """The result of one cell and seed.

    Attributes
    ----------
    cell : str
        Hash of the cell.
    scores, seconds : mapping of str to float
        Empty where it failed.
    """

    cell: str
    scores: Mapping[str, float]
    seconds: Mapping[str, float]
    error: str | None = None
    images: FloatArray | None = None


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """One unit of work: cells that are computed together for one seed, and written together."""

    seed: int
    cells: Mapping[str, Any]

    @property
    @abstractmethod
    def label(self) -> str:
        """The task in words."""

    @property
    def cost(self) -> float:
        """A rough measure of the work, to estimate the time left."""
        return float(len(self.cells))

    @property
    def keys(self) -> tuple[Key, ...]:
        """Where the results keep its outcomes."""
        return tuple((cell, self.seed) for cell in self.cells)

    @abstractmethod
    def measure(self) -> Iterable[Outcome]:
        """Return one outcome for each cell; in a process with one BLAS thread."""

    def without(self, done: Container[Key]) -> Self:
        """Return the task without the cells that have a result."""
        return replace(self, cells={cell: what for cell, what in self.cells.items() if (cell, self.seed) not in done})
