"""The kind of remote that carries the files of an exchange to a hub, and from it.

Files by their purpose:

* A hub by its URL, and its work: `_hub`, `_files`, `_log`.
* Requests, asked again where the network fails: `_http`.
* Coming into a project: `_membership`.
"""

from ._http import Patience
from ._hub import HubKind, HubRemote
from ._membership import ROLES, Asked, Link, answer_request, browser_link, invite, join, open_project, requests_of

__all__ = ["ROLES", "Asked", "HubKind", "HubRemote", "Link", "Patience", "answer_request", "browser_link"]
__all__ += ["invite", "join", "open_project", "requests_of"]
