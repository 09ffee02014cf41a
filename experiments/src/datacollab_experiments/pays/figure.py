"""Differences by setting, sorted, with intervals."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from .results import Measured
from .tables import UNSEEN

# Colours of defences.
COLOURS: dict[str, str] = {"none": "#1b6ca8", "sums": "#c0562b"}


def draw_figure(measured: Sequence[Measured]) -> Figure:
    """Draw the gain of the pool, or of sums, over a party without the others, one line a setting."""
    ordered = sorted(measured, key=lambda each: each.gain(each.collaborating, each.own).mean)
    figure = Figure(figsize=(9.0, 1.4 + 0.2 * len(ordered)), layout="constrained")
    axes = figure.subplots()
    for place, each in enumerate(ordered):
        gain = each.gain(each.collaborating, each.own)
        colour = COLOURS[each.setting.defence]
        axes.plot(100 * gain.mean, place, "o", markersize=4, color=colour)
        if np.isfinite(gain.low):
            axes.plot([100 * gain.low, 100 * gain.high], [place, place], "-", linewidth=1.4, color=colour)
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    names = [("* " if each.setting.dataset in UNSEEN else "") + each.setting.label for each in ordered]
    axes.set_yticks(range(len(ordered)), names, fontsize=7)
    axes.set_ylim(-1, len(ordered))
    # Logarithmic beyond two points: gains span two orders of magnitude.
    axes.set_xscale("symlog", linthresh=2.0)
    ticks = [-20, -5, -2, -1, 0, 1, 2, 5, 10, 20, 50]
    axes.set_xticks(ticks, [f"{tick:+d}" if tick else "0" for tick in ticks])
    axes.set_xlabel("gain over own and public rows: points of AUC or accuracy, % of RMSE (95 % intervals)", fontsize=9)
    axes.grid(axis="x", alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    for defence in dict.fromkeys(each.setting.defence for each in ordered):
        label = "undefended" if defence == "none" else defence
        axes.plot([], [], "o-", color=COLOURS[defence], markersize=4, label=label)
    axes.plot([], [], " ", label="* unseen tables")
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    return figure
