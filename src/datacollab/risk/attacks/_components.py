"""Principal components of public rows and of representations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ..._validation import FloatArray
from ._side import column_scale
from ._targets import IntArray

__all__ = ["Components", "mean_rest", "principal_components"]

MAX_DIRECTIONS = 100
"""Directions, at most, that are computed."""


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_columns,)
        What is taken off the columns, and what they are then divided by.
    directions : ndarray of shape (n_columns, n_directions)
        Orthonormal, by descending variance.
    """

    mean: FloatArray
    scale: FloatArray
    directions: FloatArray

    def scores(self, X: FloatArray) -> FloatArray:
        """Coordinates of rows, shape (n_rows, n_directions)."""
        scores: FloatArray = ((X - self.mean) / self.scale) @ self.directions
        return scores

    def rows(self, scores: FloatArray) -> FloatArray:
        """Rows with these coordinates and without all else, shape (n_rows, n_columns)."""
        rows: FloatArray = self.mean + (scores @ self.directions.T) * self.scale
        return rows

    def leading(self, number: int) -> Components:
        """Without the directions beyond a number."""
        return replace(self, directions=self.directions[:, :number])


def principal_components(X: FloatArray, most: int, standardize: bool) -> Components:
    """Leading components of rows: `most` at most, and none that does not vary but one.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    most : int
    standardize : bool
        Whether columns are divided by their standard deviations.
    """
    most = min(most, MAX_DIRECTIONS, *X.shape)
    factors = column_scale(X, standardize)
    scale = np.divide(1.0, factors, out=np.ones_like(factors), where=factors > 0)
    centred = (X - X.mean(axis=0)) / scale
    wide = X.shape[1] > X.shape[0]
    gram = centred @ centred.T if wide else centred.T @ centred
    eigenvalues, V = scipy.linalg.eigh(gram, subset_by_index=(len(gram) - most, len(gram) - 1))
    eigenvalues, V = eigenvalues[::-1], V[:, ::-1]
    kept = eigenvalues > len(gram) * np.finfo(np.float64).eps * max(eigenvalues[0], np.finfo(np.float64).tiny)
    kept[0] = True
    V = V[:, kept]
    if wide:
        V, _ = scipy.linalg.qr(centred.T @ V, mode="economic")
    return Components(X.mean(axis=0), scale, V)


def mean_rest(components: Components, public: FloatArray, groups: IntArray | None) -> dict[int, FloatArray]:
    """What the components leave out of the mean public row of each group."""
    if groups is None:
        return {}
    means = {int(group): public[groups == group].mean(axis=0)[np.newaxis] for group in np.unique(groups)}
    return {group: (mean - components.rows(components.scores(mean)))[0] for group, mean in means.items()}
