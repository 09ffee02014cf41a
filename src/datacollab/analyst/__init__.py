"""The analyst's side: align the parties' shares, and train on them.  Never imports ``party``."""

from .._by_name import METHODS, Method
from ._analyst import Analyst, Collaboration
from ._choice import Candidate, Selection
from ._clustering import Clustering, Integrated, cluster, integrate, novelty
from ._engine import Engine
from ._graphs import GeometricGraph, NeighborGraph, TargetDissimilarityGraph, TargetSimilarityGraph
from ._kti import KTI
from ._kti_cv import KTICV
from ._linear import GEP, LTI, MPP, ODC, AnchorScaled, BaseIntegrator, LinearIntegrator

__all__ = ["GEP", "KTI", "KTICV", "LTI", "METHODS", "MPP", "ODC", "Analyst", "AnchorScaled", "BaseIntegrator"]
__all__ += ["Candidate", "Clustering", "Collaboration", "Engine", "GeometricGraph", "Integrated"]
__all__ += ["LinearIntegrator", "Method", "NeighborGraph", "Selection", "TargetDissimilarityGraph"]
__all__ += ["TargetSimilarityGraph", "cluster", "integrate", "novelty"]
