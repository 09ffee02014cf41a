"""Permissions on a hub: pure functions and tables, without a database and without a network."""

from ._agreeing import check_follows, check_invited
from ._kinds import KINDS, Kind, check_envelope, kind_of
from ._person import MEMBERS, Person, Role
from ._reading import FileFacts, may_fetch, may_see
from ._routes import ROUTES, Route, check_may
from ._settings import Settings
from ._timing import check_open
from ._words import check_fingerprint, check_id, check_name, check_sha256, is_id, not_found

__all__ = [
    "KINDS",
    "MEMBERS",
    "ROUTES",
    "FileFacts",
    "Kind",
    "Person",
    "Role",
    "Route",
    "Settings",
    "check_envelope",
    "check_fingerprint",
    "check_follows",
    "check_id",
    "check_invited",
    "check_may",
    "check_name",
    "check_open",
    "check_sha256",
    "is_id",
    "kind_of",
    "may_fetch",
    "may_see",
    "not_found",
]
