"""A first project file from a public table: columns, ranges, categories and the task are guessed."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._entries import NO_AND_YES, check_choice, invalid, join_names, positive_class, refuse_if
from .._frames import MISSING, MOST_OUTSIDE, UNKNOWN, label_text
from .._typing import FloatArray
from ..bundle import PublicKey
from ..sums import fences
from ..sums._recommended import MOST_PATTERNS, recommended
from ..table import (
    MOST_CATEGORIES,
    Answers,
    Column,
    ColumnFinding,
    Diagnosis,
    NotNumericError,
    are_amounts,
    as_numbers,
    class_text,
    diagnose,
    label_codes,
    rare_classes,
    read_table,
    target_entries,
)
from ..table._encoding import FIRST_DAY
from ..targets import usual_time_step
from ._project import AnchorRecipe, Project, usual_components
from ._sharing import ANALYST, Sharing, are_declared_alike, may_take_rounds, needs_rounds
from ._task import TASKS, Task


@dataclass(frozen=True, kw_only=True)
class DraftOptions:
    """The owner's wishes for a first project file."""

    task: str | None = None
    """By default an effect if there is a treatment, a survival if there are an event and a time, and otherwise a
    classification if the target is text, or whole numbers of at most ten kinds that do not thin out as counts do.
    "none" has to be given."""
    target: str | None = None
    event: str | None = None
    time: str | None = None
    treatment: str | None = None
    outcome: str | None = None
    """Columns of the task.  The longest time is guessed like a range, and the rounding by `usual_time_step`."""
    seen: Sequence[str] = ()
    treated: Sequence[str] = ()
    """Entries of the event and of the treatment that mean yes; all others mean no.  By default 1, true or yes, if
    nothing but these and 0, false or no occur."""
    classes: Sequence[str] = ()
    target_range: tuple[float, float] | None = None
    """All classes, or the smallest and largest target; the public rows need no target then."""
    positive: str | None = None
    """Of two classes, the one that is sought; by default the one that means yes, or else the rarer one."""
    without: Sequence[str] = ()
    """Columns to leave out, such as identifiers."""
    valid_range: tuple[float, float] | None = None
    """Smallest and largest number of all columns, instead of a guess for each."""
    source: str = ""
    """The origin of the public rows, in words."""
    anchor_rows: int | None = None
    max_components: int | None = None
    """By default 1,000, and as `usual_components`."""
    mask_keys: Mapping[str, str] | None = None
    """Cards, one of each party: the project then shares sums, and the anchor is a sample of the public rows.  Names
    stand for legal entities until somebody writes them.  If the public rows have targets, the owner, or else the
    first party, adds them to its own.  By default the project shares rows."""
    statistics: Sequence[str] = ()
    """Those of a study, which are shared in place of a model's sums.  Missing and unknown entries are then counted as
    missing, there is an anchor for an effect alone, and `outcome` may be a column beside a target or times."""
    logistic_model: Mapping[str, float] | None = None
    """The coefficients of a published model that a validation tries."""
    kinds: Mapping[str, str] | None = None
    """By column "number" or "category", if it has two readings."""
    missing: Mapping[str, Collection[str]] | None = None
    keep: Mapping[str, Collection[str]] | None = None
    """Entries that mean missing, and those that are taken as they are, by column; of all columns under ""."""
    explained: str | None = field(default=None, init=False)
    """The column of a study's outcome beside the task's own target."""

    @cached_property
    def answers(self) -> Answers:
        """The answers on columns."""
        return Answers(kinds=self.kinds or {}, missing=self.missing or {}, keep=self.keep or {})

    @property
    def parts(self) -> dict[str, str]:
        """The column of each part of the targets that has one."""
        names = ("target", "event", "time", "treatment", "outcome")
        columns = {name: getattr(self, name) for name in names}
        return {name: column for name, column in columns.items() if column is not None}

    @property
    def has_entries(self) -> bool:
        """Whether the target's possible entries were given, so that public rows need no target."""
        return bool(self.classes) or self.target_range is not None

    @property
    def explains_target(self) -> bool:
        """Whether a regression explains the target, which has to be a number then."""
        has_target = self.target is not None and not self.classes
        # Classes were given on purpose, and are no number.
        return has_target and self.explained is None and "least squares" in self.statistics

    @property
    def is_model_of_sums(self) -> bool:
        """Whether the parties share sums for a model."""
        return self.mask_keys is not None and not self.statistics

    def settle_outcome(self) -> DraftOptions:
        """Return the options with a study's outcome as the target, or as a column beside the task's own target."""
        if not self.statistics or self.outcome is None:
            return self
        if self.time or self.target:
            beside = replace(self, outcome=None)
            object.__setattr__(beside, "explained", self.outcome)
            return beside
        if self.treatment or self.event:
            return self
        # Nothing else can be meant.
        return replace(self, target=self.outcome, outcome=None)

    def target_columns(self, names: Sequence[str]) -> list[str]:
        """Return the task's columns that a table of these names must have, or has."""
        return [each for each in self.parts.values() if each in names or not self.has_entries or each != self.target]

    def check_names(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks a column that an option names."""
        unknown = [each for each in [*self.target_columns(names), *self.without] if each not in names]
        if unknown:
            advice = ""
            if self.target in unknown:
                advice = " Public rows need no targets: give them by --class for each class, or by --target-range."
            sentence = f"it has no column {join_names(unknown)}; it has {join_names(names)}.{advice}"
            raise invalid("The public table", sentence)
        # A slip in an option's column would silently change nothing.
        strange = join_names(sorted({*(self.kinds or {}), *(self.missing or {}), *(self.keep or {})} - {*names, ""}))
        refuse_if(strange, "The public table", f"it has no column {strange}, which an option names.")


_WHOLE = re.compile(r"0|-?[1-9]\d*", re.ASCII)
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
        low, high = _guess_range(_check_finite(outcome, entries[outcome]))
        return Task(kind=kind, **parts, minimum=low, maximum=high)
    event = named["event"]
    time = named["time"]
    not_seen, seen = _find_no_and_yes(event, entries[event], options.seen, "--seen")
    times = _check_finite(time, entries[time])
    # At time 0 nobody is at risk yet.
    is_early = bool((times <= 0).any())
    refuse_if(is_early, f"The time {time!r}", f"times must be above 0. Correct the public rows{FIRST_DAY}")
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


def _guess_range(numbers: FloatArray) -> tuple[float, float]:
    """Return the range of public numbers, widened; but 0 and 1 mean no and yes, and nothing lies beyond them."""
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
        are_classes = is_whole and not are_amounts(numbers)
    except NotNumericError:
        numbers = np.empty(0)
        is_whole = False
        # Text is never a number.
        are_classes = True
    # Whole numbers that look like an amount are one, unless somebody says classes.
    if kind == "regression" or (kind is None and not are_classes):
        fault = "a regression needs numbers, and it holds something else. Write yes and no as 1 and 0."
        refuse_if(not numbers.size, where, fault)
        refuse_if(positive is not None, where, "--positive names a class, and it is taken as a number. Remove it.")
        low, high = _guess_range(numbers)
        return Task(kind="regression", target=name, minimum=low, maximum=high)
    classes: tuple[Any, ...] = tuple(sorted(set(map(class_text, present))))
    if is_whole and not {"False", "True"} & {*classes}:
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


_USUAL_ANCHORS = 1000
_MOST_UNFLAGGED = MOST_OUTSIDE / 5
"""The largest share of gaps without a column that says where; a party's small table may have five times it by chance.

With 3 % of gaps, a table of 107 rows is above 5 % in one of ten draws, and with 1 % in one of a thousand.
"""
_MORE_OTHERS = 1.25
"""Parties may have so many times as many categories that are not listed as public rows let expect."""
_LEAVE_OUT = "Leave it out of the public table or with --without, if it is an identifier, a date or free text."
_Tell = Callable[[ColumnFinding], None]


def draft_project(
    table: Any, *, owner: PublicKey, parties: Mapping[str, PublicKey], tell: _Tell | None = None, **options: Any
) -> Project:
    """Guess columns and task from public rows; all that is found in them is written into the project.

    Numbers get the range that was found, half its width added on each side, but nothing below 0 if no number is
    negative, and whole bounds if all numbers are whole; text becomes categories.  So that no single row of a party
    asks for another agreement, the rules clip numbers outside, count unknown categories as "other", and fill in the
    median or the most frequent category of the public rows.  If two or more of them, and over 1 %, lack an
    entry, a flag says where.

    Parameters
    ----------
    table : DataFrame, or what `table.read_table` reads
        Public rows.
    owner : PublicKey
    parties : mapping of str to PublicKey
    tell : callable, optional
        Called with a `ColumnFinding` for each thing that was found and decided.  With it, columns that have two
        readings are refused until somebody says which is meant; without it, whole numbers are numbers.
    **options
        Wishes, by the names of `DraftOptions`; and further entries of `Project`: name, purpose, analyst, its rules.

    Raises
    ------
    ExchangeError
        If a column can be neither numbers nor categories, or the entries contradict one another.
    """
    # Everything else is an entry of the project.
    wishes = {each.name: options.pop(each.name) for each in fields(DraftOptions) if each.name in options}
    wanted = DraftOptions(**wishes).settle_outcome()
    table = read_table(table)
    names = [str(name) for name in table.columns]
    wanted.check_names(names)
    # Columns first: most questions are on them.
    columns = _draft_columns(table, names, wanted, tell)
    refuse_if(not columns, "The public table", "it has no column besides the target. Give one with all columns.")
    entries = {
        # Of two readings of a target, only those of a class or number are asked.
        name: target_entries(name, table.iloc[:, names.index(name)], wanted.answers, tell if is_target else None)
        for name, is_target in ((each, each == wanted.target) for each in wanted.target_columns(names))
    }
    task = draft_task(wanted, entries)
    target = entries.get(wanted.target or "")
    if target is not None and tell is not None:
        _tell_of_target(task, target, wanted, tell)
    if task.kind == "regression" and (marks := getattr(table, "attrs", {}).get("letters", {}).get(task.target)):
        # The reader took them as gaps, and parties' tables are read by what the project says.
        task = replace(task, missing_words=tuple(sorted(marks)))
        if tell is not None:
            tell(_tell_letters(task.target, marks))
    # Only sums carry noise in proportion to the target's range.
    if wanted.is_model_of_sums and task.kind == "regression" and wanted.target_range is None:
        task = trim_tail(task, target, tell)
    sharing = None
    if wanted.mask_keys is not None:
        labelled_by = None
        # One party adds the labelled public rows: the owner, if it is one.
        if wanted.target in names and not wanted.statistics:
            labelled_by = next((each for each, key in parties.items() if key == owner), next(iter(parties)))
        sharing = _draft_sharing(wanted, wanted.mask_keys, columns, labelled_by)
    n_components = wanted.max_components
    if n_components is None:
        n_components = usual_components(sum(column.n_free for column in columns), task)
    return Project(
        columns=columns,
        task=task,
        anchor=_draft_recipe(wanted, sharing, len(table)),
        max_components=n_components,
        owner=owner,
        parties=dict(parties),
        sharing=sharing,
        **options,
    )


def _tell_of_target(task: Task, target: Any, options: DraftOptions, tell: _Tell) -> None:
    """Tell what is found of a target, and of its rare classes."""
    for finding in target_findings(task, options):
        tell(finding)
    if task.classes and (rare := rare_classes(task.target, target)):
        tell(rare)


def _draft_sharing(
    options: DraftOptions, mask_keys: Mapping[str, str], columns: Sequence[Column], labelled_by: str | None
) -> Sharing:
    """Return the settings of sums; names of keys stand for legal entities until somebody writes them."""
    # Columns that are all alike, as pixels are, take less noise.
    usual = recommended(alike=are_declared_alike(columns))
    of_study: dict[str, Any] = {}
    if options.statistics:
        of_study = {"statistics": tuple(options.statistics), "outcome": options.explained}
        # Counts by pattern are for few categories; by rounds, numbers explain as they are.
        has_numbers = not all(column.levels for column in columns)
        has_many = math.prod(max(len(column.levels), 1) for column in columns) > MOST_PATTERNS
        if needs_rounds(options.statistics) or ((has_numbers or has_many) and may_take_rounds(options.statistics)):
            of_study["rounds"] = 2
    return Sharing(
        mask_keys=dict(mask_keys),
        entities={each: each for each in (*mask_keys, ANALYST)},
        noise=usual.noise,
        n_components=usual.n_components,
        labelled_by=labelled_by,
        logistic_model=None if options.logistic_model is None else dict(options.logistic_model),
        **of_study,
    )


def _draft_recipe(options: DraftOptions, sharing: Sharing | None, n_public: int) -> AnchorRecipe:
    """Return the recipe of the anchor; a common map needs real rows, and a sample has no more than its table."""
    method = "smote"
    n_rows = _USUAL_ANCHORS
    if sharing is not None and sharing.has_map:
        method = "sample"
        n_rows = max(2, min(n_rows, n_public))
    if options.anchor_rows is not None:
        n_rows = options.anchor_rows
    return AnchorRecipe(method=method, n_rows=n_rows, source=options.source)


def _draft_columns(table: Any, names: Sequence[str], options: DraftOptions, tell: _Tell | None) -> tuple[Column, ...]:
    """Return the columns that are not left out, and tell all findings; with `tell`, refuse those with two readings."""
    left = {*options.parts.values(), *options.without}
    letters = getattr(table, "attrs", {}).get("letters", {})
    columns = []
    questions = []
    # A name that stands twice is one column here, and refused when the table is encoded.
    for name, position in {name: position for position, name in enumerate(names) if name not in left}.items():
        diagnosis = diagnose(name, table.iloc[:, position], options.answers, limits=options.valid_range)
        if tell is not None:
            # All of them, so that the owner answers once.
            questions += [each for each in diagnosis.findings if each.asks]
            for each in diagnosis.findings:
                tell(each)
            # Questions on all columns are asked together, below.
            if not diagnosis.kind:
                continue
        if diagnosis.kind == "left out":
            continue
        column = _draft_column(name, diagnosis, options.valid_range)
        if column.minimum is not None and (marks := letters.get(name)):
            # Parties' tables are read by what the project says.
            column = replace(column, missing_words=tuple(sorted({*column.missing_words, *marks})))
            if tell is not None:
                tell(_tell_letters(name, marks))
        if column.flag_missing and tell is not None:
            tell(_tell_gaps(name, diagnosis, fills=not options.statistics or "effect" in options.statistics))
        if options.statistics:
            column = _adapt_to_study(column, diagnosis)
        columns.append(column)
    if questions:
        sentences = " ".join(each.sentence for each in questions)
        raise invalid("The public table", f"say what is meant in {len(questions)} of its columns. {sentences}")
    return tuple(columns)


def _adapt_to_study(column: Column, diagnosis: Diagnosis) -> Column:
    """Return the column as a study has it, which counts missing entries, and describes the others."""
    # A category too many is a gap, unless the draft itself left out all but the most frequent ones.
    is_cut = any(each.kind == "many" for each in diagnosis.findings)
    if column.categories and not is_cut:
        column = replace(column, unknown="missing")
    return replace(column, flag_missing=True)


def _tell_letters(name: str, marks: Counter[str]) -> ColumnFinding:
    words = join_names([f"{mark!r} ({n} times)" for mark, n in marks.most_common()])
    found = f"has {words} among numbers"
    done = "read as missing, as SAS and REDCap mark gaps; if it means a number, write that in its place"
    return ColumnFinding(column=name, kind="letters", found=found, done=done)


def _tell_gaps(name: str, diagnosis: Diagnosis, *, fills: bool) -> ColumnFinding:
    found = f"has no entry in {diagnosis.n_missing} of {diagnosis.n_rows} rows"
    done = "a study leaves such entries missing, and a regression their whole rows out"
    if fills:
        done = "one more column says where (flag_missing), as small tables may have far more by chance"
    return ColumnFinding(column=name, kind="gaps", found=found, done=done)


def _draft_column(name: str, diagnosis: Diagnosis, valid_range: tuple[float, float] | None) -> Column:
    where = f"Column {name!r}"
    fault = "it holds dates, or text among numbers, or else no numbers and categories."
    refuse_if(not diagnosis.kind, where, f"{fault} {_LEAVE_OUT}")
    common: dict[str, Any] = {
        "name": name,
        "missing": "fill",
        "missing_words": diagnosis.missing_words,
        # One gap may be a slip; a column of ones and zeros for it would be nearly constant.
        "flag_missing": diagnosis.n_missing > max(1, _MOST_UNFLAGGED * diagnosis.n_rows),
    }
    if diagnosis.kind == "category":
        categories = tuple(sorted(diagnosis.levels))
        most = max(categories, key=lambda text: (diagnosis.levels[text], text), default=None)
        twentieths = math.ceil(20 * min(1.0, _MORE_OTHERS * diagnosis.share_of_others))
        common |= {"unknown": "other", "most_unknown": max(MOST_OUTSIDE, twentieths / 20)}
        return Column(kind="category", categories=categories, fill=most, **common)
    present = diagnosis.numbers[np.isfinite(diagnosis.numbers)]
    refuse_if(not present.size, where, f"no row has a number in it. {_LEAVE_OUT}")
    # Half the width on each side: parties see people whom the public rows lack.
    low, high = valid_range or _guess_range(present)
    # In few digits, as the mean of the two in the middle may have many; and inside a range that was given.
    fill = min(max(float(f"{np.median(present):.10g}"), low), high)
    return Column(kind="number", minimum=low, maximum=high, fill=fill, outside="clip", **common)
