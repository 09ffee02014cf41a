"""Carrying an exchange's files by machine, through a folder that all reach; files by hand stay the foundation.

Files by what they are for:

* What is carried: `_kinds`, `_addressed`, `_parcel`, `_entry`, `_folder`, `_peek`, `_project_text`, `_sha256`.
* To and fro: `_push`, `_pull`, `_withdrawing`.
* Remotes: `_base`, `_opening`, `_store`, `_sftp`; `_kind` of those that plugins bring.
* What a folder keeps of them: `_settings`, `_kept`.
"""

from ._addressed import Addressed, addressed
from ._base import Remote, Tell, silent
from ._entry import Entry, RemoteStatus
from ._folder import Folder
from ._kept import KEPT, Kept, forget
from ._kind import RemoteKind, check_kind
from ._kinds import AGREEMENT, KINDS, Kind
from ._opening import open_remote
from ._parcel import Parcel
from ._project_text import project_of
from ._pull import Pulled, pull
from ._push import Pushed, push
from ._settings import Place, chosen, invalid, is_store, read_places, write_places
from ._store import StoreRemote
from ._withdrawing import withdrawable

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
