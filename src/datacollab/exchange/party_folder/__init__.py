"""A party's folder on its own disk: what it keeps, what may leave, and predictions at home."""

from ._named_targets import NamedTargets
from ._party_folder import PartyFolder
from ._policy import Policy, default_policy_text, load_policy
from ._prepare import Prepared, prepare
from ._release_check import reasons_without_defence
from ._release_summary import ReleaseSummary, release_summary
from ._share_file import refuse
from ._tuning import Tuning, tune, ways_to_try

__all__ = [
    "NamedTargets",
    "PartyFolder",
    "Policy",
    "Prepared",
    "ReleaseSummary",
    "Tuning",
    "default_policy_text",
    "load_policy",
    "prepare",
    "reasons_without_defence",
    "refuse",
    "release_summary",
    "tune",
    "ways_to_try",
]
