"""A remote by what a folder has written down of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..bundle import KeyPair
from ._base import Remote
from ._kind import plugged
from ._settings import Place, is_store, read_places, write_places
from ._store import StoreRemote

__all__ = ["open_remote"]


def open_remote(folder: Path, place: Place, key: Callable[[], KeyPair], **options: Any) -> Remote:
    """Open a remote.

    Parameters
    ----------
    folder : Path
    place : Place
    key : callable
        Gives the folder's keys, under their passphrase; never called for a store.
    **options
        Of the kind of remote that a plugin brings.

    Raises
    ------
    ExchangeError
        REMOTE_INVALID, REMOTE_UNREACHABLE.
    MissingExtraError
        Where the plugin for the remote's URL is not installed.
    """
    if is_store(place.url):
        return StoreRemote(place.url)

    def found(project: str) -> None:
        write_places(folder, read_places(folder) | {place.name: replace(place, project=project)})

    ca = None if place.ca is None else folder / place.ca
    return plugged(place.url).open(place.url, key, project=place.project, ca=ca, found=found, **options)
