"""A first project file from a public table: columns, ranges, categories and the task are guessed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._entries import check_choice, invalid, join_names, refuse_if
from .._frames import MISSING, MOST_OUTSIDE, UNKNOWN, label_text
from .._positive import NO_AND_YES, positive_class
from .._recommended import recommended
from .._typing import FloatArray
from ..bundle import PublicKey
from ..sums import fences
from ..table import (
    MOST_CATEGORIES,
    Answers,
    Column,
    Diagnosis,
    Finding,
    NotNumericError,
    as_numbers,
    diagnose,
    label_codes,
    rare_classes,
    target_entries,
)
from ..targets import usual_time_step
from ._project import AnchorRecipe, Project, usual_components
from ._sharing import ANALYST, Sharing, declared_alike
from ._task import TASKS, Task


def _widened_range(numbers: FloatArray) -> tuple[float, float]:
    """Return the range of numbers, half its width added on each side, rounded outwards to two digits of the width.

    If none is negative it stops at 0, as most quantities do; if all are whole, so are its bounds.
    """
    low, high = float(numbers.min()), float(numbers.max())
    # If all are equal, their size says how far others might be.
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
_MOST_CLASSES = 20
_PARTS: dict[str, tuple[set[str], ...]] = {
    "survival": ({"event", "time"},),
    "effect": ({"treatment", "outcome"}, {"treatment", "event", "time"}),
    "none": (set(),),
}
"""Columns that a kind of task needs, in one way or another; the others need a target."""


def _drafted_task(
    given: Mapping[str, str],
    entries: Mapping[str, Any],
    kind: str | None,
    *,
    seen: Sequence[str],
    treated: Sequence[str],
    classes: Sequence[str],
    target_range: tuple[float, float] | None,
    positive: str | None,
) -> Task:
    """Guess a task from the columns that were named for its parts, and their entries in the public table."""
    if kind is not None:
        check_choice("[task], kind", kind, TASKS)
    elif given.keys() & {"treatment", "outcome"}:
        kind = "effect"
    elif given.keys() & {"event", "time"}:
        kind = "survival"
    expected = _PARTS.get(kind or "", ({"target"},))
    ways = " or ".join(", ".join(f"--{name}" for name in sorted(each)) or "no column" for each in expected)
    found = ", ".join(f"--{name}" for name in sorted(given)) or "none"
    refuse_if(
        given.keys() not in expected, "[task]", f"for {kind or 'a class or number'} expected {ways}; got {found}."
    )
    about_target = classes or target_range is not None or positive is not None
    said = (("--seen", "event", seen), ("--treated", "treatment", treated))
    for options, needed, is_said in (*said, ("--class, --positive or --target-range", "target", about_target)):
        is_vain = is_said and needed not in given
        refuse_if(is_vain, "[task]", f"{options} describes entries of --{needed}, and there is none.")
    if kind == "none":
        return Task(kind="none")
    if kind not in ("survival", "effect"):
        name = given["target"]
        return _single_task(name, entries.get(name), kind, classes, target_range, positive)
    parts: dict[str, Any] = dict(given)
    if "treatment" in given:
        name = given["treatment"]
        parts["untreated"], parts["treated"] = _no_and_yes(name, entries[name], treated, "--treated")
    if "outcome" in given:
        name = given["outcome"]
        parts["minimum"], parts["maximum"] = _target_range(_finite(name, entries[name]))
        return Task(kind=kind, **parts)
    event, time = given["event"], given["time"]
    parts["not_seen"], parts["seen"] = _no_and_yes(event, entries[event], seen, "--seen")
    times = _finite(time, entries[time])
    early = bool((times <= 0).any())
    refuse_if(early, f"The time {time!r}", "times must be above 0. Correct the public rows, or leave some out.")
    maximum = _widened_range(np.array([0.0, times.max()]))[1]
    had_event = entries[event][entries[time].notna()].map(label_text).isin([str(each) for each in parts["seen"]])
    return Task(kind=kind, **parts, maximum=maximum, rounding=usual_time_step(times, had_event.to_numpy(dtype=bool)))


def _finite(name: str, entries: Any) -> FloatArray:
    try:
        numbers = as_numbers(entries.dropna())
    except NotNumericError as error:
        raise invalid(f"The target {name!r}", f"it {error}; expected numbers. Write yes and no as 1 and 0.") from None
    is_finite = numbers.size and np.isfinite(numbers).all()
    refuse_if(not is_finite, f"The target {name!r}", "it holds no numbers, or infinite ones. Correct the public rows.")
    return numbers


def _no_and_yes(name: str, entries: Any, yes: Sequence[str], option: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the entries that mean no, and those that mean yes; whole numbers as such."""
    where, found = f"The column {name!r}", {text for text in map(label_text, entries.dropna()) if text.strip()}
    refuse_if(len(found) > _MOST_CLASSES, where, f"it has entries of {len(found)} kinds. Is it one of yes and no?")
    if yes:
        strange = join_names(sorted(set(yes) - found))
        refuse_if(strange, where, f"{option}: no public row has {strange}. Correct it.")
        no = found - set(yes)
    else:
        pair = next((each for each in NO_AND_YES if found and found <= set(each)), ())
        meant = (
            f"what entries mean is not guessed: {join_names(sorted(found))}. Name with {option} those that mean yes."
        )
        refuse_if(not pair, where, meant)
        no, yes = set(pair[:1]), pair[1:]
    refuse_if(not no, where, "all its entries would mean yes. Give public rows with both.")
    as_type = _type_of([*no, *yes])
    return tuple(sorted(map(as_type, no))), tuple(sorted(map(as_type, yes)))


