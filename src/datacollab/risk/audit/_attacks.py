"""The attacks by name, as the audit makes them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ..._validation import FloatArray
from ..attacks import (
    EmulatorAttack,
    GaussianPriorAttack,
    KernelRidgeAttack,
    LinearRegressionAttack,
    NearestNeighborsAttack,
    PseudoinverseAttack,
    ReconstructionAttack,
)

__all__ = [
    "AVERAGED",
    "AVERAGED_NAME",
    "DEMIXING",
    "EXACT_MAP",
    "FORWARD",
    "FORWARD_KNOWN",
    "KNOWN_TARGETS",
    "PAIRED_ATTACKS",
    "SECOND_SHARE",
    "SHADOWS",
    "UNIT_SPREAD",
    "averaged_reconstructions",
    "with_labels",
    "without_labels",
]

PAIRED_ATTACKS: Mapping[str, type[ReconstructionAttack]] = MappingProxyType(
    {
        "linear regression": LinearRegressionAttack,
        "pseudoinverse": PseudoinverseAttack,
        "nearest neighbours": NearestNeighborsAttack,
        "Gaussian prior": GaussianPriorAttack,
        "kernel ridge": KernelRidgeAttack,
        "emulator": EmulatorAttack,
    }
)
"""Attacks that learn from leaked anchor rows and their representation."""


def with_labels(name: str) -> str:
    """Name of an attack that uses the targets, too."""
    return f"{name} + labels"


def without_labels(name: str) -> str:
    """Name of the attack without that it uses the targets."""
    return name.removesuffix(with_labels(""))


AVERAGED = ("kernel ridge", with_labels("kernel ridge"), with_labels("emulator"))
"""Attacks whose reconstructions, averaged, link better than each alone, mostly."""
AVERAGED_NAME = "kernel ridge and emulator, averaged"
FORWARD = "forward emulator"
"""An estimate of f_k brings the candidates to the share, rather than the share to the candidates."""
EXACT_MAP = "exact map"
"""The same with f_k itself, where it is affine and the leaked anchor rows determine it."""
UNIT_SPREAD = "forward map, columns alike"
"""The same with the better of both, in units of each shared column's spread."""
FORWARD_KNOWN = "forward map, candidates’ labels known"
"""The same among candidates of a row's class, where the list of candidates has their classes."""
DEMIXING = "demixing"
"""Means of groups are taken apart into the records that they are the means of."""
KNOWN_TARGETS = f"{DEMIXING}, candidates’ labels known"
"""The same where the list of candidates has their targets, too."""
SHADOWS = "shadow shares"
"""Shares of made-up tables, with the record and without it, show what the record changes."""
SECOND_SHARE = "second share"
"""What is new in a share after a row was added names the row."""


def averaged_reconstructions(found: Mapping[str, FloatArray]) -> FloatArray:
    """Mean of the reconstructions that are averaged, given all by name."""
    return np.asarray(np.mean([found[attack] for attack in AVERAGED], axis=0))
