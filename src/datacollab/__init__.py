"""Data collaboration analysis: one model over several parties' private tables, in a single exchange.

The everyday names are here; they load on first use, so that ``import datacollab`` and ``datacollab --help`` are quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

_HOME = {
    "Analyst": "analyst",
    "Collaboration": "analyst",
    "Central": "collaboration",
    "DataCollabError": "errors",
    "DataCollaborationClassifier": "collaboration",
    "DataCollaborationRegressor": "collaboration",
    "GaussianAnchor": "anchor",
    "GEP": "analyst",
    "GeometricGraph": "analyst",
    "KTI": "analyst",
    "KTICV": "analyst",
    "LTI": "analyst",
    "Local": "collaboration",
    "MPP": "analyst",
    "ODC": "analyst",
    "Party": "party",
    "PartyModel": "model",
    "PartyStratifiedKFold": "collaboration",
    "SMOTEAnchor": "anchor",
    "SampleAnchor": "anchor",
    "Share": "share",
    "TargetDissimilarityGraph": "analyst",
    "TargetSimilarityGraph": "analyst",
    "UniformAnchor": "anchor",
    "audit": "risk.audit",
    "choose": "risk.audit",
    "find_private_rows": "anchor",
    "foresee": "party",
    "obfuscator": "party",
}
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
    from .collaboration import Central as Central
    from .collaboration import DataCollaborationClassifier as DataCollaborationClassifier
    from .collaboration import DataCollaborationRegressor as DataCollaborationRegressor
    from .collaboration import Local as Local
    from .collaboration import PartyStratifiedKFold as PartyStratifiedKFold
    from .errors import DataCollabError as DataCollabError
    from .model import PartyModel as PartyModel
    from .party import Party as Party
    from .party import foresee as foresee
    from .party import obfuscator as obfuscator
    from .risk.audit import audit as audit
    from .risk.audit import choose as choose
    from .share import Share as Share


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
