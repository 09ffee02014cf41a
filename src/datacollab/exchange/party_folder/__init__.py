"""A party's folder on its own disk: files that it keeps, releases, and predictions at home.

A step is a function of a `Folder`; `PartyFolder` has them as methods.

* The folder: `_folder`, `_policy`, `_party_folder`, where rows or sums are chosen.
* Rows leave: `_rows`, with `_rows_summary`.  Sums leave: `_sums`, with `_sums_summary`.
* The analyst's model comes back: `_install`, `_predict`, `_explain`.
"""

from ._assessment import assessment, find_measured, membership_rows
from ._explain import Explained
from ._folder import has_forgotten, last_share, make_mask_key, public_key_text
from ._party_folder import PartyFolder
from ._policy import Policy, deadline_passed, default_policy_text, load_policy
from ._rows import Prepared
from ._rows_summary import FIGURES, NamedTargets, ReleaseSummary, figure_text, limit_text, no_defence
from ._sums import PreparedSum
from ._sums_summary import APART, TOGETHER, WORST_ROSTERS, SumsSummary, message_bytes

__all__ = ["FIGURES", "Explained", "NamedTargets", "PartyFolder", "Policy", "Prepared", "PreparedSum", "ReleaseSummary"]
__all__ += ["SumsSummary", "deadline_passed", "default_policy_text", "figure_text", "limit_text", "load_policy"]
__all__ += ["APART", "TOGETHER", "WORST_ROSTERS", "assessment", "find_measured", "make_mask_key", "membership_rows"]
__all__ += ["has_forgotten", "last_share", "message_bytes", "no_defence", "public_key_text"]
