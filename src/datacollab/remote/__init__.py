"""Carrying an exchange's files by machine: a hub, or a folder that all reach; files by hand stay the foundation.

Files by what they are for:

* What is carried: `_kinds`, `_addressed`, `_parcel`, `_entry`, `_folder`, `_peek`, `_project_text`, `_sha256`.
* To and fro: `_push`, `_pull`, `_withdrawing`.
* Remotes: `_base`, `_opening`, `_store`, `_sftp`.
* By others' frameworks: `_mailbox`, `_relay`.
* A hub: `_hub`, `_hub_files`, `_hub_log`, `_withheld`, `_http`, `_retrying`, `_words`, `_membership`.
* What a folder keeps of them: `_settings`, `_kept`.
"""

from ._base import Remote, Tell
from ._entry import Entry, RemoteStatus
from ._folder import Folder
from ._hub import HubRemote
from ._kept import KEPT, Kept, forget
from ._kinds import KINDS, Kind
from ._mailbox import Mailbox
from ._membership import ROLES, Asked, Link, answer_request, browser_link, invite, join, open_project, requests_of
from ._opening import open_remote
from ._pull import Pulled, pull
from ._push import Pushed, push
from ._relay import Message, Relayed, answer, relay
from ._retrying import Patience
from ._settings import Place, chosen, is_hub, read_places, write_places
from ._store import StoreRemote
from ._withdrawing import withdrawable
from ._withheld import check_given

__all__ = [
    "KEPT",
    "KINDS",
    "ROLES",
    "Asked",
    "Entry",
    "Folder",
    "HubRemote",
    "Kept",
    "Kind",
    "Link",
    "Mailbox",
    "Message",
    "Patience",
    "Place",
    "Pulled",
    "Pushed",
    "Relayed",
    "Remote",
    "RemoteStatus",
    "StoreRemote",
    "Tell",
    "answer",
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
    "pull",
    "push",
    "read_places",
    "relay",
    "requests_of",
    "withdrawable",
    "write_places",
]
