"""Carrying an exchange's files by machine, through a folder that all reach; files by hand stay the foundation."""

from ._base import Remote, RemoteKind, Tell, check_kind, silent
from ._carrying import Pulled, Pushed, pull, push, withdrawable
from ._parcels import (
    AGREEMENT,
    KEPT,
    KINDS,
    Addressed,
    Entry,
    Folder,
    Kept,
    Kind,
    Parcel,
    RemoteStatus,
    addressed,
    forget,
    project_of,
)
from ._settings import Place, chosen, invalid, is_store, open_remote, read_places, write_places
from ._store import StoreRemote

__all__ = [
    "AGREEMENT",
    "KEPT",
    "KINDS",
    "Addressed",
    "Entry",
    "Folder",
    "Kept",
    "Kind",
    "Parcel",
    "Place",
    "Pulled",
    "Pushed",
    "Remote",
    "RemoteKind",
    "RemoteStatus",
    "StoreRemote",
    "Tell",
    "addressed",
    "check_kind",
    "chosen",
    "forget",
    "invalid",
    "is_store",
    "open_remote",
    "project_of",
    "pull",
    "push",
    "read_places",
    "silent",
    "withdrawable",
    "write_places",
]
