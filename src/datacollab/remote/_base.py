"""The operations of every remote, and kinds of remote that plugins bring, by the schemes of their URLs."""

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
from ._parcels import Entry, Folder, Kept, Parcel, RemoteStatus

__all__ = ["Remote", "RemoteKind", "Tell", "check_kind", "kind_of_remote", "needs_plugin", "plugged", "silent"]


class Tell(Protocol):
    """A callable that takes the current step, and the share of it that is done, from 0 to 1."""

    def __call__(self, step: str, share: float | None = None) -> None: ...


def silent(step: str, share: float | None = None) -> None:
    """Ignore the step."""


class Remote(ABC):
    """A place through which files of one project go; it opens none of them, and nothing it says is trusted.

    Attributes
    ----------
    url : str
        Shown in error messages.
    has_log : bool
        Whether it keeps a log that `witness` reads.
    stops : frozenset of str
        Codes of errors that would meet each of the other files, too.
    """

    url: str
    has_log: bool = False
    stops: frozenset[str] = frozenset({"REMOTE_UNREACHABLE"})

    @abstractmethod
    def list(self, folder: Folder) -> Sequence[Entry]:
        """Return the project's files for this folder or from it, the oldest first if that is known."""

    @abstractmethod
    def send(self, parcel: Parcel, *, tell: Tell = silent) -> None:
        """Put a file there, whole or not at all; continue an interrupted transfer if possible.

        It raises ALREADY_SHARED, DEADLINE_PASSED, REMOTE_UNREACHABLE, and other refusals of the remote.
        """

    @abstractmethod
    def fetch(self, entry: Entry, part: Path, *, folder: Folder, tell: Tell = silent) -> None:
        """Write a file's bytes to `part`, after those that it holds already; the caller checks them.

        It raises REMOTE_UNREACHABLE, TOO_LARGE, and other refusals of the remote.
        """

    @abstractmethod
    def status(self, folder: Folder) -> RemoteStatus:
        """Return the state of the project."""

    @abstractmethod
    def agreement(self, folder: Folder) -> bytes | None:
        """Return the project file that lies there, unchecked; None if there is none for this folder."""

    @abstractmethod
    def agree(self, project: Project, text: bytes) -> None:
        """Put the project file there; its owner's signature is checked."""

    @abstractmethod
    def withdraw(self, entry: Entry, *, folder: Folder) -> None:
        """Take back a file of one's own; members who have fetched it keep it."""

    def witness(self, kept: Kept, folder: Folder) -> Kept:
        """Read the remote's log from the last entry seen, and return what is remembered then; a store has none.

        It raises LOG_BROKEN if the log does not go on from there.
        """
        return kept

    def check_given(  # noqa: B027
        self, folder: Folder, before: Kept, seen: Kept, refused: Container[str]
    ) -> None:
        """Check what a pull brought against the remote's log; raise if it does not give what its log says is there.

        ``folder`` is that after the pull, ``before`` the memory before it, and ``seen`` the one after it and a look
        at the log. ``refused`` has the SHA-256 of refused files, or "agreement": the caller reports these.
        """

    def close(self) -> None:  # noqa: B027
        """Close connections."""


_OF_HUBS = ("https", "http")
"""Schemes of the hub, whose distribution lies in this repository."""


class RemoteKind(ABC):
    """A plugin under the entry points ``datacollab.remotes``; its class is loaded and called."""

    @abstractmethod
    def check(self, url: str, project: str | None) -> None:
        """Check a folder's record of a remote of this kind, or raise REMOTE_INVALID.

        ``project`` is the remote's name of the project, if it is known.
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

        ``key`` returns the folder's keys, which asks for their passphrase; ``ca`` is a file of further trusted
        certificates; ``found`` takes the remote's name of the project once it was looked for, and writes it down.
        """


def needs_plugin(url: str) -> bool:
    """Return whether a URL needs a plugin, installed or not."""
    scheme = urlsplit(url).scheme
    return scheme in _OF_HUBS or named(REMOTES, scheme) is not None


def kind_of_remote(url: str) -> RemoteKind | None:
    """Return the kind of a URL that needs a plugin, None if it is not installed; raise REMOTE_INVALID."""
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
    """Check that a remote of this URL can be opened here; stores always can.  Errors are those of `plugged`."""
    if needs_plugin(url):
        plugged(url)


def plugged(url: str) -> RemoteKind:
    """Return the kind of a URL that needs a plugin; raise MissingExtraError if it is not installed."""
    kind = kind_of_remote(url)
    if kind is None:
        raise missing(f"A remote at {urlsplit(url).scheme}:// is a hub, and its client", "hub")
    return kind