def _type_of(texts: Iterable[str]) -> Callable[[str], Any]:
    """Return int if all texts are whole numbers, otherwise str."""
    return int if all(map(_WHOLE.fullmatch, texts)) else str


def _target_range(numbers: FloatArray) -> tuple[float, float]:
    """Return the range of a target's numbers: 0 and 1 mean no and yes, and nothing lies beyond them."""
    return (0.0, 1.0) if np.isin(numbers, (0.0, 1.0)).all() else _widened_range(numbers)


def _single_task(
    name: str,
    entries: Any,
    kind: str | None,
    classes: Sequence[str],
    target_range: tuple[float, float] | None,
    positive: str | None,
) -> Task:
    """Return a classification or regression: as people gave it, which public rows may not contradict, or guessed."""
    where, is_number = f"The target {name!r}", target_range is not None
    both = "--class is for classes and --target-range for numbers; give one of the two."
    refuse_if(classes and is_number, "[task]", both)
    given, option = ("classification", "--class") if classes else ("regression", "--target-range")
    is_given = bool(classes) or is_number
    is_other = is_given and kind not in (None, given)
    refuse_if(is_other, "[task]", f"{option} makes it a {given}; remove it, or --task {kind}.")
    # Public rows may lack it.
    present = () if entries is None else entries[label_codes(entries, ()) != MISSING]
    if target_range is not None:
        low, high = target_range
        numbers = _finite(name, present) if len(present) else np.empty(0)
        n_outside = int(((numbers < low) | (numbers > high)).sum())
        found = f"{n_outside} of {numbers.size} public rows are out of --target-range. Widen it, or correct them."
        refuse_if(n_outside, where, found)
        return Task(kind=given, target=name, minimum=low, maximum=high)
    if classes:
        named = tuple(sorted(map(_type_of(classes), classes)))
        n_unknown = int((label_codes(present, named) == UNKNOWN).sum()) if len(present) else 0
        found = f"{n_unknown} of {len(present)} public rows have a class that no --class names."
        refuse_if(n_unknown, where, f"{found} Name each, as the tables write it.")
        return Task(kind=given, target=name, classes=named, positive=_sought(named, present, positive))
    try:
        numbers, is_whole = as_numbers(present), True
    except NotNumericError:
        numbers, is_whole = np.empty(0), False
    is_text, is_whole = not is_whole, is_whole and bool((numbers % 1 == 0).all())
    if kind is None:
        few = is_whole and np.unique(numbers).size <= _MOST_CLASSES
        kind = "classification" if is_text or few else "regression"
    if kind == "regression":
        needed = "a regression needs numbers, and it holds something else. Write yes and no as 1 and 0."
        refuse_if(not numbers.size, where, needed)
        refuse_if(positive is not None, where, "--positive names a class, and it is taken as a number. Remove it.")
        low, high = _target_range(numbers)
        return Task(kind=kind, target=name, minimum=low, maximum=high)
    values = map(int, np.unique(numbers)) if is_whole else sorted({label_text(entry) for entry in present})
    found_classes: tuple[Any, ...] = tuple(values)
    too_many = f"it has {len(found_classes)} classes; at most {MOST_CATEGORIES} are drafted. Is it one?"
    refuse_if(len(found_classes) > MOST_CATEGORIES, where, too_many)
    return Task(kind=kind, target=name, classes=found_classes, positive=_sought(found_classes, present, positive))


