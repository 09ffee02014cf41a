"""The hub's pages for people: the API's answers to the same key, in words. They change only who is signed in."""

from ._routes import ROUTER
from ._visit import missing_page

__all__ = ["ROUTER", "missing_page"]
