"""Every route, who may ask for it, and the words in its address: checked before anything is looked up by them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from datacollab.errors import ExchangeError

from ._person import MEMBERS, Person, Role

# 128 random bits in hexadecimal: nobody finds one by trying.
_ID = re.compile("[0-9a-f]{32}")
_SHA256 = re.compile("[0-9a-f]{64}")
_FINGERPRINT = re.compile("[a-z2-7]{4}(-[a-z2-7]{4}){3}")
# As wide as the column that holds a name.
_MOST_LETTERS = 200


def not_found() -> ExchangeError:
    """One sentence for all that is not there, and all that is not for who asks, so that nobody can tell them apart."""
    return ExchangeError(
        "NOT_FOUND",
        "There is nothing of this name for this key. Compare the address; ask the project's owner whether the key is a "
        "member.",
    )


def is_id(text: str) -> bool:
    """Whether a text can be the id of a project or an upload."""
    return _ID.fullmatch(text) is not None


def check_id(text: str) -> str:
    """The id of a project or an upload."""
    return _check(_ID, text)


def check_sha256(text: str) -> str:
    """A file's hash."""
    return _check(_SHA256, text)


def check_fingerprint(text: str) -> str:
    """A key's fingerprint."""
    return _check(_FINGERPRINT, text)


def check_name(text: str, what: str) -> str:
    """A name that people gave: a line of text of any script.

    Raises
    ------
    ExchangeError
        ``REQUEST_MALFORMED``.
    """
    # Nothing that breaks a line or cannot be seen: names stand beside our words in terminals and logs.
    if not (0 < len(text) <= _MOST_LETTERS and text.isprintable() and text.strip() == text):
        raise ExchangeError(
            "REQUEST_MALFORMED",
            f"{what}: 1 to {_MOST_LETTERS} printable characters in one line are wanted, no space at either end.",
        )
    return text


def _check(pattern: re.Pattern[str], text: str) -> str:
    # The answer to a name that nothing has, so that its form tells nothing either.
    if not pattern.fullmatch(text):
        raise not_found()
    return text


# Read from strangers, before it is known who they are: a key, its proof and a secret.
_KEY = 2**12
_SMALL = 2**16
# A project file, most of which is columns.
_TEXT = 2**20
# A part of a file, held in memory while it is checked and written.
_CHUNK = 2**22


@dataclass(frozen=True)
class Route:
    """A method and a path.

    Attributes
    ----------
    roles : frozenset of Role
        One of them is enough.
    most_bytes : int
        Of the request's body.
    is_page : bool
        Whether a browser asks, which is signed in by a cookie; requests of programs are signed each.
    """

    method: str
    path: str
    roles: frozenset[Role]
    most_bytes: int = 0
    is_page: bool = False

    @property
    def of_project(self) -> bool:
        """Whether it is about a project, of which strangers must not learn that it is there."""
        return "{project}" in self.path


def _route(method: str, path: str, *roles: Role, most_bytes: int = 0) -> Route:
    return Route(method, path, frozenset(roles), most_bytes)


def _page(path: str, *roles: Role, method: str = "GET", most_bytes: int = 0) -> Route:
    return Route(method, path, frozenset(roles), most_bytes, is_page=True)


_P = "/v1/projects/{project}"
_SHOWN = "/projects/{project}"
_SENDERS = (Role.OWNER, Role.PARTY, Role.ANALYST)

ROUTES = (
    # For monitors, which have no key; who reads the numbers, the route itself decides.
    _route("GET", "/healthz", Role.ANYBODY),
    _route("GET", "/readyz", Role.ANYBODY),
    _route("GET", "/metrics", Role.ANYBODY),
    _route("POST", "/v1/sessions", Role.KNOWN, most_bytes=_SMALL),
    _route("GET", "/v1/projects", Role.KNOWN),
    _route("POST", "/v1/projects", Role.OPENER, most_bytes=_SMALL),
    _route("GET", _P, *MEMBERS),
    _route("POST", _P + "/invitations", Role.OWNER, most_bytes=_SMALL),
    # The one route whose body is read before its sender is known, as it brings the key along.
    _route("POST", _P + "/join", Role.INVITED, most_bytes=_KEY),
    _route("GET", _P + "/requests", Role.OWNER),
    _route("POST", _P + "/requests/{fingerprint}", Role.OWNER, most_bytes=_SMALL),
    _route("PUT", _P + "/agreement", Role.OWNER, most_bytes=_TEXT),
    _route("GET", _P + "/agreement", *MEMBERS),
    _route("POST", _P + "/uploads", *_SENDERS, most_bytes=_SMALL),
    # Of these senders only the upload's own gets on: the service compares keys.
    _route("HEAD", _P + "/uploads/{upload}", *_SENDERS),
    _route("PATCH", _P + "/uploads/{upload}", *_SENDERS, most_bytes=_CHUNK),
    _route("DELETE", _P + "/uploads/{upload}", *_SENDERS),
    _route("GET", _P + "/files", *MEMBERS),
    _route("GET", _P + "/files/{sha256}", *MEMBERS),
    _route("DELETE", _P + "/files/{sha256}", *_SENDERS),
    _route("GET", _P + "/log", *MEMBERS),
    # Pages read, and change nothing but who is signed in.
    _page("/static/pages.css", Role.ANYBODY),
    _page("/static/hub.css", Role.ANYBODY),
    _page("/favicon.ico", Role.ANYBODY),
    _page("/session/{secret}", Role.ANYBODY),
    _page("/session/{secret}", Role.ANYBODY, method="POST"),
    _page("/sign-out", Role.KNOWN, method="POST", most_bytes=_SMALL),
    _page("/", Role.KNOWN),
    _page(_SHOWN, *MEMBERS),
    _page(_SHOWN + "/requests", Role.OWNER),
    _page(_SHOWN + "/files", *MEMBERS),
    _page(_SHOWN + "/files/{sha256}", *MEMBERS),
    _page(_SHOWN + "/agreement", *MEMBERS),
    _page(_SHOWN + "/agreement/changes", *MEMBERS),
    _page(_SHOWN + "/log", *MEMBERS),
)
"""All that the hub answers."""


def check_may(route: Route, person: Person) -> None:
    """Refuse a person whom a route is not for.

    Raises
    ------
    ExchangeError
        ``NOT_FOUND``, where the person is no member of the project, as where there is none; ``NOT_ALLOWED``.
    """
    if route.roles & person.roles:
        return
    # Before any word on roles, from which a stranger would learn that the project is there.
    if route.of_project and not person.is_member:
        raise not_found()
    # The hub's operator can help here, and no project's owner.
    if route.roles == {Role.OPENER}:
        raise ExchangeError(
            "NOT_ALLOWED",
            f"The key {person.fingerprint} may not open projects on this hub. Its operator allows it with "
            "`datacollab hub allow KEYFILE`.",
        )
    wanted = ", ".join(sorted(route.roles))
    raise ExchangeError(
        "NOT_ALLOWED",
        f"This is for the project's {wanted} alone; the key {person.fingerprint} is "
        f"{', '.join(sorted(person.roles & MEMBERS))}. Ask the project's owner.",
    )
