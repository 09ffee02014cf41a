"""Files of an exchange as messages of somebody else's framework: one side asks, and members answer.

A message is a dict of texts, numbers, bytes and lists of these.  A framework's adapter hands the relay's messages to
`answer` at each member, and what that returns back: it needs to know nothing of what they say.  On each side, files lie
in a `Mailbox` and cross piece by piece.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from datacollab.agreement import Project, read_project
from datacollab.bundle import Limits, PublicKey, digest, read_envelope, sync_folder
from datacollab.errors import ExchangeError
from datacollab.plugins import Code, add_codes
from datacollab.remote import (
    AGREEMENT,
    KINDS,
    Kept,
    Kind,
    MemberFolder,
    Parcel,
    Pulled,
    StoreRemote,
    Tell,
    project_of,
    pull,
    push,
    read_address,
)

__all__ = ["MOST_FILES", "PIECE", "Mailbox", "Message", "Relayed", "answer", "relay"]

Message = Mapping[str, Any]
Send = Callable[[Mapping[str, Message]], Mapping[str, Message]]
T = TypeVar("T")

add_codes(
    {
        "RELAY_REFUSED": Code(
            "remote",
            "The other side of a relay refuses, or says what this program does not know.",
            "Read what it says; compare the programs' versions.",
        ),
        "MAILBOX_FULL": Code(
            "limits", "A mailbox holds as many files as it may.", "Remove those of past projects; then run it again."
        ),
    }
)

_MAILBOX, _KEPT = "mailbox", "relay"
_LOGGER = logging.getLogger("datacollab.relay")

PIECE = 4 * 2**20
"""Bytes in a message at most, which all frameworks' own limits let pass."""

_SUFFIXES = {name: kind.suffix for name, kind in KINDS.items()} | {AGREEMENT: ".toml"}
_NAME = re.compile(r"([0-9a-f]{64})/([a-z]+)/([0-9a-f]{64})(\.[a-z]+)")
MOST_FILES = 1000
"""In a mailbox."""
_MOST_TEXT = 2**20


