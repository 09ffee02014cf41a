"""Made-up rows that follow the distribution of a party's own, which people share instead."""

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from .columns import Array

# A column of at most so many values is one of categories or counts: it gets no values in between.
_FEW = 10
# Fewer bins blur a column; more leave each of them less than its noise.
_N_BINS = 8


def copula_rows(X: Array, n_rows: int, generator: np.random.Generator) -> Array:
    """Rows of a Gaussian copula fitted to some rows.

    Each column's ranks become normal scores; the scores' correlations, shrunk towards none, are drawn from; and the
    column's own quantiles turn draws into values.  Ties hide a part of the correlations of categories.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
    """
    n_samples = len(X)
    # One row has no ranks: it is all there is to repeat.
    if n_samples == 1:
        return np.repeat(X, n_rows, axis=0)
    scores = special.ndtri(stats.rankdata(X, axis=0) / (n_samples + 1))
    scores -= scores.mean(axis=0)
    scale = scores.std(axis=0)
    scores /= np.where(scale > 0, scale, 1.0)
    # Few rows overstate correlations.
    shrinkage = _shrinkage(scores)
    # (1 - s) ZᵀZ/n + s I without the matrix: it has as many entries as an image has pairs of pixels.
    drawn = np.sqrt(1 - shrinkage) / np.sqrt(n_samples) * generator.standard_normal((n_rows, n_samples)) @ scores
    drawn += np.sqrt(shrinkage) * generator.standard_normal((n_rows, X.shape[1]))
    return _quantiles(X, special.ndtr(drawn))


def _shrinkage(scores: Array) -> float:
    r"""Weight of the identity that Schäfer and Strimmer (2005) derive for correlations.

    :math:`\sum_{i \ne j} \widehat{\mathrm{Var}}(r_{ij}) / \sum_{i \ne j} r_{ij}^2`, by sums over pairs of rows
    instead of pairs of columns.
    """
    n, columns = scores.shape
    squares = (scores**2).sum(axis=0)
    products = scores @ scores.T  # (n, n)
    all_pairs = float((products**2).sum()) - float((squares**2).sum())  # Σ_{i≠j} (Σ_k z_ki z_kj)²
    fourth = float(((scores**2).sum(axis=1) ** 2).sum()) - float((scores**4).sum())  # Σ_{i≠j} Σ_k z_ki² z_kj²
    # Too little to estimate a correlation: columns are drawn independently.
    if n < 3 or columns < 2 or all_pairs <= 0:
        return 1.0
    mean_square = all_pairs / n**2
    variance = n / (n - 1) ** 3 * (fourth - all_pairs / n)
    return float(np.clip(variance / (mean_square * n**2 / (n - 1) ** 2), 0.0, 1.0))


def _quantiles(X: Array, levels: Array) -> Array:
    """Values of each column at some levels, shape of `levels`: between observed ones, but not where these are few."""
    ordered = np.sort(X, axis=0)
    few = (np.diff(ordered, axis=0) > 0).sum(axis=0) < _FEW
    # An observed value at each level, and between two of them where there are many.
    steps = np.minimum((levels * len(X)).astype(np.intp), len(X) - 1)
    values = np.take_along_axis(ordered, steps, axis=0)
    places = (np.arange(1, len(X) + 1)) / (len(X) + 1)
    for column in np.flatnonzero(~few):
        values[:, column] = np.interp(levels[:, column], places, ordered[:, column])
    return values


def noisy_marginal_rows(X: Array, n_rows: int, bounds: Array, noise: float, generator: np.random.Generator) -> Array:
    r"""Rows drawn, column by column, from histograms over declared ranges with Gaussian noise.

    A row that is replaced changes two counts by one in each column, so the histograms' sensitivity is
    :math:`\sqrt{2 d}`; their noise is `noise` times that, which makes all of them together one Gaussian mechanism.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
    bounds : ndarray of shape (2, n_columns)
    noise : float
        Standard deviation for sensitivity 1.
    """
    low, high = bounds
    bins = np.clip(((X - low) / (high - low) * _N_BINS).astype(np.intp), 0, _N_BINS - 1)
    counts = (bins[:, :, None] == np.arange(_N_BINS)).sum(axis=0).astype(float)  # (n_columns, n_bins)
    counts += noise * np.sqrt(2 * X.shape[1]) * generator.standard_normal(counts.shape)
    # Noise makes counts negative, which are no frequencies.
    weights = np.maximum(counts, 0.0)
    weights[weights.sum(axis=1) == 0] = 1.0
    edges = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    drawn = (generator.random((n_rows, X.shape[1], 1)) > edges).sum(axis=2).clip(0, _N_BINS - 1)
    made: Array = low + (drawn + generator.random(drawn.shape)) / _N_BINS * (high - low)
    return made


def bins_of(y: NDArray[np.float64], target_range: tuple[float, float], n_bins: int = 4) -> NDArray[np.intp]:
    """Numbers as classes: equal parts of their declared range."""
    low, high = target_range
    return np.clip(((y - low) / (high - low) * n_bins).astype(np.intp), 0, n_bins - 1)
