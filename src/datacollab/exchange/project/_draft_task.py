"""The task of a draft, guessed from public rows; people have to check it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...targets import usual_time_step
from ._labels import UNKNOWN, label_codes, label_text
from ._numbers import NotNumericError, as_numbers
from ._ranges import widened_range
from ._refusals import invalid, listed
from ._task import Task
from ._task_checks import TASKS

__all__ = ["MOST_CATEGORIES", "TaskColumns", "drafted_task"]

_WHOLE = re.compile(r"0|-?[1-9]\d*", re.ASCII)
MOST_CATEGORIES = 50
MOST_CLASSES = 20
_NO_AND_YES = (("0", "1"), ("no", "yes"), ("No", "Yes"), ("false", "true"), ("False", "True"), ("FALSE", "TRUE"))
"""Pairs of which nobody doubts which means what."""


@dataclass(frozen=True)
class TaskColumns:
    """Columns that were named for the parts of a target, None where they were not, and what was told of entries."""

    target: str | None
    event: str | None
    time: str | None
    treatment: str | None
    outcome: str | None
    seen: tuple[str, ...] = ()
    treated: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    target_range: tuple[float, float] | None = None

    @property
    def names(self) -> list[str]:
        """Those that were named."""
        given = (self.target, self.event, self.time, self.treatment, self.outcome)
        return [name for name in given if name is not None]

    @property
    def told(self) -> str | None:
        """The kind of task whose target was told whole, so that it need not be in the public table."""
        if self.classes:
            return "classification"
        return None if self.target_range is None else "regression"

    @property
    def kind(self) -> str | None:
        """The kind of task that these are columns of; None for a class or number."""
        if self.treatment is not None or self.outcome is not None:
            return "effect"
        return "survival" if self.event is not None or self.time is not None else None


def drafted_task(parts: TaskColumns, entries: Mapping[str, Any], kind: str | None) -> Task:
    """Guess a task.

    Parameters
    ----------
    parts : TaskColumns
    entries : mapping of str to Series
        The columns that were named; the target may be missing where it was told.
    kind : str or None
        What people said; None leaves it to the columns that were named.

    Raises
    ------
    ExchangeError
        SPEC_INVALID, when columns are missing or too many, or nothing can be guessed of their entries.
    """
    if kind not in (None, *TASKS):
        raise invalid("[task], kind", f"{kind!r}; {' or '.join(TASKS)} is wanted.")
    kind = kind or parts.kind
    _check_named_columns(parts, kind)
    if kind == "none":
        return Task(kind="none")
    if kind in ("survival", "effect"):
        return Task(kind=kind, **_arms(parts, entries), **_outcome(parts, entries))
    assert parts.target is not None
    if parts.told is not None:
        return _told_task(parts, entries.get(parts.target), kind)
    return _single_task(parts.target, entries[parts.target], kind)


def _check_named_columns(parts: TaskColumns, kind: str | None) -> None:
    """Refuse columns that are missing, or belong to another kind."""
    given = {name for name in ("target", "event", "time", "treatment", "outcome") if getattr(parts, name) is not None}
    wanted: tuple[set[str], ...] = {
        "survival": ({"event", "time"},),
        "effect": ({"treatment", "outcome"}, {"treatment", "event", "time"}),
        "none": (set(),),
    }.get(kind or "", ({"target"},))
    if given not in wanted:
        ways = " or ".join(", ".join(f"--{name}" for name in sorted(each)) or "no column" for each in wanted)
        found = ", ".join(f"--{name}" for name in sorted(given)) or "none"
        raise invalid("[task]", f"for {kind or 'a class or number'} {ways} is wanted; got {found}.")
    for name, needed in (("seen", "event"), ("treated", "treatment")):
        if getattr(parts, name) and needed not in given:
            raise invalid("[task]", f"--{name} says what entries of --{needed} mean, and there is none.")
    if parts.told is not None and "target" not in given:
        raise invalid("[task]", "--class and --target-range tell what a --target may be, and there is none.")


def _arms(parts: TaskColumns, entries: Mapping[str, Any]) -> dict[str, Any]:
    if parts.treatment is None:
        return {}
    untreated, treated = _no_and_yes(parts.treatment, entries[parts.treatment], parts.treated, "--treated")
    return {"treatment": parts.treatment, "treated": treated, "untreated": untreated}


def _outcome(parts: TaskColumns, entries: Mapping[str, Any]) -> dict[str, Any]:
    if parts.outcome is not None:
        minimum, maximum = widened_range(_numbers(parts.outcome, entries[parts.outcome]))
        return {"outcome": parts.outcome, "minimum": minimum, "maximum": maximum}
    assert parts.event is not None
    assert parts.time is not None
    not_seen, seen = _no_and_yes(parts.event, entries[parts.event], parts.seen, "--seen")
    times = _numbers(parts.time, entries[parts.time])
    if (times <= 0).any():
        raise invalid(f"The time {parts.time!r}", "times must be above 0. Correct the public rows, or leave some out.")
    longest = float(times.max())
    return {
        "event": parts.event,
        "seen": seen,
        "not_seen": not_seen,
        "time": parts.time,
        "maximum": widened_range(np.array([0.0, longest]))[1],
        "rounding": usual_time_step(longest),
    }


def _numbers(name: str, entries: Any) -> FloatArray:
    try:
        numbers = as_numbers(entries.dropna())
    except NotNumericError as error:
        raise invalid(f"The target {name!r}", f"it {error}, and numbers are wanted.") from None
    if not numbers.size or not np.isfinite(numbers).all():
        raise invalid(f"The target {name!r}", "it holds no numbers, or infinite ones. Correct the public rows.")
    return numbers


def _no_and_yes(name: str, entries: Any, yes: tuple[str, ...], option: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Entries that mean no, and those that mean yes; whole numbers as such."""
    found = {text for text in map(label_text, entries.dropna()) if text.strip()}
    if len(found) > MOST_CLASSES:
        raise invalid(f"The column {name!r}", f"it has entries of {len(found)} kinds. Is it one of yes and no?")
    if not yes:
        pair = next((each for each in _NO_AND_YES if found and found <= set(each)), None)
        if pair is None:
            raise invalid(
                f"The column {name!r}",
                f"what entries mean is not guessed: {listed(sorted(found))}. Name with {option} those that mean yes.",
            )
        no, yes = {pair[0]}, (pair[1],)
    else:
        if strange := sorted(set(yes) - found):
            raise invalid(f"The column {name!r}", f"{option}: no public row has {listed(strange)}. Correct it.")
        no = found - set(yes)
    if not no:
        raise invalid(f"The column {name!r}", "all its entries would mean yes. Give public rows with both.")
    as_type = _type_of([*no, *yes])
    return tuple(sorted(map(as_type, no))), tuple(sorted(map(as_type, yes)))


