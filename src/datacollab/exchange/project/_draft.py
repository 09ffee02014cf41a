"""A first project file from a public table: columns, ranges, categories and the task are guessed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ...bundle import PublicKey
from ...targets import usual_time_step
from ._column import Column
from ._numbers import UNKNOWN, NotNumericError, as_numbers, label_codes, label_text
from ._project import AnchorRecipe, Project
from ._refusals import invalid, listed
from ._sharing import drafted_sharing
from ._task import TASKS, Task

__all__ = ["draft_project", "like_record_numbers", "usual_components", "widened_range"]

_FEWEST_ROWS = 20


def like_record_numbers(table: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Columns that have another whole number in every row.

    A measurement may look like that too, in few rows or a fine unit, so this is a reason to ask and not to refuse.
    Text of this kind is refused where categories are wanted.

    Parameters
    ----------
    table : DataFrame
        Of fewer than 20 rows nothing is said.
    names : sequence of str
        Columns to look at.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"record": range(501, 531), "age": [40, 50, 60] * 10})
    >>> like_record_numbers(table, ["record", "age"])
    ('record',)
    """
    return tuple(name for name in names if _is_like_one(table[name]))


def _is_like_one(column: Any) -> bool:
    try:
        numbers = as_numbers(column)
    except NotNumericError:
        return False
    is_whole = bool((numbers % 1 == 0).all())
    return is_whole and numbers.size >= _FEWEST_ROWS and np.unique(numbers).size == numbers.size


def widened_range(numbers: FloatArray) -> tuple[float, float]:
    """The range of numbers, half its width added on each side, rounded outwards to two digits of the width.

    Where none is negative it stops at 0, as most quantities do; where all are whole, so are its bounds.

    Examples
    --------
    >>> import numpy as np
    >>> widened_range(np.array([18.0, 97.0]))
    (0.0, 140.0)
    >>> widened_range(np.array([0.0, 1.0])), widened_range(np.array([0.0, 0.5, 1.0]))
    ((0.0, 2.0), (0.0, 1.5))
    >>> widened_range(np.array([-1.0, 1.0]))
    (-2.0, 2.0)
    """
    low, high = float(numbers.min()), float(numbers.max())
    # Where all are equal, their size says how far others might be.
    width = (high - low) or abs(high) or 1.0
    lowest = 0.0 if low >= 0 else -math.inf
    low, high = low - width / 2, high + width / 2
    # A power of ten as text, as 10.0**-3 is not the nearest number to 0.001.
    digits = 1 - math.floor(math.log10(high - low))
    step = float(f"1e{abs(digits)}")
    if digits > 0 and not (numbers % 1 == 0).all():
        return max(lowest, math.floor(low * step) / step), math.ceil(high * step) / step
    step = 1.0 if digits > 0 else step
    return max(lowest, math.floor(low / step) * step), math.ceil(high / step) * step


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


_USUAL_COMPONENTS = 16


