"""The owner's signature, and the file that carries it."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path

from ...bundle import KeyPair, canonical_json, open_regular, unpack
from ...errors import ExchangeError
from ._content import project_content
from ._parsing import parse_project
from ._project import Project
from ._refusals import invalid
from ._writing import unsigned_text

__all__ = ["load_project", "project_text", "read_project", "read_project_text", "sign_project_text"]

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
