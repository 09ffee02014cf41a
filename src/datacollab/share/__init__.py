"""All that crosses from a party to the analyst."""

from ._codec import SHARE_KIND, share_contents, share_from
from ._share import Share

__all__ = ["SHARE_KIND", "Share", "share_contents", "share_from"]
