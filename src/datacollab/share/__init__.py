"""All that crosses from a party to the analyst."""

from ._share import SHARE_KIND, Share, share_contents, share_from
from ._targets import check_target_facts, decode_target, encode_targets, is_named, named_from

__all__ = [
    "SHARE_KIND",
    "Share",
    "check_target_facts",
    "decode_target",
    "encode_targets",
    "is_named",
    "named_from",
    "share_contents",
    "share_from",
]
