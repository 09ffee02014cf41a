"""The analyst's side: align what the parties shared, and train on it.  Never imports ``party``.

Files by what they are for:

* The role: `_analyst`, `_collaboration`, `_training`, `_fitted`, `_rounding`; where parties send sums over classes,
  `_class_sums`, `_class_mixture`.
* Integration methods: `_base`, `_parameters`, `_linear`, `_mpp`, `_gep`, `_odc`, `_lti`, `_kti`, `_kti_cv`,
  `_anchor_scaled`.
* Graphs and kernel widths: `_graphs`, `_widths`.
* KTI's problem and its solvers: `_kti_problem`, `_target_problem`, `_solving`, `_cost`, `_exact`, `_nystroem`,
  `_engine`, `_engines`, `_dask_engine`.
* The search over hyperparameters of KTI: `_kti_grid`, `_kti_folds`, `_kti_scoring`.
* An analyst who chooses: `_candidates`, `_candidate_table`, `_choice`, `_averaging`.
* Without targets: `_integrated`, `_clustering`, `_novelty`.
"""

from ._analyst import Analyst
from ._anchor_scaled import AnchorScaled
from ._base import BaseIntegrator
from ._candidate_table import Candidate, Selection
from ._class_sums import fit_class_sums
from ._clustering import Clustering, cluster
from ._collaboration import Collaboration
from ._gep import GEP
from ._graphs import GeometricGraph, NeighborGraph, TargetDissimilarityGraph, TargetSimilarityGraph
from ._integrated import Integrated, integrate
from ._kti import KTI
from ._kti_cv import KTICV
from ._linear import LinearIntegrator
from ._lti import LTI
from ._mpp import MPP
from ._novelty import novelty
from ._odc import ODC

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
    "fit_class_sums",
    "integrate",
    "novelty",
]
