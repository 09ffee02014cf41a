"""The kind of remote that carries the files of an exchange to a hub, and from it.

Files by their purpose:

* Opened by its URL: `_kind`; its work: `_hub`, `_files`, `_log`, `_withheld`.
* Requests, asked again where the network fails: `_http`, `_retrying`, `_words`.
* Coming into a project: `_membership`.
"""

from ._hub import HubRemote
from ._kind import HubKind
from ._membership import ROLES, Asked, Link, answer_request, browser_link, invite, join, open_project, requests_of
from ._retrying import Patience

__all__ = [
    "ROLES",
    "Asked",
    "HubKind",
    "HubRemote",
    "Link",
    "Patience",
    "answer_request",
    "browser_link",
    "invite",
    "join",
    "open_project",
    "requests_of",
]
