"""What the parties want to predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._column import check_range
from ._refusals import check_no_formula, check_text, invalid

__all__ = ["TASKS", "Task"]

TASKS = ("classification", "regression")


@dataclass(frozen=True, kw_only=True)
class Task:
    """The target, and what may stand in it.

    Attributes
    ----------
    kind : {"classification", "regression"}
    target : str
        The column that holds the targets.
    classes : tuple of str, or tuple of int
        All classes of a classification; empty for a regression.  A party need not have rows of each.
    unit : str
        Of a regression's target.
    minimum, maximum : float or None
        Of a regression's target, in its unit: what is possible.

    Raises
    ------
    ExchangeError
        When the entries contradict one another.
    """

    kind: str
    target: str
    classes: tuple[str | int, ...] = ()
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None

    def __post_init__(self) -> None:
        check_text("The target's name", self.target)
        check_text(f"{self._where}, unit", self.unit, most=40, empty=True)
        if self.kind == "classification":
            self._check_classification()
        elif self.kind == "regression":
            check_range(self._where, self.minimum, self.maximum)
            if self.classes:
                raise invalid(self._where, "a regression has no classes. Remove them, or set kind to classification.")
        else:
            raise invalid("[task], kind", f"{self.kind!r}; {' or '.join(TASKS)} is wanted.")

    @property
    def class_array(self) -> NDArray[Any]:
        """All classes as an array, in the one type that every party's targets have: int64 or text."""
        return np.array(self.classes, dtype=np.int64 if isinstance(self.classes[0], int) else np.str_)

    @property
    def _where(self) -> str:
        return f"The target {self.target!r}"

    def _check_classification(self) -> None:
        if self.minimum is not None or self.maximum is not None or self.unit:
            raise invalid(self._where, "a classification has no unit, minimum or maximum. Remove them.")
        if len(self.classes) < 2:
            raise invalid(self._where, f"{len(self.classes)} classes; at least 2 are wanted.")
        if len({type(each) for each in self.classes}) > 1:
            raise invalid(self._where, "some classes are text and some are numbers. Write all as text.")
        for each in self.classes:
            if isinstance(each, bool) or not isinstance(each, str | int):
                raise invalid(self._where, "classes must be text or whole numbers.")
            if isinstance(each, str):
                check_text(f"{self._where}, a class", each)
                check_no_formula(f"{self._where}, a class", each)
            elif abs(each) > 2**53:
                raise invalid(self._where, "a class is too large a number. Write classes as text.")
        if len(set(self.classes)) < len(self.classes):
            raise invalid(self._where, "a class occurs twice. Name each once.")
