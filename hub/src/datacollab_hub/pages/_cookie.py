"""The cookie of a browser that is signed in, and the token that its forms carry."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import SplitResult, urlsplit

from fastapi import Request, Response

from datacollab.errors import ExchangeError

from ..rules import Settings
from ..service import BROWSER_SECONDS

__all__ = ["check_origin", "clear_cookie", "cookie_of", "form_token", "give_cookie"]

# A hash of the cookie for any other purpose would be another.
_DOMAIN = b"datacollab hub form 1"
_PORTS = {"http": 80, "https": 443}


def _name(settings: Settings) -> str:
    """With TLS a name that no other host, path or plain connection can set; else with the port, as all share cookies.

    Examples
    --------
    >>> _name(Settings(url="https://hub.example")), _name(Settings(url="http://127.0.0.1:8000"))
    ('__Host-datacollab-hub', 'datacollab-hub-8000')
    """
    parts = urlsplit(settings.url)
    if parts.scheme == "https":
        return "__Host-datacollab-hub"
    return f"datacollab-hub-{_port(parts)}"


def cookie_of(request: Request) -> str | None:
    """Return the cookie that the browser sent."""
    return request.cookies.get(_name(request.app.state.hub.settings))


def give_cookie(request: Request, response: Response, cookie: str) -> None:
    """Let the browser keep a cookie, which no script can read and no other site has sent."""
    settings: Settings = request.app.state.hub.settings
    response.set_cookie(
        _name(settings),
        cookie,
        max_age=BROWSER_SECONDS,
        path="/",
        secure=settings.url.startswith("https:"),
        # No script reads it, and no other site's link or form carries it along.
        httponly=True,
        samesite="strict",
    )


def clear_cookie(request: Request, response: Response) -> None:
    """Have the browser forget it."""
    settings: Settings = request.app.state.hub.settings
    response.delete_cookie(
        _name(settings), path="/", secure=settings.url.startswith("https:"), httponly=True, samesite="strict"
    )


def form_token(cookie: str) -> str:
    """Return the token of this browser's forms. It is a hash of the cookie, which other pages do not know."""
    return hmac.new(cookie.encode("utf-8", "surrogatepass"), _DOMAIN, hashlib.sha256).hexdigest()


def check_origin(request: Request) -> None:
    """Refuse a form that another site's page sends.

    Raises
    ------
    ExchangeError
        ``NOT_ALLOWED``.
    """
    said = request.headers.get("origin")
    # Old browsers send none; the form's token, or the link's secret, guards there.
    if said is not None and _origin(said) != _origin(request.app.state.hub.settings.url):
        raise ExchangeError("NOT_ALLOWED", "This form comes from another page than the hub's. Open the hub's own page.")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, _port(parts)
    except ValueError:
        # What is no address is the origin of nothing.
        return "", None, None


def _port(parts: SplitResult) -> int | None:
    return parts.port or _PORTS.get(parts.scheme)
