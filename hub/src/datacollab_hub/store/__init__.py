"""The store of a hub: a database (SQLite or PostgreSQL, by SQLAlchemy and Alembic), blobs (by fsspec), and the log.

No rule is here but those that an index holds: that a file is there once, and that a party has one live share.
"""

from ._backup import backup, restore
from ._blobs import Blobs
from ._database import (
    check_current,
    current,
    database_url,
    disk_is_full,
    downgrade,
    is_empty,
    newest,
    open_engines,
    transaction,
    upgrade,
)
from ._files import (
    FileRow,
    NewFile,
    Upload,
    add_chunk,
    add_fetch,
    add_file,
    chunk_blobs,
    drop_upload,
    fetches_of,
    file_row,
    files_of,
    find_upload,
    has_live_share,
    last_live,
    n_open_uploads,
    new_upload,
    upload_row,
    used_bytes,
    withdraw_file,
)
from ._joining import (
    JoinRequest,
    add_request,
    browser_key,
    decide_request,
    forget_browser,
    has_invitation,
    join_requests,
    new_browser,
    new_invitation,
    new_session,
    redeem_session,
    session_key,
    use_invitation,
)
from ._people import Standing, add_key, allow_key, find_key, remember_nonce, roles_of, standing_of
from ._projects import (
    AgreementRow,
    Member,
    ProjectRow,
    add_member,
    agreement_text,
    agreements_of,
    all_projects,
    append_log,
    count_owned,
    log_entries,
    log_head,
    members_of,
    new_project,
    project_owner,
    project_row,
    projects_of,
    remove_member,
    replace_members,
    set_agreement,
)
from ._schema import METADATA
from ._store import Store

__all__ = ["METADATA", "AgreementRow", "Blobs", "FileRow", "JoinRequest", "Member", "NewFile", "ProjectRow"]
__all__ += ["Standing", "Store", "Upload", "add_chunk", "add_fetch", "add_file", "add_key", "add_member"]
__all__ += ["add_request", "agreement_text", "agreements_of", "all_projects", "allow_key", "append_log"]
__all__ += ["backup", "browser_key", "check_current", "chunk_blobs", "count_owned", "current", "database_url"]
__all__ += ["decide_request", "disk_is_full", "downgrade", "drop_upload", "fetches_of", "file_row", "files_of"]
__all__ += ["find_key", "find_upload", "forget_browser", "has_invitation", "has_live_share", "is_empty"]
__all__ += ["join_requests", "last_live", "log_entries", "log_head", "members_of", "n_open_uploads"]
__all__ += ["new_browser", "new_invitation", "new_project", "new_session", "new_upload", "newest"]
__all__ += ["open_engines", "project_owner", "project_row", "projects_of", "redeem_session", "remember_nonce"]
__all__ += ["remove_member", "replace_members", "restore", "roles_of", "session_key", "set_agreement"]
__all__ += ["standing_of", "transaction", "upgrade", "upload_row", "use_invitation", "used_bytes"]
__all__ += ["withdraw_file"]
