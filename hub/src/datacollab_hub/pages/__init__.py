"""The hub's pages for people: the API's answers to the same key, in words. They change only who is signed in."""

from ._changes import compare_projects
from ._routes import ROUTER
from ._visit import missing_page

__all__ = ["ROUTER", "compare_projects", "missing_page"]
