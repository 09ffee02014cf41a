"""A party's folder on its own disk: what it keeps, what may leave, and predictions at home.

A step is a function of a `Folder`; `PartyFolder` has them as methods.

* The folder: `_folder`, `_commit`, `_policy`, `_party_folder`.
* Rows leave: `_share`, with `_release` and `_risk`.  Sums leave: `_sums`.
* The analyst's model comes back: `_install`, `_predict` with `_sides`, `_explain`.
"""

from ._explain import Explained
from ._folder import make_mask_key, public_key_text
from ._party_folder import PartyFolder
from ._policy import Policy, default_policy_text, load_policy
from ._release import (
    FIGURES,
    NamedTargets,
    ReleaseSummary,
    deadline_passed,
    figure_text,
    limit_text,
    undefended_rows,
)
from ._share import Prepared
from ._sums import PreparedSum, SumsSummary

__all__ = [
    "FIGURES",
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
    "figure_text",
    "limit_text",
    "load_policy",
    "make_mask_key",
    "public_key_text",
    "undefended_rows",
]