def _sought(classes: Sequence[Any], present: Any, positive: str | None) -> Any:
    """Return the sought one of two classes: as it was given, or that means yes, or else the rarer in public rows."""
    if positive is not None:
        given = {str(each): each for each in classes if len(classes) == 2}
        refuse_if(
            positive not in given, "[task]", f"--positive names one of two classes, not of {join_names(classes)}."
        )
        return given[positive]
    if len(classes) != 2 or (meant := positive_class(classes)) is not None:
        return None if len(classes) != 2 else meant
    codes = label_codes(present, classes) if len(present) else np.empty(0)
    first, second = ((codes == place).sum() for place in range(2))
    # Of equally frequent classes neither is proposed, and the task asks: the order of their names says nothing.
    return None if first == second else classes[int(second < first)]


def _about_target(task: Task, *, has_kind: bool, is_explained: bool, has_positive: bool) -> Iterator[Finding]:
    """Yield how a target was taken, and how to change it, where this was not said."""
    said = []
    if task.classes and isinstance(task.classes[0], int) and not has_kind:
        said.append("its whole numbers are classes; a number with --task regression, as a regression of a study needs")
    elif task.kind == "regression" and not has_kind:
        why = "as least squares needs one" if is_explained else "or as classes with --class for each"
        said.append(f"it is taken as a number, {why}")
    if task.positive is not None and not has_positive:
        why = "it means yes" if positive_class(task.classes) is not None else "the rarer one in the public rows"
        said.append(f"the sought class is {task.positive} ({why}); change it with --positive")
    yield from (Finding(column=task.target, kind="target", found="is the target", done=done) for done in said)


def _without_tail(task: Task, entries: Any, tell: Callable[[Finding], None] | None) -> Task:
    """Return the task with a range that a few far numbers do not widen, and say so: noise is a part of the range."""
    numbers = _finite(task.target, entries[label_codes(entries, ()) != MISSING])
    low, high = fences(numbers)
    n_beyond = int(((numbers < low) | (numbers > high)).sum())
    if not n_beyond:
        return task
    low, high = _widened_range(np.clip(numbers, low, high))
    if tell is not None:
        logs = ' For costs, durations and the like, write scale = "log" below [task]' if numbers.min() >= 0 else ""
        found = f"has {n_beyond} of {numbers.size} entries far from the rest"
        done = f"the range leaves out what is farther still, as noise is a part of it.{logs}"
        tell(Finding(column=task.target, kind="tail", found=found, done=done.rstrip(".")))
    return replace(task, minimum=low, maximum=high)


_USUAL_ANCHORS = 1000


