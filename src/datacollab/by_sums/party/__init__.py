"""Sums, at a party: rows are added up, masked and shared once; the one model comes back."""

from ._added_rows import AddedRows, PartMaker, ProjectMap
from ._common_model import read_model
from ._sums import PreparedSum, StudyAtParty, SumsAtParty
from ._sums_summary import (
    APART,
    ATTACKERS,
    HEARD,
    INVENTED,
    LESS_NOISE,
    TOGETHER,
    WORST_ROSTERS,
    SumsSummary,
    auc_text,
    message_bytes,
    promise,
)
from ._withdrawal import Withdrawal, read_withdrawal, withdrawal_to_bytes

__all__ = ["APART", "ATTACKERS", "HEARD", "INVENTED", "LESS_NOISE", "TOGETHER", "WORST_ROSTERS", "AddedRows"]
__all__ += [
    "PartMaker",
    "PreparedSum",
    "ProjectMap",
    "StudyAtParty",
    "SumsAtParty",
    "SumsSummary",
    "Withdrawal",
    "auc_text",
    "message_bytes",
    "promise",
]
__all__ += ["read_model", "read_withdrawal", "withdrawal_to_bytes"]
