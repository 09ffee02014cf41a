"""The project file: read by anybody, signed by its owner, and written with comments for people."""

from __future__ import annotations

import base64
import binascii
import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from ..._require import require
from ...bundle import KeyPair, PublicKey, canonical_json, open_regular, unpack
from ...errors import ExchangeError
from ._column import Column
from ._project import FORMAT_VERSION, AnchorRecipe, Project, project_content
from ._refusals import LARGEST, check_choice, invalid, listed
from ._sharing import Sharing
from ._task import TASKS, Task, task_entries

__all__ = ["load_project", "parse_project", "project_text", "read_project", "read_project_text", "sign_project_text"]

_MOST_FEATURES = 10_000
_MOST_PARTS = 4
"""Names between dots in one key; files of this program need two."""
_QUOTED = re.compile(
    r"""\#[^\n]*+ | "{3}.*?(?:"{3}|\Z) | \'{3}.*?(?:\'{3}|\Z) | "(?:\\.|[^"\\\n])*+"? | \'[^\'\n]*+\'?""",
    re.DOTALL | re.VERBOSE,
)
"""Comments and texts, in which dots mean nothing; also those never closed, so that no letter is looked at twice."""
_DOTTED = re.compile(r"[A-Za-z0-9_-]++(?:[ \t]*+\.[ \t]*+[A-Za-z0-9_-]++)*+")
_WORDS = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number with a point",
    list: "a list",
    dict: "a table",
    date: "a date",
    datetime: "a date with a time",
}
_TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "str": ("text", (str,)),
    "bool": ("true or false", (bool,)),
    "int": ("a whole number", (int,)),
    "float": ("a number", (int, float)),
    "float | str": ("a number or text", (int, float, str)),
    "str | int": ("text or a whole number", (str, int)),
    "date": ("a date such as 2027-01-31, without quotes or time", (date,)),
    "PublicKey": ("a public key as text", (str,)),
    "list": ("a list of tables", (list,)),
    "tuple": ("a list", (list,)),
    "dict": ("a table of entries", (dict,)),
}
"""Words and types of TOML for the annotations of the classes that a file is read into."""


def parse_project(text: str, *, what: str = "project.toml") -> tuple[Project, bytes | None]:
    """Read a project file of unknown origin; its signature is returned, None if there is none, and not verified."""
    check_keys(text, what)
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Only the parser's own sentence names the line; a number or date that cannot be has another.
        said = f" ({error})" if isinstance(error, tomllib.TOMLDecodeError) and str(error).isprintable() else ""
        raise invalid(what, f"this is no TOML file{said}. Correct the line, or have the file sent again.") from None
    try:
        return _project(found)
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{what}: {error}") from None


def check_keys(text: str, what: str) -> None:
    """Refuse a file with a dotted key of many parts, which keeps the parser busy for long."""
    # A text may be part of a key as well as a value: a letter keeps its place.
    plain = _QUOTED.sub(lambda found: " " if found[0].startswith("#") else "x", text)
    if any(found[0].count(".") >= _MOST_PARTS for found in _DOTTED.finditer(plain)):
        raise ExchangeError(
            "TOO_LARGE",
            f"{what} has a key of more than {_MOST_PARTS} names between dots, which no file needs. Check its origin.",
        )


def _project(found: dict[str, Any]) -> tuple[Project, bytes | None]:
    # Before all else: a later version may well have entries that are unknown here.
    version = _entry(found.get("project"), "dict", "[project]").get("format_version")
    version = _entry(version, "int", "[project], format_version")
    if version > FORMAT_VERSION:
        raise ExchangeError(
            "FORMAT_TOO_NEW",
            f"[project], format_version: {version}; this program reads version {FORMAT_VERSION}. Upgrade datacollab.",
        )
    if version != FORMAT_VERSION:
        raise invalid("[project], format_version", f"expected {FORMAT_VERSION}, got {version}.")
    tables = dict.fromkeys(("project", "task", "anchor", "rules", "members", "sharing", "signature"), "dict")
    required = ("project", "task", "anchor", "rules", "columns", "members")
    file = _entries(found, tables | {"columns": "list"}, "The file", required, ("sharing", "signature"))
    _check_size(file["columns"])
    signature = _signature(file["signature"]) if "signature" in file else None
    types = _types(Project) | {"format_version": "int"}
    general = _entries(file["project"], types, "[project]", ("format_version", "name", "purpose"), ("revision",))
    del general["format_version"]
    limits = ("min_rows", "min_class_rows", "quorum", "deadline", "seal_shares")
    project = Project(
        **general,
        **_entries(file["rules"], types, "[rules]", ("max_components",), limits),
        **_entries(file["members"], types, "[members]", ("owner", "analyst", "parties")),
        task=_task(file["task"]),
        anchor=AnchorRecipe(
            **_entries(file["anchor"], _types(AnchorRecipe), "[anchor]", ("method", "n_rows"), ("source",))
        ),
        columns=tuple(_column(column, position) for position, column in enumerate(file["columns"], start=1)),
        sharing=_sharing(file["sharing"]) if "sharing" in file else None,
    )
    return project, signature


