"""Sums over all parties' rows under masks: the analyst learns the total alone, and solves it for one model."""

from ._common_map import CommonMap
from ._fixed_point import FixedPoint
from ._key_stream import key_stream, standard_normal
from ._masked_sum import FEWEST_PARTIES, MaskedMessage, MaskedSum, MaskKey, check_mask_key
from ._ridge_sums import RidgeFromSums, RidgeSums

__all__ = [
    "FEWEST_PARTIES",
    "CommonMap",
    "FixedPoint",
    "MaskKey",
    "MaskedMessage",
    "MaskedSum",
    "RidgeFromSums",
    "RidgeSums",
    "check_mask_key",
    "key_stream",
    "standard_normal",
]
