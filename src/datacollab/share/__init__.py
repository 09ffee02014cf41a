"""All that crosses from a party to the analyst."""

from ._share import Share

__all__ = ["Share"]
