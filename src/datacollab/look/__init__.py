"""The common look of all pages: one stylesheet, templates that make every text harmless, headers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

__all__ = ["HEADERS", "STYLE", "templates_in"]

STYLE = Path(__file__).parent / "static" / "pages.css"
"""A file, so that pages need no style of their own: the policy of their headers allows none."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every page: a browser may show it, and send its own forms."""

# What could make a text from elsewhere look like another one.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def templates_in(*folders: Path) -> Environment:
    """Return templates from folders; the earlier ones take precedence.

    Examples
    --------
    >>> page = templates_in(Path("nowhere")).from_string("<p>{{ name }}</p>")
    >>> page.render(name="<script>")
    '<p>&lt;script&gt;</p>'
    """
    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _harmless(value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    kind = Markup if isinstance(value, Markup) else str
    # Browsers end the lines of a form with both marks, and a form that comes back has to be as it was.
    return kind(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(value).replace("\r\n", "\n")))
