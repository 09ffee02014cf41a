"""The project file: read by anybody, signed by its owner, and written with comments for people."""

from __future__ import annotations

import base64
import binascii
import difflib
import math
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

from .._entries import LARGEST, invalid, join_names, refuse_if, type_word
from .._require import require
from ..bundle import KeyPair, PublicKey, canonical_json, is_container, open_regular, unpack
from ..errors import ExchangeError
from ..table import Column
from ._project import FORMAT_VERSION, SECTIONS, AnchorRecipe, Project, field_types, project_content
from ._sharing import Sharing
from ._task import Task

_TABLES = dict.fromkeys(("project", "task", "anchor", "rules", "members", "sharing", "signature"), "dict")
_TABLES["columns"] = "list"
_MOST_FEATURES = 10_000
_INNER = ("merged", "parties", "mask_keys", "entities", "most_rows", "logistic_model")
"""Entries that are tables of their own."""
_OF_ROWS = ("min_class_rows", "quorum", "seal_shares")
"""Rules that have no effect if sums are shared."""
_MOST_PARTS = 4
"""Names between dots in one key; files of this program need two."""
_QUOTED = re.compile(
    r"""\#[^\n]*+ | "{3}.*?(?:"{3}|\Z) | \'{3}.*?(?:\'{3}|\Z) | "(?:\\.|[^"\\\n])*+"? | \'[^\'\n]*+\'?""",
    re.DOTALL | re.VERBOSE,
)
"""Comments and texts, in which dots mean nothing; also those never closed, so that no letter is looked at twice."""
_DOTTED = re.compile(r"[A-Za-z0-9_-]++(?:[ \t]*+\.[ \t]*+[A-Za-z0-9_-]++)*+")


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
    # Before parsing: the parser's time grows with the parts of a key.
    check_keys(text, what)
    try:
        return _read_text(text)
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{what}: {error}") from None


@lru_cache(maxsize=16)
def _read_text(text: str) -> tuple[Project, bytes | None]:
    """Read a text once: a command and a page of the desk ask for the same project several times."""
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Only the parser's own sentence names the line; a number or date that cannot be has another.
        is_own = isinstance(error, tomllib.TOMLDecodeError) and str(error).isprintable()
        reason = f" ({error})" if is_own else ""
        raise ExchangeError(
            "SPEC_INVALID", f"this is no TOML file{reason}. Correct the line, or have the file sent again."
        ) from None
    return _read_tables(tables)


def check_keys(text: str, what: str) -> None:
    """Refuse a file with a dotted key of many parts, which keeps the parser busy for long."""
    # A text may be part of a key as well as a value: a letter keeps its place.
    plain = _QUOTED.sub(lambda found: " " if found[0].startswith("#") else "x", text)
    if any(found[0].count(".") >= _MOST_PARTS for found in _DOTTED.finditer(plain)):
        raise ExchangeError(
            "TOO_LARGE",
            f"{what} has a key of more than {_MOST_PARTS} names between dots, which no file needs. Check its origin.",
        )


def _read_tables(tables: dict[str, Any]) -> tuple[Project, bytes | None]:
    # Before all else: a later version may well have entries that are unknown here.
    version = _read_entry(tables.get("project"), "dict", "[project]").get("format_version")
    version = _read_entry(version, "int", "[project], format_version")
    if version > FORMAT_VERSION:
        raise ExchangeError(
            "FORMAT_TOO_NEW",
            f"[project], format_version: {version}; this program reads version {FORMAT_VERSION}. Upgrade datacollab.",
        )
    if version != FORMAT_VERSION:
        raise invalid("[project], format_version", f"expected {FORMAT_VERSION}, got {version}.")
    sharing = None
    optional = ["sharing", "signature"]
    if "sharing" in tables:
        sharing = _read_class(Sharing, tables["sharing"], "[sharing]")
        if not sharing.has_map:
            optional.append("anchor")
    file = _read_entries(tables, _TABLES, "The file", tuple(_TABLES), optional)
    # Before classes are made: ten thousand columns take seconds.
    _check_size(file["columns"])
    signature = None
    if "signature" in file:
        signature = _read_signature(file["signature"])
    own: dict[str, Any] = {}
    types = field_types(Project) | {"format_version": "int"}
    for section, names in SECTIONS.items():
        own |= _read_entries(file[section], types, f"[{section}]", names, Project.OPTIONAL)
    # Checked above, and a constant of the class.
    del own["format_version"]
    if "anchor" in file:
        own["anchor"] = _read_class(AnchorRecipe, file["anchor"], "[anchor]")
    project = Project(
        **own,
        task=_read_class(Task, file["task"], "[task]"),
        columns=tuple(_read_column(column, position) for position, column in enumerate(file["columns"], start=1)),
        sharing=sharing,
    )
    return project, signature


