"""Data collaboration analysis: one model over several parties' private tables, in a single exchange.

The everyday names are here; they load on first use, so that ``import datacollab`` and ``datacollab --help`` are quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._require import load_on_first_use
from ._version import __version__ as __version__

_NAMES = {
    # Everybody agrees on an anchor.
    "anchor": ("GaussianAnchor", "SMOTEAnchor", "SampleAnchor", "UniformAnchor", "find_private_rows"),
    # A party hides its rows behind f_k, looks at what that risks, and shares once.
    "party": ("Party", "obfuscator", "CommonSpace", "CombinedModel"),
    "risk.audit": ("audit",),
    "choice": ("choose",),
    "share": ("Share",),
    # Or all add up under masks, and the analyst learns the total alone.
    "sums": ("MaskKey", "SumsPlan", "SumsModel"),
    # The analyst aligns the shares and trains.
    "analyst": (
        *("Analyst", "Collaboration", "MPP", "GEP", "ODC", "LTI", "KTI", "KTICV"),
        *("GeometricGraph", "TargetSimilarityGraph", "TargetDissimilarityGraph"),
    ),
    # Each party gets g_k and h, once.
    "model": ("PartyModel",),
    # All roles in one process, and the baselines.
    "estimators": (
        *("DataCollaborationClassifier", "DataCollaborationRegressor", "DataCollaborationSurvival"),
        *("DataCollaborationClusterer", "PartyStratifiedKFold", "Local", "Central"),
        "simulate_parties",
    ),
    # From which probability on a rare class is called.
    "linalg": ("find_threshold",),
    # A bar for long steps, and what goes wrong.
    "progress": ("ProgressBar",),
    "errors": ("DataCollabError",),
}
"""The everyday names by the rooms that they are in, in the order of the protocol."""

_HOME = {name: f".{room}" for room, names in _NAMES.items() for name in names}
_ROOMS = ("datasets", "errors", "testing")

__all__ = ["__version__", *_ROOMS, *_HOME]

if TYPE_CHECKING:
    from . import datasets as datasets
    from . import errors as errors
    from . import testing as testing
    from .analyst import GEP as GEP
    from .analyst import KTI as KTI
    from .analyst import KTICV as KTICV
    from .analyst import LTI as LTI
    from .analyst import MPP as MPP
    from .analyst import ODC as ODC
    from .analyst import Analyst as Analyst
    from .analyst import Collaboration as Collaboration
    from .analyst import GeometricGraph as GeometricGraph
    from .analyst import TargetDissimilarityGraph as TargetDissimilarityGraph
    from .analyst import TargetSimilarityGraph as TargetSimilarityGraph
    from .anchor import GaussianAnchor as GaussianAnchor
    from .anchor import SampleAnchor as SampleAnchor
    from .anchor import SMOTEAnchor as SMOTEAnchor
    from .anchor import UniformAnchor as UniformAnchor
    from .anchor import find_private_rows as find_private_rows
    from .choice import choose as choose
    from .errors import DataCollabError as DataCollabError
    from .estimators import Central as Central
    from .estimators import DataCollaborationClassifier as DataCollaborationClassifier
    from .estimators import DataCollaborationClusterer as DataCollaborationClusterer
    from .estimators import DataCollaborationRegressor as DataCollaborationRegressor
    from .estimators import DataCollaborationSurvival as DataCollaborationSurvival
    from .estimators import Local as Local
    from .estimators import PartyStratifiedKFold as PartyStratifiedKFold
    from .estimators import simulate_parties as simulate_parties
    from .linalg import find_threshold as find_threshold
    from .model import PartyModel as PartyModel
    from .party import CombinedModel as CombinedModel
    from .party import CommonSpace as CommonSpace
    from .party import Party as Party
    from .party import obfuscator as obfuscator
    from .progress import ProgressBar as ProgressBar
    from .risk.audit import audit as audit
    from .share import Share as Share
    from .sums import MaskKey as MaskKey
    from .sums import SumsModel as SumsModel
    from .sums import SumsPlan as SumsPlan


# Rooms bring scikit-learn and scipy, which take a second to import; most commands need neither.
_load = load_on_first_use(__name__, _HOME)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f".{name}", __name__)
    return _load(name)


def __dir__() -> list[str]:
    return sorted(__all__)
