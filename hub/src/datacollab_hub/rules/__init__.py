"""Permissions on a hub: pure functions and tables, without a database and without a network."""

from ._files import KINDS, FileFacts, Kind, check_envelope, check_follows, check_open, kind_of, may_fetch, may_see
from ._person import MEMBERS, Person, Role, check_invited
from ._routes import ROUTES, Route, check_fingerprint, check_id, check_may, check_name, check_sha256, is_id, not_found
from ._settings import Settings

__all__ = ["KINDS", "MEMBERS", "ROUTES", "FileFacts", "Kind", "Person", "Role", "Route", "Settings"]
__all__ += ["check_envelope", "check_fingerprint", "check_follows", "check_id", "check_invited", "check_may"]
__all__ += ["check_name", "check_open", "check_sha256", "is_id", "kind_of", "may_fetch", "may_see", "not_found"]
