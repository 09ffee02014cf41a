"""A first task from public rows: its kind, classes, ranges, and the entries that mean yes and no."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._entries import NO_AND_YES, check_choice, invalid, join_names, positive_class, refuse_if
from .._frames import MISSING, UNKNOWN, label_text
from .._typing import FloatArray
from ..sums import fences
from ..table import MOST_CATEGORIES, ColumnFinding, NotNumericError, as_numbers, label_codes
from ..targets import usual_time_step
from ._draft_options import DraftOptions
from ._task import TASKS, Task

_WHOLE = re.compile(r"0|-?[1-9]\d*", re.ASCII)
_MOST_CLASSES = 10
"""Different whole numbers that are taken as classes, such as digits and grades; more are years, visits and the like."""
_MOST_KINDS = 20
"""Different entries of a column of yes and no."""
_PARTS: dict[str, tuple[set[str], ...]] = {
    "survival": ({"event", "time"},),
    "effect": ({"treatment", "outcome"}, {"treatment", "event", "time"}),
    "none": (set(),),
}
"""Columns that a kind of task needs, in one way or another; the others need a target."""


def widen_range(numbers: FloatArray) -> tuple[float, float]:
    """Return the range of numbers, half its width added on each side, rounded outwards to two digits of the width.

    If none is negative it stops at 0, as most quantities do; if all are whole, so are its bounds.
    """
    least = float(numbers.min())
    most = float(numbers.max())
    # If all are equal, their size says how far others might be.
    width = (most - least) or abs(most) or 1.0
    lowest = 0.0 if least >= 0 else -math.inf
    low = least - width / 2
    high = most + width / 2
    # A power of ten as text, as 10.0**-3 is not the nearest number to 0.001.
    digits = 1 - math.floor(math.log10(high - low))
    step = float(f"1e{abs(digits)}")
    if digits > 0 and not (numbers % 1 == 0).all():
        return max(lowest, math.floor(low * step) / step), math.ceil(high * step) / step
    if digits > 0:
        step = 1.0
    return max(lowest, math.floor(low / step) * step), math.ceil(high / step) * step


def draft_task(options: DraftOptions, entries: Mapping[str, Any]) -> Task:
    """Guess a task from the columns that were named for its parts, and their entries in the public table."""
    kind = _find_kind(options)
    _check_parts(kind, options)
    if kind == "none":
        return Task(kind="none")
    if kind in ("survival", "effect"):
        return _draft_in_parts(kind, options, entries)
    return _draft_single(kind, options, entries.get(options.parts["target"]))


def _find_kind(options: DraftOptions) -> str | None:
    """Return the kind that was given, or that the named columns tell; None for a class or a number."""
    if options.task is not None:
        check_choice("[task], kind", options.task, TASKS)
        return options.task
    if options.explains_target:
        return "regression"
    # A treatment needs no kind beside it, and neither do times.
    if options.treatment is not None or options.outcome is not None:
        return "effect"
    if options.event is not None or options.time is not None:
        return "survival"
    return None


def _check_parts(kind: str | None, options: DraftOptions) -> None:
    """Refuse columns that a kind of task lacks or does not have, and options on columns that were not named."""
    # A missing column would otherwise be refused in words about the file.
    named = options.parts
    expected = _PARTS.get(kind or "", ({"target"},))
    ways = " or ".join(", ".join(f"--{name}" for name in sorted(each)) or "no column" for each in expected)
    got = ", ".join(f"--{name}" for name in sorted(named)) or "none"
    refuse_if(named.keys() not in expected, "[task]", f"for {kind or 'a class or number'} expected {ways}; got {got}.")
    about_target = options.has_entries or options.positive is not None
    for words, part, is_given in (
        ("--seen", "event", options.seen),
        ("--treated", "treatment", options.treated),
        ("--class, --positive or --target-range", "target", about_target),
    ):
        fault = f"{words} describes entries of --{part}, and there is none."
        refuse_if(is_given and part not in named, "[task]", fault)


def _draft_in_parts(kind: str, options: DraftOptions, entries: Mapping[str, Any]) -> Task:
    """Return a survival or an effect."""
    named = options.parts
    parts: dict[str, Any] = dict(named)
    if treatment := named.get("treatment"):
        untreated, treated = _find_no_and_yes(treatment, entries[treatment], options.treated, "--treated")
        parts |= {"untreated": untreated, "treated": treated}
    if outcome := named.get("outcome"):
        low, high = _target_range(_check_finite(outcome, entries[outcome]))
        return Task(kind=kind, **parts, minimum=low, maximum=high)
    event = named["event"]
    time = named["time"]
    not_seen, seen = _find_no_and_yes(event, entries[event], options.seen, "--seen")
    times = _check_finite(time, entries[time])
    # At time 0 nobody is at risk yet.
    is_early = bool((times <= 0).any())
    refuse_if(is_early, f"The time {time!r}", "times must be above 0. Correct the public rows, or leave some out.")
    _, maximum = widen_range(np.array([0.0, times.max()]))
    # Rounding follows the events, as they are what estimates rest on.
    had_event = entries[event][entries[time].notna()].map(label_text).isin([str(each) for each in seen])
    rounding = usual_time_step(times, had_event.to_numpy(dtype=bool))
    return Task(kind=kind, **parts, not_seen=not_seen, seen=seen, maximum=maximum, rounding=rounding)


def _check_finite(name: str, entries: Any) -> FloatArray:
    """Return the numbers of a target's column, or refuse it."""
    try:
        numbers = as_numbers(entries.dropna())
    except NotNumericError as error:
        raise invalid(f"The target {name!r}", f"it {error}; expected numbers. Write yes and no as 1 and 0.") from None
    is_finite = numbers.size and np.isfinite(numbers).all()
    refuse_if(not is_finite, f"The target {name!r}", "it holds no numbers, or infinite ones. Correct the public rows.")
    return numbers


