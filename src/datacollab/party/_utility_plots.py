"""Figures of what collaboration brought."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._validation import require
from ._paired_intervals import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["benefit_axes", "new_axes"]

BLUE = "#0072B2"


def new_axes(width: float, height: float) -> Axes:
    """Axes of a figure of their own, which no window shows."""
    figure = require("matplotlib.figure", "plots").Figure(figsize=(width, height), layout="constrained")
    axes: Axes = figure.subplots()
    return axes


def benefit_axes(
    scores: Mapping[str, Estimate], gains: Mapping[str, Estimate], metric: str, title: str, ax: Axes | None
) -> Axes:
    """Draw scores by side, and beside each how much better it is than alone on the same rows."""
    axes = new_axes(7.2, 1.1 + 0.55 * len(scores)) if ax is None else ax
    names, values = list(scores), list(scores.values())
    reach = [[one.value - one.low for one in values], [one.high - one.value for one in values]]
    colours = ["0.45" if name == "local" else BLUE for name in names]
    for row, (one, colour) in enumerate(zip(values, colours, strict=True)):
        sides: Any = [[reach[0][row]], [reach[1][row]]]
        axes.errorbar([one.value], [row], xerr=sides, fmt="o", color=colour, ecolor=colour, capsize=3, markersize=6)
    axes.axvline(scores["local"].value, color="0.7", linewidth=0.8, linestyle=":", zorder=0)
    for name, gain in gains.items():
        text = f"{100 * gain.value:+.1f} [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]"
        axes.text(1.02, names.index(name), text, transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    if gains:
        unit = "better than alone,\npoints" if metric == "accuracy" else "less error than alone,\npercent"
        axes.text(1.02, names.index("local"), unit, transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(f"{metric} on own rows, left out; 95 % intervals", fontsize=9)
    axes.set_title(title, fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.3, linewidth=0.6)
    return axes
