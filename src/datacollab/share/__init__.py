"""All that crosses from a party to the analyst."""

from ._balance import BALANCE_KIND, FEWEST_OF_ARM, BalanceSums, balance_from
from ._codec import SHARE_KIND, share_contents
from ._share import Share, share_from
from ._targets import check_target_facts, decode_target, encode_targets

__all__ = [
    "BALANCE_KIND",
    "FEWEST_OF_ARM",
    "SHARE_KIND",
    "BalanceSums",
    "Share",
    "balance_from",
    "check_target_facts",
    "decode_target",
    "encode_targets",
    "share_contents",
    "share_from",
]
