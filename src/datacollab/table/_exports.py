"""Exports of research databases: rows of REDCap that repeat a person, its empty forms, and OMOP's concept 0."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._entries import join_names
from .._notices import notice
from ._column import Schema
from ._limits import ambiguous, unreadable

_REPEATS = ("redcap_repeat_instrument", "redcap_repeat_instance")
_EVENT = "redcap_event_name"
_BOX = re.compile(r"(?P<field>\w+)___\w+")
_FORM = "_complete"
_CONCEPT = "_concept_id"
_NOT_BEGUN = ("", "0", "Incomplete")
_UNTICKED = ("", "0", "Unchecked")
_PLAN_ROWS = 16384


@dataclass(frozen=True, kw_only=True)
class ResearchExport:
    """The parts of a table that a research database writes in a way of its own."""

    concepts: frozenset[int] = frozenset()
    """Positions of OMOP's numbers of concepts."""
    forms: Sequence[tuple[int, Sequence[int], Sequence[int]]] = field(default_factory=tuple)
    """For each form of REDCap with check boxes the positions of its state, its boxes, and its other columns."""
    remarks: Sequence[str] = field(default_factory=tuple)

    def change(self, chunk: Any) -> Any:
        """Return rows of text with gaps instead of numbers that mean none."""
        changed: dict[int, NDArray[Any]] = {}
        for place in self.concepts:
            entries = chunk[place].to_numpy(dtype=object)
            changed[place] = np.where(entries == "0", "", entries)
        for state, boxes, others in self.forms:
            is_empty = chunk[state].isin(_NOT_BEGUN) & chunk[boxes].isin(_UNTICKED).all(axis=1)
            if others:
                is_empty &= (chunk[others] == "").all(axis=1)
            changed |= {place: np.where(is_empty, "", chunk[place].to_numpy(dtype=object)) for place in boxes}
        chunk = chunk.copy()
        for place, entries in changed.items():
            chunk[place] = entries
        return chunk


def is_export(names: Collection[str]) -> bool:
    """Return whether column names are those of an export that is looked at."""
    return any(name.startswith("redcap_") or name.endswith(_CONCEPT) or _BOX.fullmatch(name) for name in names)


def refuse_labels(path: Path, names: Collection[str]) -> None:
    """Refuse a REDCap export whose header has the questions instead of the columns' names."""
    if any("(choice=" in name for name in names) or "Repeat Instrument" in names:
        raise unreadable(
            path, "has REDCap's questions as its header. Export it as raw data, whose header has the fields' names."
        )


def concept_names(names: Collection[str], schema: Schema | None) -> list[str]:
    """Return the columns of OMOP's numbers of concepts, but for those in which a schema has a level "0"."""
    labels = {} if schema is None else schema.labels
    return [name for name in names if name.endswith(_CONCEPT) and "0" not in map(str, labels.get(name, ()))]


def settle_concepts(frame: Any, schema: Schema | None) -> Any:
    """Return a frame of Arrow or a database in which concept 0 is a gap, and without a schema others are codes."""
    for name in concept_names(frame.columns, schema):
        # Of objects, as types of Arrow compare with no text.
        settled = frame[name].mask(frame[name].astype(object).isin([0, "0"]))
        if schema is None:
            # Numbers with gaps are doubles in many files.
            settled = settled.astype(object).map(_code_text, na_action="ignore")
        frame = frame.assign(**{name: settled})
    return frame


def tell_concepts(place: str, names: Collection[str], schema: Schema | None) -> None:
    """Give notice of columns in which concept 0 counts as a gap."""
    if concepts := concept_names(names, schema):
        words = join_names(map(repr, concepts))
        notice(f"{place}: concept 0 (none matches) counts as a gap in {words}", is_plain=False)


def _code_text(code: Any) -> str:
    return str(int(code)) if isinstance(code, float) and code.is_integer() else str(code)


def look_at_export(
    path: Path, names: Sequence[str], chunks: Callable[[int], Iterator[Any]], kept: Collection[str]
) -> ResearchExport:
    """Return the parts of an export that mean something else than they say; `kept` are concepts with a level "0".

    It raises TABLE_AMBIGUOUS if a person has several rows.
    """
    places = {name: place for place, name in enumerate(names)}
    watched = [places[name] for name in (*_REPEATS, _EVENT) if name in places]
    concepts = {place for name, place in places.items() if name.endswith(_CONCEPT) and name not in kept}
    seen: dict[int, set[str]] = {place: set() for place in (*watched, *concepts)}
    for chunk in chunks(_PLAN_ROWS) if seen else ():
        for place, entries in seen.items():
            entries.update(chunk[place].unique())
    for place in watched:
        # Several events are several rows a person, and one event is none.
        if len(seen[place] - {""}) > (names[place] == _EVENT):
            raise ambiguous(
                f"{path}: column {names[place]!r}",
                "says that a person has several rows, and here each row is one person. Export one instrument and one "
                "event (in REDCap: a report with a filter), or put a person's rows into one.",
            )
    concepts = {place for place in concepts if "0" in seen[place]}
    forms = _forms_of(names)
    boxes = {place for _, of_form, _ in forms for place in of_form}
    found = {
        "concept 0 (none matches) is a gap in": concepts,
        "boxes of forms that nobody began are gaps in": boxes,
        "0 may be a box of a form that nobody began, as no column says so, in": _boxes_of(names) - boxes,
    }
    remarks = [f"{words} {_names(names, each)}" for words, each in found.items() if each]
    return ResearchExport(concepts=frozenset(concepts), forms=forms, remarks=remarks)


def _boxes_of(names: Sequence[str]) -> set[int]:
    return {place for place, name in enumerate(names) if _BOX.fullmatch(name)}


def _names(names: Sequence[str], places: Collection[int]) -> str:
    return join_names(repr(names[place]) for place in sorted(places))


def _forms_of(names: Sequence[str]) -> list[tuple[int, list[int], list[int]]]:
    """Return the state, the boxes and the other columns of each form with boxes: a form ends with its state."""
    forms = []
    boxes: list[int] = []
    others: list[int] = []
    for place, name in enumerate(names):
        if name.endswith(_FORM):
            if boxes:
                forms.append((place, boxes, others))
            boxes = []
            others = []
        elif _BOX.fullmatch(name):
            boxes.append(place)
        # The first column is the record's number, and REDCap's own columns are of no form.
        elif place and not name.startswith("redcap_"):
            others.append(place)
    return forms
