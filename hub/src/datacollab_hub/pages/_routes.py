"""All pages."""

from __future__ import annotations

from fastapi import APIRouter

from ._agreement import ROUTER as AGREEMENT
from ._files import ROUTER as FILES
from ._log import ROUTER as LOG
from ._projects import ROUTER as PROJECTS
from ._signing_in import ROUTER as SIGNING_IN

__all__ = ["ROUTER"]

ROUTER = APIRouter()
for router in (SIGNING_IN, PROJECTS, FILES, AGREEMENT, LOG):
    ROUTER.include_router(router)
