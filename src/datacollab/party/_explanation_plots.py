"""Figures of what columns did to a model's answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validation import FloatArray
from ._utility_plots import BLUE, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["beeswarm_axes", "row_axes"]

RED = "#D55E00"
_BINS, _SPREAD = 60, 0.38


def beeswarm_axes(
    values: FloatArray,
    labels: Sequence[str],
    entries: Sequence[FloatArray | None],
    output: str,
    max_columns: int,
    ax: Axes | None,
) -> Axes:
    """Draw one point per row and column, the columns with the largest mean absolute values on top.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
    labels : sequence of str
    entries : sequence of ndarray of shape (n_rows,) or None
        To colour points by; grey where there are none.
    output : str
    max_columns : int
    ax : Axes or None
    """
    shown = np.argsort(-np.abs(values).mean(axis=0), kind="stable")[:max_columns]
    axes = new_axes(6.8, 1.0 + 0.34 * len(shown)) if ax is None else ax
    for height, place in enumerate(shown):
        column, colours = values[:, place], entries[place]
        offsets = _swarm(column)
        if colours is None:
            axes.scatter(column, height + offsets, s=9, color="0.55", linewidths=0)
        else:
            axes.scatter(
                column, height + offsets, s=9, c=_ranks(colours), cmap="cividis", vmin=0.0, vmax=1.0, linewidths=0
            )
    axes.set_yticks(range(len(shown)), [labels[place] for place in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.axvline(0.0, color="0.7", linewidth=0.8, zorder=0)
    axes.set_xlabel(f"Shapley value for {output}; yellow: large entries", fontsize=9)
    _finish(axes, [labels[place] for place in shown])
    return axes


def row_axes(
    values: FloatArray, base: float, labels: Sequence[str], output: str, max_columns: int, ax: Axes | None
) -> Axes:
    """Draw bars from the base value to the answer for one row, the largest on top and what is left in one bar.

    Parameters
    ----------
    values : ndarray of shape (n_columns,)
    base : float
    labels : sequence of str
    output : str
    max_columns : int
    ax : Axes or None
    """
    order = np.argsort(-np.abs(values), kind="stable")
    shown, others = order[:max_columns], order[max_columns:]
    steps, names = [float(values[place]) for place in shown], [labels[place] for place in shown]
    if len(others):
        steps, names = [*steps, float(values[others].sum())], [*names, f"{len(others)} others"]
    axes = new_axes(6.4, 1.2 + 0.34 * len(steps)) if ax is None else ax
    # Bars begin anywhere, and not at the border of the figure.
    axes.use_sticky_edges = False
    # Bars are stacked from below, so that the topmost ends at the answer.
    ends = base + np.cumsum(steps[::-1])[::-1]
    for height, (step, end) in enumerate(zip(steps, ends, strict=True)):
        axes.barh(height, step, left=end - step, color=BLUE if step >= 0 else RED, height=0.62)
        axes.text(1.01, height, f"{step:+.3g}", transform=axes.get_yaxis_transform(), va="center", fontsize=9)
    axes.axvline(base, color="0.7", linewidth=0.8, linestyle=":", zorder=0)
    axes.axvline(float(base + sum(steps)), color="0.4", linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(steps)), names)
    axes.set_ylim(len(steps) - 0.4, -0.6)
    axes.set_xlabel(f"{output}: from {base:.3g} over the background to {base + sum(steps):.3g}", fontsize=9)
    _finish(axes, names)
    return axes


def _finish(axes: Any, names: Sequence[str]) -> None:
    if any(name.endswith(" *") for name in names):
        axes.set_title("* not identified: mixed with what other columns do", fontsize=9, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.3, linewidth=0.6)


def _swarm(column: FloatArray) -> FloatArray:
    """Heights at which points of like values lie beside one another."""
    low, high = column.min(), column.max()
    bins = np.floor((column - low) / (high - low) * _BINS) if high > low else np.zeros(len(column))
    offsets = np.zeros(len(column))
    most = max(np.unique(bins, return_counts=True)[1])
    for each in np.unique(bins):
        members = np.flatnonzero(bins == each)
        # 0, 1, -1, 2, -2, ...: the middle first.
        places = np.arange(len(members))
        offsets[members] = np.where(places % 2, (places + 1) // 2, -(places // 2)) / max(1.0, most / 2)
    return _SPREAD * np.clip(offsets, -1.0, 1.0)


def _ranks(entries: FloatArray) -> FloatArray:
    """Entries as shares of the rows with smaller ones, so that a few large ones do not take all colours."""
    distinct, places = np.unique(entries, return_inverse=True)
    return np.asarray(places / max(1, len(distinct) - 1), dtype=np.float64)
