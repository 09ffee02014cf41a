"""Attacks on what the parties share, which need original rows: a party on its own makes them, or an experiment."""

from ._artefacts import StoredRows, find_training_rows
from ._attack import ReconstructionAttack
from ._demixing import AffineEstimate, Demixing, demix, find_subset, find_subset_by_programme
from ._membership_attacks import (
    Matches,
    Membership,
    ShadowAttack,
    class_means,
    interval_of_clusters,
    match_margins,
    membership,
    reconstruction_distance_scores,
    representation_distance_scores,
    subspace_scores,
    wilson_interval,
)
from ._paired import EmulatorAttack, KernelRidgeAttack, LinearRegressionAttack, NearestNeighborsAttack
from ._procrustes import ProcrustesAttack

__all__ = [
    "AffineEstimate",
    "Demixing",
    "EmulatorAttack",
    "KernelRidgeAttack",
    "LinearRegressionAttack",
    "Matches",
    "Membership",
    "NearestNeighborsAttack",
    "ProcrustesAttack",
    "ReconstructionAttack",
    "ShadowAttack",
    "StoredRows",
    "class_means",
    "demix",
    "find_subset",
    "find_subset_by_programme",
    "find_training_rows",
    "interval_of_clusters",
    "match_margins",
    "membership",
    "reconstruction_distance_scores",
    "representation_distance_scores",
    "subspace_scores",
    "wilson_interval",
]
