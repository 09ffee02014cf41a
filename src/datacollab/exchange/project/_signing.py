"""The project file as text, and the owner's signature that it carries."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from ..._require import require
from ...bundle import KeyPair, canonical_json, open_regular, unpack
from ...errors import ExchangeError
from ._parsing import parse_project
from ._project import Project, project_content
from ._refusals import invalid
from ._task import Task

__all__ = ["load_project", "project_text", "read_project", "read_project_text", "sign_project_text", "unsigned_text"]

_HEAD = """\
# What all parties and the analyst agree on.  Everyone holds this same file; docs/project-file.md explains each entry.
# After a change the owner signs it again (datacollab project sign), and everyone needs the new file.
"""
_TASK = """\
# kind: classification or regression.  target: the column to predict; all its classes, or what it can be at least
# and at most, in its unit.
"""
_SURVIVAL = """\
# kind survival: times to an event.
"""
_TIMES = """\
# event: the column that says whether it was seen, by the entries of seen and of
# not_seen; all other entries are refused.  time: the column of when it, or the last observation, was; above 0, at most
# maximum, in the unit.  rounding: times are rounded up to its multiples before they leave a party; 0: they leave
# exactly, and a row's own time may tell whose it is.
"""
_EFFECT = """\
# kind effect: of a treatment on an outcome.  treatment: the column that says who was treated, by the entries of treated
# and of untreated; all other entries are refused.
"""
_EFFECT_ON_NUMBER = """\
# outcome: a column of numbers; what they can be at least and at most, in their unit.  Of yes and no, write 1 and 0.
"""
_NONE = """\
# kind none: nothing to predict.  Parties share representations alone, for groups of like rows.
"""
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
# kind number: minimum and maximum are what is possible, in the unit.  kind category: all categories.
# missing: refuse, or fill (with the value of fill; flag_missing = true adds a column that says where).
# outside, for a number out of its range: refuse, clip (to the nearer bound) or missing.  unknown, for a category that
# is not listed: refuse, other (a category of its own) or missing.  More than one in twenty are refused all the same.
"""
_MEMBERS = """\
# Public keys (datacollab keys show).  Compare fingerprints by telephone.  The owner may be a party; the analyst not.
"""
_SHARING = """\
# Parties share sums under masks: the analyst learns the total alone, with noise.  Without this table they share rows.
# run: raised, with new mask keys, to share again.  labelled_by: the party that adds the anchor's labelled rows.
# epsilon (optional): noise for differential privacy; with few rows it costs more than collaborating brings.
"""
_MASK_KEYS = """\
# The third line of each party's public.key (datacollab keys mask).  It serves one run.
"""
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


