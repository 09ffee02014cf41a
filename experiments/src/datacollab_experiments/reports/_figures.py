"""The figures of a report: pure functions from rows."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from datacollab._validation import require

from ..claims import Interval, anchor_series, by_axes, estimate, find_published, in_order, slope
from ..paper import Row
from ._table import OBFUSCATORS, by_name, number, slug
from ._tables import TRADE_OFF, UTILITY, strongest_attack

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Okabe and Ito's palette, told apart by readers with any colour vision; markers and dashes do so in grey print.
_ORANGE = "#E69F00"
_SKY = "#56B4E9"
_GREEN = "#009E73"
_BLUE = "#0072B2"
_VERMILLION = "#D55E00"
_PURPLE = "#CC79A7"
_GREY = "#7f7f7f"
_BLACK = "#000000"


@dataclass(frozen=True)
class Style:
    """Colour, marker, dashes, whether the marker is filled, and how many times as large as others it is drawn."""

    colour: str
    marker: str
    dashes: str
    filled: bool = True
    scale: float = 1.0

    def line(self) -> dict[str, Any]:
        face = self.colour if self.filled else "white"
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dashes, "markerfacecolor": face}


@dataclass(frozen=True)
class Plot:
    """A figure with the name of its files, and the experiment it belongs to."""

    name: str
    experiment: str
    caption: str
    figure: Figure


_STYLES = {
    "Local": Style(_GREY, "s", ":"),
    "Local+Public": Style(_GREY, "D", "--", filled=False),
    "Central": Style(_BLACK, "x", ":"),
    "MPP": Style(_ORANGE, "v", "--"),
    # GEP finds the directions of LTI, whose curve lies on it and would hide it.
    "GEP": Style(_SKY, "P", "-", scale=2.2),
    "ODC": Style(_PURPLE, "<", "-."),
    "LTI": Style(_GREEN, "d", "--"),
    "KTI": Style(_BLUE, "o", "-"),
    "KTI+Center": Style(_BLUE, "o", "--", filled=False),
    "KTI+GL": Style(_GREEN, "^", "-"),
    "KTI+GL+Center": Style(_GREEN, "^", "--", filled=False),
    "KTI+TSL": Style(_VERMILLION, "s", "-"),
    "KTI+TSL+Center": Style(_VERMILLION, "s", "--", filled=False),
    "KTICV": Style(_BLACK, "p", "-"),
    "KTICV+TSL+Center": Style(_BLACK, "p", "--", filled=False),
    "pca": Style(_ORANGE, "s", "-"),
    "kernel-pca": Style(_BLUE, "o", "--"),
    "umap": Style(_VERMILLION, "^", "-."),
    "random-projection": Style(_PURPLE, "D", ":"),
}
_OTHERS = tuple(
    Style(colour, marker, dashes)
    for dashes, marker in (("-", "*"), ("-.", "X"), (":", "h"))
    for colour in (_BLACK, _PURPLE, _ORANGE)
)


def styles(names: Sequence[str]) -> dict[str, Style]:
    """Return the style of each name; names of one's own share the other styles, in turn."""
    own = [name for name in in_order(names) if name not in _STYLES]
    return {name: _STYLES.get(name) or _OTHERS[own.index(name) % len(_OTHERS)] for name in in_order(names)}


def panels(titles: Sequence[str], *, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """A figure with one panel per title, at most three side by side."""
    # Three panels side by side fit a page.
    n_columns = min(3, len(titles))
    n_rows = -(-len(titles) // n_columns)
    figure: Figure = require("matplotlib.figure", "plots").Figure(
        figsize=(max(4.6 * n_columns, 6.4), height * n_rows + 0.6), layout="constrained"
    )
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes, title in zip(grid, titles, strict=False):
        axes.set_title(title, fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.tick_params(labelsize=9)
    for axes in grid[len(titles) :]:
        axes.set_visible(False)
    return figure, list(grid[: len(titles)])


def legend_below(figure: Figure, handles: dict[str, Any]) -> None:
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center",
        ncols=-(-len(handles) // (-(-len(handles) // 5))), fontsize=9, frameon=False, handlelength=3,
    )  # fmt: skip


@contextmanager
def plain_style() -> Iterator[None]:
    """Matplotlib's own defaults, whatever the user has set."""
    matplotlib = require("matplotlib", "plots")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        # Identifiers in an SVG are random otherwise.
        matplotlib.rcParams["svg.hashsalt"] = "datacollab"
        yield


def render_figure(figure: Figure, file_format: str) -> bytes:
    """A figure as the bytes of a file, equal for equal figures."""
    metadata = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}[file_format]
    buffer = io.BytesIO()
    with plain_style():
        figure.savefig(buffer, format=file_format, dpi=144, metadata=metadata)
    return buffer.getvalue()


@dataclass(frozen=True, eq=False)
class Picture:
    """Rows of images, such as originals above their reconstructions.

    Attributes
    ----------
    images : ndarray of shape (n_rows, n_columns, height, width)
        Grey values; 0 is black and 1 is white, and values outside are cut off.
    """

    title: str
    labels: Sequence[str]
    images: ArrayLike


def picture_figure(picture: Picture) -> Figure:
    """Draw a picture as a grid, its labels on the left."""
    images = np.asarray(picture.images)
    n_rows, n_columns, height, width = images.shape
    longest = max(len(label) for label in picture.labels)
    with plain_style():
        figure: Figure = require("matplotlib.figure", "plots").Figure(
            figsize=(0.4 + 0.09 * longest + 0.7 * n_columns, 0.5 + 0.7 * n_rows * height / width), layout="constrained"
        )
        grid = figure.subplots(n_rows, n_columns, squeeze=False)
        for row, label in enumerate(picture.labels):
            for column in range(n_columns):
                axes = grid[row, column]
                axes.imshow(images[row, column], cmap="gray", vmin=0, vmax=1, interpolation="nearest")
                axes.set_xticks([])
                axes.set_yticks([])
            grid[row, 0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9)
        figure.suptitle(picture.title, fontsize=11)
    return figure


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