def draft_project(
    table: Any,
    *,
    name: str,
    purpose: str,
    target: str | None = None,
    owner: PublicKey,
    analyst: PublicKey,
    parties: Mapping[str, PublicKey],
    task: str | None = None,
    event: str | None = None,
    time: str | None = None,
    seen: Sequence[str] = (),
    treatment: str | None = None,
    treated: Sequence[str] = (),
    outcome: str | None = None,
    classes: Sequence[str] = (),
    target_range: tuple[float, float] | None = None,
    without: Sequence[str] = (),
    valid_range: tuple[float, float] | None = None,
    anchor: AnchorRecipe | None = None,
    max_components: int | None = None,
    min_rows: int = 20,
    min_class_rows: int = 1,
    quorum: int = 2,
    deadline: date | None = None,
    mask_keys: Mapping[str, str] | None = None,
) -> Project:
    """Guess columns and task from public rows.

    Numbers get the range that was found, half its width added on each side, but nothing below 0 where no number is
    negative, and whole bounds where all numbers are whole; text becomes categories.  So that no single row of a party
    asks for another agreement, numbers outside are to be clipped, unknown categories to count as "other", and the
    median or the most frequent category of the public rows to be filled in where entries are missing.

    Parameters
    ----------
    table : DataFrame
        Public rows; everything found in them is written into the project.
    name, purpose : str
    target : str, optional
        The column to predict, of a classification or regression.  Where `classes` or `target_range` tell what may
        stand in it, the public rows need not have it.
    owner, analyst : PublicKey
    parties : mapping of str to PublicKey
    task : {"classification", "regression", "survival", "effect", "none"}, optional
        By default an effect where there is a treatment, a survival where there are an event and a time, and otherwise a
        classification where the target is text, or whole numbers of at most 20 kinds.  "none" has to be said.
    event, time : str, optional
        Columns of a survival, or of an effect on one.  The longest time is guessed like a range, and the rounding as by
        `datacollab.targets.usual_time_step`.
    seen : sequence of str
        Entries of the event that mean that it was seen; all others found mean that it was not.  By default 1, true or
        yes, where nothing but these and 0, false or no stand there.
    treatment : str, optional
        Column of an effect, with an outcome, or an event and a time.
    treated : sequence of str
        Entries of the treatment that mean treated, as `seen`.
    outcome : str, optional
        Column of numbers of an effect.
    classes : sequence of str
        All classes of a classification, as tables write them; whole numbers where all are.
    target_range : (float, float), optional
        Smallest and largest number of a regression's target.
    without : sequence of str
        Columns to leave out, such as identifiers.
    valid_range : (float, float), optional
        Smallest and largest number of all columns, instead of a guess for each.
    anchor : AnchorRecipe, optional
    max_components : int, optional
        By default 16, or one less than the numbers that tell a row if these are fewer, so that something is reduced:
        the columns of the matrix, but for one of each category.  For an effect all of these.
    min_rows, min_class_rows, quorum, deadline
        See `Project`.
    mask_keys : mapping of str to str, optional
        Cards, one of each party: the project then shares sums.  Names stand for legal entities until somebody writes
        them, and the anchor is a sample.  If the public rows have targets, the owner, or else the first party, adds
        them to its own.  By default the project shares rows.

    Raises
    ------
    ExchangeError
        When a column can be neither numbers nor categories, or the entries contradict one another.
    """
    names = [str(found) for found in table.columns]
    parts = TaskColumns(
        *(target, event, time, treatment, outcome),
        seen=tuple(seen),
        treated=tuple(treated),
        classes=tuple(classes),
        target_range=target_range,
    )
    needed = [each for each in parts.names if each in names or parts.told is None or each != target]
    if unknown := [wanted for wanted in [*needed, *without] if wanted not in names]:
        unlabelled = (
            " Public rows need no targets: tell what there are, by --class for each class, or by --target-range."
        )
        advice = unlabelled if target in unknown else ""
        raise invalid("The public table", f"it has no column {listed(unknown)}; it has {listed(names)}.{advice}")
    columns = tuple(
        _column(found, table.iloc[:, position], valid_range)
        for position, found in enumerate(names)
        if found not in parts.names and found not in without
    )
    if not columns:
        raise invalid("The public table", "it has no column besides the target. Give one with all columns.")
    n_free = sum(column.n_free for column in columns)
    agreed = drafted_task(parts, {each: table.iloc[:, names.index(each)] for each in needed}, task)
    sharing = None
    if mask_keys is not None:
        owns = next((each for each, key in parties.items() if key == owner), next(iter(parties)))
        sharing = drafted_sharing(mask_keys, columns, labelled_by=owns if target in names else None)
    return Project(
        name=name,
        purpose=purpose,
        columns=columns,
        task=agreed,
        anchor=anchor or _usual_recipe(len(table), for_sums=sharing is not None),
        max_components=usual_components(n_free, agreed) if max_components is None else max_components,
        min_rows=min_rows,
        min_class_rows=min_class_rows,
        quorum=quorum,
        deadline=deadline,
        owner=owner,
        analyst=analyst,
        parties=dict(parties),
        sharing=sharing,
    )


def _usual_recipe(n_public: int, *, for_sums: bool) -> AnchorRecipe:
    """Sums need real rows; a sample has no more of them than it is drawn from."""
    usual = AnchorRecipe()
    return AnchorRecipe(method="sample", n_rows=max(2, min(usual.n_rows, n_public))) if for_sums else usual


def usual_components(n_free: int, task: Task | None = None) -> int:
    """Columns of a representation where nobody says how many: 16, or fewer, so that something is reduced.

    A linear map onto as many columns as there are free numbers in a row turns the table and hides nothing.  For an
    effect it is as many all the same: what is lost is not adjusted for, and estimates come out biased.

    Parameters
    ----------
    n_free : int
        How many numbers tell a row; see `Column.n_free`.
    task : Task, optional
    """
    if task is not None and task.kind == "effect":
        return n_free
    return max(1, min(_USUAL_COMPONENTS, n_free - 1))


def _column(name: str, entries: Any, valid_range: tuple[float, float] | None) -> Column:
    try:
        numbers = as_numbers(entries)
    except NotNumericError as error:
        if getattr(entries.dtype, "kind", "O") not in "OUSbiuf":
            raise invalid(f"Column {name!r}", f"it {error}, which cannot be used. {_LEAVE_OUT}") from None
        return _category(name, entries)
    present = numbers[np.isfinite(numbers)]
    if not present.size:
        raise invalid(f"Column {name!r}", f"no row has a number in it. {_LEAVE_OUT}")
    minimum, maximum = valid_range or widened_range(present)
    return Column(
        name=name,
        kind="number",
        minimum=minimum,
        maximum=maximum,
        missing="fill",
        # In few digits, as the mean of the two in the middle may have many; and inside a range that was told.
        fill=min(max(float(f"{np.median(present):.10g}"), minimum), maximum),
        outside="clip",
    )


_LEAVE_OUT = "Leave it out of the public table or with --without, if it is an identifier, a date or free text."


def _category(name: str, entries: Any) -> Column:
    counts = entries.dropna().map(label_text).value_counts()
    categories = tuple(sorted(text for text in counts.index if text.strip()))
    n_rows = int(counts.sum())
    if len(categories) > MOST_CATEGORIES or (len(categories) == n_rows and n_rows > 2):
        raise invalid(
            f"Column {name!r}",
            f"text of {len(categories)} kinds in {n_rows} rows; at most {MOST_CATEGORIES} are wanted, and fewer than "
            f"rows. {_LEAVE_OUT}",
        )
    return Column(
        name=name,
        kind="category",
        categories=categories,
        missing="fill",
        fill=max(categories, key=lambda text: (int(counts[text]), text), default=None),
        unknown="other",
    )
