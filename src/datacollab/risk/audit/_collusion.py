"""Another party that gets hold of collaboration representations, played with a made-up one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import FloatArray
from ...analyst import KTI
from ...party import obfuscator
from ..attacks import invert_collaboration
from ._scenario import Scenario

__all__ = ["Collusion"]


class Collusion:
    """A party j whose f_j is fitted on public rows, integrated with the one under attack by KTI.

    Parameters
    ----------
    scenario : Scenario
        With public rows.
    seed : int
    """

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._scenario = scenario
        self._seed = seed

    def reconstruct(self, Z: FloatArray, target: NDArray[Any] | None) -> FloatArray:
        """Rows from intermediate representations of the party under attack, by way of the common feature space."""
        scenario = self._scenario
        assert scenario.public is not None
        n_components = min(scenario.anchor_representation.shape[1], *scenario.public.shape)
        f_j = obfuscator("pca", n_components=n_components, random_state=np.random.RandomState(self._seed))
        own = f_j.fit(scenario.public).transform(scenario.anchor)
        integrator = KTI(n_components).fit({"attacked": scenario.anchor_representation, "other": own})
        common = integrator.transform({"attacked": Z})["attacked"]
        rows: FloatArray = invert_collaboration(integrator.transform({"other": own})["other"], scenario.anchor, common)
        return rows
