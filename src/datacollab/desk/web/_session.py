"""One browser that is let in: by a link that works once, then by a cookie; its forms carry a token."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from hmac import compare_digest

__all__ = ["Session"]


class Session:
    """The secrets of one desk, drawn anew whenever it is opened.

    Parameters
    ----------
    host : str
        Address and port, as the browser names them.

    Attributes
    ----------
    host : str
    origin : str
    port : str
    cookie_name : str
        With the port in it: browsers send cookies to all ports of a host, and two desks must not take each other's.
    cookie : str
        Its value, known to the browser that opened the link.
    token : str
        What every form carries, so that no other page can send one in its name.
    when_redeemed : callable
        Called once, when a browser was let in.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.origin = f"http://{host}"
        self.port = host.rpartition(":")[2]
        self.cookie_name = f"datacollab-desk-{self.port}"
        self.cookie = secrets.token_urlsafe(32)
        self.token = secrets.token_urlsafe(32)
        self.when_redeemed: Callable[[], None] = lambda: None
        self._secret: str | None = secrets.token_urlsafe(32)
        self._lock = threading.Lock()

    @property
    def secret(self) -> str | None:
        """What lets one browser in; None once it was used."""
        return self._secret

    @property
    def link(self) -> str | None:
        """The link that lets one browser in; None once it was used."""
        return None if self._secret is None else f"{self.origin}/enter/{self._secret}"

    def redeem(self, secret: str) -> bool:
        """Whether this is the link's secret; from then on it is so no more."""
        with self._lock:
            if self._secret is None or not _equal(secret, self._secret):
                return False
            self._secret = None
        self.when_redeemed()
        return True

    def knows(self, cookie: str | None) -> bool:
        """Whether a cookie is that of the browser that was let in."""
        return cookie is not None and _equal(cookie, self.cookie)

    def is_own(self, token: str | None) -> bool:
        """Whether a form's token is this session's."""
        return token is not None and _equal(token, self.token)


def _equal(given: str, wanted: str) -> bool:
    return compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())
