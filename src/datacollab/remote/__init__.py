"""Carrying an exchange's files by machine: a hub, or a folder that all reach; files by hand stay the foundation.

Files by what they are for:

* What is carried: `_kinds`, `_addressed`, `_parcel`, `_entry`, `_folder`, `_peek`, `_project_text`, `_sha256`.
* To and fro: `_push`, `_pull`, `_withdrawing`.
* Remotes: `_base`, `_opening`, `_store`, `_sftp`.
* A hub: `_hub`, `_hub_files`, `_hub_log`, `_withheld`, `_http`, `_retrying`, `_words`, `_membership`.
* What a folder keeps of them: `_settings`, `_kept`.
"""

from ._addressed import Addressed, addressed
from ._base import Remote, Tell
from ._entry import Entry, RemoteStatus
from ._folder import Folder
from ._hub import HubRemote
from ._kept import KEPT, Kept, forget
from ._kinds import AGREEMENT, KINDS, Kind
from ._membership import ROLES, Asked, Link, answer_request, browser_link, invite, join, open_project, requests_of
from ._opening import open_remote
from ._parcel import Parcel
from ._project_text import project_of
from ._pull import Pulled, pull
from ._push import Pushed, push
from ._retrying import Patience
from ._settings import Place, chosen, is_hub, read_places, write_places
from ._store import StoreRemote
from ._withdrawing import withdrawable
from ._withheld import check_given

__all__ = [
    "AGREEMENT",
    "KEPT",
    "KINDS",
    "ROLES",
    "Addressed",
    "Asked",
    "Entry",
    "Folder",
    "HubRemote",
    "Kept",
    "Kind",
    "Link",
    "Parcel",
    "Patience",
    "Place",
    "Pulled",
    "Pushed",
    "Remote",
    "RemoteStatus",
    "StoreRemote",
    "Tell",
    "addressed",
    "answer_request",
    "browser_link",
    "check_given",
    "chosen",
    "forget",
    "invite",
    "is_hub",
    "join",
    "open_project",
    "open_remote",
    "project_of",
    "pull",
    "push",
    "read_places",
    "requests_of",
    "withdrawable",
    "write_places",
]
