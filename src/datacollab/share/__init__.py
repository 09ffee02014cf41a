"""All that crosses from a party to the analyst."""

from ._share import SHARE_KIND, Share, share_contents, share_from
from ._targets import decode_targets, encode_targets

__all__ = ["SHARE_KIND", "Share", "decode_targets", "encode_targets", "share_contents", "share_from"]
