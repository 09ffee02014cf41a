"""What all pages look like, whoever serves them: one stylesheet, templates that make every text harmless, headers."""

from ._headers import HEADERS
from ._style import STYLE
from ._templates import templates_in

__all__ = ["HEADERS", "STYLE", "templates_in"]