def _type_of(texts: Iterable[str]) -> Callable[[str], Any]:
    """Whole numbers where all are."""
    return int if all(map(_WHOLE.fullmatch, texts)) else str


def _told_task(parts: TaskColumns, entries: Any, kind: str | None) -> Task:
    """A task whose classes or range people told; public rows may have no targets, and none that contradict."""
    assert parts.target is not None
    if parts.classes and parts.target_range is not None:
        raise invalid("[task]", "--class is for classes and --target-range for numbers; give one of the two.")
    if kind not in (None, parts.told):
        option = "--class" if parts.classes else "--target-range"
        raise invalid("[task]", f"{option} makes it a {parts.told}; remove it, or --task {kind}.")
    present = () if entries is None else entries.dropna()
    if parts.target_range is not None:
        minimum, maximum = parts.target_range
        if len(present):
            numbers = _numbers(parts.target, present)
            if n_outside := int(((numbers < minimum) | (numbers > maximum)).sum()):
                raise invalid(
                    f"The target {parts.target!r}",
                    f"{n_outside} of {numbers.size} public rows are out of --target-range. Widen it, or correct them.",
                )
        return Task(kind="regression", target=parts.target, minimum=minimum, maximum=maximum)
    as_type = _type_of(parts.classes)
    task = Task(kind="classification", target=parts.target, classes=tuple(sorted(map(as_type, parts.classes))))
    if len(present) and (n_unknown := int((label_codes(present, task.classes) == UNKNOWN).sum())):
        raise invalid(
            f"The target {parts.target!r}",
            f"{n_unknown} of {len(present)} public rows have a class that no --class names. Name each, as the tables "
            "write it.",
        )
    return task


def _single_task(target: str, entries: Any, kind: str | None) -> Task:
    present = entries.dropna()
    try:
        numbers: FloatArray | None = as_numbers(present)
    except NotNumericError:
        numbers = None
    if kind is None:
        few = numbers is not None and bool((numbers % 1 == 0).all()) and np.unique(numbers).size <= MOST_CLASSES
        kind = "classification" if numbers is None or few else "regression"
    if kind == "regression":
        if numbers is None or not numbers.size:
            raise invalid(f"The target {target!r}", "a regression wants numbers, and it holds something else.")
        minimum, maximum = widened_range(numbers)
        return Task(kind=kind, target=target, minimum=minimum, maximum=maximum)
    classes: list[Any]
    if numbers is not None and (numbers % 1 == 0).all():
        classes = [int(each) for each in np.unique(numbers)]
    else:
        classes = sorted({label_text(entry) for entry in present})
    if len(classes) > max(MOST_CATEGORIES, MOST_CLASSES):
        raise invalid(
            f"The target {target!r}",
            f"it has {len(classes)} classes; at most {MOST_CATEGORIES} are drafted. Is it one?",
        )
    return Task(kind=kind, target=target, classes=tuple(classes))
