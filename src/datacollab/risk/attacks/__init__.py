"""Attacks on what the parties share.  Whoever runs one needs original rows: a party on its own, or an experiment.

Files by what they are for:

* Reconstruction: `_attack`, `_side`, `_targets`, `_linear`, `_kernel_ridge`, `_kernel_regression`, `_neighbors`,
  `_mlp`, `_gaussian_prior`, `_emulator`, `_noise`, `_components`, `_checks`.
* Without leaked rows: `_procrustes`, `_overlay`.
* Membership: `_membership`, `_membership_scores`, `_shadows`, `_share_statistics`, `_resharing`, `_one_run`.
* Defended shares taken apart: `_demixing`, `_group_targets`, `_subset_sums`, `_subset_programme`, `_residuals`.
* Other parties: `_inversion`, `_attributes`.
* Rows in files: `_artefacts`, `_artefact_arrays`, `_row_search`.
* Measures: `_matching`, `_explained`, `_label_match`, `_intervals`.
"""

from ._artefacts import StoredRows, find_training_rows
from ._attack import ReconstructionAttack
from ._attributes import attribute_inference, label_only
from ._demixing import AffineEstimate, Demixing, demix, equal_rows
from ._emulator import EmulatorAttack
from ._explained import class_means, explained
from ._gaussian_prior import GaussianPriorAttack
from ._intervals import Rate, clustered_interval, mean_interval, wilson_interval
from ._inversion import invert_collaboration
from ._kernel_ridge import KernelRidgeAttack
from ._label_match import LabelMatch, label_match
from ._linear import LinearRegressionAttack, PseudoinverseAttack
from ._matching import confused, link_chances, linked, match_margins, nearest_ranks
from ._membership import Membership, membership
from ._membership_scores import reconstruction_distance_scores, representation_distance_scores, subspace_scores
from ._mlp import MLPAttack
from ._neighbors import NearestNeighborsAttack
from ._one_run import one_run_epsilon
from ._procrustes import ProcrustesAttack
from ._resharing import added_row_scores
from ._residuals import without_anchor_residuals
from ._shadows import ShadowAttack

__all__ = [
    "AffineEstimate",
    "Demixing",
    "EmulatorAttack",
    "GaussianPriorAttack",
    "KernelRidgeAttack",
    "LabelMatch",
    "LinearRegressionAttack",
    "MLPAttack",
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
    "one_run_epsilon",
    "reconstruction_distance_scores",
    "representation_distance_scores",
    "subspace_scores",
    "wilson_interval",
    "without_anchor_residuals",
]
