"""``remotes.toml``: the remotes of a folder, with nothing secret; and opening them, by plugins or as stores."""

from __future__ import annotations

import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .._require import require
from ..agreement import is_device_name
from ..bundle import KeyPair, write_atomically
from ..errors import ExchangeError, MissingExtraError
from ..plugins import REMOTES, find_plugin, missing
from ._parcels import Remote
from ._store import StoreRemote

REMOTES_FILE = "remotes.toml"
_MOST_BYTES = 2**16
"""Bytes that are read of the file, which has a few hundred."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_ENTRIES = ("url", "project", "ca")
_HEADER = "# Written by `datacollab remote`. No secret is in it; keys are in keys.json.\n\n"


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


@dataclass(frozen=True, kw_only=True)
class RemotePlace:
    """A remote as the folder knows it; raises REMOTE_INVALID.

    ``url`` is a folder for fsspec (a path, ``sftp://...``, ``s3://...``), or of a kind that a plugin brings. For such a
    kind, ``project`` is the remote's name of the project, and ``ca`` a file of further trusted certificates.
    """

    name: str
    url: str
    project: str | None = None
    ca: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise invalid(f"{self.name!r} cannot name a remote; expected 1 to 32 letters, digits, - and _")
        if is_device_name(self.name):
            raise invalid(f"{self.name!r} cannot name a remote: on Windows it names a device")
        _check_url(self.url)
        if is_store(self.url):
            if self.project or self.ca:
                raise invalid(f"remote {self.name!r}: a store has no project of its own, and no certificates")
        else:
            # Without its plugin, a remote can be named and removed.
            with suppress(MissingExtraError):
                kind_of_remote(self.url).check(self.url, self.project)


def is_store(url: str) -> bool:
    """Return whether a URL is a store's: a folder that all reach.  Other kinds of remote come with plugins.

    Examples
    --------
    >>> is_store("https://hub.example"), is_store("/mnt/exchange")
    (False, True)
    """
    scheme = urlsplit(url).scheme
    return scheme not in _OF_HUBS and find_plugin(REMOTES, scheme) is None


def kind_of_remote(url: str) -> RemoteKind:
    """Return the kind of a URL that is no store's, or raise MissingExtraError or REMOTE_INVALID."""
    scheme = urlsplit(url).scheme
    entry = find_plugin(REMOTES, scheme)
    if entry is None:
        raise missing(f"A remote at {scheme}:// is a hub, and its client", "hub")
    try:
        kind = entry.load()()
        if not isinstance(kind, RemoteKind):
            raise TypeError("it is no RemoteKind")
    # Code of others: nothing is known of its errors.
    except Exception as error:
        raise ExchangeError(
            "REMOTE_INVALID", f"The plugin for {url} ({entry.value}) cannot be loaded: {error}. Install it again."
        ) from error
    return kind


def read_places(folder: Path) -> dict[str, RemotePlace]:
    """Return the remotes of a folder by their names, none if there is no file; raise REMOTE_INVALID."""
    path = folder / REMOTES_FILE
    try:
        with open(path, "rb") as file:
            text = file.read(_MOST_BYTES).decode("utf-8")
        contents = tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise invalid(f"{path} cannot be read ({type(error).__name__})") from None
    remotes = contents.pop("remotes", {})
    if contents or not isinstance(remotes, dict):
        raise invalid(f"{path} has other entries than [remotes.NAME]")
    return {name: _place(name, entry, path) for name, entry in remotes.items()}


def write_places(folder: Path, places: Mapping[str, RemotePlace]) -> None:
    """Write the remotes of a folder."""
    tomli_w = require("tomli_w", "exchange")
    remotes = {
        place.name: {key: value for key in _ENTRIES if (value := getattr(place, key)) is not None}
        for place in places.values()
    }
    text = _HEADER + tomli_w.dumps({"remotes": remotes})
    write_atomically(folder / REMOTES_FILE, text.encode(), mode=0o600)


def choose_place(folder: Path, name: str | None) -> RemotePlace:
    """Return the remote of a name, or the only one; raise REMOTE_UNKNOWN."""
    places = read_places(folder)
    # Nobody has to name the only remote.
    if name is None and len(places) == 1:
        return next(iter(places.values()))
    if name in places:
        return places[name]
    known = ", ".join(places) or "none"
    problem = "no remote was named" if name is None else f"there is no remote {name!r}"
    raise ExchangeError(
        "REMOTE_UNKNOWN",
        f"{folder}: {problem}; it has {known}. Name one with --remote, or add one: "
        f"datacollab remote add NAME URL -C {folder}",
    )


def invalid(reason: str) -> ExchangeError:
    """Return a ``REMOTE_INVALID`` error, for wrong input."""
    return ExchangeError("REMOTE_INVALID", f"{reason}. Correct it, and run the command again.")


def _place(name: str, entry: Any, path: Path) -> RemotePlace:
    if not isinstance(entry, dict) or not {"url"} <= entry.keys() <= set(_ENTRIES):
        raise invalid(f"{path}, [remotes.{name}]: expected url, and no others than {', '.join(sorted(_ENTRIES))}")
    if not all(isinstance(value, str) for value in entry.values()):
        raise invalid(f"{path}, [remotes.{name}]: all entries are texts")
    return RemotePlace(name=name, **entry)


def _check_url(url: str) -> None:
    if not url or not url.isprintable():
        raise invalid("the URL is empty, or holds letters that cannot be shown")
    try:
        parts = urlsplit(url)
        _ = (parts.hostname, parts.port)  # Both are parsed only here, and may be nonsense.
    except ValueError:
        raise invalid("the URL is none") from None
    if parts.password:
        raise invalid(
            "the URL holds a password, which would be kept in the clear; let the system know it, such as in "
            "~/.ssh or the environment"
        )


def open_remote(folder: Path, place: RemotePlace, key: Callable[[], KeyPair], **options: Any) -> Remote:
    """Open a remote; ``key`` returns the folder's keys, after their passphrase, and is never called for a store.

    It raises REMOTE_INVALID, REMOTE_UNREACHABLE, or a MissingExtraError if the URL's plugin is not installed.
    """
    if is_store(place.url):
        return StoreRemote(place.url)

    def keep_project(project: str) -> None:
        write_places(folder, read_places(folder) | {place.name: replace(place, project=project)})

    ca = None
    if place.ca is not None:
        ca = folder / place.ca
    kind = kind_of_remote(place.url)
    return kind.open(place.url, key, project=place.project, ca=ca, found=keep_project, **options)
