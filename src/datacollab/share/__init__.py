"""All that crosses from a party to the analyst."""

from ._class_sums import ClassSums, class_sums_from
from ._codec import SHARE_KIND, share_contents
from ._share import Share, share_from
from ._sums_codec import SUMS_KIND, sums_contents
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
