"""The analyst's side: align what the parties shared, and train on it.  Never imports ``party``."""

from .._methods import METHODS, Method
from ._analyst import Analyst, Collaboration
from ._choice import Candidate, Selection
from ._clustering import Clustering, Integrated, cluster, integrate, novelty
from ._engine import Engine
from ._graphs import GeometricGraph, NeighborGraph, TargetDissimilarityGraph, TargetSimilarityGraph
from ._kti import KTI
from ._kti_cv import KTICV
from ._linear import GEP, LTI, MPP, ODC, AnchorScaled, BaseIntegrator, LinearIntegrator

__all__ = [
    "GEP",
    "KTI",
    "KTICV",
    "LTI",
    "METHODS",
    "MPP",
    "ODC",
    "Analyst",
    "AnchorScaled",
    "BaseIntegrator",
    "Candidate",
    "Clustering",
    "Collaboration",
    "Engine",
    "GeometricGraph",
    "Integrated",
    "LinearIntegrator",
    "Method",
    "NeighborGraph",
    "Selection",
    "TargetDissimilarityGraph",
    "TargetSimilarityGraph",
    "cluster",
    "integrate",
    "novelty",
]
