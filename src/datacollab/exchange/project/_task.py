"""What is predicted: kinds of tasks, their entries, and checks of these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...targets import TargetKind
from ._column import check_range
from ._refusals import check_no_formula, check_text, invalid, listed

__all__ = ["TASKS", "Task", "task_entries"]

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


_TIMES = ("event", "seen", "not_seen", "time", "unit", "maximum", "rounding")
_ARMS = ("treatment", "treated", "untreated")
_ENTRIES = {
    "classification": ("target", "classes"),
    "regression": ("target", "unit", "minimum", "maximum"),
    "survival": _TIMES,
    "effect": (*_ARMS, "outcome", "unit", "minimum", "maximum"),
    "none": (),
}
TASKS = tuple(_ENTRIES)


def task_entries(kind: str, *, has_time: bool) -> tuple[str, ...]:
    """Names of the entries that a kind of task has besides its kind, in the order of the file.

    Parameters
    ----------
    kind : str
        One of `TASKS`.
    has_time : bool
        Of an effect, whether it is one on times to an event.
    """
    return (*_ARMS, *_TIMES) if kind == "effect" and has_time else _ENTRIES[kind]


def check_task(task: TaskFields) -> None:
    """Refuse entries that contradict one another.

    Raises
    ------
    ExchangeError
        SPEC_INVALID.
    """
    if task.kind in ("survival", "effect", "none"):
        _check_named(task)
        return
    check_text("The target's name", task.target)
    where = f"The target {task.target!r}"
    check_text(f"{where}, unit", task.unit, most=40, empty=True)
    if task.kind == "classification":
        _check_classification(task, where)
    elif task.kind == "regression":
        check_range(where, task.minimum, task.maximum)
        if task.classes:
            raise invalid(where, "a regression has no classes. Remove them, or set kind to classification.")
    else:
        raise invalid("[task], kind", f"{task.kind!r}; {' or '.join(TASKS)} is wanted.")
    _check_no_others(task)


def _check_classification(task: TaskFields, where: str) -> None:
    if task.minimum is not None or task.maximum is not None or task.unit:
        raise invalid(where, "a classification has no unit, minimum or maximum. Remove them.")
    if len(task.classes) < 2:
        raise invalid(where, f"{len(task.classes)} classes; at least 2 are wanted.")
    if len({type(each) for each in task.classes}) > 1:
        raise invalid(where, "some classes are text and some are numbers. Write all as text.")
    for each in task.classes:
        if isinstance(each, bool) or not isinstance(each, str | int):
            raise invalid(where, "classes must be text or whole numbers.")
        if isinstance(each, str):
            check_text(f"{where}, a class", each)
            check_no_formula(f"{where}, a class", each)
        elif abs(each) > 2**53:
            raise invalid(where, "a class is too large a number. Write classes as text.")
    if len(set(task.classes)) < len(task.classes):
        raise invalid(where, "a class occurs twice. Name each once.")


def _check_named(task: TaskFields) -> None:
    _check_no_others(task)
    for name, column in task.fields.items():
        check_text(f"[task], {name}", column)
    if len(set(task.columns)) < len(task.columns):
        raise invalid("[task]", f"one column stands for two parts of the target: {listed(task.columns)}.")
    check_text("[task], unit", task.unit, most=40, empty=True)
    if task.event:
        _check_two_labels("event", "seen", task.seen, "not_seen", task.not_seen)
    if task.treatment:
        _check_two_labels("treatment", "treated", task.treated, "untreated", task.untreated)
    if task.outcome:
        check_range(f"The outcome {task.outcome!r}", task.minimum, task.maximum)
    if task.time:
        _check_time(task)


def _check_no_others(task: TaskFields) -> None:
    """Refuse entries that belong to other kinds."""
    if task.kind == "effect" and bool(task.outcome) == bool(task.event or task.time):
        raise invalid("[task]", "an effect is on one outcome: name outcome, or event and time together.")
    allowed = {"kind", *task_entries(task.kind, has_time=bool(task.event or task.time))}
    given = [
        each.name for each in fields(task) if each.name not in allowed and getattr(task, each.name) != each.default
    ]
    if given:
        raise invalid("[task]", f"kind {task.kind!r} has no {listed(given)}. Remove it, or take another kind.")


def _check_two_labels(
    column: str, yes_name: str, yes: Sequence[str | int], no_name: str, no: Sequence[str | int]
) -> None:
    for name, labels in ((yes_name, yes), (no_name, no)):
        where = f"[task], {name}"
        if not labels:
            raise invalid(where, f"no entry of the column of {column} means that. List one at least.")
        for each in labels:
            if isinstance(each, bool) or not isinstance(each, str | int):
                raise invalid(where, "entries must be text or whole numbers.")
            if isinstance(each, str):
                check_text(where, each)
            elif abs(each) > 2**53:
                raise invalid(where, "an entry is too large a number. Write entries as text.")
    both = [*yes, *no]
    if len({type(each) for each in both}) > 1:
        raise invalid(f"[task], {yes_name}", "some entries are text and some are numbers. Write all as text.")
    if len(set(both)) < len(both):
        raise invalid(f"[task], {yes_name} and {no_name}", "an entry occurs twice. Name each once.")


def _check_time(task: TaskFields) -> None:
    where = f"The time {task.time!r}"
    if task.maximum is None or not math.isfinite(task.maximum) or task.maximum <= 0:
        raise invalid(where, "maximum must be a number above 0: the longest time that is possible, in its unit.")
    if task.rounding is None or not 0 <= task.rounding <= task.maximum:
        raise invalid(
            where,
            f"rounding must be a number from 0 to the maximum, {task.maximum:.10g}: times are rounded up to its "
            "multiples before they leave, and 0 lets them leave exactly.",
        )


@dataclass(frozen=True, kw_only=True)
class Task(TaskFields):
    """The columns that hold targets, and what may stand in them.

    Attributes
    ----------
    kind : {"classification", "regression", "survival", "effect", "none"}
    target : str
        The column that holds the targets of a classification or regression.
    classes : tuple of str, or tuple of int
        All classes of a classification.  A party need not have rows of each.
    event, time : str
        Of a survival, or of an effect on one: the columns that say whether the event was seen, and when it or the end
        of observation was.
    seen, not_seen : tuple of str, or tuple of int
        Entries of the column of events that mean that it was seen, or was not.
    treatment : str
        Of an effect: the column that says who was treated.
    treated, untreated : tuple of str, or tuple of int
        Its entries.
    outcome : str
        Of an effect on a number: its column.
    unit : str
        Of a regression's target, of times or of the outcome.
    minimum, maximum : float or None
        What is possible of the same, in its unit; of times the longest alone.
    rounding : float or None
        To multiples of what times are rounded up before they leave; 0 lets them leave exactly.

    Raises
    ------
    ExchangeError
        When the entries contradict one another.
    """

    def __post_init__(self) -> None:
        check_task(self)
