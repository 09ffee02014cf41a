"""The task: its kinds, their entries, and checks of these."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._entries import (
    check_choice,
    check_labels,
    check_limits,
    check_no_formula,
    check_no_others,
    check_range,
    check_text,
    invalid,
    join_names,
    positive_class,
    refuse_if,
)
from ..table import Target
from ..targets import TargetKind

_KINDS = {
    "survival": TargetKind.SURVIVAL,
    "none": TargetKind.NONE,
    "classification": TargetKind.SINGLE,
    "regression": TargetKind.SINGLE,
}
_TIMES = ("event", "seen", "not_seen", "time", "unit", "maximum", "rounding")
_ARMS = ("treatment", "treated", "untreated")
_ENTRIES = {
    "classification": ("target", "classes", "positive", "merged"),
    "regression": ("target", "missing_words", "unit", "minimum", "maximum", "scale"),
    "survival": _TIMES,
    "effect": (*_ARMS, "outcome", "unit", "minimum", "maximum"),
    "none": (),
}
TASKS = tuple(_ENTRIES)


@dataclass(frozen=True, kw_only=True)
class Task:
    """The columns that hold targets, and their possible entries; an ExchangeError if these contradict one another."""

    OPTIONAL: ClassVar = ("missing_words", "unit", "positive", "merged", "scale")

    kind: str
    """One of "classification", "regression", "survival", "effect" and "none"."""
    target: str = ""
    """The column that holds the targets of a classification or regression."""
    missing_words: tuple[str, ...] = ()
    """Entries of a regression's target that mean none, such as letters of SAS: only public rows may have these."""
    classes: tuple[str | int, ...] = ()
    """All classes of a classification.  A party need not have rows of each."""
    positive: str | int | None = None
    """Of two classes, the one that is sought.  Figures and thresholds are of it; it may be left out if it means yes."""
    treatment: str = ""
    """The column that says who was treated, of an effect."""
    treated: tuple[str | int, ...] = ()
    untreated: tuple[str | int, ...] = ()
    """Entries of that column."""
    outcome: str = ""
    """The column of an effect on a number."""
    event: str = ""
    """The column that says whether an event was seen: of a survival, or of an effect on one."""
    seen: tuple[str | int, ...] = ()
    not_seen: tuple[str | int, ...] = ()
    """Entries of that column which mean that it was seen, or was not."""
    time: str = ""
    """The column that says when the event, or the end of observation, was."""
    unit: str = ""
    """Of a regression's target, of times or of the outcome."""
    minimum: float | None = None
    maximum: float | None = None
    """The possible range of the same, in its unit; times have a maximum alone."""
    rounding: float | None = None
    """Times are rounded up to its multiples before they leave; 0 lets them leave exactly."""
    scale: str | None = None
    """"log" if sums are of logarithms of a regression's target."""
    merged: dict[str, str | int] | None = field(default=None, hash=False)
    """Further entries of the column of a classification, and the class that each is taken for."""

    @staticmethod
    def entry_names(found: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of all entries that a task with these may have, in the order of the file."""
        if (kind := found.get("kind")) is None:
            return ("kind",)
        check_choice("[task], kind", kind, TASKS)
        if kind == "effect" and (found.get("event") or found.get("time")):
            return ("kind", *_ARMS, *_TIMES)
        return ("kind", *_ENTRIES[kind])

    def __post_init__(self) -> None:
        # Both or neither: nobody could say which one is estimated.
        if self.kind == "effect" and bool(self.outcome) == bool(self.event or self.time):
            raise invalid("[task]", "an effect is on one outcome: name outcome, or event and time together.")
        check_no_others("[task]", self, f"kind {self.kind!r}")
        for name, column in self.fields.items():
            check_text(f"[task], {name}", column)
        is_twice = len(set(self.columns)) < len(self.columns)
        refuse_if(is_twice, "[task]", f"one column stands for two parts of the target: {join_names(self.columns)}.")
        check_text("[task], unit", self.unit, most=40, empty=True)
        where = f"The target {(self.outcome or self.target)!r}"
        if self.time:
            where = f"The time {self.time!r}"
        if self.kind == "classification":
            self._check_classes(where)
        if self.event:
            _check_yes_and_no("event", {"seen": self.seen, "not_seen": self.not_seen})
        if self.treatment:
            _check_yes_and_no("treatment", {"treated": self.treated, "untreated": self.untreated})
        if self.time:
            self._check_times(where)
        elif self.kind == "regression" or self.outcome:
            check_range(where, self.minimum, self.maximum)
        check_labels(f"{where}, missing_words", self.missing_words, "word", least=0, types=(str,))
        if self.scale is not None:
            check_choice(f"{where}, scale", self.scale, ("log",))
            fault = "logarithms are of numbers of 0 or more, and minimum is below. Raise it, or remove the entry."
            refuse_if(self.minimum is None or self.minimum < 0, f"{where}, scale", fault)

    def _check_classes(self, where: str) -> None:
        """Refuse classes that are alike or no entries of a table, and find the sought one."""
        check_labels(where, self.classes, "class", least=2)
        for each in self.classes:
            # Predictions go into spreadsheets.
            check_no_formula(f"{where}, a class", each)
        if self.merged is not None:
            check_labels(f"{where}, merged", [*map(str, self.classes), *self.merged], "entry or class")
            strange = [each for each in self.merged.values() if each not in self.classes]
            fault = f"{join_names(strange)} is none of the classes {join_names(self.classes)}."
            refuse_if(strange, f"{where}, merged", fault)
        self._settle_positive()

    def _check_times(self, where: str) -> None:
        if self.maximum is None or not math.isfinite(self.maximum) or self.maximum <= 0:
            raise invalid(where, "maximum must be a number above 0: the longest possible time, in its unit.")
        why = " Times are rounded up to its multiples before they leave, and 0 lets them leave exactly."
        rounding = math.nan if self.rounding is None else self.rounding
        check_limits(f"{where}, rounding", rounding, 0, self.maximum, why=why)

    def _settle_positive(self) -> None:
        """Find the sought one of two classes, or refuse: the order or the spelling of names does not tell."""
        where = "[task], positive"
        are_two = len(self.classes) == 2
        refuse_if(self.positive is not None and not are_two, where, "it is for two classes. Remove it.")
        # Filled in here, so that two spellings of one agreement have one digest.
        if self.positive is None and are_two:
            object.__setattr__(self, "positive", positive_class(self.classes))
        fault = f"one of {join_names(self.classes)} is sought. Say which: positive in the file, --positive for a draft."
        refuse_if(are_two and self.positive not in self.classes, where, fault)

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
        if self.is_single:
            return {"target": self.target}
        return {name: str(getattr(self, name)) for name in self.target_kind.names or ()}

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold targets; none if there is nothing to predict."""
        return tuple(self.fields.values())

    @property
    def labels(self) -> dict[str, tuple[str | int, ...]]:
        """The possible entries of each of these columns; empty if it holds numbers."""
        known = {
            "target": (*self.classes, *(self.merged or ())),
            "event": (*self.not_seen, *self.seen),
            "treatment": (*self.untreated, *self.treated),
        }
        return {column: known.get(name, ()) for name, column in self.fields.items()}

    @property
    def class_array(self) -> NDArray[Any]:
        """All classes as an array, in the one type that every party's targets have: int64 or text."""
        # One type holds, as labels of several types are refused.
        if isinstance(self.classes[0], int):
            return np.array(self.classes, dtype=np.int64)
        return np.array(self.classes, dtype=np.str_)

    def targets(self, *, are_clipped: bool = False) -> tuple[Target, ...]:
        """Return the columns that hold targets; clipped ones become the nearer bound of their range."""
        ranges: dict[str, Any] = {"unit": self.unit, "is_clipped": are_clipped}
        if self.minimum is not None:
            ranges["minimum"] = self.minimum
        if self.maximum is not None:
            ranges["maximum"] = self.maximum
        values = {
            "event": np.repeat([0, 1], [len(self.not_seen), len(self.seen)]),
            "treatment": np.repeat([0, 1], [len(self.untreated), len(self.treated)]),
        }
        if self.classes:
            merged = self.merged or {}
            values["target"] = np.array([*self.classes, *merged.values()], dtype=self.class_array.dtype)
        targets = []
        labels_of = self.labels
        for part, name in self.fields.items():
            if labels := labels_of[name]:
                targets.append(Target(part=part, name=name, labels=labels, values=values[part]))
            else:
                targets.append(Target(part=part, name=name, missing_words=self.missing_words, **ranges))
        return tuple(targets)

    @property
    def time_step(self) -> float | None:
        """Times are rounded up to its multiples; None if they are not, or there are none."""
        return self.rounding or None

    @property
    def latest(self) -> float | None:
        """The longest time that can leave: the maximum, rounded up; None if there are no times."""
        if not self.time or self.maximum is None:
            return None
        if not self.rounding:
            return self.maximum
        # A maximum that is a multiple of the step must not be rounded further up by a last digit.
        return math.ceil(self.maximum / self.rounding * (1 - 1e-12)) * self.rounding

    @property
    def words(self) -> str:
        """A few words, with the names of the columns."""
        if self.kind == "none":
            return "none: nothing to predict"
        if self.is_single:
            return f"{self.kind} of {self.target}"
        outcome = self.outcome or f"{self.event} after {self.time}"
        if self.treatment:
            return f"effect of {self.treatment} on {outcome}"
        return f"survival: {outcome}"


def _check_yes_and_no(column: str, labels: Mapping[str, tuple[str | int, ...]]) -> None:
    """Refuse a column of yes and no that lacks entries for one of them, or has one for both."""
    for name, each in labels.items():
        refuse_if(not each, f"[task], {name}", f"no entry of the column of {column} means that. List one.")
    check_labels(f"[task], {' and '.join(labels)}", [each for entries in labels.values() for each in entries], "entry")
