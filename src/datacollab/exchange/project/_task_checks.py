"""Whether the entries on a task fit together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

from ._column import check_range
from ._refusals import check_no_formula, check_text, invalid, listed
from ._task_fields import TaskFields

__all__ = ["TASKS", "check_task", "task_entries"]

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
