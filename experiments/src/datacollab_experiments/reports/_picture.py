"""Images in a grid: originals, and their reconstructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from datacollab._validation import require

from ._drawing import plain_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