def _read_column(entry: object, position: int) -> Any:
    where = f"[[columns]] number {position}"
    table = _read_entry(entry, "dict", where)
    if isinstance(table.get("name"), str):
        where = f"[[columns]] {table['name']!r}"
    return _read_class(Column, table, where)


def _read_class(kind: Any, table: dict[str, Any], where: str) -> Any:
    """Read a table of the file into a class, whose fields are the entries."""
    return kind(**_read_entries(table, field_types(kind), where, kind.entry_names(table), kind.OPTIONAL))


def _read_entries(
    table: object, types: Mapping[str, str], where: str, names: Sequence[str], optional: Collection[str] = ()
) -> dict[str, Any]:
    """Return the entries of a table by their types; an unknown one must not silently become a default."""
    entries = _read_entry(table, "dict", where)
    if missing := [name for name in names if name not in entries and name not in optional]:
        raise invalid(where, f"{missing[0]} is missing. Add it: {_TYPES[_kind(types[missing[0]])][0]}.")
    # Misspelt rules must not leave the default in force.
    if unknown := sorted(set(entries) - set(names)):
        near = difflib.get_close_matches(unknown[0], names, n=1)
        hint = "".join(f" Did you mean {each}?" for each in near)
        raise invalid(where, f"unknown: {join_names(map(repr, unknown))}. Allowed: {', '.join(names)}.{hint}")
    return {name: _read_entry(entries[name], types[name], f"{where}, {name}") for name in names if name in entries}


def _read_entry(entry: object, annotation: str, where: str) -> Any:
    """Return an entry of the type that a class declares, or refuse it; the entry itself is not repeated."""
    annotation = annotation.removesuffix(" | None")
    kind = _kind(annotation)
    expected, types = _TYPES[kind]
    # True is an int to Python, and a time with a day is a date.
    if type(entry) not in types:
        raise invalid(where, f"expected {expected}, got {type_word(entry)}.")
    # Lists and tables are checked entry by entry.
    if isinstance(entry, list) and annotation.startswith("tuple["):
        inner = annotation.removeprefix("tuple[").removesuffix(", ...]")
        return tuple(_read_entry(each, inner, where) for each in entry)
    if isinstance(entry, dict) and annotation.startswith("dict["):
        inner = annotation.removeprefix("dict[str, ").removesuffix("]")
        return {name: _read_entry(each, inner, f"{where}, {name}") for name, each in entry.items()}
    if kind == "PublicKey":
        try:
            return PublicKey.from_text(str(entry))
        except ExchangeError as error:
            raise ExchangeError(error.code, f"{where}: {error}") from None
    if isinstance(entry, int | float) and "float" in kind:
        return _read_number(entry, where)
    if isinstance(entry, int) and abs(entry) > LARGEST:
        raise invalid(where, f"the number is too large. Expected at most {LARGEST}.")
    return entry


def _read_number(entry: float, where: str) -> float:
    try:
        number = float(entry)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise invalid(where, "expected a finite number.")
    return number


def _kind(annotation: str) -> str:
    """Return the key in `_TYPES` of an annotation; all lists are one kind, and all tables."""
    start = annotation.partition("[")[0]
    if start in ("tuple", "dict"):
        return start
    return annotation.removesuffix(" | None")


def _check_size(columns: list[Any]) -> None:
    """Refuse more columns and categories than a matrix may have, before anything is made of them."""
    categories = [column.get("categories") for column in columns if isinstance(column, dict)]
    n_features = len(columns) + sum(len(each) for each in categories if isinstance(each, list))
    if n_features > _MOST_FEATURES:
        raise ExchangeError(
            "TOO_LARGE",
            f"[[columns]]: {n_features} columns and categories; {_MOST_FEATURES} are allowed. Merge rare categories.",
        )


def _read_signature(table: dict[str, Any]) -> bytes:
    text = _read_entries(table, {"ed25519": "str"}, "[signature]", ("ed25519",))["ed25519"]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ExchangeError(
            "SIGNATURE_INVALID", "[signature], ed25519: this is no signature (base64). Have the file sent again."
        ) from None


_COMMENTS = tomllib.loads(Path(__file__).with_name("comments.toml").read_text(encoding="utf-8"))


