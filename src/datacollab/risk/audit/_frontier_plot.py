"""Utility against risk, as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..._validation import require
from ._assess import Assessment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["frontier_axes"]


def frontier_axes(
    assessments: Sequence[Assessment],
    limit: float | None,
    utility_name: str,
    best: Assessment | None,
    ax: Axes | None = None,
) -> Axes:
    """Draw each option at its linkage and utility, with a line along the frontier.

    Raises
    ------
    MissingExtraError
        When matplotlib is not installed.
    """
    figure = require("matplotlib.figure", "plots").Figure
    axes: Axes = figure(figsize=(7.2, 4.6), layout="constrained").subplots() if ax is None else ax
    measured = [(each, each.risk.linkage) for each in assessments if each.risk.linkage is not None]
    for allowed, label, marker, color in ((True, "within the limits", "o", "#0072B2"), (False, "outside", "x", "0.45")):
        places = [(linkage, each.utility) for each, linkage in measured if each.allowed == allowed]
        if places:
            axes.scatter(*zip(*places, strict=True), label=label, marker=marker, color=color)
    frontier = sorted((linkage, each.utility) for each, linkage in measured if each.on_frontier)
    if frontier:
        axes.plot(*zip(*frontier, strict=True), color="0.3", linewidth=1, zorder=0, label="frontier")
    if limit is not None:
        axes.axvline(limit, color="black", linestyle=":", linewidth=1, label="limit of linkage")
    if best is not None and best.risk.linkage is not None:
        axes.annotate(
            best.option.name,
            (best.risk.linkage, best.utility),
            xytext=(8, -14),
            textcoords="offset points",
            fontsize=9,
        )
    axes.set_xlabel(
        "linkage, upper end: strongest attack tried of whoever\nholds the share, the anchor and a list of candidates"
    )
    axes.set_ylabel(utility_name)
    axes.set_xlim(0, 1.02)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    return axes
