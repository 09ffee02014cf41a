"""The figures of a report: pure functions from rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..claims import anchor_series, by_axes, estimate, in_order, slope
from ..paper import Row
from ._cells import by_name, slug
from ._drawing import Plot, legend_below, panels, plain_style, styles
from ._table import number
from ._trade_off_figure import trade_off_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def result_figures(rows: Mapping[str, Sequence[Row]]) -> list[Plot]:
    """All figures that the rows give, in the order of the experiments.

    Parameters
    ----------
    rows : mapping of str to sequence of Row
        Rows by experiment; experiments that no figure is made for are passed over.
    """
    plots = []
    with plain_style():
        for experiment in ("rq1", "rq2"):
            for (preset,), group in by_axes(rows.get(experiment, ()), "hyperparameters").items():
                caption = f"{experiment.upper()}: accuracy by number of parties, {preset} hyperparameters."
                figure = _accuracy_figure(_by_dataset(group), "n_parties", "number of parties K")
                if figure is not None:
                    plots.append(Plot(slug(f"{experiment}_{preset}"), experiment, caption, figure))
        for (preset,), group in by_axes(rows.get("rq3", ()), "hyperparameters").items():
            plots += _anchor_plots(preset, _by_dataset(group))
        for (preset,), group in by_axes(rows.get("rq4", ()), "hyperparameters").items():
            caption = f"RQ4: accuracy against reconstruction accuracy, {preset} hyperparameters."
            figure = trade_off_figure(_by_dataset(group))
            if figure is not None:
                plots.append(Plot(slug(f"rq4_trade-off_{preset}"), "rq4", caption, figure))
    return plots


def _by_dataset(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {dataset: group for (dataset,), group in by_axes(rows, "dataset").items()}


def _anchor_plots(preset: str, datasets: Mapping[str, Sequence[Row]]) -> list[Plot]:
    split = {dataset: anchor_series(group) for dataset, group in datasets.items()}
    quantity = {dataset: series[0] for dataset, series in split.items()}
    quality = {dataset: series[1] for dataset, series in split.items()}
    figures = (
        ("quantity", "accuracy by number of anchors", _accuracy_figure(quantity, "n_anchors", "anchors")),
        ("quality", "accuracy by real rows that the anchors come from",
         _accuracy_figure(quality, "n_sources", "source rows")),
        ("seconds-construct", "time to construct all g_k", _time_figure(quantity, "construct")),
        ("seconds-represent", "time to represent the test rows of all parties", _time_figure(quantity, "represent")),
    )  # fmt: skip
    return [
        Plot(slug(f"rq3_{what}_{preset}"), "rq3", f"RQ3: {caption}, {preset} hyperparameters.", figure)
        for what, caption, figure in figures
        if figure is not None
    ]


def _accuracy_figure(datasets: Mapping[str, Sequence[Row]], axis: str, label: str) -> Figure | None:
    """Accuracy with 95 % bands over a setting, one panel per data set; None where there is nothing to draw."""
    drawn = {dataset: rows for dataset, rows in datasets.items() if _has(rows, "accuracy")}
    if not drawn:
        return None
    figure, axes = panels(list(drawn))
    handles: dict[str, Any] = {}
    for panel, rows in zip(axes, drawn.values(), strict=True):
        drawn_here = _draw_curves(panel, rows, axis, "accuracy")
        _frame(panel, drawn_here)
        handles |= drawn_here
        _log_ticks(panel, sorted({getattr(row.condition, axis) for row in rows if _point(row, axis)}), label)
    axes[0].set_ylabel(f"accuracy, {_spread(list(drawn.values()))}", fontsize=10)
    legend_below(figure, {name: handles[name] for name in in_order(handles)})
    return figure


def _time_figure(datasets: Mapping[str, Sequence[Row]], measure: str) -> Figure | None:
    """Seconds over anchors on logarithmic axes, with the slope of every method."""
    drawn = {dataset: rows for dataset, rows in datasets.items() if _has(rows, measure)}
    if not drawn:
        return None
    figure, axes = panels(list(drawn), height=4.2)
    for panel, rows in zip(axes, drawn.values(), strict=True):
        handles = _draw_curves(panel, rows, "n_anchors", measure)
        slopes = {name: slope(part, "n_anchors", measure) for name, part in by_name(rows).items()}
        labels = [name if (found := slopes[name]) is None else f"{name} ({number(found.mean, 2)})" for name in handles]
        panel.legend(list(handles.values()), labels, title="method (slope)", fontsize=8, title_fontsize=8)
        # A power of the anchors is a line on logarithmic axes, and its exponent the slope.
        panel.set_yscale("log")
        _frame(panel, handles)
        _log_ticks(panel, sorted({row.condition.n_anchors for row in rows}), "anchors")
    axes[0].set_ylabel(f"seconds, {_spread(list(drawn.values()))}", fontsize=10)
    return figure


def _draw_curves(axes: Axes, rows: Sequence[Row], axis: str, measure: str) -> dict[str, Any]:
    """Draw one curve per method; its handles by name."""
    methods = by_name(row for row in rows if _point(row, axis))
    look = styles(list(methods))
    handles = {}
    for name, part in methods.items():
        points = [(key[0], estimate(group, measure).interval) for key, group in by_axes(part, axis).items()]
        found = [(x, interval) for x, interval in points if interval is not None]
        if not found:
            continue
        x = np.array([x for x, _ in found], dtype=float)
        mean = np.array([interval.mean for _, interval in found])
        half_width = np.nan_to_num([interval.half_width for _, interval in found])
        scale = look[name].scale
        (handles[name],) = axes.plot(x, mean, **look[name].line(), markersize=5 * scale, linewidth=1.4 * scale)
        axes.fill_between(x, mean - half_width, mean + half_width, color=look[name].colour, alpha=0.15, linewidth=0)
    return handles


def _frame(axes: Axes, curves: Mapping[str, Any]) -> None:
    """Frame the means: of few seeds, bands may be many times wider than the picture, and are cut off."""
    means = np.concatenate([curve.get_ydata() for curve in curves.values()])
    if axes.get_yscale() == "log":
        axes.set_ylim(means.min() / 2, means.max() * 2)
    else:
        margin = 0.4 * np.ptp(means) or 0.05
        axes.set_ylim(means.min() - margin, means.max() + margin)


def _log_ticks(axes: Axes, values: Sequence[int], label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(values, [str(value) for value in values])
    axes.set_xticks([], minor=True)
    axes.set_xlabel(label, fontsize=10)


def _point(row: Row, axis: str) -> bool:
    """Whether the row has a place on the axis; anchors that all are real rows have none among numbers of sources."""
    return getattr(row.condition, axis) is not None


def _has(rows: Sequence[Row], measure: str) -> bool:
    return any(measure in {**row.scores, **row.seconds} for row in rows if row.error is None)


def _spread(groups: Sequence[Sequence[Row]]) -> str:
    n_seeds = {len({row.seed for row in rows}) for rows in groups}
    if n_seeds == {1}:
        return "one seed, no interval"
    return "mean and 95 % band"
