"""An obfuscator's cost in accuracy, and an attacker's success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..claims import Interval, by_axes, estimate, find_published
from ..paper import Row
from ._cells import OBFUSCATORS
from ._drawing import legend_below, panels, styles
from ._privacy_tables import TRADE_OFF, UTILITY, strongest_attack

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def trade_off_figure(datasets: Mapping[str, Sequence[Row]]) -> Figure | None:
    """Accuracy over the strongest attack's reconstruction accuracy; None where no condition has both.

    One panel per data set, one line per obfuscator, one point per number of columns.  Grey points are the published
    ones, joined to ours; the dotted line is the accuracy of the mean image.
    """
    drawn = {dataset: points for dataset, rows in datasets.items() if (points := _points(rows))}
    if not drawn:
        return None
    figure, axes = panels(list(drawn), height=4.0)
    handles: dict[str, Any] = {}
    for panel, (dataset, points) in zip(axes, drawn.items(), strict=True):
        handles |= _draw(panel, dataset, points)
        baseline = [estimate(attack, "mean_image_accuracy").interval for *_, attack in points]
        known = [interval.mean for interval in baseline if interval is not None]
        if known:
            handles["mean image"] = panel.axvline(float(np.mean(known)), color="#7f7f7f", linestyle=":", linewidth=1)
        panel.set_xlabel("reconstructions put into the right class", fontsize=10)
    axes[0].set_ylabel(f"accuracy of {UTILITY}", fontsize=10)
    ordered = sorted(handles, key=lambda name: name in ("mean image", "published"))
    legend_below(figure, {name: handles[name] for name in ordered})
    return figure


# Obfuscator, columns, accuracy, reconstruction accuracy, and the rows of the strongest attack.
_Point = tuple[str, int, Interval, Interval, list[Row]]


def _points(rows: Sequence[Row]) -> list[_Point]:
    points = []
    for (obfuscator, n_components), part in by_axes(rows, "obfuscator", "n_components").items():
        utility = estimate([row for row in part if row.kind == "method" and row.name == UTILITY], "accuracy").interval
        found = strongest_attack(part)
        if utility is None or found is None:
            continue
        risk = estimate(found[1], "reconstruction_accuracy").interval
        if risk is not None:
            points.append((obfuscator, n_components, utility, risk, found[1]))
    return points


def _draw(axes: Axes, dataset: str, points: Sequence[_Point]) -> dict[str, Any]:
    """Draw one panel; return its handles by their labels."""
    handles: dict[str, Any] = {}
    look = styles([obfuscator for obfuscator, *_ in points])
    for obfuscator in look:
        x = []
        y = []
        x_error = []
        y_error = []
        for kind, n_components, utility, risk, _ in points:
            if kind != obfuscator:
                continue
            x.append(risk.mean)
            y.append(utility.mean)
            x_error.append(np.nan_to_num(risk.half_width))
            y_error.append(np.nan_to_num(utility.half_width))
            axes.annotate(str(n_components), (x[-1], y[-1]), xytext=(5, -10), textcoords="offset points", fontsize=8)
            published = _draw_published(axes, dataset, obfuscator, n_components, (x[-1], y[-1]))
            handles |= {"published": published} if published is not None else {}
        handles[OBFUSCATORS.get(obfuscator, obfuscator)] = axes.errorbar(
            x, y, xerr=x_error, yerr=y_error, **look[obfuscator].line(), markersize=6, linewidth=1, elinewidth=1
        )
    return handles


def _draw_published(axes: Axes, dataset: str, obfuscator: str, n_components: int, ours: tuple[float, float]) -> Any:
    where: dict[str, Any] = {"dataset": dataset, "obfuscator": obfuscator, "n_components": n_components}
    accuracy = find_published(TRADE_OFF, name=UTILITY, **where)
    reconstruction = find_published(TRADE_OFF, name="reconstruction", **where)
    if accuracy is None or reconstruction is None:
        return None
    place = (reconstruction.mean, accuracy.mean)
    axes.plot(*zip(ours, place, strict=True), color="#bbbbbb", linewidth=0.8, zorder=1)
    (handle,) = axes.plot(*place, marker="o", linestyle="", markersize=4, color="#999999", markerfacecolor="white")
    return handle
