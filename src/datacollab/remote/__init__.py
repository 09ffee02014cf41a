"""Carrying an exchange's files by machine, through a folder that all reach; files by hand stay the foundation.

Files by what they are for:

* What is carried: `_parcels`; to and fro, `_carrying`.
* Remotes: `_base`, `_store`.
* What a folder keeps of them: `_settings`, `_kept`.
"""

from ._base import Remote, RemoteKind, Tell, check_kind, silent
from ._carrying import Pulled, Pushed, pull, push, withdrawable
from ._kept import KEPT, Kept, forget
from ._parcels import AGREEMENT, KINDS, Addressed, Entry, Folder, Kind, Parcel, RemoteStatus, addressed, project_of
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
