"""Graphs between anchor rows (section graph-construction and the appendix of the paper)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors

from .._validation import FloatArray, Interval, PartyName, StrOptions, check_single_targets, count_missing, require
from ..errors import AgreementError, NumericalError


class NeighborGraph(BaseEstimator, ABC):
    """Base of the graphs: weights on nearest-neighbour pairs, party by party, then averaged.

    A subclass says what a pair weighs, in `pair_weights`.
    """

    n_neighbors: int
    approximate: bool
    _needs_target: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "approximate": ["boolean"],
    }

    @abstractmethod
    def pair_weights(self, first: NDArray[Any] | None, second: NDArray[Any] | None) -> FloatArray | float:
        """Return weights of neighbouring pairs from the targets of their two ends (None if no target is needed)."""

    def weights(self, anchors: Mapping[PartyName, FloatArray], y: ArrayLike | None = None) -> sparse.csr_array:
        """Return symmetric weights, averaged over parties (eqs. graph-weight-symmetrization, graph-weight-aggregation).

        The array is sparse, of shape (n_anchors, n_anchors).  `y` has the targets of the anchor rows, where the graph
        needs them.  Raise ValueError if `n_neighbors` is not below the number of anchor rows, or `y` is missing, and
        AgreementError if it has not one entry per anchor row.
        """
        self._validate_params()
        n_anchors = next(iter(anchors.values())).shape[0]
        if self.n_neighbors >= n_anchors:
            raise ValueError(
                f"{type(self).__name__}: n_neighbors={self.n_neighbors} must be below the number of anchor rows, "
                f"{n_anchors}."
            )
        target = self._checked_target(y, n_anchors)
        total = sparse.csr_array((n_anchors, n_anchors))
        for A in anchors.values():
            neighbors = _neighbors(A, self.n_neighbors, self.approximate)
            first = np.repeat(np.arange(n_anchors), self.n_neighbors)
            second = neighbors.ravel()
            ends = (None, None) if target is None else (target[first], target[second])
            values = np.broadcast_to(self.pair_weights(*ends), first.shape)
            total += sparse.csr_array((values, (first, second)), shape=(n_anchors, n_anchors))
        average = (total + total.T) / (2.0 * len(anchors))
        average.eliminate_zeros()
        return average

    def laplacian(self, anchors: Mapping[PartyName, FloatArray], y: ArrayLike | None = None) -> sparse.csr_array:
        """Return graph Laplacian D - W (eq. graph-laplacian-definition), sparse and symmetric.

        Parameters and errors are those of `weights`; NumericalError if no pair has any weight, so that the graph says
        nothing.
        """
        W = self.weights(anchors, y)
        if W.nnz == 0:
            raise NumericalError(
                f"{type(self).__name__}: no two neighbouring anchor rows have a weight. Raise n_neighbors, check the "
                "anchor targets, or for a numeric target choose a scale near its spread."
            )
        return sparse.csr_array(sparse.diags_array(W.sum(axis=1)) - W)

    def _checked_target(self, y: ArrayLike | None, n_anchors: int) -> NDArray[Any] | None:
        if not self._needs_target:
            return None
        if y is None:
            raise ValueError(
                f"{type(self).__name__} needs the targets of the anchor rows: pass y=anchor_target, or use "
                "GeometricGraph, which needs none."
            )
        return anchor_targets(y, n_anchors, type(self).__name__)


def anchor_targets(y: ArrayLike, n_anchors: int, user: str) -> NDArray[Any]:
    """Check targets of the anchor rows: one for each, none missing or infinite."""
    target = np.asarray(y)
    check_single_targets(target, f"{user}: the anchor target", AgreementError)
    if target.shape != (n_anchors,):
        raise AgreementError(f"{user}: expected one target per anchor row, shape ({n_anchors},); got {target.shape}.")
    if count_missing(target) or (target.dtype.kind == "f" and not np.isfinite(target).all()):
        raise ValueError(
            f"{user}: the anchor targets contain missing values, NaN or infinity. Leave y out, or those anchor rows."
        )
    return target


def _neighbors(A: FloatArray, n_neighbors: int, approximate: bool) -> NDArray[np.intp]:
    """Return nearest neighbours of each row among the others, shape (n, n_neighbors)."""
    # Distances of scikit-learn cancel badly far from the origin.
    A = A - A.mean(axis=0)
    if not approximate:
        # Without a query, scikit-learn leaves each row out of its own neighbours, also among duplicates.
        search = NearestNeighbors(n_neighbors=n_neighbors).fit(A)
        found: NDArray[np.intp] = search.kneighbors(return_distance=False)
        return found
    index = require("pynndescent", "umap").NNDescent(A, n_neighbors=n_neighbors + 1, random_state=0)
    found, _ = index.neighbor_graph
    # A row is mostly its own nearest neighbour; among duplicates it may stand anywhere, or not at all.
    others = found != np.arange(len(A))[:, None]
    others[others.all(axis=1), -1] = False
    return np.asarray(found[others], dtype=np.intp).reshape(len(A), n_neighbors)


class GeometricGraph(NeighborGraph):
    """Geometric Laplacian, GL: neighbours in the representations are tied (eq. gl-weight).

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours of each anchor row within each party's representation, itself excluded.
    approximate : bool, default=False
        Whether a few neighbours may be missed, which is much faster from some ten thousand anchor rows on.  Needs the
        extra "umap".

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.0], [1.0], [3.0]])
    >>> GeometricGraph(n_neighbors=1).weights({"a": A}).toarray()
    array([[0. , 1. , 0. ],
           [1. , 0. , 0.5],
           [0. , 0.5, 0. ]])
    """

    def __init__(self, n_neighbors: int = 10, *, approximate: bool = False) -> None:
        self.n_neighbors = n_neighbors
        self.approximate = approximate

    def pair_weights(self, first: NDArray[Any] | None, second: NDArray[Any] | None) -> float:
        """Return a weight of one for each pair."""
        return 1.0


class _TargetGraph(NeighborGraph):
    """Graphs that look at the targets of the two ends."""

    _needs_target = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NeighborGraph._parameter_constraints,
        "scale": [Interval(Real, 0, None, closed="neither"), StrOptions({"std"})],
        "task": [StrOptions({"auto", "classification", "regression"})],
    }

    def __init__(
        self, n_neighbors: int = 10, *, scale: float | str = 1.0, task: str = "auto", approximate: bool = False
    ) -> None:
        self.n_neighbors = n_neighbors
        self.approximate = approximate
        self.scale = scale
        self.task = task

    def _similarity(self, first: NDArray[Any] | None, second: NDArray[Any] | None) -> FloatArray:
        assert first is not None
        assert second is not None
        if self.task == "classification" or (self.task == "auto" and first.dtype.kind != "f"):
            return np.asarray(first == second, dtype=np.float64)
        first, second = first.astype(np.float64, copy=False), second.astype(np.float64, copy=False)
        # Every anchor row is the first end of equally many pairs, so this is the spread of the anchor targets.
        scale = float(first.std()) if self.scale == "std" else float(self.scale)
        if scale == 0:
            raise NumericalError(f"{type(self).__name__}: scale='std', but all anchor targets are equal.")
        return np.asarray(np.exp(-(((first - second) / scale) ** 2)))


class TargetSimilarityGraph(_TargetGraph):
    r"""Target-similarity Laplacian, TSL: neighbours of like target are tied (eqs. tsl-class-weight, tsl-reg-weight).

    For classes, a neighbouring pair weighs 1 where the classes are equal and 0 otherwise.  For a numeric target it
    weighs :math:`\exp(-(y_i - y_{i'})^2 / \sigma_y^2)`.

    Parameters
    ----------
    n_neighbors, approximate
        As in `GeometricGraph`.
    scale : float or "std", default=1.0
        :math:`\sigma_y`, in the target's own units; the paper standardises the target and takes 1.  "std" takes the
        standard deviation of the anchor targets, which amounts to the same.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" treats floating-point targets as numbers and all others as classes.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.0], [1.0], [3.0]])
    >>> TargetSimilarityGraph(n_neighbors=1).weights({"a": A}, ["ill", "ill", "well"]).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """

    def pair_weights(self, first: NDArray[Any] | None, second: NDArray[Any] | None) -> FloatArray:
        """Return similarity of the targets at the two ends, between 0 and 1."""
        return self._similarity(first, second)


class TargetDissimilarityGraph(_TargetGraph):
    """Target-dissimilarity Laplacian, TDL: neighbours of unlike target (eqs. tdl-class-weight, tdl-reg-weight).

    Meant as the penalty graph: the total distance over its pairs is held fixed, which keeps them apart.  A pair weighs
    one minus its weight in `TargetSimilarityGraph`, whose parameters it has.
    """

    def pair_weights(self, first: NDArray[Any] | None, second: NDArray[Any] | None) -> FloatArray:
        """Return dissimilarity of the targets at the two ends, between 0 and 1."""
        return np.asarray(1.0 - self._similarity(first, second))
