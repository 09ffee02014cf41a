"""Pictures of a study's results, as SVG for its page: histograms, intervals, curves of survival, and calibration."""

from __future__ import annotations

import html
import io
from typing import Any

import numpy as np

from ..._require import require
from ..._typing import FloatArray
from ...study import ModelValidationResult, SurvivalResult

_WIDE = 120
_HIGH = 26
"""Width and height of small pictures."""
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Of Okabe and Ito, whom colour-blind readers can distinguish."""
_TICKS = 5
_MOST_CURVES = len(_COLOURS)
# Text stays text, and the same result gives the same bytes.
_SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "study", "font.size": 9, "font.family": "sans-serif"}


def histogram(heights: FloatArray, noise: float) -> str:
    """Return a small histogram, whose bars within the noise of none are grey."""
    scale = _HIGH / max(float(heights.max()), 1.0)
    width = _WIDE // len(heights)
    drawn = ""
    for place, n in enumerate(heights.clip(0).tolist()):
        # Two standard deviations: of empty parts one in forty looks full.
        kind = "bar" if n > 2 * noise else "noise"
        drawn += f"<rect class='{kind}' x='{width * place}' y='{_HIGH - n * scale:.1f}' "
        drawn += f"width='{width - 1}' height='{n * scale:.1f}'/>"
    label = f"rows in equal parts: {' '.join(f'{n:.0f}' for n in heights.clip(0))}"
    return _small(label, f"{drawn}<path class='axis' d='M0 {_HIGH + 0.5}H{width * len(heights)}'/>")


def interval(low: float, high: float, farthest: float | None = None) -> str:
    """Return an interval, with no effect in the middle and the farther end, or `farthest`, at an edge."""
    if farthest is None:
        farthest = max(abs(low), abs(high))
    # Four pixels of margin, and no division by nothing.
    scale = (_WIDE / 2 - 4) / max(farthest, 1e-300)
    first, centre, last = (f"{_WIDE / 2 + scale * end:.1f}" for end in (low, (low + high) / 2, high))
    drawn = (
        f"<path class='axis' d='M{_WIDE / 2} 2V{_HIGH}'/><path class='line' d='M{first} {_HIGH / 2}H{last}'/>"
        f"<circle class='bar' cx='{centre}' cy='{_HIGH / 2}' r='4'/>"
    )
    return _small(f"interval from {low:g} to {high:g}", drawn)


def balance(before: float, after: float) -> str:
    """Return two differences of arms in standard deviations, from -1 to 1: hollow before, full after adjustment."""
    first, last = (f"{_WIDE / 2 * (1 + min(max(each, -1), 1) * 0.9):.1f}" for each in (before, after))
    drawn = (
        f"<path class='axis' d='M{_WIDE / 2} 2V{_HIGH}'/><circle class='hollow' cx='{first}' cy='{_HIGH / 2}' r='4'/>"
        f"<circle class='bar' cx='{last}' cy='{_HIGH / 2}' r='4'/>"
    )
    return _small(f"from {before:g} to {after:g}", drawn)


def _small(label: str, drawn: str) -> str:
    return f"<svg role='img' aria-label='{label}' width='{_WIDE}' height='{_HIGH + 1}'>{drawn}</svg>"


def curves(result: SurvivalResult, time: str) -> str:
    """Return curves of survival with bands of 95 %, and rows at risk below; nothing if there are too many groups."""
    # Colours would repeat.
    if len(result.curves) > _MOST_CURVES:
        return ""
    require("matplotlib", "plots")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    names = ["all" if each.group is None else str(each.group) for each in result.curves]
    with rc_context(_SETTINGS):
        figure = Figure(figsize=(4.6, 3.1 + 0.2 * len(names)), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(10, 1 + len(names)))
        for colour, each in zip(_COLOURS, result.curves, strict=False):
            # Lines, no steps: where in an interval its events lie is not known.
            above.plot(result.edges, np.r_[1.0, each.survival], color=colour)
            low = np.r_[1.0, each.low]
            high = np.r_[1.0, each.high]
            above.fill_between(result.edges, low, high, color=colour, alpha=0.2, lw=0)
        above.set_ylim(0, 1)
        above.set_ylabel("without event")
        above.tick_params(labelbottom=True)
        above.set_xlabel(time)
        _at_risk(below, result, names)
        for axes, hidden in ((above, ["top", "right"]), (below, ["top", "right", "left", "bottom"])):
            axes.spines[hidden].set_visible(False)
        return _as_svg(figure, f"survival of {', '.join(names)}")


def _as_svg(figure: Any, label: str) -> str:
    """Return a figure for a page; a label for those who do not see it."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    svg = file.getvalue().partition("?>")[2].partition(">")[2]
    return f"<figure role='img' aria-label='{html.escape(label, quote=True)}'>{svg}</figure>"


def calibration(result: ModelValidationResult) -> str:
    """Return observed shares against predictions with intervals of 95 %, and the net benefit by threshold."""
    require("matplotlib", "plots")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_SETTINGS):
        figure = Figure(figsize=(4.6, 6.0), layout="constrained")
        above, below = figure.subplots(2, 1)
        observed, low, high = result.observed
        # Perfect predictions lie on the diagonal.
        above.plot([0, 1], [0, 1], color="#55606b", lw=1)
        above.vlines(result.predicted, low, high, color=_COLOURS[0])
        above.plot(result.predicted, observed, "o", color=_COLOURS[0])
        # As wide as the intervals: of a rare outcome all would lie in one corner.
        end = min(1.0, 1.05 * max([0.1, *high[~np.isnan(high)], *result.predicted[~np.isnan(high)]]))
        above.set(xlim=(0, end), ylim=(0, end), xlabel="predicted", ylabel="observed")
        benefit, low, high = result.net_benefit
        is_shown = ~np.isnan(benefit)
        below.plot(result.thresholds, benefit, color=_COLOURS[0], label="by the model")
        below.fill_between(result.thresholds, low, high, color=_COLOURS[0], alpha=0.2, lw=0)
        below.plot(result.thresholds[is_shown], result.treat_all[is_shown], color=_COLOURS[1], label="treat all")
        below.axhline(0, color="#55606b", lw=1, label="treat none")
        # Far below 0 nobody looks.
        top = max([0.01, *high[is_shown]])
        below.set(ylim=(-top / 4, top), xlabel="threshold", ylabel="net benefit")
        below.legend(frameon=False)
        for axes in (above, below):
            axes.spines[["top", "right"]].set_visible(False)
        return _as_svg(figure, f"calibration and net benefit for {result.outcome}")


def _at_risk(axes: Any, result: SurvivalResult, names: list[str]) -> None:
    """Write rows at risk below the curves, each group in the colour of its curve."""
    at = np.linspace(0, len(result.edges) - 1, _TICKS, endpoint=False).astype(int)
    axes.set_xticks(result.edges[at], [f"{each:g}" for each in result.edges[at]])
    axes.set_ylim(len(names), -1)
    axes.set_title("rows at risk", loc="left", fontsize=9)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0, labelbottom=False)
    for place, (colour, each) in enumerate(zip(_COLOURS, result.curves, strict=False)):
        axes.get_yticklabels()[place].set_color(colour)
        for k in at[~np.isnan(each.survival[at])]:
            axes.text(result.edges[k], place, f"{each.at_risk[k]:.0f}", ha="center", va="center")