def _types(kind: type) -> dict[str, str]:
    return {each.name: str(each.type) for each in fields(kind)}


def _entries(
    found: object, types: Mapping[str, str], where: str, required: Iterable[str], optional: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the entries of a table by their types; an unknown one must not silently become a default."""
    table, known = _entry(found, "dict", where), [*required, *optional]
    if missing := [name for name in required if name not in table]:
        expected = _TYPES[_kind(types[missing[0]])][0]
        raise invalid(where, f"{missing[0]} is missing. Add it: {expected}.")
    if unknown := sorted(set(table) - set(known)):
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise invalid(where, f"unknown: {listed(map(repr, unknown))}. Allowed: {', '.join(known)}.{hint}")
    return {name: _entry(table[name], types[name], f"{where}, {name}") for name in known if name in table}


def _entry(found: object, annotation: str, where: str) -> Any:
    """Return an entry of the type that a class declares, or refuse it; the entry itself is not repeated."""
    kind = _kind(annotation)
    expected, types = _TYPES[kind]
    # True is an int to Python, and a time with a day is a date.
    if type(found) not in types:
        raise invalid(where, f"expected {expected}, got {_word(found)}.")
    if isinstance(found, list) and annotation.startswith("tuple["):
        inner = annotation.removeprefix("tuple[").removesuffix(", ...]")
        return tuple(_entry(each, inner, where) for each in found)
    if isinstance(found, dict) and annotation.startswith("dict["):
        inner = annotation.removeprefix("dict[str, ").removesuffix("]")
        return {name: _entry(each, inner, f"{where}, {name}") for name, each in found.items()}
    if kind == "PublicKey":
        try:
            return PublicKey.from_text(str(found))
        except ExchangeError as error:
            raise ExchangeError(error.code, f"{where}: {error}") from None
    if isinstance(found, int) and "float" not in kind and abs(found) > LARGEST:
        raise invalid(where, f"the number is too large. Expected at most {LARGEST}.")
    if isinstance(found, int | float) and "float" in kind:
        try:
            found = float(found)
        except OverflowError:
            found = math.inf
        if not math.isfinite(found):
            raise invalid(where, "expected a finite number.")
    return found


def _kind(annotation: str) -> str:
    """Return the key in `_TYPES` of an annotation; all lists are one kind, and all tables."""
    start = annotation.partition("[")[0]
    return start if start in ("tuple", "dict") else annotation.removesuffix(" | None")


def _word(found: object) -> str:
    return "nothing" if found is None else _WORDS.get(type(found), type(found).__name__)


def _check_size(columns: list[Any]) -> None:
    """Refuse more columns and categories than a matrix may have, before anything is made of them."""
    n_features = len(columns)
    for column in columns:
        categories = column.get("categories") if isinstance(column, dict) else None
        n_features += len(categories) if isinstance(categories, list) else 0
    if n_features > _MOST_FEATURES:
        raise ExchangeError(
            "TOO_LARGE",
            f"[[columns]]: {n_features} columns and categories; {_MOST_FEATURES} are allowed. Merge rare categories.",
        )


def _task(found: dict[str, Any]) -> Task:
    names: tuple[str, ...] = ()
    if "kind" in found:
        kind = _entry(found["kind"], "str", "[task], kind")
        check_choice("[task], kind", kind, TASKS)
        names = task_entries(kind, has_time="event" in found or "time" in found)
    required = [name for name in names if name != "unit"]
    return Task(**_entries(found, _types(Task), "[task]", ("kind", *required), ("unit",) if "unit" in names else ()))


def _column(found: object, position: int) -> Column:
    where = f"[[columns]] number {position}"
    table = _entry(found, "dict", where)
    if isinstance(table.get("name"), str):
        where = f"[[columns]] {table['name']!r}"
    if table.get("kind") == "category":
        required, optional = ["categories"], ["unknown"]
    else:
        required, optional = ["minimum", "maximum"], ["unit", "outside"]
    if table.get("missing") == "fill":
        required, optional = [*required, "fill"], [*optional, "flag_missing"]
    return Column(**_entries(table, _types(Column), where, ("name", "kind", *required), ("missing", *optional)))


def _sharing(found: dict[str, Any]) -> Sharing:
    optional = ("noise", "n_components", "run", "labelled_by", "epsilon")
    return Sharing(**_entries(found, _types(Sharing), "[sharing]", ("way", "mask_keys", "entities"), optional))


def _signature(found: dict[str, Any]) -> bytes:
    text = _entries(found, {"ed25519": "str"}, "[signature]", ("ed25519",))["ed25519"]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ExchangeError(
            "SIGNATURE_INVALID", "[signature], ed25519: this is no signature (base64). Have the file sent again."
        ) from None


_HEAD = """\
# What all parties and the analyst agree on.  Everyone holds this same file; docs/project-file.md explains each entry.
# After a change the owner signs it again (datacollab project sign), and everyone needs the new file.
"""
_TASK = """\
# kind: classification or regression.  target: the column to predict; all its classes, or its possible range, in its
# unit.
"""
_SURVIVAL = "# kind survival: times to an event.\n"
_TIMES = """\
# event: the column that says whether it was seen, by the entries of seen and of not_seen; all other entries are
# refused.  time: the column with its time, or that of the last observation; above 0, at most maximum, in the unit.
# rounding: times are rounded up to its multiples before they leave a party; 0: they leave exactly, and may tell whose
# they are.
"""
_EFFECT = """\
# kind effect: of a treatment on an outcome.  treatment: the column that says who was treated, by the entries of treated
# and of untreated; all other entries are refused.
"""
_EFFECT_ON_NUMBER = "# outcome: a column of numbers, with their range in their unit.  Write yes and no as 1 and 0.\n"
_NONE = "# kind none: nothing to predict.  Parties share representations alone, for groups of like rows.\n"
_ANCHOR = """\
# The anchor: rows that all parties obfuscate alike.  The owner makes it once, from public rows (datacollab anchor
# seal); the analyst never sees it.  method: smote, uniform, gaussian or sample.
"""
_RULES = """\
# max_components: the most columns a party's representation may have.  min_rows, min_class_rows: the fewest rows of a
# party, and of each class that it has.  quorum: the fewest parties for a model.  seal_shares: whether only the
# analyst can read shares.  deadline (optional): the last day for shares, such as 2027-01-31.
"""
_COLUMNS = """\
# The columns, in the order of the matrix that each party makes of its table; nothing is learnt from private rows.
# kind number: the possible minimum and maximum, in the unit.  kind category: all categories.
# missing: refuse, or fill (with the value of fill; flag_missing = true adds a column that says where).
# outside, for a number out of its range: refuse, clip (to the nearer bound) or missing.  unknown, for a category that
# is not listed: refuse, other (a category of its own) or missing.  More than one in twenty are refused all the same.
"""
_MEMBERS = """\
# Public keys (datacollab keys show).  Compare fingerprints by telephone.  The owner may be a party; the analyst's key
# is no party's.
"""
_SHARING = """\
# Parties share sums under masks: the analyst learns the total alone, with noise.  Without this table they share rows.
# run: raised, with new mask keys, to share again.  labelled_by: the party that adds the anchor's labelled rows.
# epsilon (optional): noise for differential privacy; with few rows it costs more than collaborating brings.
"""
_MASK_KEYS = "# The third line of each party's public.key (datacollab keys mask).  It serves one run.\n"
_ENTITIES = """\
# The legal entity behind each party's key, and the analyst's.  Three different ones at least must be parties.
"""
_CHECK_ENTITIES = "# CHECK: these are names of keys. Which institution stands behind each?\n"
_CHECK_RANGE = (
    "# CHECK: guessed from public rows, half their range added on each side. What is possible, in which unit?\n"
)
_CHECK_TIMES = "# CHECK: guessed from public rows. Which entries mean what? How long can times be, in which unit?\n"
_CHECK_EFFECT = "# CHECK: guessed from public rows. Which entries mean what, and what is possible, in which unit?\n"
_CHECK_CATEGORIES = "# CHECK: found in public rows. Are these all there are?\n"


def _unsigned_text(project: Project, *, drafted: bool, ranges_given: bool, target_given: bool) -> str:
    content = project_content(project)
    if project.deadline is not None:
        content["rules"]["deadline"] = project.deadline
    check = {"number": "" if ranges_given else _CHECK_RANGE, "category": _CHECK_CATEGORIES}
    parts = [
        _HEAD + "\n" + _table_text("[project]", content["project"]),
        _words_on(project.task, drafted and not target_given) + _table_text("[task]", content["task"]),
        _ANCHOR + _table_text("[anchor]", content["anchor"]),
        _RULES + _table_text("[rules]", content["rules"]),
        _COLUMNS.rstrip(),
        *(check[each["kind"]] * drafted + _table_text("[[columns]]", each) for each in content["columns"]),
        _MEMBERS + _table_text("[members]", {name: content["members"][name] for name in ("owner", "analyst")}),
        _table_text("[members.parties]", content["members"]["parties"]),
    ]
    if project.sharing is not None:
        sharing = content["sharing"]
        mask_keys, entities = sharing.pop("mask_keys"), sharing.pop("entities")
        parts += [
            _SHARING + _table_text("[sharing]", sharing),
            _MASK_KEYS + _table_text("[sharing.mask_keys]", mask_keys),
            _ENTITIES + _CHECK_ENTITIES * drafted + _table_text("[sharing.entities]", entities),
        ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n\n"


def _words_on(task: Task, is_guessed: bool) -> str:
    """Return the comment on a kind of task, with a request to check what was guessed."""
    words, check = {
        "classification": (_TASK, _CHECK_CATEGORIES),
        "regression": (_TASK, _CHECK_RANGE),
        "survival": (_SURVIVAL + _TIMES, _CHECK_TIMES),
        "effect": (
            _EFFECT + (_TIMES if task.time else _EFFECT_ON_NUMBER),
            _CHECK_TIMES if task.time else _CHECK_EFFECT,
        ),
        "none": (_NONE, ""),
    }[task.kind]
    return words + check * is_guessed


def _table_text(header: str, entries: Mapping[str, Any]) -> str:
    tomli_w = require("tomli_w", "exchange")
    return f"{header}\n{tomli_w.dumps(entries)}"


_DOMAIN = b"datacollab project file, format 1\n"
_MOST_BYTES = 2**20
_ZIP, _UTF_16 = b"PK\x03\x04", (b"\xff\xfe", b"\xfe\xff")


def project_text(
    project: Project, key: KeyPair, *, drafted: bool = False, ranges_given: bool = False, target_given: bool = False
) -> str:
    """Return the signed project file, with comments for people.

    Parameters
    ----------
    project : Project
    key : KeyPair
        The owner's.
    drafted : bool, default=False
        Whether ranges and categories were guessed from a public table, so that comments ask for a check.
    ranges_given, target_given : bool, default=False
        Whether people gave the columns' ranges, or the target's possible entries, so that these need no check.

    Raises
    ------
    ExchangeError
        If the key is not the owner's.
    """
    text = _unsigned_text(project, drafted=drafted, ranges_given=ranges_given, target_given=target_given)
    return text + _signature_text(project, key)


def sign_project_text(text: str, key: KeyPair, *, what: str = "project.toml") -> str:
    """Sign a project file again after an edit by hand; comments stay as they are.

    If it was signed before, and says something else now, its revision is raised.

    Raises
    ------
    ExchangeError
        If the file says something impossible, or the key is not the owner's.
    """
    unsigned = _without_signature(text)
    project, remaining = parse_project(unsigned, what=what)
    if remaining is not None:
        raise invalid(what, "the signature is not in a table [signature] of its own. Remove it by hand, then sign.")
    if unsigned is not text and not _is_signature_of(text, project, what):
        unsigned, project = _raised(unsigned, project, what)
    signed = unsigned.rstrip() + "\n\n" + _signature_text(project, key)
    if parse_project(signed, what=what)[0] != project:
        raise invalid(what, "the signature cannot be added at the end. Put it after all other entries.")
    return signed


def load_project(path: Path) -> Project:
    """Read a project file, and verify that the owner it names has signed it.

    Only people can say whether that owner is the right one: compare the fingerprint by another way.

    Raises
    ------
    ExchangeError
        If the file says something impossible, carries no signature, or another one than its owner's.
    """
    return read_project(path)[0]


def read_project(path: Path) -> tuple[Project, bytes]:
    """Return the project, as `load_project` does, and the very bytes that were verified."""
    data = _read(path)
    project, signature = parse_project(_text(data, path), what=str(path))
    if signature is None:
        raise ExchangeError(
            "SIGNATURE_MISSING",
            f"{path} is not signed. Its owner signs it with `datacollab project sign {path.name} -C FOLDER`.",
        )
    try:
        project.owner.verify(signature, _signed_bytes(project))
    except ExchangeError as error:
        raise ExchangeError(
            error.code,
            f"{path} was changed after its owner (key {project.owner.fingerprint}) signed it. Ask the owner for the "
            "file by another way; after an edit of your own, sign again with `datacollab project sign`.",
        ) from None
    return project, data


def read_project_text(path: Path) -> str:
    """Return the text of a file that may be a project's, and refuse a bundle, a large file, and no UTF-8 text."""
    return _text(_read(path), path)


def _read(path: Path) -> bytes:
    with open_regular(path, code="WRONG_KIND") as file:
        data = file.read(_MOST_BYTES + 1)
    if data.startswith(_ZIP):
        try:
            sort = f"a bundle ({unpack(path).kind})"
        except ExchangeError:
            sort = "a ZIP archive or a damaged bundle"
        raise ExchangeError("WRONG_KIND", f"{path} is {sort}; expected the project file first (project.toml).")
    if len(data) > _MOST_BYTES:
        raise ExchangeError(
            "TOO_LARGE", f"{path} has more than {_MOST_BYTES:,} bytes, which no project file needs. Check its origin."
        )
    return data


def _text(data: bytes, path: Path) -> str:
    try:
        # Some editors put a mark before the first letter.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        if b"\0" in data and not data.startswith(_UTF_16):
            raise invalid(str(path), "this is no text. Expected the project file first (project.toml).") from None
        raise invalid(str(path), "this is no UTF-8 text. Save it as UTF-8.") from None


def _signed_bytes(project: Project) -> bytes:
    return _DOMAIN + canonical_json(project_content(project))


def _signature_text(project: Project, key: KeyPair) -> str:
    project.check_owner(key.public, "signs the project")
    signature = base64.b64encode(key.sign(_signed_bytes(project))).decode()
    return f'[signature]\ned25519 = "{signature}"\n'


def _is_signature_of(text: str, project: Project, what: str) -> bool:
    """Return whether the signature in a file is the owner's of this very agreement."""
    try:
        signature = parse_project(text, what=what)[1]
        project.owner.verify(signature or b"", _signed_bytes(project))
    except ExchangeError:
        return False
    return True


def _raised(unsigned: str, project: Project, what: str) -> tuple[str, Project]:
    """Return the same agreement with the next revision."""
    line = f"revision = {project.revision + 1}"
    raised_text, n_found = re.subn(r"(?m)^[ \t]*revision[ \t]*=[ \t]*[0-9_]+", line, unsigned, count=1)
    if not n_found:
        raised_text = re.sub(r"(?m)^([ \t]*format_version[ \t]*=[^\r\n]*)$", rf"\1\n{line}", unsigned, count=1)
    raised = replace(project, revision=project.revision + 1)
    if parse_project(raised_text, what=what)[0] != raised:
        raise invalid(what, f"the revision cannot be raised. Write `{line}` under [project] by hand, then sign.")
    return raised_text, raised


def _without_signature(text: str) -> str:
    """Return the text without the table [signature], up to the next one."""
    lines = text.replace("\r\n", "\n").split("\n")
    starts = [number for number, line in enumerate(lines) if re.match(r"\s*\[signature\]\s*(#.*)?$", line)]
    if not starts:
        return text
    ends = (number for number in range(starts[0] + 1, len(lines)) if lines[number].lstrip().startswith("["))
    return "\n".join(lines[: starts[0]] + lines[next(ends, len(lines)) :])