class Mailbox(StoreRemote):
    """A store of which one side of a connection has a part, and the other side another.

    What comes gets its name when it is whole, sealed, signed as its project wants, and of a project whose file lies
    here.  To whom a framework hands a file, it knows by what its members say of themselves: the seal alone keeps others
    from reading it.

    Parameters
    ----------
    path : Path
        Made where it is missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path).resolve()
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(str(self.path))

    def send(self, parcel: Parcel, *, tell: Tell | None = None) -> None:
        """As of `Remote`, for what is sealed.

        Raises
        ------
        ExchangeError
            RELAY_REFUSED.
        """
        _check_sealed(parcel.sealed, parcel.kind, str(parcel.path))
        super().send(parcel, **({} if tell is None else {"tell": tell}))

    def from_folder(self, folder: MemberFolder) -> dict[str, int]:
        """Names and sizes of what a folder has left here: what its own key signed, and nothing that came."""
        names = {
            f"{each.project}/{each.kind}/{each.sha256}{_SUFFIXES[each.kind]}": each.size
            for each in (self.list(folder) if folder.project is not None else ())
            if each.sender == folder.key.fingerprint
        }
        texts = {name: len(text) for name, project, text in self._texts() if project.owner == folder.key}
        return texts | names

    def for_member(self, key: PublicKey) -> dict[str, int]:
        """Names and sizes of what is for the holder of a key, project files first."""
        texts, names = {}, {}
        for name, project, text in self._texts():
            if key not in (project.owner, project.analyst, *project.parties.values()):
                continue
            texts[name] = len(text)
            for each in self.list(MemberFolder(self.path, key, project, None)):
                if each.is_for(MemberFolder(self.path, key, project, None)):
                    names[f"{each.project}/{each.kind}/{each.sha256}{_SUFFIXES[each.kind]}"] = each.size
        return texts | names

    def names(self) -> list[str]:
        """Of all that lies here whole."""
        found = (str(path.relative_to(self.path).as_posix()) for path in self.path.glob("*/*/*"))
        return sorted(name for name in found if _NAME.fullmatch(name))

    def has(self, name: str) -> bool:
        """Whether a file lies here, whole."""
        return self._path_of(name).is_file()

    def piece(self, name: str, start: int) -> bytes:
        """Bytes of a file that lies here."""
        with open(self._path_of(name), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if start >= size:
                raise ExchangeError(
                    "RELAY_REFUSED",
                    f"The other side wants {name} from byte {start} on, and it has {size}. Compare the programs' "
                    "versions.",
                )
            file.seek(start)
            return file.read(PIECE)

    def begun(self, name: str, size: int, *, source: str) -> int:
        """How many bytes of a file lie here that is coming from somewhere, and to have that size."""
        path = self._path_of(name)
        if path.is_file():
            return size
        part = _part(path, source)
        if not part.is_file():
            return 0
        if part.stat().st_size >= size:
            part.unlink()  # it should have its name by now: nothing that could go on
            return 0
        return part.stat().st_size

    def take(self, name: str, start: int, size: int, piece: bytes, *, source: str) -> int:
        """Put a piece behind those that came; a piece from elsewhere in the file changes nothing.

        Parameters
        ----------
        name : str
        start, size : int
            Where the piece begins, and how large the whole file is said to be.
        piece : bytes
        source : str
            From whom, so that nobody spoils what comes from another.

        Returns
        -------
        int
            How many bytes lie here now: where the next piece begins.

        Raises
        ------
        ExchangeError
            RELAY_REFUSED, MAILBOX_FULL, TOO_LARGE, HASH_MISMATCH, and of the kinds "verification" and "keys".
        """
        path = self._path_of(name)
        part, done = _part(path, source), self.begun(name, size, source=source)
        if path.is_file() or start != done:
            return done
        most = _MOST_TEXT if f"/{AGREEMENT}/" in name else Limits().total_bytes
        if not 0 < size <= most or done + len(piece) > size:
            raise ExchangeError("TOO_LARGE", f"{name} is to have {size} bytes, and {most} are allowed. Ask its sender.")
        root, kind, _ = name.split("/")
        if kind != AGREEMENT:
            self._project(root, name)
        if len(self.names()) >= MOST_FILES:
            raise ExchangeError(
                "MAILBOX_FULL", f"{self.path} holds {MOST_FILES} files already. Remove those of past projects."
            )
        # Of one file alone a source's part is kept: whatever it begins, no disk is filled by what comes to nothing.
        for other in self.path.glob(f"*/*/{_part(Path('*'), source).name}"):
            if other != part:
                other.unlink()
        part.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(part, "ab", opener=_private) as file:
            file.write(piece)
        if done + len(piece) == size:
            self._finish(name, part, path)
        return done + len(piece)

    def _finish(self, name: str, part: Path, path: Path) -> None:
        """Give a file that came its name, if it is what it says."""
        try:
            if _sha256_of(part) != path.name.partition(".")[0]:
                raise ExchangeError("HASH_MISMATCH", f"{name} is not the file that was announced. Run it again.")
            self._check(name, part)
        except ExchangeError:
            part.unlink()
            raise
        os.replace(part, path)
        sync_folder(path.parent)

    def _check(self, name: str, part: Path) -> None:
        root, kind, _ = name.split("/")
        if kind == AGREEMENT:
            found = project_of(part.read_bytes(), name)
            if found.digest != root:
                raise ExchangeError("PROJECT_HASH_MISMATCH", f"{name} is project {found.fingerprint}. Do not use it.")
            return
        project = self._project(root, name)
        with open(part, "rb") as file:
            bundle = read_address(read_envelope(file, os.fstat(file.fileno()).st_size, what=name), project, name)
        if bundle.kind.name != kind:
            raise ExchangeError("WRONG_KIND", f"{name} is in truth {bundle.kind.name}. Do not use it; ask its sender.")
        _check_sealed(bundle.sealed, bundle.kind, name)

    def _project(self, root: str, name: str) -> Project:
        project = next((each for _, each, _ in self._texts() if each.digest == root), None)
        if project is None:
            raise ExchangeError(
                "PROJECT_MISSING", f"{name} came before its project file. Have the owner send that, and run it again."
            )
        return project

    def _texts(self) -> Iterator[tuple[str, Project, bytes]]:
        for path in sorted(self.path.glob(f"*/{AGREEMENT}/*.toml")):
            text = path.read_bytes()
            # Others' mistakes are not this folder's concern.
            with suppress(ExchangeError):
                project = project_of(text, str(path))
                name = f"{project.digest}/{AGREEMENT}/{digest(text)}.toml"
                if self.has(name):
                    yield name, project, text

    def _path_of(self, name: str) -> Path:
        found = _NAME.fullmatch(name)
        if found is None or _SUFFIXES.get(found[2]) != found[4]:
            raise ExchangeError(
                "RELAY_REFUSED", "The other side named a file as no store names one. Compare the programs' versions."
            )
        return self.path / name


def _check_sealed(sealed: bool, kind: Kind, what: str) -> None:
    if not sealed:
        raise ExchangeError(
            "RELAY_REFUSED",
            f"{what}, a {kind.name}, is not sealed, and others in the framework could read it. Have the project seal "
            "what parties send (seal_shares in the project file) and make it anew, or carry it by another remote.",
        )


def _part(path: Path, source: str) -> Path:
    return path.with_name(f".{path.name}.{digest(source.encode())[:16]}.part")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sha256_of(path: Path) -> str:
    """SHA-256 of a file that was written by now, after the disk has it."""
    with open(path, "r+b") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(kw_only=True)
class Relayed:
    """What became of one round.

    Attributes
    ----------
    answered : tuple of str
        Members with whom all was exchanged that there was.
    silent : tuple of str
        Members that did not answer, at the beginning or later.
    refused : dict of str to list of str
        Codes of what was refused, by member; "" is the relay's own folder.
    came : dict of str to int
        How many files came into inboxes, likewise.
    """

    answered: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    refused: dict[str, list[str]] = field(default_factory=dict)
    came: dict[str, int] = field(default_factory=dict)


def answer(path: Path, message: Message) -> dict[str, Any]:
    """What a member answers to the relay: the only thing that its folder's owner lets the relay do.

    `look` puts what may leave the folder into its mailbox, and lists that; `give` reads of it; `take` puts what comes
    into the mailbox; `deliver` puts what is for this folder, checked as by `pull`, into its inbox.

    Parameters
    ----------
    path : Path
        The folder.  Whoever runs this says which, never the message.
    message : mapping

    Returns
    -------
    dict
        With `error`, a code, where it was refused; the reason is logged here and not told.
    """
    try:
        folder, mailbox = MemberFolder.at(path), Mailbox(Path(path) / _MAILBOX)
        act = _said(message, "act", str)
        if act == "look":
            refused = _leave(folder, mailbox)
            gives, has = mailbox.from_folder(folder), mailbox.names()
            told = {"names": list(gives), "sizes": list(gives.values()), "has": has, "refused": refused}
            return {"key": folder.key.text, **told}
        if act == "give":
            name = _said(message, "name", str)
            if name not in mailbox.from_folder(folder):
                raise ExchangeError("NOT_FOUND", "The relay asked for a file that this folder has not sent.")
            return {"piece": mailbox.piece(name, _said(message, "start", int))}
        if act == "take":
            name, piece = _said(message, "name", str), _said(message, "piece", bytes)
            start, size = _said(message, "start", int), _said(message, "size", int)
            return {"start": mailbox.take(name, start, size, piece, source="relay")}
        if act == "deliver":
            done = _collect(folder, mailbox)
            return {"came": len(done.came), "refused": [error.code for error in done.refused.values()]}
        raise ExchangeError("RELAY_REFUSED", "The relay wants what this program does not do. Compare the versions.")
    except ExchangeError as error:
        _LOGGER.warning("%s: %s", error.code, error)
        return {"error": error.code}


def relay(path: Path, members: Sequence[str], send: Send) -> Relayed:
    """One round: fetch what members send, hand on what is for others, and see to one's own folder.

    Parameters
    ----------
    path : Path
        The analyst's folder; or an empty one, of somebody who only relays.
    members : sequence of str
        Whom the framework can reach, by its own names.
    send : callable
        Takes a message for each member, and returns the answers of those who gave one.

    Returns
    -------
    Relayed
    """
    done, mailbox = Relayed(), Mailbox(Path(path) / _MAILBOX)
    own = MemberFolder.at(path) if (Path(path) / "keys.json").is_file() else None
    if own is not None:
        done.refused[""] = _leave(own, mailbox)
    answers = dict(send({member: {"act": "look"} for member in members}))
    talks = {member: _Talk(member, mailbox, answers[member], send) for member in members if member in answers}
    for talk in talks.values():
        talk.fetch()
    if own is not None:
        found = _collect(own, mailbox)
        done.came[""] = len(found.came)
        done.refused[""] += [error.code for error in found.refused.values()]
    for member, talk in talks.items():
        done.came[member] = talk.hand_over()
        done.refused[member] = talk.refused
    done.answered = tuple(member for member, talk in talks.items() if not talk.is_silent)
    done.silent = tuple(member for member in members if member not in done.answered)
    return done


class _Talk:
    """The relay's side of what it says to one member."""

    def __init__(self, member: str, mailbox: Mailbox, first: Message, send: Send) -> None:
        self.member, self._mailbox, self._send, self._first = member, mailbox, send, first
        self.is_silent = False
        self.refused: list[str] = []

    def fetch(self) -> None:
        """All that the member sends and that does not lie here."""
        try:
            self._note(self._first)
            names, sizes = _list(self._first, "names", str), _list(self._first, "sizes", int)
        except ExchangeError as error:
            self._refuse(error)
            return
        for name, size in list(zip(names, sizes, strict=False))[:MOST_FILES]:
            self._each(self._fetch, name, size)

    def hand_over(self) -> int:
        """All that is for the member; how many files came into its inbox."""
        try:
            key = PublicKey.from_text(_said(self._first, "key", str))
            has = set(_list(self._first, "has", str))
            for name, size in self._mailbox.for_member(key).items():
                if name not in has:
                    self._each(self._hand_over, name, size)
            return _said(self._ask(act="deliver"), "came", int)
        except ExchangeError as error:
            self._refuse(error)
            return 0

    def _each(self, step: Callable[[str, int], None], name: str, size: int) -> None:
        """A file that is refused stops none of the others."""
        try:
            step(name, size)
        except ExchangeError as error:
            self._refuse(error)

    def _fetch(self, name: str, size: int) -> None:
        done = self._mailbox.begun(name, size, source=self.member)
        while not self._mailbox.has(name):
            piece = _said(self._ask(act="give", name=name, start=done), "piece", bytes)
            if not piece:
                raise ExchangeError("RELAY_REFUSED", f"{self.member} gives less of {name} than it announced.")
            done = self._mailbox.take(name, done, size, piece, source=self.member)

    def _hand_over(self, name: str, size: int) -> None:
        done = 0
        # The first message brings nothing: its answer says what lies there from before.
        piece = b""
        while done < size:
            there = _said(self._ask(act="take", name=name, start=done, size=size, piece=piece), "start", int)
            if piece and there <= done:
                raise ExchangeError("RELAY_REFUSED", f"{self.member} does not take {name}.")
            done, piece = there, self._mailbox.piece(name, there) if there < size else b""

    def _ask(self, **message: Any) -> Message:
        answers = {} if self.is_silent else self._send({self.member: message})
        self.is_silent = self.member not in answers
        if self.is_silent:
            raise ExchangeError("REMOTE_UNREACHABLE", f"{self.member} does not answer. Run it again when it is there.")
        self._note(answers[self.member])
        return answers[self.member]

    def _note(self, told: Message) -> None:
        """What the member refused; if that is the whole message, it is an error here."""
        self.refused += _list(told, "refused", str)
        if "error" in told:
            raise ExchangeError("RELAY_REFUSED", f"{self.member} refused: {_said(told, 'error', str)[:40]!r}.")

    def _refuse(self, error: ExchangeError) -> None:
        _LOGGER.warning("%s: %s", error.code, error)
        self.refused.append(error.code)


