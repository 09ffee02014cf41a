"""Figures of survival: by group, predicted, and predicted beside observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .._require import require
from ..errors import AgreementError
from ._measures import Calibration, kaplan_meier, log_rank_test
from ._rows import check_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_calibration", "plot_kaplan_meier", "plot_survival"]

_COLOURS = ("#0072B2", "#E69F00", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "0.35")
"""Okabe and Ito's, which the colour-blind can tell apart."""


def plot_kaplan_meier(y: ArrayLike, groups: ArrayLike, *, unit: str = "", ax: Axes | None = None) -> Axes:
    """Draw Kaplan and Meier's curves of groups with intervals of 95 %, and test by log-rank whether they differ.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Survival targets.
    groups : array-like of shape (n_rows,)
        Such as `risk_groups` gives.
    unit : str
        Unit of the times, such as "months".
    ax : Axes, optional

    Raises
    ------
    AgreementError
        If there are not two groups or more, one label per row.
    MissingExtraError
        If matplotlib is not installed.
    """
    test = log_rank_test(y, groups)
    axes, labels, target = _axes(ax), np.asarray(groups), np.asarray(y)
    for number, name in enumerate(np.unique(labels)):
        curve, colour = kaplan_meier(target[labels == name]), _COLOURS[number % len(_COLOURS)]
        low, high = curve.interval()
        times = np.append(0.0, curve.times)
        axes.step(
            times,
            np.append(1.0, curve.survival),
            where="post",
            color=colour,
            label=f"{name} (n = {int((labels == name).sum())})",
        )
        axes.fill_between(
            times, np.append(1.0, low), np.append(1.0, high), step="post", color=colour, alpha=0.15, linewidth=0
        )
    p = "p < 0.001" if test.p_value < 0.001 else f"p = {test.p_value:.3f}"
    axes.set_title(f"log-rank test: {p}", fontsize=9, loc="left")
    axes.legend(title="group", frameon=False, fontsize=8, title_fontsize=8, loc="best")
    return _survival_axes(axes, unit)


def plot_survival(times: ArrayLike, survival: ArrayLike, *, labels: Any = None, unit: str = "", ax: Any = None) -> Axes:
    """Draw predicted survival curves of a few rows, as `predict_survival` gives them, with one label per row.

    Raises
    ------
    AgreementError
        If shapes do not fit.
    """
    asked, curves = check_times(times), np.asarray(survival, dtype=np.float64)
    if curves.ndim != 2 or curves.shape[1] != len(asked) or (labels is not None and len(labels) != len(curves)):
        raise AgreementError(f"Expected one curve and one label per row, {len(asked)} times each, got {curves.shape}.")
    axes = _axes(ax)
    for number, curve in enumerate(curves):
        label = None if labels is None else str(labels[number])
        axes.plot(asked, curve, color=_COLOURS[number % len(_COLOURS)], label=label)
    if labels is not None:
        axes.legend(frameon=False, fontsize=8, loc="best")
    return _survival_axes(axes, unit)


def plot_calibration(found: Calibration, *, unit: str = "", ax: Axes | None = None) -> Axes:
    """Draw predicted against observed survival of groups; on the diagonal they agree."""
    axes = _axes(ax, width=4.4)
    sides = np.vstack([found.observed - found.low, found.high - found.observed])
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, linestyle=":", zorder=0)
    axes.errorbar(found.predicted, found.observed, yerr=np.maximum(sides, 0), fmt="o", color=_COLOURS[0], capsize=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel(f"predicted survival to {found.time:g} {unit}".rstrip(), fontsize=9)
    axes.set_ylabel("observed (Kaplan–Meier, 95 % interval)", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _axes(ax: Axes | None, width: float = 5.6) -> Axes:
    if ax is not None:
        return ax
    axes: Axes = require("matplotlib.figure", "plots").Figure(figsize=(width, 4.0), layout="constrained").subplots()
    return axes


def _survival_axes(axes: Axes, unit: str) -> Axes:
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"time in {unit}" if unit else "time", fontsize=9)
    axes.set_ylabel("without event", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3, linewidth=0.6)
    return axes
