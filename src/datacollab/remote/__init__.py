"""Carrying an exchange's files by machine, through a folder that all reach; files by hand stay the foundation."""

from ._carrying import Pulled, Pushed, pull, push, withdrawable
from ._parcels import (
    AGREEMENT,
    KEPT,
    KINDS,
    Addressed,
    Entry,
    Kept,
    Kind,
    MemberFolder,
    Parcel,
    Remote,
    RemoteStatus,
    Tell,
    forget,
    project_of,
    read_address,
    silent,
)
from ._settings import (
    RemoteKind,
    RemotePlace,
    choose_place,
    invalid,
    is_store,
    kind_of_remote,
    open_remote,
    read_places,
    write_places,
)
from ._store import StoreRemote

__all__ = ["AGREEMENT", "KEPT", "KINDS", "Addressed", "Entry", "Kept", "Kind", "MemberFolder", "Parcel", "Pulled"]
__all__ += ["Pushed", "Remote", "RemoteKind", "RemotePlace", "RemoteStatus", "StoreRemote", "Tell", "choose_place"]
__all__ += ["forget", "invalid", "is_store", "kind_of_remote", "open_remote", "project_of", "pull", "push"]
__all__ += ["read_address", "read_places", "silent", "withdrawable", "write_places"]
