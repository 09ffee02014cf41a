"""Attacks on what the parties share.  Whoever runs one needs original rows: a party on its own, or an experiment."""

from ._attack import ReconstructionAttack
from ._label_match import LabelMatch, label_match
from ._linear import LinearRegressionAttack, PseudoinverseAttack
from ._mlp import MLPAttack

__all__ = [
    "LabelMatch",
    "LinearRegressionAttack",
    "MLPAttack",
    "PseudoinverseAttack",
    "ReconstructionAttack",
    "label_match",
]
