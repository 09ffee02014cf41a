"""Figures of overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._validation import require
from ._overlap import Overlap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["overlap_axes"]

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
