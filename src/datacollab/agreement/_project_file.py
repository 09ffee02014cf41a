"""The project file: read by anybody, signed by its owner, and written with comments for people."""

from __future__ import annotations

import base64
import binascii
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._entries import invalid
from .._require import require
from ..bundle import KeyPair, PublicKey, canonical_json, is_container, open_regular, unpack
from ..errors import ExchangeError
from ..table import Column
from ._project import FORMAT_VERSION, SECTIONS, AnchorRecipe, Project, project_content
from ._sharing import Sharing
from ._task import Task
from ._toml import entries_of, entry_of, table_of, types_of

_TABLES = dict.fromkeys(("project", "task", "anchor", "rules", "members", "sharing", "signature"), "dict")
_TABLES["columns"] = "list"
_MOST_FEATURES = 10_000
_INNER = ("merged", "parties", "mask_keys", "entities", "most_rows")
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
    version = entry_of(found.get("project"), "dict", "[project]").get("format_version")
    version = entry_of(version, "int", "[project], format_version")
    if version > FORMAT_VERSION:
        raise ExchangeError(
            "FORMAT_TOO_NEW",
            f"[project], format_version: {version}; this program reads version {FORMAT_VERSION}. Upgrade datacollab.",
        )
    if version != FORMAT_VERSION:
        raise invalid("[project], format_version", f"expected {FORMAT_VERSION}, got {version}.")
    sharing = table_of(Sharing, found["sharing"], "[sharing]") if "sharing" in found else None
    spare = ("sharing", "signature") if sharing is None or sharing.has_map else ("anchor", "sharing", "signature")
    file = entries_of(found, _TABLES, "The file", tuple(_TABLES), spare)
    _check_size(file["columns"])
    signature = _signature(file["signature"]) if "signature" in file else None
    own: dict[str, Any] = {}
    types = types_of(Project) | {"format_version": "int"}
    for section, names in SECTIONS.items():
        own |= entries_of(file[section], types, f"[{section}]", names, Project.OPTIONAL)
    del own["format_version"]
    project = Project(
        **own,
        task=table_of(Task, file["task"], "[task]"),
        anchor=table_of(AnchorRecipe, file["anchor"], "[anchor]") if "anchor" in file else AnchorRecipe(),
        columns=tuple(_column(column, position) for position, column in enumerate(file["columns"], start=1)),
        sharing=sharing,
    )
    return project, signature


def _column(found: object, position: int) -> Any:
    where = f"[[columns]] number {position}"
    table = entry_of(found, "dict", where)
    return table_of(Column, table, f"[[columns]] {table['name']!r}" if isinstance(table.get("name"), str) else where)


def _check_size(columns: list[Any]) -> None:
    """Refuse more columns and categories than a matrix may have, before anything is made of them."""
    categories = [column.get("categories") for column in columns if isinstance(column, dict)]
    n_features = len(columns) + sum(len(each) for each in categories if isinstance(each, list))
    if n_features > _MOST_FEATURES:
        raise ExchangeError(
            "TOO_LARGE",
            f"[[columns]]: {n_features} columns and categories; {_MOST_FEATURES} are allowed. Merge rare categories.",
        )


def _signature(found: dict[str, Any]) -> bytes:
    text = entries_of(found, {"ed25519": "str"}, "[signature]", ("ed25519",))["ed25519"]
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
"""What is said about a kind of task, and what to check if it was guessed."""
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
    content, comments, check = project_content(project), dict(_COMMENTS["tables"]), _COMMENTS["check"]
    if project.deadline is not None:
        content["rules"]["deadline"] = project.deadline
    task = project.task
    words, guess = _TASK_COMMENTS[f"{task.kind}{' on times' * (task.kind == 'effect' and task.time != '')}"]
    comments["task"] = "".join(_COMMENTS["task"][each] for each in words.split())
    # A draft has this range of a number if it found nothing but both.
    guess = "zero and one" if (task.kind, task.minimum, task.maximum) == ("regression", 0.0, 1.0) else guess
    comments["task"] += check.get(guess, "") * (drafted and not target_given)
    comments["sharing.entities"] += check["entities"] * drafted
    if project.sharing is not None:
        comments |= {name: comments[f"{name} of sums"] for name in ("anchor", "rules")}
        # What only rows need is not written, unless somebody has changed it.
        usual = {name: Project.__dataclass_fields__[name].default for name in _OF_ROWS}
        content["rules"] = dict(each for each in content["rules"].items() if each not in usual.items())
    guessed = {"number": "" if ranges_given else check["range"], "category": check["categories"]}
    parts = []
    for name, entries in content.items():
        if name == "columns":
            parts.append(comments["columns"])
            parts += [f"{guessed[each['kind']] * drafted}[[columns]]\n{tomli_w.dumps(each)}" for each in entries]
            continue
        inner = {f"{name}.{each}": entries.pop(each) for each in _INNER if each in entries}
        for header, table in ({name: entries} | inner).items():
            parts.append(f"{comments.get(header, '')}[{header}]\n{tomli_w.dumps(table)}")
    return "\n\n".join(part.rstrip() for part in parts) + "\n\n" + _signature_text(project, key)


def sign_project_text(text: str, key: KeyPair, *, what: str = "project.toml") -> str:
    """Sign a project file again after an edit by hand; comments stay as they are.

    If it was signed before, and says something else now, its revision is raised.  An ExchangeError is raised if the
    file says something impossible, or the key is not the owner's.
    """
    unsigned, was_signed = _SIGNATURE.subn("", text.replace("\r\n", "\n"), count=1)
    unsigned = unsigned if was_signed else text
    project, remaining = parse_project(unsigned, what=what)
    if remaining is not None:
        raise invalid(what, "the signature is not in a table [signature] of its own. Remove it by hand, then sign.")
    if was_signed and not _is_owners(parse_project(text, what=what)[1], project):
        unsigned, project = _raised(unsigned, project, what)
    signed = unsigned.rstrip() + "\n\n" + _signature_text(project, key)
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


def _signed_bytes(project: Project) -> bytes:
    return _DOMAIN + canonical_json(project_content(project))


def _signature_text(project: Project, key: KeyPair) -> str:
    project.check_owner(key.public, "signs the project")
    signature = base64.b64encode(key.sign(_signed_bytes(project))).decode()
    return f'[signature]\ned25519 = "{signature}"\n'


def _is_owners(signature: bytes | None, project: Project) -> bool:
    """Return whether the signature is the owner's of this very agreement."""
    try:
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
