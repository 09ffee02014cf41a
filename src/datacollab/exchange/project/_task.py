"""What the parties want to learn: a class or number, times to an event, an effect, or nothing of the kind."""

from __future__ import annotations

from dataclasses import dataclass

from ._task_checks import check_task
from ._task_fields import TaskFields

__all__ = ["Task"]


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
