"""Attacks on what the parties share.  Whoever runs one needs original rows: a party on its own, or an experiment.

Files by what they are for:

* From leaked rows: `_attack` (the base class), `_linear`, `_kernels`, `_neighbors`; without them: `_procrustes`.
* Membership: `_membership`, `_shadows`.
* Defended shares taken apart: `_demixing`; other parties: `_collaboration`; rows in files: `_artefacts`.
* Measures: `_measures`.
"""

from ._artefacts import StoredRows, find_training_rows
from ._attack import ReconstructionAttack
from ._collaboration import attribute_inference, invert_collaboration, label_only
from ._demixing import AffineEstimate, Demixing, demix, equal_rows
from ._kernels import EmulatorAttack, GaussianPriorAttack, KernelRidgeAttack
from ._linear import LinearRegressionAttack, PseudoinverseAttack
from ._measures import (
    LabelMatch,
    Rate,
    class_means,
    clustered_interval,
    confused,
    explained,
    label_match,
    link_chances,
    linked,
    match_margins,
    mean_interval,
    nearest_ranks,
    wilson_interval,
)
from ._membership import (
    Membership,
    membership,
    reconstruction_distance_scores,
    representation_distance_scores,
    subspace_scores,
)
from ._neighbors import NearestNeighborsAttack
from ._procrustes import ProcrustesAttack
from ._shadows import ShadowAttack, added_row_scores

__all__ = [
    "AffineEstimate",
    "Demixing",
    "EmulatorAttack",
    "GaussianPriorAttack",
    "KernelRidgeAttack",
    "LabelMatch",
    "LinearRegressionAttack",
    "Membership",
    "NearestNeighborsAttack",
    "ProcrustesAttack",
    "PseudoinverseAttack",
    "Rate",
    "ReconstructionAttack",
    "ShadowAttack",
    "StoredRows",
    "added_row_scores",
    "attribute_inference",
    "class_means",
    "clustered_interval",
    "confused",
    "demix",
    "equal_rows",
    "explained",
    "find_training_rows",
    "invert_collaboration",
    "label_match",
    "label_only",
    "link_chances",
    "linked",
    "match_margins",
    "mean_interval",
    "membership",
    "nearest_ranks",
    "reconstruction_distance_scores",
    "representation_distance_scores",
    "subspace_scores",
    "wilson_interval",
]
