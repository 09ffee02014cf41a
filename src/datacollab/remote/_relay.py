"""Files of an exchange as messages of somebody else's framework: one side asks, and members answer.

A message is a dict of texts, numbers, bytes and lists of these.  A framework's adapter hands the relay's messages to
`answer` at each member, and what that returns back: it needs to know nothing of what they say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ..bundle import PublicKey
from ..errors import ExchangeError
from ..exchange.project import read_project
from ._folder import Folder
from ._kept import Kept
from ._mailbox import MOST_FILES, Mailbox
from ._pull import Pulled, pull
from ._push import push

__all__ = ["Message", "Relayed", "answer", "relay"]

Message = Mapping[str, Any]
Send = Callable[[Mapping[str, Message]], Mapping[str, Message]]
T = TypeVar("T")

_MAILBOX, _KEPT = "mailbox", "relay"
_LOGGER = logging.getLogger("datacollab.remote")


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
        folder, mailbox = Folder.at(path), Mailbox(Path(path) / _MAILBOX)
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
        raise ExchangeError("REMOTE_REFUSED", "The relay wants what this program does not do. Compare the versions.")
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
    own = Folder.at(path) if (Path(path) / "keys.json").is_file() else None
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
                raise ExchangeError("REMOTE_REFUSED", f"{self.member} gives less of {name} than it announced.")
            done = self._mailbox.take(name, done, size, piece, source=self.member)

    def _hand_over(self, name: str, size: int) -> None:
        done = 0
        # The first message brings nothing: its answer says what lies there from before.
        piece = b""
        while done < size:
            there = _said(self._ask(act="take", name=name, start=done, size=size, piece=piece), "start", int)
            if piece and there <= done:
                raise ExchangeError("REMOTE_REFUSED", f"{self.member} does not take {name}.")
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
            raise ExchangeError("REMOTE_REFUSED", f"{self.member} refused: {_said(told, 'error', str)[:40]!r}.")

    def _refuse(self, error: ExchangeError) -> None:
        _LOGGER.warning("%s: %s", error.code, error)
        self.refused.append(error.code)


def _leave(folder: Folder, mailbox: Mailbox) -> list[str]:
    """Put what may leave into the mailbox; codes of what may not."""
    if folder.project_file is None:
        return []
    # By the folder's own project file, what comes is checked, whether or not it comes too.
    mailbox.agree(*read_project(folder.project_file))
    refused = push(folder, mailbox).refused
    for path, error in refused.items():
        _LOGGER.warning("%s: %s: %s", path, error.code, error)
    return [error.code for error in refused.values()]


def _collect(folder: Folder, mailbox: Mailbox) -> Pulled:
    done, _ = pull(folder, mailbox, Kept.read(folder.path, _KEPT), keep=lambda kept: kept.write(folder.path, _KEPT))
    for error in done.refused.values():
        _LOGGER.warning("%s: %s", error.code, error)
    return done


def _said(message: Message, name: str, kind: type[T]) -> T:
    """An entry of a message, if it is what it should be."""
    found = message.get(name)
    # True is a number for Python alone.
    if type(found) is not kind or (isinstance(found, int) and found < 0):
        raise ExchangeError("REMOTE_REFUSED", f"The other side's message has no usable {name!r}. Compare the versions.")
    return found


def _list(message: Message, name: str, kind: type[T]) -> list[T]:
    found = message.get(name, [])
    if not isinstance(found, list | tuple) or not all(type(each) is kind for each in found):
        raise ExchangeError("REMOTE_REFUSED", f"The other side's message has no usable {name!r}. Compare the versions.")
    return list(found)
