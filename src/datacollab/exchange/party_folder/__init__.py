"""A party's folder on its own disk: what it keeps, what may leave, and predictions at home.

Files by what they are for:

* The folder: `_party_folder`, `_workplace`, `_files`, `_stored`, `_commit`, `_outbox`, `_mask_key`.
* What may leave: `_policy`, `_prepare`, `_release_check`, `_release_summary`, `_risk`.
* What may leave of sums: `_sums_map`, `_sums_share`, `_sums_summary`, `_sums_commit`.
* The analyst's model, or its answers: `_installation`, `_distilling`.
* Predictions: `_predictions`, `_prediction`, `_sides`, `_sums_model`, `_scores`.
* What columns do in the model: `_explaining`.
"""

from ._explaining import Explained
from ._mask_key import make_mask_key, public_key_text
from ._party_folder import PartyFolder
from ._policy import Policy, default_policy_text, load_policy
from ._prepare import Prepared, prepare, refuse
from ._release_check import deadline_passed, undefended_rows
from ._release_summary import NamedTargets, ReleaseSummary, release_summary
from ._sums_share import PreparedSum
from ._sums_summary import SumsSummary

__all__ = [
    "Explained",
    "NamedTargets",
    "PartyFolder",
    "Policy",
    "Prepared",
    "PreparedSum",
    "ReleaseSummary",
    "SumsSummary",
    "deadline_passed",
    "default_policy_text",
    "load_policy",
    "make_mask_key",
    "prepare",
    "public_key_text",
    "refuse",
    "release_summary",
    "undefended_rows",
]
