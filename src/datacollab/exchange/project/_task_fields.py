"""The entries on what the parties want to learn, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...targets import TargetKind

__all__ = ["TaskFields"]

_KINDS = {
    "survival": TargetKind.SURVIVAL,
    "none": TargetKind.NONE,
    "classification": TargetKind.SINGLE,
    "regression": TargetKind.SINGLE,
}


@dataclass(frozen=True, kw_only=True)
class TaskFields:
    """The entries; `Task`, where they are described, is this with its checks."""

    kind: str
    target: str = ""
    classes: tuple[str | int, ...] = ()
    treatment: str = ""
    treated: tuple[str | int, ...] = ()
    untreated: tuple[str | int, ...] = ()
    outcome: str = ""
    event: str = ""
    seen: tuple[str | int, ...] = ()
    not_seen: tuple[str | int, ...] = ()
    time: str = ""
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    rounding: float | None = None

    @property
    def target_kind(self) -> TargetKind:
        """The kind of targets that rows have."""
        if self.kind == "effect":
            return TargetKind.SURVIVAL_EFFECT if self.time else TargetKind.EFFECT
        return _KINDS[self.kind]

    @property
    def is_single(self) -> bool:
        """Whether there is one class or number to predict."""
        return self.target_kind is TargetKind.SINGLE

    @property
    def fields(self) -> dict[str, str]:
        """The column that holds each part of the targets, by the name of the part."""
        names = ("target",) if self.is_single else self.target_kind.names or ()
        return {name: str(getattr(self, name)) for name in names}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold targets; none where there is nothing to predict."""
        return tuple(self.fields.values())

    @property
    def labels(self) -> dict[str, tuple[str | int, ...]]:
        """What may stand in each of these columns; nothing where it holds numbers."""
        known = {
            "target": self.classes,
            "event": (*self.not_seen, *self.seen),
            "treatment": (*self.untreated, *self.treated),
        }
        return {column: known.get(name, ()) for name, column in self.fields.items()}

    @property
    def class_array(self) -> NDArray[Any]:
        """All classes as an array, in the one type that every party's targets have: int64 or text."""
        return np.array(self.classes, dtype=np.int64 if isinstance(self.classes[0], int) else np.str_)

    @property
    def time_step(self) -> float | None:
        """What times are rounded up to multiples of; None where they are not, or there are none."""
        return self.rounding or None

    @property
    def latest(self) -> float | None:
        """The longest time that can leave: the maximum, rounded up; None where there are no times."""
        if not self.time or self.maximum is None:
            return None
        step = self.time_step
        return self.maximum if step is None else math.ceil(self.maximum / step * (1 - 1e-12)) * step

    @property
    def exact_times(self) -> str | None:
        """A warning, where times leave as they are."""
        if not self.time or self.rounding:
            return None
        return (
            "times are not rounded (rounding is 0): a row's own exact time can tell whose it is, whatever defends its "
            "features. Agree on a rounding."
        )

    @property
    def words(self) -> str:
        """In a few words, with the names of the columns."""
        event = f"{self.event} after {self.time}"
        return {
            "survival": f"survival: {event}",
            "effect": f"effect of {self.treatment} on {event if self.time else self.outcome}",
            "none": "none: nothing to predict",
        }.get(self.kind, f"{self.kind} of {self.target}")
