"""The findings as a figure: measures by threat level, beside what is reached without the party's share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import require
from ._criteria import strength
from ._facts import AuditFacts
from ._findings import Finding

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["findings_axes"]

_PANELS = ("re-identification@1", "linkage", "open-world linkage", "membership AUC")

# Shapes and fills tell them apart in grey print.
_REFERENCES: tuple[tuple[str, Callable[[Finding], float | None], dict[str, Any]], ...] = (
    ("labels alone", lambda one: one.baseline, {"marker": "D", "facecolors": "white", "edgecolors": "black", "s": 34}),
    ("guessing", lambda one: one.chance, {"marker": "|", "color": "black", "s": 90}),
    ("mean row", lambda one: one.mean_reconstruction, {"marker": "x", "color": "0.35", "s": 30}),
    ("other rows", lambda one: one.control, {"marker": "s", "facecolors": "white", "edgecolors": "#0072B2", "s": 34}),
)


def findings_axes(result: AuditFacts, ax: ArrayLike | None = None) -> NDArray[np.object_]:
    """Draw, for every measure, the strongest attack of each threat level and leak; see `AuditResult.plot`.

    Raises
    ------
    MissingExtraError
        When matplotlib is not installed.
    ValueError
        When there is no finding to draw, or there are fewer Axes than measures.
    """
    measured = [finding for finding in result.findings if finding.is_measured]
    attributes = dict.fromkeys(one.metric for one in measured if one.metric.startswith("attribute "))
    metrics = [name for name in (*_PANELS, *attributes) if any(one.metric == name for one in measured)]
    if not metrics:
        raise ValueError("This audit measured nothing that can be drawn; raise its time budget.")
    places = list(dict.fromkeys((one.level, one.leak) for one in measured if one.metric in metrics))
    panels = _new_panels(len(metrics), len(places)) if ax is None else np.ravel(np.asarray(ax, dtype=object))
    if len(panels) < len(metrics):
        raise ValueError(f"There are {len(metrics)} measures to draw, but {len(panels)} Axes; give one for each.")
    panels = panels[: len(metrics)]
    handles: dict[str, Any] = {}
    for axes, metric in zip(panels, metrics, strict=True):
        handles |= _draw(axes, metric, [one for one in measured if one.metric == metric], places)
    for axes in panels:
        axes.set_yticks(range(len(places)), [f"{level}: {leak}" for level, leak in places])
        axes.set_ylim(len(places) - 0.5, -0.5)
    shown = list(handles.values()), list(handles)
    if ax is None:
        panels[0].get_figure().legend(*shown, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)
    else:
        panels[0].legend(*shown, fontsize=8)
    return panels


def _new_panels(n_panels: int, n_places: int) -> NDArray[np.object_]:
    """Axes of a figure of their own, which no window shows."""
    n_columns = min(3, n_panels)
    n_rows = -(-n_panels // n_columns)
    figure = require("matplotlib.figure", "plots").Figure(
        figsize=(2.4 + 2.9 * n_columns, n_rows * (1.0 + 0.36 * n_places) + 0.7), layout="constrained"
    )
    panels: NDArray[np.object_] = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False).ravel()
    for axes in panels[n_panels:]:
        axes.set_visible(False)
    return panels


def _draw(axes: Axes, metric: str, findings: Sequence[Finding], places: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Draw one measure, and give its handles for the legend."""
    strongest: dict[int, Finding] = {}
    for finding in findings:
        row = places.index((finding.level, finding.leak))
        strongest[row] = max(strongest.get(row, finding), finding, key=strength)
    rows, best = list(strongest), list(strongest.values())
    reach = [
        [one.value - (one.value if one.low is None else one.low) for one in best],
        [one.upper - one.value for one in best],
    ]
    handles: dict[str, Any] = {
        "strongest attack, 95 % interval": axes.errorbar(
            [one.value for one in best], rows, xerr=reach, fmt="o", color="#0072B2", ecolor="black", capsize=3, zorder=3
        )
    }
    for name, value_of, look in _REFERENCES:
        known = [(value, row) for row, one in strongest.items() if (value := value_of(one)) is not None]
        if known:
            handles[name] = axes.scatter(*zip(*known, strict=True), zorder=2, **look)
    axes.set_title(metric, fontsize=10)
    axes.set_xlim(min(-0.03, *(one.value - 0.05 for one in best)), 1.03)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.3, linewidth=0.6)
    axes.tick_params(labelsize=9)
    return handles