def draft_project(
    table: Any,
    *,
    owner: PublicKey,
    parties: Mapping[str, PublicKey],
    task: str | None = None,
    target: str | None = None,
    event: str | None = None,
    time: str | None = None,
    treatment: str | None = None,
    outcome: str | None = None,
    seen: Sequence[str] = (),
    treated: Sequence[str] = (),
    classes: Sequence[str] = (),
    positive: str | None = None,
    target_range: tuple[float, float] | None = None,
    without: Sequence[str] = (),
    valid_range: tuple[float, float] | None = None,
    source: str = "",
    anchor_rows: int | None = None,
    max_components: int | None = None,
    mask_keys: Mapping[str, str] | None = None,
    statistics: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    missing: Mapping[str, Collection[str]] | None = None,
    keep: Mapping[str, Collection[str]] | None = None,
    tell: Callable[[Finding], None] | None = None,
    **agreed: Any,
) -> Project:
    """Guess columns and task from public rows; all that is found in them is written into the project.

    Numbers get the range that was found, half its width added on each side, but nothing below 0 if no number is
    negative, and whole bounds if all numbers are whole; text becomes categories.  So that no single row of a party
    asks for another agreement, the rules clip numbers outside, count unknown categories as "other", and fill in the
    median or the most frequent category of the public rows.  If two or more of them, and over 1 %, lack an
    entry, a flag says where.

    Parameters
    ----------
    table : DataFrame
        Public rows.
    task : str, optional
        By default an effect if there is a treatment, a survival if there are an event and a time, and otherwise a
        classification if the target is text, or whole numbers of at most 20 kinds.  "none" has to be given.
    target, event, time, treatment, outcome : str, optional
        Columns of the task.  The longest time is guessed like a range, and the rounding by `usual_time_step`.
    seen, treated : sequence of str
        Entries of the event and of the treatment that mean yes; all others mean no.  By default 1, true or yes, if
        nothing but these and 0, false or no occur.
    classes, target_range : sequence of str, (float, float), optional
        All classes, or the smallest and largest target; the public rows need no target then.
    positive : str, optional
        Of two classes, the one that is sought; by default the one that means yes, or else the rarer one.
    without : sequence of str
        Columns to leave out, such as identifiers.
    valid_range : (float, float), optional
        Smallest and largest number of all columns, instead of a guess for each.
    anchor_rows, max_components : int, optional
        By default 1,000, and as `usual_components`.
    mask_keys : mapping of str to str, optional
        Cards, one of each party: the project then shares sums, and the anchor is a sample of the public rows.  Names
        stand for legal entities until somebody writes them.  If the public rows have targets, the owner, or else the
        first party, adds them to its own.  By default the project shares rows.
    statistics : sequence of str, optional
        Those of a study, which are shared in place of a model's sums.  Missing and unknown entries are then counted as
        missing, there is an anchor for an effect alone, and `outcome` may be a column beside a target or times.
    kinds, missing, keep : mapping, optional
        By column "number" or "category", if it has two readings; entries that mean missing, and those that are taken as
        they are, of all columns under "".
    tell : callable, optional
        Called with a `Finding` for each thing that was found and decided.  With it, columns that have two readings are
        refused until somebody says which is meant; without it, whole numbers are numbers.
    source, **agreed
        The origin of the public rows, in words; and further entries of `Project`: name, purpose, analyst, its rules.

    Raises
    ------
    ExchangeError
        If a column can be neither numbers nor categories, or the entries contradict one another.
    """
    names = [str(found) for found in table.columns]
    explained = None
    if statistics and outcome is not None and (time or target):  # A column beside the task's own target.
        explained, outcome = outcome, None
    elif statistics and outcome is not None and not (treatment or event):  # Without an effect it is the target.
        target, outcome = outcome, None
    is_explained = "least squares" in statistics and explained is None and target is not None and not classes
    parts = {"target": target, "event": event, "time": time, "treatment": treatment, "outcome": outcome}
    given = {part: each for part, each in parts.items() if each is not None}
    is_given = bool(classes) or target_range is not None
    needed = [each for each in given.values() if each in names or not is_given or each != target]
    if unknown := [each for each in [*needed, *without] if each not in names]:
        unlabelled = " Public rows need no targets: give them by --class for each class, or by --target-range."
        advice = unlabelled if target in unknown else ""
        raise invalid(
            "The public table", f"it has no column {join_names(unknown)}; it has {join_names(names)}.{advice}"
        )
    strange = join_names(sorted({*(kinds or {}), *(missing or {}), *(keep or {})} - {*names, ""}))
    refuse_if(strange, "The public table", f"it has no column {strange}, which an option names.")
    answers = Answers(kinds=kinds or {}, missing=missing or {}, keep=keep or {})
    positions = {
        found: position for position, found in enumerate(names) if found not in given.values() and found not in without
    }
    columns = _columns(table, positions, answers, valid_range, tell)
    if statistics:  # A study counts what is missing, and describes what is there.
        columns = tuple(
            replace(each, flag_missing=True, unknown="missing" if each.categories else each.unknown) for each in columns
        )
    refuse_if(not columns, "The public table", "it has no column besides the target. Give one with all columns.")
    entries = {
        each: target_entries(each, table.iloc[:, names.index(each)], answers, tell if each == target else None)
        for each in needed
    }
    said: dict[str, Any] = {"seen": seen, "treated": treated, "classes": classes, "target_range": target_range}
    kind = "regression" if is_explained and task is None else task  # Least squares explain a number.
    drafted, sharing = _drafted_task(given, entries, kind, **said, positive=positive), None
    if target in entries and tell is not None:
        has_kind = bool(task or classes or target_range)
        for each in _about_target(drafted, has_kind=has_kind, is_explained=is_explained, has_positive=bool(positive)):
            tell(each)
        if drafted.classes and (rare := rare_classes(target, entries[target])):
            tell(rare)
    if mask_keys is not None and not statistics and drafted.kind == "regression" and target_range is None:
        assert target is not None
        drafted = _without_tail(drafted, entries[target], tell)
    method, n_anchors = "smote", _USUAL_ANCHORS
    if mask_keys is not None:
        owns = next((each for each, key in parties.items() if key == owner), next(iter(parties)))
        usual = recommended(alike=declared_alike(columns))
        of_study: dict[str, Any] = {"statistics": tuple(statistics), "outcome": explained} if statistics else {}
        sharing = Sharing(
            mask_keys=dict(mask_keys),
            entities={each: each for each in (*mask_keys, ANALYST)},
            noise=usual.noise,
            n_components=usual.n_components,
            labelled_by=owns if target in names and not statistics else None,
            **of_study,
        )
        # A common map needs real rows, and a sample has no more of them than it is drawn from.
        if sharing.has_map:
            method, n_anchors = "sample", max(2, min(n_anchors, len(table)))
    if max_components is None:
        max_components = usual_components(sum(column.n_free for column in columns), drafted)
    return Project(
        columns=columns,
        task=drafted,
        anchor=AnchorRecipe(method=method, n_rows=n_anchors if anchor_rows is None else anchor_rows, source=source),
        max_components=max_components,
        owner=owner,
        parties=dict(parties),
        sharing=sharing,
        **agreed,
    )


