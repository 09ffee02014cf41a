"""Templates: every text is escaped, and no letter turns the order of others around."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

__all__ = ["templates_in"]

# What could make a text from elsewhere look like another one.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def templates_in(*folders: Path) -> Environment:
    """Templates of folders, of which the earlier ones come first.

    Parameters
    ----------
    *folders : Path

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
    return kind(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(value)))
