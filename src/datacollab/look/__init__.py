"""The common look of all pages: one stylesheet, templates that make every text harmless, headers."""

from ._pages import HEADERS, STYLE, templates_in

__all__ = ["HEADERS", "STYLE", "templates_in"]
