"""The picture of the demonstration: rows of three parties before and after integration, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from .._validation import FloatArray, require
from ..analyst import ODC
from ..datasets import Dataset, split_parties
from ..party import Party, obfuscator
from ._demonstration import SITUATIONS, Demonstration, Situation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["demonstration_figure"]

_MARKERS = ("o", "^", "s")
_COLOURS = ("#0072B2", "#D55E00", "#009E73")
"""Okabe and Ito's palette, told apart by readers with any colour vision."""
_WAY_COLOURS = {"alone": "#7f7f7f", "collaboration": "#56B4E9", "pooled": "#0072B2", "all rows in one place": "#cccccc"}
_N_CLASSES, _N_SHOWN, _N_PUBLIC = 3, 60, 300


def demonstration_figure(data: Dataset, demonstration: Demonstration) -> Figure:
    """Rows as they are shared, the same rows integrated, and accuracies beside what a party has alone.

    The first two panels are read by the same projection, learnt on the anchor: as the first party maps it, and as the
    collaboration does.

    Parameters
    ----------
    data : Dataset
        Of classes.
    demonstration : Demonstration
    """
    figure_module = require("matplotlib.figure", "plots")
    figure: Figure = figure_module.Figure(figsize=(13, 4.4), layout="constrained")
    before, after, bars = figure.subplots(1, 3, width_ratios=(1, 1, 1.5))
    _draw_alignment(before, after, data)
    _draw_bars(bars, demonstration)
    return figure


def _draw_alignment(before: Axes, after: Axes, data: Dataset) -> None:
    classes = np.unique(data.y)[:_N_CLASSES]
    kept = np.isin(data.y, classes)
    X, y = data.X[kept], data.y[kept]
    split = split_parties(X, y, n_parties=3, n_per_party=_N_SHOWN, random_state=0)
    public = split.rest[:_N_PUBLIC]
    anchor, target = X[public], y[public]
    parties = [Party(name, obfuscator("pca", 20), fit_on=anchor).fit(own.X, own.y) for name, own in split.items()]
    shares = {party.name: party.share(anchor, target) for party in parties}
    odc = ODC(reference="consensus").fit({name: share.anchor_representation for name, share in shares.items()})
    raw = {name: share.representation for name, share in shares.items()}
    first = next(iter(shares.values())).anchor_representation
    mapped = odc.transform({name: share.anchor_representation for name, share in shares.items()})
    common = np.mean(list(mapped.values()), axis=0)
    panels = ((before, raw, first), (after, odc.transform(raw), common))
    for axes, rows, reference in panels:
        flat = LinearDiscriminantAnalysis(n_components=2).fit(reference, target)
        for marker, (name, share) in zip(_MARKERS, shares.items(), strict=True):
            _draw_rows(axes, flat.transform(rows[name]), share.target, classes, marker)
        axes.set_xticks([])
        axes.set_yticks([])
    before.set_title("As shared: each party's map is its secret", fontsize=10.5)
    after.set_title("Integrated: a class is in one place", fontsize=10.5)
    lines = require("matplotlib.lines", "plots")
    handles = [
        lines.Line2D([], [], marker=marker, linestyle="", color="#444444", label=str(name))
        for marker, name in zip(_MARKERS, shares, strict=True)
    ]
    before.legend(handles=handles, fontsize=8, frameon=False, loc="best")


def _draw_rows(axes: Axes, rows: FloatArray, target: Any, classes: Any, marker: str) -> None:
    colours = np.array(_COLOURS)[np.searchsorted(classes, target)]
    axes.scatter(rows[:, 0], rows[:, 1], c=colours, marker=marker, s=24, linewidths=0.4, edgecolors="white", alpha=0.85)


def _draw_bars(axes: Axes, demonstration: Demonstration) -> None:
    height = 0.8 / len(_WAY_COLOURS)
    for number, situation in enumerate(SITUATIONS):
        for offset, (way, colour) in enumerate(_WAY_COLOURS.items()):
            mean, half_width = demonstration.interval(situation, way)
            position = number + (offset - (len(_WAY_COLOURS) - 1) / 2) * height
            axes.barh(position, mean, height, color=colour, label=way if number == 0 else None,
                      xerr=np.nan_to_num(half_width), error_kw={"elinewidth": 1, "ecolor": "#444444"})  # fmt: skip
            axes.annotate(f"{mean:.3f}", (0.02, position), xycoords=("axes fraction", "data"), va="center",
                          fontsize=7.5, color="white" if way in ("alone", "pooled") else "#222222")  # fmt: skip
    axes.set_yticks(
        range(len(SITUATIONS)), [_label(demonstration, situation) for situation in SITUATIONS], fontsize=8.5
    )
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("accuracy on new rows, mean and 95 % interval")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.4, 1.0))


def _label(demonstration: Demonstration, situation: Situation) -> str:
    risk = demonstration.linked[situation]
    public = "with targets" if situation.labelled else "without targets"
    told = "no own row leaves" if risk is None else f"rows linked: {100 * risk[0]:.0f} %"
    return f"public rows {public}\n{'private' if situation.private else 'undefended'}; {told}"