_MOST_UNFLAGGED = MOST_OUTSIDE / 5
"""The largest share of gaps without a column that says where; a party's small table may have five times it by chance.

With 3 % of gaps, a table of 107 rows is above 5 % in one of ten draws, and with 1 % in one of a thousand.
"""
_LEAVE_OUT = "Leave it out of the public table or with --without, if it is an identifier, a date or free text."


def _column(name: str, found: Diagnosis, valid_range: tuple[float, float] | None) -> Column:
    where = f"Column {name!r}"
    refuse_if(
        not found.kind, where, f"it holds dates, or text among numbers, or else no numbers and categories. {_LEAVE_OUT}"
    )
    is_flagged = found.n_missing > max(1, _MOST_UNFLAGGED * found.n_rows)
    said: dict[str, Any] = {"name": name, "missing_words": found.missing_words, "flag_missing": is_flagged}
    if found.kind == "category":
        categories = tuple(sorted(found.levels))
        most = max(categories, key=lambda text: (found.levels[text], text), default=None)
        return Column(kind="category", categories=categories, missing="fill", fill=most, unknown="other", **said)
    present = found.numbers[np.isfinite(found.numbers)]
    refuse_if(not present.size, where, f"no row has a number in it. {_LEAVE_OUT}")
    low, high = valid_range or _widened_range(present)
    # In few digits, as the mean of the two in the middle may have many; and inside a range that was given.
    fill = min(max(float(f"{np.median(present):.10g}"), low), high)
    return Column(kind="number", minimum=low, maximum=high, missing="fill", fill=fill, outside="clip", **said)


def _columns(
    table: Any,
    positions: Mapping[str, int],
    answers: Answers,
    valid_range: tuple[float, float] | None,
    tell: Callable[[Finding], None] | None,
) -> tuple[Column, ...]:
    """Return the columns that are not left out, and say what was found; with `tell`, refuse those with two readings."""
    columns, asked = [], []
    for name, position in positions.items():
        found = diagnose(name, table.iloc[:, position], answers, limits=valid_range)
        asked += [each for each in found.findings if each.asks and tell is not None]
        for each in found.findings:
            if tell is not None:
                tell(each)
        if found.kind in ("number", "category"):
            columns.append(_column(name, found, valid_range))
            if columns[-1].flag_missing and tell is not None:
                gaps = f"has no entry in {found.n_missing} of {found.n_rows} rows"
                done = "one more column says where (flag_missing), as small tables may have far more by chance"
                tell(Finding(column=name, kind="gaps", found=gaps, done=done))
        elif not found.kind and tell is None:
            _column(name, found, valid_range)
    if asked:
        sentences = " ".join(each.sentence for each in asked)
        raise invalid("The public table", f"say what is meant in {len(asked)} of its columns. {sentences}")
    return tuple(columns)
