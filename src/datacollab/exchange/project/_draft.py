"""A first version of the agreement, from a public table of the same kind; people have to check it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np

from ...bundle import PublicKey
from ._column import Column
from ._draft_task import MOST_CATEGORIES, TaskColumns, drafted_task
from ._labels import label_text
from ._numbers import NotNumericError, as_numbers
from ._project import Project
from ._ranges import widened_range
from ._recipe import AnchorRecipe
from ._refusals import invalid, listed
from ._task import Task

__all__ = ["draft_project", "usual_components"]

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
    seal_shares: bool = False,
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
    min_rows, min_class_rows, quorum, deadline, seal_shares
        See `Project`.

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
    return Project(
        name=name,
        purpose=purpose,
        columns=columns,
        task=agreed,
        anchor=anchor or AnchorRecipe(),
        max_components=usual_components(n_free, agreed) if max_components is None else max_components,
        min_rows=min_rows,
        min_class_rows=min_class_rows,
        quorum=quorum,
        deadline=deadline,
        seal_shares=seal_shares,
        owner=owner,
        analyst=analyst,
        parties=dict(parties),
    )


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
