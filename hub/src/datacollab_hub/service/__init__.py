"""The work of a hub, route by route, without HTTP: rules are asked, the store is changed, the log is told."""

from ..requests import check_signed
from ..store import Member
from ._fetching import Fetched, fetch, list_files, note_fetched, read_pieces, withdraw
from ._hub import Hub
from ._identifying import Head, Identified, identify, identify_invited
from ._joining import (
    BROWSER_SECONDS,
    decide,
    invite,
    join,
    link_key,
    new_browser_session,
    read_presented_key,
    redeem_browser_session,
    sign_in,
    sign_out,
    visitor,
    waiting_keys,
)
from ._projects import (
    agreement_of,
    open_project,
    own_projects,
    owner_of,
    project_log,
    project_members,
    project_revisions,
    project_status,
    put_agreement,
    read_agreed_project,
)
from ._seen import Seen
from ._uploading import Announced, OffsetDiffersError, abandon, append_part, own_upload, start_upload
from ._views import Views

__all__ = ["BROWSER_SECONDS", "Announced", "Fetched", "Head", "Hub", "Identified", "Member"]
__all__ += ["OffsetDiffersError", "Seen", "Views", "abandon", "agreement_of", "append_part", "check_signed"]
__all__ += ["decide", "fetch", "identify", "identify_invited", "invite", "join", "link_key", "list_files"]
__all__ += ["new_browser_session", "note_fetched", "open_project", "own_projects", "own_upload", "owner_of"]
__all__ += ["project_log", "project_members", "project_revisions", "project_status", "put_agreement"]
__all__ += ["read_agreed_project", "read_pieces", "read_presented_key", "redeem_browser_session", "sign_in"]
__all__ += ["sign_out", "start_upload", "visitor", "waiting_keys", "withdraw"]
