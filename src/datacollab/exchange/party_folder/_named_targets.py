"""Times to events, effects and no targets, for whoever approves that they leave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..project import Project, Task

__all__ = ["NamedTargets", "named_counts", "named_targets"]


@dataclass(frozen=True, kw_only=True)
class NamedTargets:
    """What leaves of targets that are no single class or number.

    Attributes
    ----------
    kind : {"survival", "effect", "none"}
    words : str
        What there is to learn, with the names of the columns.
    unit : str
        Of times, or of the outcome.
    rounding : float or None
        To multiples of what times are rounded up; 0 where they leave exactly, None where there are none.
    counts : dict of str to int
        Rows that leave, by what their targets say: events seen and not seen, rows treated and untreated.
    n_alone_before, n_alone_after : int
        Rows of the table, and rows that leave, whose targets no other row has: a time of their own.
    """

    kind: str
    words: str
    unit: str = ""
    rounding: float | None = None
    counts: dict[str, int]
    n_alone_before: int
    n_alone_after: int

    @property
    def sentence(self) -> str:
        """The same for people."""
        return "; ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        yield self.words
        if self.counts:
            yield ", ".join(f"{name}: {count}" for name, count in self.counts.items())
        if self.rounding:
            unit = self.unit and f" {self.unit}"
            yield f"times rounded up to multiples of {self.rounding:.10g}{unit}, all else exactly as it is"
        elif self.rounding is not None:
            yield "TIMES LEAVE EXACTLY AS THEY ARE, and can tell whose a row is: ask the owner for a rounding"
        elif self.kind != "none":
            yield "exactly as they are"
        if self.kind != "none":
            found = ", and whoever knows one finds its row" if self.n_alone_after else ""
            yield (
                f"targets that no other row has: {self.n_alone_before} in the table, {self.n_alone_after} in what "
                f"leaves{found}"
            )


def named_targets(project: Project, own: NDArray[Any], shared: NDArray[Any]) -> NamedTargets | None:
    """Sum up the targets that would leave; None where they are single classes or numbers.

    Parameters
    ----------
    project : Project
    own : ndarray of shape (n_rows,)
        Of the party's table.
    shared : ndarray of shape (n_shared,)
        As they would leave.
    """
    task = project.task
    if task.is_single:
        return None
    return NamedTargets(
        kind=task.kind,
        words=task.words,
        unit=task.unit,
        rounding=task.rounding,
        counts=named_counts(task, shared),
        n_alone_before=_n_alone(own),
        n_alone_after=_n_alone(shared),
    )


def named_counts(task: Task, target: NDArray[Any]) -> dict[str, int]:
    """Rows by what their targets say of event and treatment; empty where there are neither."""
    names = {"treatment": ("treated", "untreated"), "event": ("event seen", "event not seen")}
    counts: dict[str, int] = {}
    for field in task.fields:
        if field in names:
            yes, no = names[field]
            n_yes = int(np.count_nonzero(target[field]))
            counts |= {yes: n_yes, no: len(target) - n_yes}
    return counts


def _n_alone(target: NDArray[Any]) -> int:
    """Rows whose targets no other row has."""
    if not target.dtype.names:
        return 0
    return int(np.count_nonzero(np.unique(target, return_counts=True)[1] == 1))
