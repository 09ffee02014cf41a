"""The analyst's side: align what the parties shared, and train on it.  Never imports ``party``.

Files by what they are for:

* The role: `_analyst`, `_collaboration`, `_training`.
* Integration methods: `_base`, `_linear`, `_kti`, `_kti_cv`, `_anchor_scaled`, and their `_graphs`.
* KTI's problem and its solvers: `_kti`, `_target_problem`, `_solving`, `_cost`, `_exact`, `_nystroem`, `_engine`.
* The search over hyperparameters of KTI: `_kti_cv`, `_kti_scoring`.
* An analyst who chooses: `_candidates`, `_choice`.
* Without targets: `_clustering`.
"""

from ._analyst import Analyst, Collaboration
from ._choice import Candidate, Selection
from ._clustering import Clustering, Integrated, cluster, integrate, novelty
from ._graphs import GeometricGraph, NeighborGraph, TargetDissimilarityGraph, TargetSimilarityGraph
from ._kti import KTI
from ._kti_cv import KTICV
from ._linear import GEP, LTI, MPP, ODC, AnchorScaled, BaseIntegrator, LinearIntegrator

__all__ = [
    "GEP",
    "KTI",
    "KTICV",
    "LTI",
    "MPP",
    "ODC",
    "Analyst",
    "AnchorScaled",
    "BaseIntegrator",
    "Candidate",
    "Clustering",
    "Collaboration",
    "GeometricGraph",
    "Integrated",
    "LinearIntegrator",
    "NeighborGraph",
    "Selection",
    "TargetDissimilarityGraph",
    "TargetSimilarityGraph",
    "cluster",
    "integrate",
    "novelty",
]
