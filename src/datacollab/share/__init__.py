"""All that crosses from a party to the analyst, and between analysts of groups of parties."""

from ._class_sums import ClassSums, class_sums_from
from ._codec import SHARE_KIND, share_contents
from ._group_message import GROUP_KIND, GroupMessage, group_message_contents, group_message_from
from ._group_moments import MOMENTS_KIND, GroupMoments, group_moments_contents, group_moments_from
from ._group_settings import targets_digest
from ._group_sums import adjacency_of, from_triangle, to_triangle
from ._group_target import TARGET_KIND, GroupTarget, group_target_contents, group_target_from
from ._share import Share, share_from
from ._sums_codec import SUMS_KIND, sums_contents
from ._targets import check_target_facts, decode_target, encode_targets, is_named, named_from

__all__ = [
    "GROUP_KIND",
    "MOMENTS_KIND",
    "SHARE_KIND",
    "SUMS_KIND",
    "TARGET_KIND",
    "ClassSums",
    "GroupMessage",
    "GroupMoments",
    "GroupTarget",
    "Share",
    "adjacency_of",
    "check_target_facts",
    "class_sums_from",
    "decode_target",
    "encode_targets",
    "from_triangle",
    "group_message_contents",
    "group_message_from",
    "group_moments_contents",
    "group_moments_from",
    "group_target_contents",
    "group_target_from",
    "is_named",
    "named_from",
    "share_contents",
    "share_from",
    "sums_contents",
    "targets_digest",
    "to_triangle",
]
