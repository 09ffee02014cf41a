"""How far a class of private rows lies from the anchor's rows of that class, with noise that keeps a promise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin

from .._validation import FloatArray
from ._gaussian_noise import clipped, noisy

__all__ = ["PublicClass", "allocated", "noisy_sums", "public_class", "shrunk_shift"]

LEAST_OF_CLUSTER = 10
"""Anchor rows that a cluster has, on average."""


@dataclass(frozen=True, eq=False)
class PublicClass:
    """One class of the anchor, in clusters.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        Of the anchor's representation.
    clusters : ndarray of shape (n_rows,)
        Which cluster each is of.
    centers : ndarray of shape (n_clusters, n_columns)
    radius : float
        C, the median distance of a row from the centre of its cluster.
    """

    rows: FloatArray
    clusters: NDArray[np.intp]
    centers: FloatArray
    radius: float

    @property
    def shares(self) -> FloatArray:
        """Share of the rows in each cluster, shape (n_clusters,)."""
        return np.bincount(self.clusters, minlength=len(self.centers)) / len(self.rows)


def public_class(rows: FloatArray, n_clusters: int) -> PublicClass:
    """Anchor rows of a class, grouped by k-means where several clusters are wanted and there are rows enough."""
    n_clusters = max(1, min(n_clusters, len(rows) // LEAST_OF_CLUSTER))
    if n_clusters == 1:
        clusters, centers = np.zeros(len(rows), dtype=np.intp), rows.mean(axis=0, keepdims=True)
    else:
        # Public, and the same with every call: nothing secret goes into it.
        means = KMeans(n_clusters, n_init=5, random_state=0).fit(rows)
        clusters, centers = means.labels_.astype(np.intp), means.cluster_centers_
    radius = float(np.median(np.linalg.norm(rows - centers[clusters], axis=1)))
    return PublicClass(rows, clusters, centers, radius)


def noisy_sums(
    X: FloatArray, public: PublicClass, sigma: float, generator: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
    r"""Sums of what own rows differ from the nearest centre by, and how many rows are nearest to it, with noise.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Own rows of the class.
    public : PublicClass
    sigma : float
        Standard deviation of the noise over the sensitivity, 2C.
    generator : RandomState

    Returns
    -------
    sums : ndarray of shape (n_clusters, n_columns)
    counts : ndarray of shape (n_clusters,)
        With noise of standard deviation 2 sigma.

    Notes
    -----
    Row i adds :math:`u_i = (v_i, C)` to the block of its cluster, and nothing to the other blocks, where
    :math:`v_i` is its difference from the centre, clipped to length C.  Exchange one row for another.  In the same
    block, the sum changes by :math:`(v - v', 0)`, at most 2C long.  In different ones, by two parts at right angles,
    each at most :math:`\sqrt{C^2 + C^2}` long, hence by :math:`\sqrt{4 C^2} = 2C` at most again.  So neither the
    number of clusters nor the counts cost anything beyond the sum of a single cluster.
    """
    nearest = pairwise_distances_argmin(X, public.centers)
    # One column more for counts, in multiples of C.
    vector = np.zeros((len(public.centers), X.shape[1] + 1))
    differences = clipped(X - public.centers[nearest], np.zeros(X.shape[1]), public.radius)
    np.add.at(vector, nearest, np.column_stack([differences, np.full(len(X), public.radius)]))
    vector = noisy(vector, sigma * 2 * public.radius, generator)
    return vector[:, :-1], vector[:, -1] / public.radius


def allocated(counts: FloatArray, shares: FloatArray, n_rows: int, noise: float) -> NDArray[np.intp]:
    """Whole numbers of rows for the clusters of a class, `n_rows` in all.

    Noisy counts are drawn towards those that the anchor's shares lead one to expect, as far as the noise exceeds the
    variance of a multinomial distribution; what is below zero is taken for zero, and remainders go to the largest.

    Parameters
    ----------
    counts, shares : ndarray of shape (n_clusters,)
    n_rows : int
    noise : float
        Standard deviation of the noise in `counts`.
    """
    expected, variance = n_rows * shares, n_rows * shares * (1 - shares)
    wanted = np.maximum(expected + variance / (variance + noise**2) * (counts - expected), 0.0)
    wanted = expected if wanted.sum() == 0 else wanted * (n_rows / wanted.sum())
    whole = np.floor(wanted).astype(np.intp)
    largest = np.argsort(whole - wanted, kind="stable")[: n_rows - int(whole.sum())]
    whole[largest] += 1
    return whole


def shrunk_shift(shift: FloatArray, rows: FloatArray, n_rows: int, noise: float) -> FloatArray:
    r"""A noisy mean drawn towards zero, as far as a mean of so few rows varies less than the noise.

    .. math:: S (S + s^2 I)^{-1} m, \qquad S = \mathrm{cov}(\tilde A_c) / n_c

    Parameters
    ----------
    shift : ndarray of shape (n_columns,)
        m.
    rows : ndarray of shape (n_public, n_columns)
        The anchor's of that class.
    n_rows : int
        Own rows, n_c.
    noise : float
        s, the standard deviation of the noise in `shift`.
    """
    if len(rows) < 2:
        return np.zeros_like(shift)
    S = np.atleast_2d(np.cov(rows, rowvar=False)) / n_rows
    return np.asarray(S @ np.linalg.solve(S + noise**2 * np.eye(len(S)), shift))
