"""Sums over all parties' rows under masks: the analyst learns the total alone, and solves it for one model."""

from ._common_map import CommonMap
from ._isolated_rows import IsolatedRows
from ._masked_sum import FEWEST_PARTIES, MaskedMessage, MaskedSum, MaskKey, check_mask_key, not_of_rows
from ._message_files import MASKED_SUM_KIND, mask_card, message_to_bytes, read_mask_card, read_message
from ._recommended import (
    MOST_COMPONENTS,
    UNITS_PER_RANGE,
    MeasuredMembership,
    Recommended,
    columns_alike,
    membership_figures,
    recommended,
)
from ._ridge_sums import RidgeFromSums, RidgeSums, fences
from ._sums_model import SUMS_MODEL_KIND, SumsModel
from ._sums_plan import SumsPlan
from ._words import FixedPoint, key_stream, standard_normal

__all__ = [
    "FEWEST_PARTIES",
    "MASKED_SUM_KIND",
    "MOST_COMPONENTS",
    "SUMS_MODEL_KIND",
    "UNITS_PER_RANGE",
    "CommonMap",
    "FixedPoint",
    "IsolatedRows",
    "MaskKey",
    "MaskedMessage",
    "MaskedSum",
    "MeasuredMembership",
    "Recommended",
    "RidgeFromSums",
    "RidgeSums",
    "SumsModel",
    "SumsPlan",
    "check_mask_key",
    "columns_alike",
    "fences",
    "key_stream",
    "mask_card",
    "membership_figures",
    "message_to_bytes",
    "not_of_rows",
    "read_mask_card",
    "read_message",
    "recommended",
    "standard_normal",
]
