"""Errors as answers: a status, a code, and a sentence."""

from __future__ import annotations

import logging
import sqlite3
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from datacollab.errors import ExchangeError

from ..pages import missing_page
from ..rules import not_found
from ..service import OffsetDiffersError
from ..store import disk_is_full

STATUS = {
    "REQUEST_MALFORMED": 400,
    **dict.fromkeys(("KEY_UNKNOWN", "CLOCK_SKEW", "REPLAYED"), 401),
    **dict.fromkeys(("NOT_ALLOWED", "DEADLINE_PASSED", "NOT_A_MEMBER"), 403),
    **dict.fromkeys(("NOT_FOUND", "INVITATION_INVALID", "AGREEMENT_MISSING"), 404),
    **dict.fromkeys(("ALREADY_SHARED", "ALREADY_THERE", "OFFSET_DIFFERS", "PROJECT_OLDER"), 409),
    **dict.fromkeys(("TOO_LARGE", "QUOTA_EXCEEDED"), 413),
    "TOO_SLOW": 408,
    "TOO_MANY_REQUESTS": 429,
    "BUSY": 503,
    "STORE_FULL": 507,
}
"""Of codes; a signature that is wrong or missing is 401 of a request and 422 of a file; all other codes
are 422."""

_LOGGER = logging.getLogger("datacollab.hub")
_UNAVAILABLE = 503


def answer_errors(app: FastAPI) -> None:
    """Have an app answer errors as the API says."""
    app.add_exception_handler(ExchangeError, _answer_refusal)
    app.add_exception_handler(HTTPException, _answer_unrouted)
    app.add_exception_handler(RequestValidationError, _misread)
    app.add_exception_handler(OSError, _answer_failure)
    app.add_exception_handler(SQLAlchemyError, _answer_failure)
    app.add_exception_handler(sqlite3.Error, _answer_failure)


def refusal(error: ExchangeError, status: int) -> JSONResponse:
    """An error as an answer."""
    headers: dict[str, str] = {}
    # The sender goes on from there, without another question.
    if isinstance(error, OffsetDiffersError):
        headers["Upload-Offset"] = str(error.offset)
    # RFC 9110, section 15.5.2: such an answer says how to identify oneself.
    if status == 401:
        headers["WWW-Authenticate"] = "Signature"
    # Programs wait as long by themselves.
    if status in (429, 503):
        headers["Retry-After"] = "1"
    return JSONResponse({"code": error.code, "message": str(error)}, status, headers)


async def _answer_refusal(request: Request, error: Exception) -> JSONResponse:
    # Registered for this type alone; the framework's signature says less.
    if not isinstance(error, ExchangeError):
        raise error
    request.state.code = error.code
    # Until a request is known to be as it was signed, a wrong signature is the request's own.
    is_requests = error.code in ("SIGNATURE_MISSING", "SIGNATURE_INVALID") and not hasattr(request.state, "is_whole")
    return refusal(error, 401 if is_requests else STATUS.get(error.code, 422))


async def _answer_unrouted(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    request.state.code = "NOT_FOUND"
    # A person with a browser gets a page, a program gets JSON.
    if status == 404 and "text/html" in request.headers.get("accept", ""):
        return missing_page(request)
    headers: Any = getattr(error, "headers", None)
    return JSONResponse({"code": "NOT_FOUND", "message": str(not_found())}, status, headers)


async def _misread(request: Request, _: Exception) -> JSONResponse:
    """Describe the fault of a query; the framework's own words would repeat the query."""
    wrong = ExchangeError("REQUEST_MALFORMED", "The address's query is wrong: `after` is a number from 0.")
    request.state.code = wrong.code
    return refusal(wrong, STATUS[wrong.code])


async def _answer_failure(request: Request, error: Exception) -> JSONResponse:
    """The hub's own trouble: words of the system name paths, so they go to its log alone."""
    _LOGGER.error("failed", exc_info=error)
    if disk_is_full(error):
        full = ExchangeError("STORE_FULL", "The hub's disk is full. Ask its operator for more room; then go on.")
        request.state.code = full.code
        return refusal(full, STATUS[full.code])
    request.state.code = "UNAVAILABLE"
    # An upload's last part may be taken already, and fail in becoming a file.
    message = "The hub cannot reach what it keeps. Ask again; what it took before is kept."
    return JSONResponse({"code": "UNAVAILABLE", "message": message}, _UNAVAILABLE, {"Retry-After": "5"})