def _leave(folder: MemberFolder, mailbox: Mailbox) -> list[str]:
    """Put what may leave into the mailbox; codes of what may not."""
    if folder.project_file is None:
        return []
    # By the folder's own project file, what comes is checked, whether or not it comes too.
    mailbox.agree(*read_project(folder.project_file))
    refused = push(folder, mailbox).refused
    for path, error in refused.items():
        _LOGGER.warning("%s: %s: %s", path, error.code, error)
    return [error.code for error in refused.values()]


def _collect(folder: MemberFolder, mailbox: Mailbox) -> Pulled:
    done, _ = pull(folder, mailbox, Kept.read(folder.path, _KEPT), keep=lambda kept: kept.write(folder.path, _KEPT))
    for error in done.refused.values():
        _LOGGER.warning("%s: %s", error.code, error)
    return done


def _said(message: Message, name: str, kind: type[T]) -> T:
    """An entry of a message, if it is what it should be."""
    found = message.get(name)
    # True is a number for Python alone.
    if type(found) is not kind or (isinstance(found, int) and found < 0):
        raise ExchangeError("RELAY_REFUSED", f"The other side's message has no usable {name!r}. Compare the versions.")
    return found


def _list(message: Message, name: str, kind: type[T]) -> list[T]:
    found = message.get(name, [])
    if not isinstance(found, list | tuple) or not all(type(each) is kind for each in found):
        raise ExchangeError("RELAY_REFUSED", f"The other side's message has no usable {name!r}. Compare the versions.")
    return list(found)
