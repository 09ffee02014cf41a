"""A party's steps in its folder: share, install, predict, evaluate, explain; all but a share stays there."""

from typing import TYPE_CHECKING

from ..._require import load_on_first_use
from ...by_sums.party import (
    APART,
    TOGETHER,
    WORST_ROSTERS,
    PreparedSum,
    SumsSummary,
    Withdrawal,
    message_bytes,
    read_model,
    read_withdrawal,
    withdrawal_to_bytes,
)
from ...by_sums.rounds import ROUND_FILE
from ...folder.party import (
    Policy,
    deadline_passed,
    default_policy_text,
    has_forgotten,
    last_share,
    load_policy,
    make_mask_key,
    public_key_text,
)
from ._assessment import assessment, find_measured, membership_rows
from ._explain import Explained
from ._party_folder import PartyFolder

if TYPE_CHECKING:
    from ...by_rows.party import FIGURES, NamedTargets, Prepared, ReleaseSummary, figure_text, limit_text, no_defence

# Rows bring scikit-learn, which parties that share sums, and the first steps, do without.
_OF_ROWS = ["FIGURES", "NamedTargets", "Prepared", "ReleaseSummary", "figure_text", "limit_text", "no_defence"]
__getattr__ = load_on_first_use(__name__, dict.fromkeys(_OF_ROWS, "datacollab.by_rows.party"))

__all__ = ["APART", "FIGURES", "ROUND_FILE", "TOGETHER", "WORST_ROSTERS", "Explained", "NamedTargets", "PartyFolder"]
__all__ += ["Policy", "Prepared", "PreparedSum", "ReleaseSummary", "SumsSummary", "Withdrawal", "assessment"]
__all__ += ["deadline_passed", "default_policy_text", "figure_text", "find_measured", "has_forgotten"]
__all__ += ["last_share", "limit_text", "load_policy", "make_mask_key", "membership_rows", "message_bytes"]
__all__ += ["no_defence", "public_key_text", "read_model", "read_withdrawal", "withdrawal_to_bytes"]


def __dir__() -> list[str]:
    return sorted(__all__)
