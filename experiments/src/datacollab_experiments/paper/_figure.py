"""Pictures: where rows land before and after integration, and how methods compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from datacollab._validation import FloatArray, PartyName, require
from datacollab.datasets import Dataset

from ._comparison import Comparison
from ._condition import Condition
from ._methods import BASELINES, method
from ._trial import Trial, draw_trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_PANELS = ("KTI", "KTI+TSL", "KTI+TSL+Center")
_MARKERS = ("o", "^", "s")
# Okabe and Ito's palette, told apart by readers with any colour vision.
_CLASS_COLOURS = ("#0072B2", "#D55E00", "#009E73")
_BASELINE = "#7f7f7f"
_LINEAR = "#56B4E9"
_KERNEL = "#0072B2"


def alignment_figure(data: Dataset, seed: int = 0, *, out_of_sample: str = "row-wise") -> Figure:
    """Three parties' rows in two dimensions: obfuscated, and aligned by KTI with and without its extensions.

    This is the paper's illustrative figure (fig:graph-center-illustration) on real rows: three parties obfuscate with
    UMAP in two dimensions, the rows of three classes only (all rows of a regression data set).  Markers are parties,
    colours are classes.  Above each panel stands how far the parties disagree on common new rows; see `disagreement`.
    """
    figure_module = require("matplotlib.figure", "plots")
    condition = Condition(
        dataset=data.name, n_parties=3, n_per_party=60, n_test=60, n_anchors=300, n_sources=90, n_components=2,
        out_of_sample=out_of_sample, n_neighbors=10,
    )  # fmt: skip
    data = _three_classes(data)
    trial = draw_trial(condition, data, seed)
    own = {share.party: share.representation for share in trial.shares}
    panels = [("Intermediate", own, trial.test_representations)]
    for name in _PANELS:
        integrator = method(name, condition).fit(
            {share.party: share.anchor_representation for share in trial.shares}, trial.shares[0].anchor_target
        )
        panels.append((name, integrator.transform(own), integrator.transform(trial.test_representations)))

    figure: Figure = figure_module.Figure(figsize=(12, 3.6), layout="constrained")
    for axes, (title, rows, common) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        _draw_rows(axes, trial, rows, data)
        axes.set_title(f"{title}\nparties disagree by {_percent(disagreement(common))}", fontsize=11)
    figure.legend(*_legend(trial, data), loc="outside lower center", ncols=6, fontsize=9, frameon=False)
    return figure


def disagreement(representations: dict[PartyName, FloatArray]) -> float:
    r"""Share of the variance of the same rows, seen by several parties, that lies between the parties.

    :math:`\sum_k \|\hat X_k - \bar X\|_F^2 / \sum_k \|\hat X_k - 1 m^\top\|_F^2` with :math:`\bar X` the mean over
    parties and m the mean over parties and rows.  0: every party maps each row to the same place.  K parties whose
    maps have nothing to do with each other have (K - 1) / K on average.
    """
    stacked = np.stack(list(representations.values()))
    # The variance of a row's images around their mean over parties.
    between = ((stacked - stacked.mean(axis=0)) ** 2).sum()
    total = ((stacked - stacked.mean(axis=(0, 1))) ** 2).sum()
    return float(between / total)


def score_figure(comparison: Comparison) -> Figure:
    """Mean and 95 % confidence interval of every method, one below the other."""
    figure_module = require("matplotlib.figure", "plots")
    methods = comparison.methods
    figure: Figure = figure_module.Figure(figsize=(7, 0.8 + 0.36 * len(methods)), layout="constrained")
    axes = figure.subplots()
    for position, name in enumerate(methods):
        mean, half_width = comparison.interval(name)
        colour = _KERNEL if name.startswith("KTI") else _LINEAR
        if name in BASELINES:
            colour = _BASELINE
        axes.errorbar(mean, position, xerr=np.nan_to_num(half_width), fmt="o", color=colour, capsize=3)
        axes.annotate(f"{mean:.3g}" if mean >= 1 else f"{mean:.3f}", (mean, position), xytext=(0, 6),
                      textcoords="offset points", ha="center", fontsize=8, color=colour)  # fmt: skip
    if "Local" in methods:
        axes.axvline(comparison.interval("Local")[0], color=_BASELINE, linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(methods)), methods)
    axes.invert_yaxis()
    trials = "one trial" if len(comparison.seeds) == 1 else f"mean and 95 % interval of {len(comparison.seeds)} trials"
    axes.set_xlabel(f"{comparison.measure} on common test rows, {trials}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.3)
    axes.margins(y=0.12)
    return figure


def _percent(share: float) -> str:
    # Rounded to one digit it would read 0.0 %, which is never so.
    if share < 0.0005:
        return "< 0.1 %"
    return f"{100 * share:.1f} %"


def _three_classes(data: Dataset) -> Dataset:
    if data.task == "regression":
        return data
    # Three classes, as in the paper's figure; more would not be told apart.
    kept = np.isin(data.y, np.unique(data.y)[:3])
    return Dataset(**{**data, "X": data.X[kept], "y": data.y[kept], "data": data.X[kept], "target": data.y[kept]})


def _draw_rows(axes: Axes, trial: Trial, rows: dict[PartyName, FloatArray], data: Dataset) -> None:
    colours = _colours(data)
    for marker, share in zip(_MARKERS, trial.shares, strict=True):
        x, y = rows[share.party].T
        axes.scatter(x, y, marker=marker, s=22, linewidths=0.4, edgecolors="white", alpha=0.85,
                     **colours(share.target))  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])


def _colours(data: Dataset) -> Callable[[NDArray[Any]], dict[str, Any]]:
    """How to colour targets, alike for all parties whatever targets each of them has."""
    if data.task == "regression":
        return lambda target: {"c": target, "vmin": data.y.min(), "vmax": data.y.max()}
    classes = np.unique(data.y)
    return lambda target: {"c": np.array(_CLASS_COLOURS)[np.searchsorted(classes, target)]}


def _legend(trial: Trial, data: Dataset) -> tuple[list[Any], list[str]]:
    lines = require("matplotlib.lines", "plots")
    handles = [lines.Line2D([], [], marker=marker, linestyle="", color="#444444", markersize=6) for marker in _MARKERS]
    labels = [str(share.party) for share in trial.shares]
    if data.task == "classification":
        for colour, label in zip(_CLASS_COLOURS, np.unique(data.y), strict=False):
            handles.append(lines.Line2D([], [], marker="o", linestyle="", color=colour, markersize=7))
            labels.append(f"class {label}")
    return handles, labels
