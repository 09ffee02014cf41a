"""All that crosses from a party to the analyst."""

from ._class_sums import SUMS_KIND, ClassSums, class_sums_from, sums_contents
from ._share import SHARE_KIND, Share, share_contents, share_from
from ._targets import check_target_facts, decode_target, encode_targets, is_named, named_from

__all__ = [
    "SHARE_KIND",
    "SUMS_KIND",
    "ClassSums",
    "Share",
    "check_target_facts",
    "class_sums_from",
    "decode_target",
    "encode_targets",
    "is_named",
    "named_from",
    "share_contents",
    "share_from",
    "sums_contents",
]
