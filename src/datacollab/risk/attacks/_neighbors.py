"""Reconstruction by the nearest leaked rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ..._validation import FloatArray, Interval, StrOptions
from ._attack import IntArray, ReconstructionAttack, SideInformation, column_scale
from ._kernels import leading_directions

__all__ = ["NearestNeighborsAttack"]

CANDIDATES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


class NearestNeighborsAttack(ReconstructionAttack):
    """The mean of those leaked rows whose representations are nearest.

    Parameters
    ----------
    n_neighbors : "auto" or int, default="auto"
        How many; "auto" chooses one of 1, 2, 3, 4, 6, 8, ... up to 64 by the errors of leaked rows left out.  Never
        more than two less than the leaked pairs.
    weights : {"auto", "uniform", "kernel"}, default="auto"
        "uniform" is the plain mean; "kernel" weighs a neighbour at distance d by 1 - (d / h)^2, h the distance of the
        first row that is no neighbour any more (Nadaraya and Watson's estimator with Epanechnikov's kernel).  "auto"
        chooses.
    standardize : {"auto"} or bool, default="auto"
        Whether columns are divided by their standard deviations; "auto" chooses.  Only with False is the attack
        indifferent to a rotation of the representation.

    Attributes
    ----------
    n_neighbors_ : int
    weights_ : {"uniform", "kernel"}
    standardize_ : bool
        What was given or chosen.
    mean_representation_ : ndarray of shape (n_intermediate,)
    mean_original_ : ndarray of shape (n_features,)
    n_features_in_, n_features_out_ : int
        n_intermediate and n_features.

    Notes
    -----
    With targets, they are further columns that vary as much, in all, as the representation.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.risk.attacks import NearestNeighborsAttack
    >>> leaked = np.arange(10.0)[:, np.newaxis]
    >>> NearestNeighborsAttack(2, weights="uniform").fit(leaked**2, leaked).reconstruct([[13.0]])
    array([[3.5]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"auto", "uniform", "kernel"})],
        "standardize": [StrOptions({"auto"}), "boolean"],
    }

    n_neighbors_: int
    weights_: str
    standardize_: bool

    def __init__(
        self, n_neighbors: int | str = "auto", *, weights: str = "auto", standardize: str | bool = "auto"
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.standardize = standardize

    def _fit(self, Z: FloatArray, A: FloatArray, side: SideInformation) -> None:
        most = max(1, len(Z) - 2)
        wanted = CANDIDATES if isinstance(self.n_neighbors, str) else (self.n_neighbors,)
        numbers = sorted({min(number, most) for number in wanted})
        kinds = ("uniform", "kernel") if self.weights == "auto" else (self.weights,)
        scalings = (False, True) if isinstance(self.standardize, str) else (self.standardize,)
        outputs = leading_directions(A)
        best: tuple[float, int, str, bool] = np.inf, numbers[0], kinds[0], scalings[0]
        for standardize in scalings:
            scaled = Z * column_scale(Z, standardize)
            # Of two rows each has one other only, and there is nothing to choose.
            reach = min(numbers[-1] + 1, len(Z) - 1)
            distances, neighbors = NearestNeighbors(n_neighbors=reach).fit(scaled).kneighbors()
            for number in numbers if reach > 1 else ():
                for kind in kinds:
                    guesses = _weighted_mean(outputs, distances, neighbors, number, kind)
                    error = float(((outputs - guesses) ** 2).sum())
                    best = min(best, (error, number, kind, standardize), key=lambda one: one[0])
        _, self.n_neighbors_, self.weights_, self.standardize_ = best
        self._multiplier = column_scale(Z, self.standardize_)
        self._search = NearestNeighbors(n_neighbors=self.n_neighbors_ + 1).fit(Z * self._multiplier)
        self._originals = A

    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        distances, neighbors = self._search.kneighbors(Z * self._multiplier)
        return _weighted_mean(self._originals, distances, neighbors, self.n_neighbors_, self.weights_)


def _weighted_mean(rows: FloatArray, distances: FloatArray, neighbors: IntArray, number: int, kind: str) -> FloatArray:
    """Mean over the first neighbours of each row, shape (n_rows, rows.shape[1])."""
    weights = np.ones((len(distances), number))
    if kind == "kernel":
        width = distances[:, number : number + 1]
        weights -= np.divide(distances[:, :number], width, out=np.ones_like(weights), where=width > 0) ** 2
        # Where all neighbours are as far as the next row, none counts less.
        weights[weights.sum(axis=1) <= 0] = 1.0
    weights /= weights.sum(axis=1, keepdims=True)
    mean = np.zeros((len(distances), rows.shape[1]))
    for weight, neighbor in zip(weights.T, neighbors.T[:number], strict=True):
        mean += weight[:, np.newaxis] * rows[neighbor]
    return mean
