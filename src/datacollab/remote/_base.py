"""What every remote can do, and kinds of remote that plugins bring, by the schemes of their URLs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from ..bundle import KeyPair
from ..errors import ExchangeError
from ..exchange.project import Project
from ..plugins import REMOTES, missing, named
from ._kept import Kept
from ._parcels import Entry, Folder, Parcel, RemoteStatus

__all__ = ["Remote", "RemoteKind", "Tell", "check_kind", "kind_of_remote", "needs_plugin", "plugged", "silent"]


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


_OF_HUBS = ("https", "http")
"""Schemes of the hub, whose distribution lies in this repository."""


class RemoteKind(ABC):
    """What a plugin brings under the entry points ``datacollab.remotes``; its class is loaded and called."""

    @abstractmethod
    def check(self, url: str, project: str | None) -> None:
        """Check what a folder has written down of a remote of this kind.

        Parameters
        ----------
        url : str
        project : str or None
            The remote's name of the project, where it is known.

        Raises
        ------
        ExchangeError
            REMOTE_INVALID.
        """

    @abstractmethod
    def open(
        self,
        url: str,
        key: Callable[[], KeyPair],
        *,
        project: str | None,
        ca: Path | None,
        found: Callable[[str], None],
        **options: Any,
    ) -> Remote:
        """Open a remote.

        Parameters
        ----------
        url : str
        key : callable
            Gives the folder's keys, under their passphrase.
        project : str or None
        ca : Path or None
            File of certificates that are trusted besides.
        found : callable
            Takes the remote's name of the project once it was looked for, and writes it down.
        **options
            Of the kind.
        """


def needs_plugin(url: str) -> bool:
    """Whether a URL is of a kind that a plugin brings, whether it is there or not."""
    scheme = urlsplit(url).scheme
    return scheme in _OF_HUBS or named(REMOTES, scheme) is not None


def kind_of_remote(url: str) -> RemoteKind | None:
    """Return the kind of a URL that needs a plugin, or None where the plugin is not installed.

    Raises
    ------
    ExchangeError
        REMOTE_INVALID, where the plugin cannot be loaded.
    """
    entry = named(REMOTES, urlsplit(url).scheme)
    if entry is None:
        return None
    try:
        kind = entry.load()()
        if not isinstance(kind, RemoteKind):
            raise TypeError("it is no RemoteKind")
    except Exception as error:
        raise ExchangeError(
            "REMOTE_INVALID", f"The plugin for {url} ({entry.value}) cannot be loaded: {error}. Install it again."
        ) from error
    return kind


def check_kind(url: str) -> None:
    """Check that a remote of this URL can be opened here; stores always can.

    Raises
    ------
    MissingExtraError, ExchangeError
        As of `plugged`.
    """
    if needs_plugin(url):
        plugged(url)


def plugged(url: str) -> RemoteKind:
    """Return the kind of a URL that needs a plugin.

    Raises
    ------
    MissingExtraError
        Where it is not installed.
    ExchangeError
        REMOTE_INVALID, where the plugin cannot be loaded.
    """
    kind = kind_of_remote(url)
    if kind is None:
        raise missing(f"A remote at {urlsplit(url).scheme}:// is a hub, and its client", "hub")
    return kind
