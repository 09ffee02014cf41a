"""From the text of a project file to the agreement."""

from __future__ import annotations

import base64
import binascii
import tomllib
from typing import Any

from ...bundle import PublicKey
from ...errors import ExchangeError
from ._column import Column
from ._content import FORMAT_VERSION
from ._entries import Entries
from ._project import Project
from ._recipe import AnchorRecipe
from ._refusals import invalid
from ._task import Task
from ._task_checks import task_entries
from ._toml_keys import check_keys

__all__ = ["MOST_FEATURES", "parse_project"]

MOST_FEATURES = 10_000


def parse_project(text: str, *, what: str = "project.toml") -> tuple[Project, bytes | None]:
    """Read a project file that anyone may have written; its signature is read, not verified.

    Parameters
    ----------
    text : str
    what : str
        What an error calls the file.

    Returns
    -------
    project : Project
    signature : bytes or None
        None where there is none.

    Raises
    ------
    ExchangeError
        When it is no TOML, or says something unknown or impossible.
    """
    found = _parsed(text, what)
    try:
        return _project(found)
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{what}: {error}") from None


def _parsed(text: str, what: str) -> dict[str, Any]:
    check_keys(text, what)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Only the parser's own sentence names the line; a number or date that cannot be has another.
        said = f" ({error})" if isinstance(error, tomllib.TOMLDecodeError) and str(error).isprintable() else ""
        raise ExchangeError(
            "SPEC_INVALID", f"{what} is no TOML file{said}. Correct the line, or have the file sent again."
        ) from None


def _project(found: dict[str, Any]) -> tuple[Project, bytes | None]:
    file = Entries(found, "The file")
    general = Entries(file.table("project"), "[project]")
    # Before all else: a later version may well have entries that are unknown here.
    version = general.whole("format_version")
    if version > FORMAT_VERSION:
        raise ExchangeError(
            "FORMAT_TOO_NEW",
            f"[project], format_version: {version}; this program reads version {FORMAT_VERSION}. Upgrade datacollab.",
        )
    if version != FORMAT_VERSION:
        raise invalid("[project], format_version", f"{version}; {FORMAT_VERSION} is wanted.")
    task, recipe, rules = (Entries(file.table(name), f"[{name}]") for name in ("task", "anchor", "rules"))
    columns = file.tables("columns")
    _check_size(columns)
    members = Entries(file.table("members"), "[members]")
    signature = _signature(Entries(file.table("signature"), "[signature]")) if file.has("signature") else None
    file.drop("signature")
    file.finish()
    parties = Entries(members.table("parties"), "[members.parties]")
    project = Project(
        name=general.text("name"),
        purpose=general.text("purpose"),
        task=_task(task),
        anchor=AnchorRecipe(
            method=recipe.text("method"), n_rows=recipe.whole("n_rows"), source=recipe.text("source", "")
        ),
        columns=tuple(_column(entries, position) for position, entries in enumerate(columns, start=1)),
        max_components=rules.whole("max_components"),
        min_rows=rules.whole("min_rows", 20),
        min_class_rows=rules.whole("min_class_rows", 1),
        quorum=rules.whole("quorum", 2),
        deadline=rules.day("deadline"),
        seal_shares=rules.truth("seal_shares", False),
        revision=general.whole("revision", 1),
        owner=_key(members, "owner"),
        analyst=_key(members, "analyst"),
        parties={name: _key(parties, name) for name in parties.names()},
    )
    for entries in (general, recipe, rules, members, parties):
        entries.finish()
    return project, signature


def _check_size(columns: list[Any]) -> None:
    """Before anything is made of them: what a file of a megabyte can list takes gigabytes as a matrix."""
    n_features = len(columns)
    for column in columns:
        categories = column.get("categories") if isinstance(column, dict) else None
        n_features += len(categories) if isinstance(categories, list) else 0
    if n_features > MOST_FEATURES:
        raise ExchangeError(
            "TOO_LARGE",
            f"[[columns]]: {n_features} columns and categories; {MOST_FEATURES} are allowed. Merge rare categories.",
        )


def _task(entries: Entries) -> Task:
    kind = entries.text("kind")
    if kind in ("survival", "effect", "none"):
        return _named_task(kind, entries)
    target = entries.text("target")
    if kind == "regression":
        task = Task(
            kind=kind,
            target=target,
            unit=entries.text("unit", ""),
            minimum=entries.number("minimum"),
            maximum=entries.number("maximum"),
        )
    else:
        task = Task(kind=kind, target=target, classes=entries.items("classes", str, int))
    entries.finish()
    return task


def _named_task(kind: str, entries: Entries) -> Task:
    given: dict[str, Any] = {}
    for name in task_entries(kind, has_time=entries.has("event") or entries.has("time")):
        if name in ("seen", "not_seen", "treated", "untreated"):
            given[name] = entries.items(name, str, int)
        elif name in ("minimum", "maximum", "rounding"):
            given[name] = entries.number(name)
        else:
            given[name] = entries.text(name, "" if name == "unit" else None)
    entries.finish()
    return Task(kind=kind, **given)


def _column(found: object, position: int) -> Column:
    entries = Entries(found, f"[[columns]] number {position}")
    name, kind = entries.text("name"), entries.text("kind")
    entries.where = f"[[columns]] {name!r}"
    options: dict[str, Any] = {"missing": entries.text("missing", "refuse")}
    if kind == "category":
        options["categories"] = entries.items("categories", str)
    else:
        options |= {
            "unit": entries.text("unit", ""),
            "minimum": entries.number("minimum"),
            "maximum": entries.number("maximum"),
        }
    if options["missing"] == "fill":
        options |= {"fill": entries.number_or_text("fill"), "flag_missing": entries.truth("flag_missing", False)}
    rule = "unknown" if kind == "category" else "outside"
    options[rule] = entries.text(rule, "refuse")
    entries.finish()
    return Column(name=name, kind=kind, **options)


def _key(entries: Entries, name: str) -> PublicKey:
    try:
        return PublicKey.from_text(entries.text(name))
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{entries.where}, {name}: {error}") from None


def _signature(entries: Entries) -> bytes:
    text = entries.text("ed25519")
    entries.finish()
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ExchangeError(
            "SIGNATURE_INVALID", "[signature], ed25519: this is no signature (base64). Have the file sent again."
        ) from None