_TASK_COMMENTS = {
    "classification": ("target", "categories"),
    "regression": ("target", "range"),
    "survival": ("survival times", "times"),
    "effect": ("effect number", "effect"),
    "effect on times": ("effect times", "times"),
    "none": ("none", "nothing"),
}
"""Comments on a kind of task, and on the guesses to check."""
_DOMAIN = b"datacollab project file, format 1\n"
_MOST_BYTES = 2**20
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SIGNATURE = re.compile(r"^[ \t]*\[signature\][ \t]*(?:#[^\n]*)?$.*?(?=^[ \t]*\[|\Z)", re.DOTALL | re.MULTILINE)


def project_text(
    project: Project, key: KeyPair, *, drafted: bool = False, ranges_given: bool = False, target_given: bool = False
) -> str:
    """Return the project file, with comments for people, signed by the owner's key; NOT_A_MEMBER for another key.

    If it was `drafted` from a public table, comments ask for a check of what was guessed: not of the columns' ranges,
    or of the target's possible entries, if people have given them.
    """
    tomli_w = require("tomli_w", "exchange")
    content = project_content(project)
    if project.deadline is not None:
        content["rules"]["deadline"] = project.deadline
    if project.shares_sums:
        # Entries that only rows need are not written, unless somebody has changed them.
        usual = {name: Project.__dataclass_fields__[name].default for name in _OF_ROWS}
        content["rules"] = dict(each for each in content["rules"].items() if each not in usual.items())
    comments = _list_comments(project, drafted=drafted, target_given=target_given)
    guesses = {"number": "", "category": ""}
    if drafted:
        guesses["category"] = _COMMENTS["check"]["categories"]
    if drafted and not ranges_given:
        guesses["number"] = _COMMENTS["check"]["range"]
    parts = []
    for name, entries in content.items():
        if name == "columns":
            parts.append(comments["columns"])
            parts += [f"{guesses[each['kind']]}[[columns]]\n{tomli_w.dumps(each)}" for each in entries]
            continue
        # TOML wants tables inside a table after its entries.
        inner = {f"{name}.{each}": entries.pop(each) for each in _INNER if each in entries}
        for header, table in ({name: entries} | inner).items():
            parts.append(f"{comments.get(header, '')}[{header}]\n{tomli_w.dumps(table)}")
    return "\n\n".join(part.rstrip() for part in parts) + "\n\n" + _signature_text(project, key)


def _list_comments(project: Project, *, drafted: bool, target_given: bool) -> dict[str, str]:
    """Return the comment above each table; of a draft with a request to check guesses."""
    comments = dict(_COMMENTS["tables"])
    check = _COMMENTS["check"]
    task = project.task
    kind = task.kind
    if task.treatment and task.time:
        kind = "effect on times"
    words, guess = _TASK_COMMENTS[kind]
    comments["task"] = "".join(_COMMENTS["task"][each] for each in words.split())
    # A draft has this range of a number if it found nothing but both.
    if (task.kind, task.minimum, task.maximum) == ("regression", 0.0, 1.0):
        guess = "zero and one"
    if drafted:
        comments["sharing.entities"] += check["entities"]
    if drafted and not target_given:
        comments["task"] += check.get(guess, "")
    if project.shares_sums:
        comments |= {name: comments[f"{name} of sums"] for name in ("anchor", "rules")}
    return comments


def sign_project_text(text: str, key: KeyPair, *, what: str = "project.toml") -> str:
    """Sign a project file again after an edit by hand; comments stay as they are.

    If it was signed before, and says something else now, its revision is raised.  An ExchangeError is raised if the
    file says something impossible, or the key is not the owner's.
    """
    unsigned, was_signed = _SIGNATURE.subn("", text.replace("\r\n", "\n"), count=1)
    if not was_signed:
        unsigned = text
    project, remaining = parse_project(unsigned, what=what)
    if remaining is not None:
        raise invalid(what, "the signature is not in a table [signature] of its own. Remove it by hand, then sign.")
    # An unchanged agreement keeps its revision, so that signing twice changes nothing.
    if was_signed and not _is_owners(parse_project(text, what=what)[1], project):
        unsigned, project = _raise_revision(unsigned, project, what)
    signed = unsigned.rstrip() + "\n\n" + _signature_text(project, key)
    # An open text at the end would swallow the signature.
    if parse_project(signed, what=what)[0] != project:
        raise invalid(what, "the signature cannot be added at the end. Put it after all other entries.")
    return signed


def load_project(path: Path) -> Project:
    """Read a project file, and verify that the owner it names has signed it.

    Only people can say whether that owner is the right one: compare the fingerprint by another way.  An ExchangeError
    is raised if the file says something impossible, carries no signature, or another one than its owner's.
    """
    return read_project(path)[0]


