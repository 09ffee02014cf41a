"""The hub over HTTP: routes, admission, errors, lines of log and numbers; `hub.pages` beside them."""

from ._app import make_app
from ._serving import serve, serve_together
from ._watching import JsonLines

__all__ = ["JsonLines", "make_app", "serve", "serve_together"]
