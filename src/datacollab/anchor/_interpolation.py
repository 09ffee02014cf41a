"""Drawing rows on the segments between neighbouring sources."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from .._validation import FloatArray, require
from ..errors import AnchorError
from ._rows import rows_among

__all__ = ["between_neighbors", "redraw_copies", "within_classes"]

_MAX_REDRAWS = 100


def between_neighbors(
    sources: FloatArray, n_features: int, n_samples: int, n_neighbors: int, random_state: np.random.RandomState
) -> FloatArray:
    """Draw ``s + w (t - s)``, s a source, t one of its nearest other sources, w uniform on [0, 1).

    Neighbours are found by the first `n_features` columns; all columns move along with the same w.  A single source is
    repeated.
    """
    if sources.shape[0] == 1:
        return np.repeat(sources, n_samples, axis=0)
    n_neighbors = min(n_neighbors, sources.shape[0] - 1)
    features = sources[:, :n_features]
    neighbors = NearestNeighbors(n_neighbors=n_neighbors).fit(features).kneighbors(return_distance=False)
    start = random_state.randint(sources.shape[0], size=n_samples)
    end = neighbors[start, random_state.randint(n_neighbors, size=n_samples)]
    weight = random_state.uniform(size=(n_samples, 1))
    rows: FloatArray = sources[start] + weight * (sources[end] - sources[start])
    return rows  # (n_samples, n_columns)


def within_classes(
    sources: FloatArray,
    codes: NDArray[np.intp],
    counts: NDArray[np.intp],
    n_neighbors: int,
    random_state: np.random.RandomState,
) -> FloatArray:
    """Draw ``counts[c]`` rows between neighbouring sources of each class c, class after class.

    The only source of a class is repeated.
    """
    smote = require("imblearn.over_sampling", "anchors").SMOTE
    sizes = np.bincount(codes, minlength=counts.size)
    widths = np.minimum(n_neighbors, sizes - 1)
    rows = np.empty((counts.sum(), sources.shape[1]))
    row_codes = np.repeat(np.arange(counts.size), counts)
    for width in np.unique(widths[counts > 0]):
        drawn = np.flatnonzero((widths == width) & (counts > 0))
        if width == 0:
            for code in drawn:
                rows[row_codes == code] = sources[codes == code]
            continue
        sampler = smote(
            sampling_strategy={int(c): int(sizes[c] + counts[c]) for c in drawn},
            k_neighbors=int(width),
            random_state=random_state,
        )
        with warnings.catch_warnings():
            # Nothing is to be balanced or learnt here, so warnings about class sizes do not apply.
            warnings.simplefilter("ignore", UserWarning)
            resampled, _ = sampler.fit_resample(sources, codes)
        # fit_resample returns its input first, then the new rows, in the order of the classes.
        rows[np.isin(row_codes, drawn)] = resampled[sources.shape[0] :]
    return rows  # (counts.sum(), n_features)


def redraw_copies(
    rows: FloatArray,
    codes: NDArray[np.intp],
    sources: FloatArray,
    draw: Callable[[NDArray[np.intp]], FloatArray],
) -> FloatArray:
    """Draw again, class by class, the rows that rounding has put onto a source.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        What ``draw(counts)`` gave; its first columns are features.
    codes : ndarray of shape (n_samples,)
        The class of each row, ascending.
    sources : ndarray of shape (n_sources, n_features)
    draw : callable
        Draws ``counts[c]`` rows of each class c, class after class.

    Raises
    ------
    AnchorError
        When the sources lie so close together that no number fits between them.
    """
    n_features = sources.shape[1]
    for _ in range(_MAX_REDRAWS):
        copies = rows_among(rows[:, :n_features], sources)
        if not copies.any():
            return rows
        rows[copies] = draw(np.bincount(codes[copies], minlength=codes.max() + 1))
    raise AnchorError(
        f"{int(copies.sum())} of {rows.shape[0]} generated rows still equal a source row after {_MAX_REDRAWS} draws: "
        "some sources are so close together that no floating-point number lies between them. "
        "Rescale the columns, or drop near-duplicate sources."
    )
