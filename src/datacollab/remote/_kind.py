"""Kinds of remote that plugins bring, by the schemes of their URLs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..bundle import KeyPair
from ..errors import ExchangeError
from ..plugins import REMOTES, missing, named
from ._base import Remote

__all__ = ["RemoteKind", "check_kind", "kind_of_remote", "needs_plugin", "plugged"]

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
