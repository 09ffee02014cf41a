"""How far scores of treated rows and others overlap, and its figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, require
from ._estimators import PROPENSITY_CLIP, clipped, treatment_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Overlap", "overlap_axes", "overlap_of"]

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
    weights = treatment_weights(treatment, clipped(propensity), target)
    effective = [float(w.sum() ** 2 / (w @ w)) for w in (weights[treatment == arm] for arm in (0, 1))]
    return Overlap(
        edges=tuple(np.round(edges, 6).tolist()),
        treated=tuple(counts[1].tolist()),
        untreated=tuple(counts[0].tolist()),
        n_clipped=int(((propensity < PROPENSITY_CLIP) | (propensity > 1.0 - PROPENSITY_CLIP)).sum()),
        effective_treated=effective[1],
        effective_untreated=effective[0],
    )


_BLUE, _ORANGE = "#0072B2", "#D55E00"


def _axes(width: float, height: float) -> Axes:
    figure = require("matplotlib.figure", "plots").Figure(figsize=(width, height), layout="constrained")
    axes: Axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def overlap_axes(overlap: Overlap, ax: Axes | None) -> Axes:
    """Draw a histogram of the treated upwards, and of the others downwards."""
    axes = _axes(6.4, 3.6) if ax is None else ax
    edges = np.asarray(overlap.edges)
    width = edges[1] - edges[0]
    axes.bar(edges[:-1], overlap.treated, width, align="edge", color=_BLUE, edgecolor="white", label="treated")
    down = -np.asarray(overlap.untreated)
    axes.bar(edges[:-1], down, width, align="edge", color=_ORANGE, edgecolor="white", label="not treated")
    axes.axhline(0.0, color="0.3", linewidth=0.8)
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("propensity score", fontsize=9)
    axes.set_ylabel("rows", fontsize=9)
    # Downwards is a side, and no negative number of rows.
    axes.yaxis.set_major_formatter(lambda rows, _: f"{abs(rows):g}")
    axes.legend(frameon=False, fontsize=8)
    return axes
