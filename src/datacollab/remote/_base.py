"""What every remote can do, whatever it is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Protocol

from ..exchange.project import Project
from ._entry import Entry, RemoteStatus
from ._folder import Folder
from ._kept import Kept
from ._parcel import Parcel

__all__ = ["Remote", "Tell", "silent"]


class Tell(Protocol):
    """Takes what is going on, and how much of it is done, from 0 to 1."""

    def __call__(self, step: str, share: float | None = None) -> None: ...


def silent(step: str, share: float | None = None) -> None:
    """Tells nobody."""


class Remote(ABC):
    """A place through which files of one project go; it opens none of them, and is believed nothing.

    Attributes
    ----------
    url : str
        Whom an error names.
    has_log : bool
        Whether it keeps a log that `witness` reads.
    stops : frozenset of str
        Codes of what would go wrong with each of the other files, too.
    """

    url: str
    has_log: bool = False
    stops: frozenset[str] = frozenset({"REMOTE_UNREACHABLE"})

    @abstractmethod
    def list(self, folder: Folder) -> Sequence[Entry]:
        """Files of the project that are for this folder or from it, the oldest first where that is known."""

    @abstractmethod
    def send(self, parcel: Parcel, *, tell: Tell = silent) -> None:
        """Have a file lie there, whole or not at all; what was begun is continued where it can be.

        Raises
        ------
        ExchangeError
            ALREADY_SHARED, DEADLINE_PASSED, REMOTE_UNREACHABLE, and what the remote refuses.
        """

    @abstractmethod
    def fetch(self, entry: Entry, part: Path, *, folder: Folder, tell: Tell = silent) -> None:
        """Write a file's bytes to `part`, after those that it holds already.

        Whether they are what the entry says is for the caller to check.

        Raises
        ------
        ExchangeError
            REMOTE_UNREACHABLE, TOO_LARGE, and what the remote refuses.
        """

    @abstractmethod
    def status(self, folder: Folder) -> RemoteStatus:
        """How the project stands."""

    @abstractmethod
    def agreement(self, folder: Folder) -> bytes | None:
        """The project file that lies there, unchecked; None where there is none for this folder."""

    @abstractmethod
    def agree(self, project: Project, text: bytes) -> None:
        """Have the project file lie there; its owner's signature is checked."""

    @abstractmethod
    def withdraw(self, entry: Entry, *, folder: Folder) -> None:
        """Take back a file of one's own: those who have fetched it keep it."""

    def witness(self, kept: Kept, folder: Folder) -> Kept:
        """Read the remote's log from what was seen last, and return what is remembered then; a store has none.

        Raises
        ------
        ExchangeError
            LOG_BROKEN, when it does not go on from there.
        """
        return kept

    def check_given(  # noqa: B027
        self, folder: Folder, before: Kept, seen: Kept, refused: Container[str]
    ) -> None:
        """Check what a pull brought against the remote's log.

        Parameters
        ----------
        folder : Folder
            After the pull.
        before, seen : Kept
            What was remembered before the pull; and after it and a look at the log.
        refused : container of str
            SHA-256 of what was refused, or "agreement": the caller says so.

        Raises
        ------
        ExchangeError
            When the remote does not give what its log says is there.
        """

    def close(self) -> None:  # noqa: B027
        """Let go of connections."""
