"""Attacks by name, and threat levels as data: what an attacker holds, what has leaked, which attacks it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from ._findings import Level

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
    """Name an attack that uses the targets, too."""
    return f"{name} + labels"


def without_labels(name: str) -> str:
    """Name the attack without its use of the targets."""
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
"""The change of a share after a row was added names the row."""


def averaged_reconstructions(found: Mapping[str, FloatArray]) -> FloatArray:
    """Average the reconstructions of the attacks in `AVERAGED`, given all by name."""
    return np.asarray(np.mean([found[attack] for attack in AVERAGED], axis=0))


_PAIRED = (*PAIRED_ATTACKS, AVERAGED_NAME, FORWARD, DEMIXING)


@dataclass(frozen=True, kw_only=True)
class Leak:
    """Anchor rows that an attacker has got hold of.

    So many "rows" at random, such a "share" of them at random, all rows of the first classes (or with the lowest
    "targets") until such a share of the classes (of the rows) is reached, or "all".
    """

    kind: str
    amount: float = 1.0


LEVELS: Mapping[str, Level] = MappingProxyType(
    {
        level.name: level
        for level in (
            Level(
                name="T0",
                title="The analyst, with public rows of the same kind",
                holds=("the share: representations, targets, anchor representation", "a public sample"),
                attacks=("Procrustes",),
            ),
            Level(
                name="T1",
                title="The analyst, to whom a part of the anchor has leaked",
                holds=("the share", "a public sample", "some anchor rows"),
                attacks=_PAIRED,
            ),
            Level(
                name="T2",
                title="The analyst and another party together",
                holds=("the share", "a public sample", "all anchor rows"),
                attacks=(*_PAIRED, SHADOWS, SECOND_SHARE),
            ),
            Level(
                name="T2f",
                title="Somebody with the anchor and its representation",
                holds=("the anchor representation", "a public sample", "all anchor rows"),
                attacks=("subspace",),
            ),
            Level(
                name="T3",
                title="Another party that gets hold of collaboration representations",
                holds=("collaboration representations of the party’s rows", "all anchor rows", "its own model"),
                attacks=("kernel ridge",),
            ),
            Level(
                name="T4",
                title="Somebody who receives a file",
                holds=("a fitted obfuscator, integration function or model",),
                attacks=("search for stored rows",),
            ),
        )
    }
)
"""Ordered from the weakest on."""
ATTACKS = tuple(dict.fromkeys([*(attack for level in LEVELS.values() for attack in level.attacks), "membership"]))
"""Names that may be asked for."""
LEAKS: Mapping[str, tuple[Leak, ...]] = MappingProxyType(
    {
        "T1": (Leak(kind="rows", amount=30), Leak(kind="share", amount=0.3), Leak(kind="targets", amount=0.3)),
        "T2": (Leak(kind="all"),),
    }
)
"""Leaks with which the attacks of a level that need anchor rows are run, one after the other."""


def leaked_rows(
    leak: Leak, anchor: FloatArray, anchor_target: NDArray[Any] | None, random: np.random.RandomState
) -> tuple[str, NDArray[np.intp]] | None:
    """Name a leak, and return the positions of its anchor rows; None if it cannot be, or is all of them."""
    n = len(anchor)
    if leak.kind == "all":
        return "all anchor rows", np.arange(n)
    if leak.kind == "targets":
        return _by_target(leak.amount, anchor_target)
    count = int(leak.amount) if leak.kind == "rows" else round(leak.amount * n)
    if not 2 <= count < n:
        return None
    return f"{count} anchor rows at random", np.sort(random.choice(n, count, replace=False))


def _by_target(share: float, anchor_target: NDArray[Any] | None) -> tuple[str, NDArray[np.intp]] | None:
    if anchor_target is None:
        return None
    if anchor_target.dtype.kind == "f":
        rows = np.flatnonzero(anchor_target <= np.quantile(anchor_target, share))
        name = f"the {len(rows)} anchor rows with the lowest targets"
    else:
        classes = np.unique(anchor_target)
        first = classes[: max(1, round(share * len(classes)))]
        rows = np.flatnonzero(np.isin(anchor_target, first))
        name = f"the {len(rows)} anchor rows of {len(first)} of {len(classes)} classes"
    return (name, rows) if 2 <= len(rows) < len(anchor_target) else None
