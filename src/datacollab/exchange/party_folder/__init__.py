"""A party's folder on its own disk: what it keeps, what may leave, and predictions at home.

A step is a function of a `Folder`; `PartyFolder` has them as methods.

* The folder: `_folder`, `_policy`, `_party_folder`.
* Rows leave: `_party_folder`, with `_release`.  Sums leave: `_sums`.
* The analyst's model comes back: `_install`, `_predict`.
"""

from ._assessment import assessment, measured_for, membership_rows
from ._folder import has_forgotten, last_share, make_mask_key, public_key_text
from ._party_folder import PartyFolder, Prepared
from ._policy import Policy, deadline_passed, default_policy_text, load_policy
from ._predict import Explained
from ._release import FIGURES, NamedTargets, ReleaseSummary, figure_text, limit_text, undefended_rows
from ._sums import PreparedSum
from ._sums_summary import APART, TOGETHER, WORST_ROSTERS, SumsSummary, message_bytes

__all__ = ["FIGURES", "Explained", "NamedTargets", "PartyFolder", "Policy", "Prepared", "PreparedSum", "ReleaseSummary"]
__all__ += ["SumsSummary", "deadline_passed", "default_policy_text", "figure_text", "limit_text", "load_policy"]
__all__ += ["APART", "TOGETHER", "WORST_ROSTERS", "assessment", "make_mask_key", "measured_for", "membership_rows"]
__all__ += ["has_forgotten", "last_share", "message_bytes", "public_key_text", "undefended_rows"]
