"""The hub's pages for people: what the API tells the same key, in words.  They change nothing but who is signed in."""

from ._routes import ROUTER
from ._visit import missing_page

__all__ = ["ROUTER", "missing_page"]