def unsigned_text(project: Project, *, drafted: bool, ranges_given: bool, target_given: bool) -> str:
    """The project file without its signature."""
    content = project_content(project)
    if project.deadline is not None:
        content["rules"]["deadline"] = project.deadline
    check = {"number": _CHECK_RANGE, "category": _CHECK_CATEGORIES} if drafted else {"number": "", "category": ""}
    check_target = _check_of_task(project.task) if drafted and not target_given else ""
    if ranges_given:
        check["number"] = ""
    parts = [
        _HEAD + "\n" + _table("[project]", content["project"]),
        _words_on(project.task) + check_target + _table("[task]", content["task"]),
        _ANCHOR + _table("[anchor]", content["anchor"]),
        _RULES + _table("[rules]", content["rules"]),
        _COLUMNS.rstrip(),
        *(check[column["kind"]] + _table("[[columns]]", column) for column in content["columns"]),
        _MEMBERS + _table("[members]", {name: content["members"][name] for name in ("owner", "analyst")}),
        _table("[members.parties]", content["members"]["parties"]),
        *(_sharing_parts(content["sharing"], drafted) if project.sharing is not None else ()),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n\n"


def _sharing_parts(content: dict[str, Any], drafted: bool) -> list[str]:
    plain = {name: value for name, value in content.items() if name not in ("mask_keys", "entities")}
    return [
        _SHARING + _table("[sharing]", plain),
        _MASK_KEYS + _table("[sharing.mask_keys]", content["mask_keys"]),
        _ENTITIES + _CHECK_ENTITIES * drafted + _table("[sharing.entities]", content["entities"]),
    ]


def _words_on(task: Task) -> str:
    return {
        "survival": _SURVIVAL + _TIMES,
        "effect": _EFFECT + (_TIMES if task.time else _EFFECT_ON_NUMBER),
        "none": _NONE,
    }.get(task.kind, _TASK)


def _check_of_task(task: Task) -> str:
    if task.time:
        return _CHECK_TIMES
    return {"classification": _CHECK_CATEGORIES, "regression": _CHECK_RANGE, "effect": _CHECK_EFFECT, "none": ""}[
        task.kind
    ]


def _table(header: str, entries: dict[str, str | int | float | bool | date | list[str]]) -> str:
    tomli_w = require("tomli_w", "exchange")
    return f"{header}\n{tomli_w.dumps(entries)}"


_DOMAIN = b"datacollab project file, format 1\n"
_MOST_BYTES = 2**20
_ZIP, _UTF_16 = b"PK\x03\x04", (b"\xff\xfe", b"\xfe\xff")


def project_text(
    project: Project,
    key: KeyPair,
    *,
    drafted: bool = False,
    ranges_given: bool = False,
    target_given: bool = False,
) -> str:
    """Write the signed project file, with comments for people.

    Parameters
    ----------
    project : Project
    key : KeyPair
        The owner's.
    drafted : bool, default=False
        Whether ranges and categories were guessed from a public table, so that comments ask for a check.
    ranges_given : bool, default=False
        Whether the columns' ranges were told, and need none.
    target_given : bool, default=False
        Whether what may stand in the target was told, and needs none.

    Raises
    ------
    ExchangeError
        When the key is not the owner's.
    """
    text = unsigned_text(project, drafted=drafted, ranges_given=ranges_given, target_given=target_given)
    return text + _signature_text(project, key)


def sign_project_text(text: str, key: KeyPair, *, what: str = "project.toml") -> str:
    """Sign a project file again after an edit by hand; comments stay as they are.

    Where it was signed before, and says something else now, its revision is raised.

    Raises
    ------
    ExchangeError
        When the file says something impossible, or the key is not the owner's.
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

    Whether that owner is the right one, only people can say: compare the fingerprint by another way.

    Raises
    ------
    ExchangeError
        When the file says something impossible, carries no signature, or another one than its owner's.
    """
    return read_project(path)[0]


def read_project(path: Path) -> tuple[Project, bytes]:
    """The project, as by `load_project`, and the very bytes that were verified, to be kept.

    Raises
    ------
    ExchangeError
        As `load_project`.
    """
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
    """The text of a file, if it can be one.

    Raises
    ------
    ExchangeError
        When it is a bundle, too large, or no UTF-8 text.
    """
    return _text(_read(path), path)


def _read(path: Path) -> bytes:
    with open_regular(path, code="WRONG_KIND") as file:
        data = file.read(_MOST_BYTES + 1)
    if data.startswith(_ZIP):
        raise _no_project(path)
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
            raise invalid(str(path), "this is no text. The project file is wanted first (project.toml).") from None
        raise invalid(str(path), "this is no UTF-8 text. Save it as UTF-8.") from None


def _no_project(path: Path) -> ExchangeError:
    """What to say of a ZIP container: as a rule a bundle, given in place of the project file."""
    try:
        what = f"a bundle ({unpack(path).kind})"
    except ExchangeError:
        what = "a ZIP archive or a damaged bundle"
    return ExchangeError("WRONG_KIND", f"{path} is {what}; the project file is wanted first (project.toml).")


def _signed_bytes(project: Project) -> bytes:
    return _DOMAIN + canonical_json(project_content(project))


def _signature_text(project: Project, key: KeyPair) -> str:
    if key.public != project.owner:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"The key {key.public.fingerprint} is not the owner's ({project.owner.fingerprint}), and only the owner "
            "signs the project. Sign in the owner's folder.",
        )
    signature = base64.b64encode(key.sign(_signed_bytes(project))).decode()
    return f'[signature]\ned25519 = "{signature}"\n'


def _is_signature_of(text: str, project: Project, what: str) -> bool:
    """Whether the signature in a file is the owner's of this very agreement."""
    try:
        signature = parse_project(text, what=what)[1]
        project.owner.verify(signature or b"", _signed_bytes(project))
    except ExchangeError:
        return False
    return True


def _raised(unsigned: str, project: Project, what: str) -> tuple[str, Project]:
    """The same agreement with the next revision."""
    line = f"revision = {project.revision + 1}"
    told, n_told = re.subn(r"(?m)^[ \t]*revision[ \t]*=[ \t]*[0-9_]+", line, unsigned, count=1)
    if not n_told:
        told = re.sub(r"(?m)^([ \t]*format_version[ \t]*=[^\r\n]*)$", rf"\1\n{line}", unsigned, count=1)
    raised = replace(project, revision=project.revision + 1)
    if parse_project(told, what=what)[0] != raised:
        raise invalid(what, f"the revision cannot be raised. Write `{line}` under [project] by hand, then sign.")
    return told, raised


def _without_signature(text: str) -> str:
    """Leave out the table [signature], up to the next one."""
    lines = text.replace("\r\n", "\n").split("\n")
    starts = [number for number, line in enumerate(lines) if re.match(r"\s*\[signature\]\s*(#.*)?$", line)]
    if not starts:
        return text
    ends = (number for number in range(starts[0] + 1, len(lines)) if lines[number].lstrip().startswith("["))
    return "\n".join(lines[: starts[0]] + lines[next(ends, len(lines)) :])
