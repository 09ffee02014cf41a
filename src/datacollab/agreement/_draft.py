"""A first project file from a public table: columns, ranges, categories and the task are guessed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from .._entries import invalid, join_names, refuse_if
from .._frames import MOST_OUTSIDE
from ..bundle import PublicKey
from ..sums._recommended import recommended
from ..table import Column, ColumnFinding, Diagnosis, diagnose, is_read, rare_classes, read_table, target_entries
from ._draft_options import DraftOptions
from ._draft_task import draft_task, target_findings, trim_tail, widen_range
from ._project import AnchorRecipe, Project, usual_components
from ._sharing import ANALYST, Sharing, are_declared_alike, may_take_rounds

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
    if is_read(table):
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
        for finding in target_findings(task, wanted):
            tell(finding)
        if task.classes and (rare := rare_classes(task.target, target)):
            tell(rare)
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


def _draft_sharing(
    options: DraftOptions, mask_keys: Mapping[str, str], columns: Sequence[Column], labelled_by: str | None
) -> Sharing:
    """Return the settings of sums; names of keys stand for legal entities until somebody writes them."""
    # Columns that are all alike, as pixels are, take less noise.
    usual = recommended(alike=are_declared_alike(columns))
    of_study: dict[str, Any] = {}
    if options.statistics:
        of_study = {"statistics": tuple(options.statistics), "outcome": options.explained}
        # Counts by pattern are for categories; by rounds, numbers explain as they are.
        if may_take_rounds(options.statistics) and not all(column.levels for column in columns):
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
            tell(_tell_gaps(name, diagnosis))
        if options.statistics:
            # A study counts missing entries, and describes the others.
            column = replace(column, flag_missing=True)
        # A category too many is a gap in a study, unless the draft itself left out all but the most frequent ones.
        is_cut = any(each.kind == "many" for each in diagnosis.findings)
        if options.statistics and column.categories and not is_cut:
            column = replace(column, unknown="missing")
        columns.append(column)
    if questions:
        sentences = " ".join(each.sentence for each in questions)
        raise invalid("The public table", f"say what is meant in {len(questions)} of its columns. {sentences}")
    return tuple(columns)


def _tell_letters(name: str, marks: Counter[str]) -> ColumnFinding:
    words = join_names([f"{mark!r} ({n} times)" for mark, n in marks.most_common()])
    found = f"has {words} among numbers"
    done = "read as missing, as SAS and REDCap mark gaps; if it means a number, write that in its place"
    return ColumnFinding(column=name, kind="letters", found=found, done=done)


def _tell_gaps(name: str, diagnosis: Diagnosis) -> ColumnFinding:
    found = f"has no entry in {diagnosis.n_missing} of {diagnosis.n_rows} rows"
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
    low, high = valid_range or widen_range(present)
    # In few digits, as the mean of the two in the middle may have many; and inside a range that was given.
    fill = min(max(float(f"{np.median(present):.10g}"), low), high)
    return Column(kind="number", minimum=low, maximum=high, fill=fill, outside="clip", **common)
