"""The hub's pages for people: the API's answers to the same key, in words. They change only who is signed in."""

from fastapi import APIRouter

from . import _agreement, _files, _log, _projects, _signing_in
from ._agreement import compare_projects
from ._visit import missing_page

__all__ = ["ROUTER", "compare_projects", "missing_page"]

ROUTER = APIRouter()
for page in (_signing_in, _projects, _files, _agreement, _log):
    ROUTER.include_router(page.ROUTER)
