"""How far treated rows and others are like each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..linalg import PROPENSITY_CLIP, treatment_weights

__all__ = ["Overlap", "overlap_of"]

_BINS = 20


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Propensity scores of both arms, counted; nothing of single rows.

    Attributes
    ----------
    edges : tuple of float
        Of intervals of the score, from 0 to 1.
    treated, untreated : tuple of int
        Rows in each interval.
    n_clipped : int
        Rows with a score within 0.02 of 0 or 1, which weights take for 0.02 from there.
    effective_treated, effective_untreated : float
        Rows of equal weight that would say as much as the weighted ones.
    """

    edges: tuple[float, ...]
    treated: tuple[int, ...]
    untreated: tuple[int, ...]
    n_clipped: int
    effective_treated: float
    effective_untreated: float

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        return {
            "edges": list(self.edges),
            "treated": list(self.treated),
            "untreated": list(self.untreated),
            "n_clipped": self.n_clipped,
            "effective_treated": self.effective_treated,
            "effective_untreated": self.effective_untreated,
        }


def overlap_of(propensity: FloatArray, treatment: NDArray[np.int64], target: str) -> Overlap:
    """Count scores by arm.

    Parameters
    ----------
    propensity : ndarray of shape (n_rows,)
        Not clipped.
    treatment : ndarray of shape (n_rows,)
    target : {"ATE", "ATT"}
    """
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    counts = [np.histogram(propensity[treatment == arm], edges)[0] for arm in (0, 1)]
    weights = treatment_weights(treatment, np.clip(propensity, PROPENSITY_CLIP, 1.0 - PROPENSITY_CLIP), target)
    effective = [float(w.sum() ** 2 / (w @ w)) for w in (weights[treatment == arm] for arm in (0, 1))]
    return Overlap(
        edges=tuple(np.round(edges, 6).tolist()),
        treated=tuple(counts[1].tolist()),
        untreated=tuple(counts[0].tolist()),
        n_clipped=int(((propensity < PROPENSITY_CLIP) | (propensity > 1.0 - PROPENSITY_CLIP)).sum()),
        effective_treated=effective[1],
        effective_untreated=effective[0],
    )