def read_project(path: Path, *, owner: PublicKey | None = None) -> tuple[Project, bytes]:
    """Return the project, as `load_project` does, and the very bytes that were verified.

    The file cannot vouch for its owner: refuse another one than `owner`, a key that came by another way.
    """
    data, text = _read(path)
    project, signature = parse_project(text, what=str(path))
    # Never a project that nobody answers for.
    if signature is None:
        raise ExchangeError(
            "SIGNATURE_MISSING",
            f"{path} is not signed. Its owner signs it with `datacollab project revise {path.name} -C FOLDER`.",
        )
    if not _is_owners(signature, project):
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{path} was changed after its owner (key {project.owner.fingerprint}) signed it. Ask the owner for the "
            "file by another way; after an edit of your own, sign again with `datacollab project revise`.",
        )
    # Anybody can sign a project as its owner; only this key is known.
    if owner is not None and project.owner != owner:
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{path} is signed by {project.owner.fingerprint}, and the owner's key that was given is "
            f"{owner.fingerprint}. Do not use the file; ask the owner by another way.",
        )
    return project, data


def read_project_text(path: Path) -> str:
    """Return the text of a file that may be a project's, and refuse a bundle, a large file, and no UTF-8 text."""
    return _read(path)[1]


def _read(path: Path) -> tuple[bytes, str]:
    with open_regular(path, code="WRONG_KIND") as file:
        data = file.read(_MOST_BYTES + 1)
    # The order of files on the command line is the usual slip.
    if is_container(data):
        try:
            sort = f"a bundle ({unpack(path).kind})"
        except ExchangeError:
            sort = "a damaged bundle"
        raise ExchangeError("WRONG_KIND", f"{path} is {sort}; expected the project file first (project.toml).")
    if len(data) > _MOST_BYTES:
        raise ExchangeError(
            "TOO_LARGE", f"{path} has more than {_MOST_BYTES:,} bytes, which no project file needs. Check its origin."
        )
    try:
        # Some editors put a mark before the first letter.
        return data, data.decode("utf-8-sig")
    except UnicodeDecodeError:
        if b"\0" in data and not data.startswith(_UTF_16):
            raise invalid(str(path), "this is no text. Expected the project file first (project.toml).") from None
        raise invalid(str(path), "this is no UTF-8 text. Save it as UTF-8.") from None


def read_logistic_model(path: Path) -> dict[str, float]:
    """Return the coefficients of a published model: a TOML file of numbers, that may name its link, "logit"."""
    with open_regular(path, code="WRONG_KIND") as file:
        data = file.read(_MOST_BYTES)
    try:
        text = data.decode("utf-8-sig")
        # Before parsing, as for a project file.
        check_keys(text, str(path))
        entries = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        advice = "Write a coefficient on each line, such as age = 0.04, and quotes around a name with other signs."
        raise invalid(str(path), f"this is no TOML file. {advice}") from None
    link = entries.pop("link", "logit")
    refuse_if(link != "logit", f"{path}, link", 'expected "logit": no other models can be tried.')
    coefficients: dict[str, float] = _read_entry(entries, "dict[str, float]", str(path))
    return coefficients


def _bytes_to_sign(project: Project) -> bytes:
    return _DOMAIN + canonical_json(project_content(project))


def _signature_text(project: Project, key: KeyPair) -> str:
    project.check_owner(key.public, "signs the project")
    signature = base64.b64encode(key.sign(_bytes_to_sign(project))).decode()
    return f'[signature]\ned25519 = "{signature}"\n'


def _is_owners(signature: bytes | None, project: Project) -> bool:
    """Return whether the signature is the owner's of this very agreement."""
    try:
        project.owner.verify(signature or b"", _bytes_to_sign(project))
    except ExchangeError:
        return False
    return True


def _raise_revision(unsigned: str, project: Project, what: str) -> tuple[str, Project]:
    """Return the same agreement with the next revision."""
    line = f"revision = {project.revision + 1}"
    raised_text, n_replaced = re.subn(r"(?m)^[ \t]*revision[ \t]*=[ \t]*[0-9_]+", line, unsigned, count=1)
    if not n_replaced:
        raised_text = re.sub(r"(?m)^([ \t]*format_version[ \t]*=[^\r\n]*)$", rf"\1\n{line}", unsigned, count=1)
    raised = replace(project, revision=project.revision + 1)
    # The text is changed by pattern, so the parser has the last word.
    if parse_project(raised_text, what=what)[0] != raised:
        raise invalid(what, f"the revision cannot be raised. Write `{line}` under [project] by hand, then sign.")
    return raised_text, raised
