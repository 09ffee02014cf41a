"""All that crosses from a party to the analyst."""

from ._share import SHARE_KIND, Share, decode_targets, encode_targets, share_contents, share_from

__all__ = ["SHARE_KIND", "Share", "decode_targets", "encode_targets", "share_contents", "share_from"]
