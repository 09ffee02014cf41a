"""Common parts of figures: styles of methods, panels with one legend, and files without dates."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacollab._validation import require

from ..claims import in_order

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
        """Return it as keywords of a line."""
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
    """One legend for all panels."""
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
