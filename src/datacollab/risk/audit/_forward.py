"""Estimates of f_k that bring candidates to the share, and the units in which they are compared there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ..attacks import AffineEstimate
from ._attacks import EXACT_MAP, FORWARD, FORWARD_KNOWN, UNIT_SPREAD
from ._scenario import Scenario

__all__ = ["ForwardMap", "forward_maps"]

Emulate = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class ForwardMap:
    """One way to compare candidates with shared rows.

    Attributes
    ----------
    attack : str
    emulate : callable
        From candidates to representations.
    unit : ndarray of shape (n_intermediate,)
        Of each column.
    with_targets : bool
        Whether only candidates of a row's class come into question.
    """

    attack: str
    emulate: Emulate
    unit: FloatArray
    with_targets: bool = False

    def images(self, rows: FloatArray) -> FloatArray:
        """Candidates as they would be shared, shape (n_rows, n_intermediate)."""
        return self.emulate(rows) / self.unit if len(rows) else np.empty((0, len(self.unit)))

    def shared(self, Z: FloatArray) -> FloatArray:
        """Shared rows in the same units."""
        return Z / self.unit


def forward_maps(scenario: Scenario, rows: NDArray[np.intp], emulate: Emulate) -> list[ForwardMap]:
    """An emulator's distances; those of the exact map where f is affine; and either in units of each column's spread.

    Noise that is as large as each column's spread hides much in the first columns and little in the last: in its units
    every column counts alike, as the likelihood has it.

    Parameters
    ----------
    scenario : Scenario
    rows : ndarray of shape (n_leaked,)
        Positions of the leaked anchor rows.
    emulate : callable
        An emulator learnt from these.
    """
    ones = np.ones(scenario.Z.shape[1])
    maps = [ForwardMap(FORWARD, emulate, ones)]
    exact = AffineEstimate(scenario.anchor[rows], scenario.anchor_representation[rows])
    best: Emulate = exact if exact.is_close else emulate
    if exact.is_close:
        maps.append(ForwardMap(EXACT_MAP, exact, ones))
    spread = scenario.shared.std(axis=0)
    unit = np.where(spread > 0, spread, 1.0)
    maps.append(ForwardMap(UNIT_SPREAD, best, unit))
    # Numbers may be means of several rows'; fields leave as they are, and tell the more the finer they are.
    told = scenario.has_fields or scenario.shared_target.dtype.kind != "f"
    if scenario.candidate_target is not None and told:
        maps.append(ForwardMap(FORWARD_KNOWN, best, unit, with_targets=True))
    return maps