def _find_no_and_yes(
    name: str, entries: Any, yes: Sequence[str], option: str
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the entries that mean no, and those that mean yes; whole numbers as such."""
    where = f"The column {name!r}"
    texts = {text for text in map(label_text, entries.dropna()) if text.strip()}
    refuse_if(len(texts) > _MOST_KINDS, where, f"it has entries of {len(texts)} kinds. Is it one of yes and no?")
    if yes:
        strange = join_names(sorted(set(yes) - texts))
        refuse_if(strange, where, f"{option}: no public row has {strange}. Correct it.")
        no = texts - set(yes)
    else:
        # Only pairs that nobody reads otherwise; 1 and 2 may mean either.
        pair = next((each for each in NO_AND_YES if texts and texts <= set(each)), ())
        words = join_names(sorted(texts))
        fault = f"what entries mean is not guessed: {words}. Name with {option} those that mean yes."
        refuse_if(not pair, where, fault)
        no = set(pair[:1])
        yes = pair[1:]
    refuse_if(not no, where, "all its entries would mean yes. Give public rows with both.")
    as_type = _type_of([*no, *yes])
    return tuple(sorted(map(as_type, no))), tuple(sorted(map(as_type, yes)))


def _type_of(texts: Iterable[str]) -> Callable[[str], Any]:
    """Return int if all texts are whole numbers, otherwise str."""
    return int if all(map(_WHOLE.fullmatch, texts)) else str


def _target_range(numbers: FloatArray) -> tuple[float, float]:
    """Return the range of a target's numbers: 0 and 1 mean no and yes, and nothing lies beyond them."""
    if np.isin(numbers, (0.0, 1.0)).all():
        return 0.0, 1.0
    return widen_range(numbers)


def _draft_single(kind: str | None, options: DraftOptions, entries: Any) -> Task:
    """Return a classification or regression: as people gave it, which public rows may not contradict, or guessed."""
    name = options.parts["target"]
    is_number = options.target_range is not None
    fault = "--class is for classes and --target-range for numbers; give one of the two."
    refuse_if(options.classes and is_number, "[task]", fault)
    for is_given, option, implied in (
        (is_number, "--target-range", "regression"),
        (options.classes, "--class", "classification"),
    ):
        fault = f"{option} makes it a {implied}; remove it, or --task {kind}."
        refuse_if(is_given and kind not in (None, implied), "[task]", fault)
    present: Any = ()
    # Public rows may lack it.
    if entries is not None:
        present = entries[label_codes(entries, ()) != MISSING]
    if options.target_range is not None:
        return _task_in_range(name, present, options.target_range)
    if options.classes:
        return _task_of_classes(name, present, options)
    return _guess_single(name, present, kind, options.positive)


def _task_in_range(name: str, present: Any, limits: tuple[float, float]) -> Task:
    """Return a regression in a range that people gave."""
    low, high = limits
    numbers = np.empty(0)
    if len(present):
        numbers = _check_finite(name, present)
    n_outside = int(((numbers < low) | (numbers > high)).sum())
    fault = f"{n_outside} of {numbers.size} public rows are out of --target-range. Widen it, or correct them."
    refuse_if(n_outside, f"The target {name!r}", fault)
    return Task(kind="regression", target=name, minimum=low, maximum=high)


def _task_of_classes(name: str, present: Any, options: DraftOptions) -> Task:
    """Return a classification of classes that people gave."""
    classes = tuple(sorted(map(_type_of(options.classes), options.classes)))
    n_unknown = int((_codes_of(present, classes) == UNKNOWN).sum())
    fault = f"{n_unknown} of {len(present)} public rows have a class that no --class names. Name each, as the tables "
    refuse_if(n_unknown, f"The target {name!r}", f"{fault}write it.")
    positive = _find_positive(classes, present, options.positive)
    return Task(kind="classification", target=name, classes=classes, positive=positive)


def _codes_of(present: Any, classes: Sequence[Any]) -> NDArray[np.int64]:
    """Return the position of each entry among the classes; none if public rows lack the target."""
    return label_codes(present, classes) if len(present) else np.empty(0, dtype=np.int64)


def _guess_single(name: str, present: Any, kind: str | None, positive: str | None) -> Task:
    """Return a classification or regression by the entries of public rows."""
    where = f"The target {name!r}"
    try:
        numbers = as_numbers(present)
        is_whole = bool((numbers % 1 == 0).all())
        are_classes = is_whole and np.unique(numbers).size <= _MOST_CLASSES
    except NotNumericError:
        numbers = np.empty(0)
        is_whole = False
        # Text is never a number.
        are_classes = True
    # Many different whole numbers are an amount, unless somebody says classes.
    if kind == "regression" or (kind is None and not are_classes):
        fault = "a regression needs numbers, and it holds something else. Write yes and no as 1 and 0."
        refuse_if(not numbers.size, where, fault)
        refuse_if(positive is not None, where, "--positive names a class, and it is taken as a number. Remove it.")
        low, high = _target_range(numbers)
        return Task(kind="regression", target=name, minimum=low, maximum=high)
    classes: tuple[Any, ...] = tuple(sorted({label_text(entry) for entry in present}))
    if is_whole:
        classes = tuple(map(int, np.unique(numbers)))
    fault = f"it has {len(classes)} classes; at most {MOST_CATEGORIES} are drafted. Is it one?"
    refuse_if(len(classes) > MOST_CATEGORIES, where, fault)
    return Task(
        kind="classification", target=name, classes=classes, positive=_find_positive(classes, present, positive)
    )


def _find_positive(classes: Sequence[Any], present: Any, positive: str | None) -> Any:
    """Return the sought one of two classes: as it was given, or that means yes, or else the rarer in public rows."""
    if positive is not None:
        by_text = {str(each): each for each in classes if len(classes) == 2}
        among = join_names(classes)
        refuse_if(positive not in by_text, "[task]", f"--positive names one of two classes, not of {among}.")
        return by_text[positive]
    if len(classes) != 2:
        return None
    if (yes := positive_class(classes)) is not None:
        return yes
    codes = _codes_of(present, classes)
    n_first, n_second = ((codes == place).sum() for place in range(2))
    # Of equally frequent classes neither is proposed, and the task asks: the order of their names says nothing.
    if n_first == n_second:
        return None
    return classes[int(n_second < n_first)]


def target_findings(task: Task, options: DraftOptions) -> Iterator[ColumnFinding]:
    """Yield how a target was taken, and how to change it, where this was not given."""
    has_kind = options.task or options.has_entries
    lines = []
    if task.classes and isinstance(task.classes[0], int) and not has_kind:
        lines.append("its whole numbers are classes; a number with --task regression, as a regression of a study needs")
    elif task.kind == "regression" and not has_kind:
        why = "or as classes with --class for each"
        if options.explains_target:
            why = "as least squares needs one"
            if "least squares" not in options.statistics:
                why = "as poisson regression needs one"
        lines.append(f"it is taken as a number, {why}")
    if task.positive is not None and not options.positive:
        why = "the rarer one in the public rows"
        if positive_class(task.classes) is not None:
            why = "it means yes"
        lines.append(f"the sought class is {task.positive} ({why}); change it with --positive")
    for line in lines:
        yield ColumnFinding(column=task.target, kind="target", found="is the target", done=line)


def trim_tail(task: Task, entries: Any, tell: Callable[[ColumnFinding], None] | None) -> Task:
    """Return the task with a range that a few far numbers do not widen, and tell so: noise is a part of the range."""
    # Quantiles decide, which a few far entries do not move.
    numbers = _check_finite(task.target, entries[label_codes(entries, ()) != MISSING])
    low, high = fences(numbers)
    n_beyond = int(((numbers < low) | (numbers > high)).sum())
    if not n_beyond:
        return task
    low, high = widen_range(np.clip(numbers, low, high))
    if tell is not None:
        done = "the range leaves out what is farther still, as noise is a part of it"
        # Logarithms shorten the tail of a quantity that is never negative.
        if numbers.min() >= 0:
            done += '. For costs, durations and the like, write scale = "log" below [task]'
        found = f"has {n_beyond} of {numbers.size} entries far from the rest"
        tell(ColumnFinding(column=task.target, kind="tail", found=found, done=done))
    return replace(task, minimum=low, maximum=high)
