"""Routes for whoever keeps the hub running."""

from __future__ import annotations

import hmac
import ipaddress

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from sqlalchemy.exc import SQLAlchemyError

from datacollab.errors import ExchangeError

from ..rules import not_found
from ..service import Hub

__all__ = ["ROUTER"]

ROUTER = APIRouter()
# Headers by which proxies say that they ask for another.
_PASSED_ON = ("forwarded", "x-forwarded-for", "via")


@ROUTER.get("/healthz")
def alive() -> dict[str, str]:
    """That the process answers."""
    return {"status": "alive"}


@ROUTER.get("/readyz")
def ready(request: Request) -> Response:
    """Answer that it reaches its store."""
    hub: Hub = request.app.state.hub
    try:
        hub.store.check()
    except (SQLAlchemyError, OSError, ExchangeError):
        # No word on the reason: anybody may ask, and errors name machines and paths.
        request.state.code = "UNAVAILABLE"
        return JSONResponse({"code": "UNAVAILABLE", "message": "The hub cannot reach what it keeps."}, 503)
    return JSONResponse({"status": "ready"})


@ROUTER.get("/metrics")
def metrics(request: Request) -> Response:
    """Numbers, for the holder of the token, or without one for whoever asks from the same machine."""
    if not _may_read(request):
        # As where there is no such route.
        raise not_found()
    return Response(generate_latest(request.app.state.numbers.registry), media_type=CONTENT_TYPE_LATEST)


def _may_read(request: Request) -> bool:
    token = request.app.state.hub.settings.metrics_token
    if token is not None:
        given = request.headers.get("authorization", "")
        # In constant time, which tells nothing of the token.
        return hmac.compare_digest(given.encode(), f"Bearer {token}".encode())
    # A proxy on this machine asks for others.
    if request.client is None or any(name in request.headers for name in _PASSED_ON):
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
