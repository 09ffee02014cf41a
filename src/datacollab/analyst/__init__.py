"""The analyst's side: align what the parties shared, and train on it.  Never imports ``party``."""

from ._analyst import Analyst, Collaboration
from ._base import BaseIntegrator
from ._candidate_table import Candidate, Selection
from ._gep import GEP
from ._graphs import GeometricGraph, NeighborGraph, TargetDissimilarityGraph, TargetSimilarityGraph
from ._kti import KTI
from ._kti_cv import KTICV
from ._linear import LinearIntegrator
from ._lti import LTI
from ._mpp import MPP
from ._odc import ODC

__all__ = [
    "GEP",
    "KTI",
    "KTICV",
    "LTI",
    "MPP",
    "ODC",
    "Analyst",
    "BaseIntegrator",
    "Candidate",
    "Collaboration",
    "GeometricGraph",
    "LinearIntegrator",
    "NeighborGraph",
    "Selection",
    "TargetDissimilarityGraph",
    "TargetSimilarityGraph",
]
