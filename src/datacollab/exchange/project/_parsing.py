"""Reading the project file: text to entries, entries to a project."""

from __future__ import annotations

import base64
import binascii
import difflib
import math
import re
import tomllib
from datetime import date, datetime
from typing import Any

from ...bundle import PublicKey
from ...errors import ExchangeError
from ._column import Column
from ._project import FORMAT_VERSION, AnchorRecipe, Project
from ._refusals import invalid, listed
from ._sharing import Sharing
from ._task import Task, task_entries

__all__ = ["check_keys", "parse_project"]

MOST_PARTS = 4
"""Names between dots in one key; files of this program need two."""
_QUOTED = re.compile(
    r"""\#[^\n]*+ | "{3}.*?(?:"{3}|\Z) | \'{3}.*?(?:\'{3}|\Z) | "(?:\\.|[^"\\\n])*+"? | \'[^\'\n]*+\'?""",
    re.DOTALL | re.VERBOSE,
)
"""Comments and texts, in which dots mean nothing; also those never closed, so that no letter is looked at twice."""
_DOTTED = re.compile(r"[A-Za-z0-9_-]++(?:[ \t]*+\.[ \t]*+[A-Za-z0-9_-]++)*+")


def check_keys(text: str, what: str) -> None:
    """Refuse a file with a dotted key of many parts.

    Parameters
    ----------
    text : str
    what : str
        What an error calls the file.

    Raises
    ------
    ExchangeError
        TOO_LARGE.
    """
    # A text may be part of a key as well as a value: a letter keeps its place.
    plain = _QUOTED.sub(lambda found: " " if found[0].startswith("#") else "x", text)
    if any(found[0].count(".") >= MOST_PARTS for found in _DOTTED.finditer(plain)):
        raise ExchangeError(
            "TOO_LARGE",
            f"{what} has a key of more than {MOST_PARTS} names between dots, which no file needs. Check its origin.",
        )


_LARGEST = 2**53


class Entries:
    """The entries of one TOML table; each is taken once, and in the end none may be left.

    Parameters
    ----------
    found : object
        What stands in the file.
    where : str
        What an error calls the table.

    Raises
    ------
    ExchangeError
        When it is no table.
    """

    def __init__(self, found: object, where: str) -> None:
        if not isinstance(found, dict):
            raise invalid(where, f"a table of entries is wanted, not {_type(found)}.")
        self.where = where
        self._left: dict[str, Any] = dict(found)
        self._known: list[str] = []

    def text(self, name: str, default: str | None = None) -> str:
        """A text."""
        return str(self._take(name, (str,), "text", default))

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number."""
        number = int(self._take(name, (int,), "a whole number", default))
        if abs(number) > _LARGEST:
            raise invalid(f"{self.where}, {name}", f"the number is too large; at most {_LARGEST} is wanted.")
        return number

    def number(self, name: str) -> float:
        """A finite number."""
        return _finite(f"{self.where}, {name}", self._take(name, (int, float), "a number", None))

    def number_or_text(self, name: str) -> float | str:
        """A finite number, or a text."""
        found = self._take(name, (int, float, str), "a number or text", None)
        return found if isinstance(found, str) else _finite(f"{self.where}, {name}", found)

    def truth(self, name: str, default: bool) -> bool:
        """True or false."""
        return bool(self._take(name, (bool,), "true or false", default))

    def day(self, name: str) -> date | None:
        """A date, or None where there is none."""
        if name not in self._left:
            self._known.append(name)
            return None
        found = self._take(name, (date,), "a date such as 2027-01-31, without quotes or time,", None)
        assert isinstance(found, date)
        return found

    def items(self, name: str, *types: type) -> tuple[Any, ...]:
        """A list of values of the types given."""
        found = self._take(name, (list,), "a list", None)
        for each in found:
            if type(each) not in types:
                wanted = " or ".join(_NAMES[kind] for kind in types)
                raise invalid(f"{self.where}, {name}", f"a list of {wanted} is wanted; there is {_type(each)} in it.")
        return tuple(found)

    def table(self, name: str) -> dict[str, Any]:
        """A table inside this one."""
        return dict(self._take(name, (dict,), "a table", None))

    def tables(self, name: str) -> list[Any]:
        """A list of tables inside this one."""
        return list(self._take(name, (list,), "a list of tables", None))

    def names(self) -> list[str]:
        """Names of the entries that were not taken yet."""
        return list(self._left)

    def has(self, name: str) -> bool:
        """Whether an entry is there that was not taken yet."""
        return name in self._left

    def drop(self, name: str) -> None:
        """Let an entry pass unread."""
        self._known.append(name)
        self._left.pop(name, None)

    def finish(self) -> None:
        """Refuse what is left: a misspelt entry must not silently become its default.

        Raises
        ------
        ExchangeError
            When anything is left.
        """
        if not self._left:
            return
        unknown = sorted(self._left)
        near = difflib.get_close_matches(unknown[0], self._known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise invalid(
            self.where, f"unknown: {listed(repr(name) for name in unknown)}. Allowed: {', '.join(self._known)}.{hint}"
        )

    def _take(self, name: str, types: tuple[type, ...], wanted: str, default: Any) -> Any:
        self._known.append(name)
        if name not in self._left:
            if default is None:
                raise invalid(self.where, f"{name} is missing. Add it: {wanted} is wanted.")
            return default
        found = self._left.pop(name)
        # True is an int to Python, and a time with a day is a date.
        if type(found) not in types:
            raise invalid(f"{self.where}, {name}", f"{wanted} is wanted, not {_type(found)}.")
        return found


def _finite(where: str, number: float) -> float:
    try:
        converted = float(number)
    except OverflowError:
        converted = math.inf
    if not math.isfinite(converted):
        raise invalid(where, "a finite number is wanted.")
    return converted


_NAMES = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number with a point",
    list: "a list",
    dict: "a table",
    date: "a date",
    datetime: "a date with a time",
}


def _type(found: object) -> str:
    return _NAMES.get(type(found), type(found).__name__)


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
    sharing = _sharing(Entries(file.table("sharing"), "[sharing]")) if file.has("sharing") else None
    file.drop("sharing")
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
        seal_shares=rules.truth("seal_shares", True),
        revision=general.whole("revision", 1),
        owner=_key(members, "owner"),
        analyst=_key(members, "analyst"),
        parties={name: _key(parties, name) for name in parties.names()},
        sharing=sharing,
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


def _sharing(entries: Entries) -> Sharing:
    defaults = Sharing(mask_keys={}, entities={})
    mask_keys, entities = (Entries(entries.table(name), f"[sharing.{name}]") for name in ("mask_keys", "entities"))
    sharing = Sharing(
        way=entries.text("way"),
        noise=entries.number("noise") if entries.has("noise") else defaults.noise,
        n_components=entries.whole("n_components", defaults.n_components),
        run=entries.whole("run", defaults.run),
        labelled_by=entries.text("labelled_by") if entries.has("labelled_by") else None,
        epsilon=entries.number("epsilon") if entries.has("epsilon") else None,
        mask_keys={name: mask_keys.text(name) for name in mask_keys.names()},
        entities={name: entities.text(name) for name in entities.names()},
    )
    entries.finish()
    return sharing


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
