"""Carrying an exchange's files by machine, through a folder that all reach; files by hand stay the foundation."""

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
    Remote,
    RemoteStatus,
    Tell,
    addressed,
    forget,
    project_of,
    silent,
)
from ._settings import (
    Place,
    RemoteKind,
    chosen,
    invalid,
    is_store,
    kind_of_remote,
    open_remote,
    read_places,
    write_places,
)
from ._store import StoreRemote

__all__ = ["AGREEMENT", "KEPT", "KINDS", "Addressed", "Entry", "Folder", "Kept", "Kind", "Parcel", "Place", "Pulled"]
__all__ += ["Pushed", "Remote", "RemoteKind", "RemoteStatus", "StoreRemote", "Tell", "addressed", "chosen", "forget"]
__all__ += ["invalid", "is_store", "kind_of_remote", "open_remote", "project_of", "pull", "push", "read_places"]
__all__ += ["silent", "withdrawable", "write_places"]
