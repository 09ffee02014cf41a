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

from .._constraints import Interval, StrOptions
from .._frames import are_missing, plain_column
from .._validation import FloatArray, PartyName, check_single_targets, require
from ..errors import AgreementError, NumericalError

Targets = NDArray[Any] | list[NDArray[Any]]
"""Targets of some rows: an array, or of several targets a list of such arrays."""


class NeighborGraph(BaseEstimator, ABC):
    """Base of the graphs: weights on nearest-neighbour pairs, party by party, then averaged.

    A subclass weighs the pairs, in `pair_weights`.
    """

    n_neighbors: int
    approximate: bool
    _needs_target: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "approximate": ["boolean"],
    }

    @abstractmethod
    def pair_weights(self, first: Targets | None, second: Targets | None) -> FloatArray | float:
        """Return weights of neighbouring pairs from the targets of their two ends (None if no target is needed).

        They are finite and not negative: one for each pair, as long as `first`, or one number for all.  Of several
        targets each end has a list of arrays.
        """

    def weights(self, anchors: Mapping[PartyName, FloatArray], y: ArrayLike | None = None) -> sparse.csr_array:
        """Return symmetric weights, averaged over parties (eqs. graph-weight-symmetrization, graph-weight-aggregation).

        The array is sparse, of shape (n_anchors, n_anchors).

        `y` has the targets of the anchor rows, where the graph needs them: one column, or several as an array of shape
        (n_anchors, n_targets), a list of columns or a data frame, in which each has a type of its own; ``column_stack``
        makes texts of numbers beside texts.  Whole numbers are classes: pass ages as ``ages.astype(float)``.  A row
        with a None, NaN or masked entry has no target, and no pair; neighbours are found among the other rows, as if
        there were no others.  -1 and "" are classes as any other.

        Raise ValueError if `n_neighbors` is not below the number of such rows, `y` is missing or infinite, or
        `pair_weights` returns no weights, and AgreementError if `y` has not one entry per anchor row.
        """
        self._validate_params()
        n_anchors = next(iter(anchors.values())).shape[0]
        columns = self._check_target(y, n_anchors)
        # Neighbours are sought among the rows that have all targets.
        rows = np.flatnonzero(~np.any([np.zeros(n_anchors, dtype=np.bool_), *map(are_missing, columns)], axis=0))
        if self.n_neighbors >= len(rows):
            labelled = " that have a target" if len(rows) < n_anchors else ""
            raise ValueError(
                f"{type(self).__name__}: n_neighbors={self.n_neighbors} must be below the number of anchor rows"
                f"{labelled}, {len(rows)}. Lower it, or take more of them."
            )
        total = sparse.csr_array((n_anchors, n_anchors))
        first = np.repeat(rows, self.n_neighbors)
        for A in anchors.values():
            second = rows[_neighbors(A[rows], self.n_neighbors, self.approximate).ravel()]
            values = self._check_weights(self.pair_weights(_take(columns, first), _take(columns, second)), first.shape)
            # W^(k) of one party (eq. graph-weight-matrices); a row need not be a neighbour of its own neighbour.
            total += sparse.csr_array((values, (first, second)), shape=(n_anchors, n_anchors))
        # (W + W')/2 (eq. graph-weight-symmetrization), averaged over parties (eq. graph-weight-aggregation)
        average = (total + total.T) / (2.0 * len(anchors))
        average.eliminate_zeros()
        return average

    def laplacian(self, anchors: Mapping[PartyName, FloatArray], y: ArrayLike | None = None) -> sparse.csr_array:
        """Return graph Laplacian D - W (eq. graph-laplacian-definition), sparse and symmetric.

        Parameters and errors are those of `weights`; NumericalError if no pair has any weight, so that the graph says
        nothing.
        """
        W = self.weights(anchors, y)
        # Divided by its trace, an empty graph would be NaN.
        if W.nnz == 0:
            raise NumericalError(
                f"{type(self).__name__}: no two neighbouring anchor rows have a weight. Raise n_neighbors, check the "
                "anchor targets (whole numbers are classes, floats are numbers), or for a numeric target choose a "
                "scale near its spread."
            )
        return sparse.csr_array(sparse.diags_array(W.sum(axis=1)) - W)

    def _check_weights(self, values: Any, shape: tuple[int, ...]) -> FloatArray:
        """Return weights of so many pairs; refuse those that would make no Laplacian."""
        try:
            weights = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            found = "entries that are no numbers"
        else:
            wrong = [int(each.sum()) for each in (np.isnan(weights), np.isinf(weights), weights < 0)]
            if weights.shape in ((), shape) and not any(wrong):
                return np.broadcast_to(weights, shape)
            found = f"shape {weights.shape} with {wrong[0]} NaN, {wrong[1]} infinite and {wrong[2]} negative entries"
        raise ValueError(
            f"{type(self).__name__}.pair_weights returned {found}; expected finite weights of 0 or more, one for each "
            f"pair, shape {shape}, or one number for all. Return 0 for a pair that is not to be tied."
        )

    def _check_target(self, y: ArrayLike | None, n_anchors: int) -> list[NDArray[Any]]:
        if not self._needs_target:
            return []
        if y is None:
            raise ValueError(
                f"{type(self).__name__} needs the targets of the anchor rows: pass y=anchor_target, or use "
                "GeometricGraph, which needs none."
            )
        return _target_columns(y, n_anchors, type(self).__name__)


def anchor_targets(y: ArrayLike, n_anchors: int, user: str) -> NDArray[Any]:
    """Check targets of the anchor rows: one for each, none missing or infinite."""
    columns = _target_columns(y, n_anchors, user)
    found = ""
    if len(columns) > 1:
        found = f"{len(columns)} targets"
    elif are_missing(columns[0]).any():
        found = "missing values or NaN"
    if found:
        raise AgreementError(
            f"{user} scores by one target of all anchor rows; y has {found}. Fit {user} to one target and the rows "
            "that have it, then KTI(**best_params_, graph=...) to all rows and targets, which KTI itself takes."
        )
    return columns[0]


def _target_columns(y: Any, n_anchors: int, user: str) -> list[NDArray[Any]]:
    """Return one array for each target of the anchor rows, in which entries may be missing, but not infinite."""
    if hasattr(y, "columns"):
        targets = [y[name] for name in y.columns]
    elif isinstance(y, list | tuple) and len(y) != n_anchors and all(np.ndim(each) == 1 for each in y):
        targets = list(y)
    elif np.ndim(y) != 2:
        targets = [y]
    elif isinstance(y, list | tuple):
        # Lists may have a text beside a number.
        targets = list(np.asanyarray(y, dtype=object).T)
    else:
        targets = list(np.asanyarray(y).T)
    # Each column keeps its type: numbers beside classes stay numbers.
    columns = [_column_of(target) for target in targets]
    for column in columns:
        check_single_targets(column, f"{user}: the anchor target", AgreementError)
        if column.shape != (n_anchors,):
            raise AgreementError(
                f"{user}: expected one target per anchor row, shape ({n_anchors},); got {column.shape}."
            )
        if column.dtype.kind == "f" and np.isinf(column).any():
            raise ValueError(f"{user}: the anchor targets contain infinity. Put NaN where a target is not known.")
    return columns


def _column_of(values: Any) -> NDArray[Any]:
    """Return a target as an array; whole numbers beside None stay objects, and so classes."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.where(np.ma.getmaskarray(values), np.array(None), values.data)
    column = np.asarray(values)
    if getattr(getattr(values, "dtype", None), "kind", "O") in "iu" and column.dtype.kind == "f":
        column = np.asarray(values, dtype=object)  # pandas makes floats of whole numbers beside gaps
    present = column[~are_missing(column)]
    if column.dtype.kind == "O" and all(isinstance(each, Integral | np.bool_) for each in present):
        return column
    return plain_column(values)


def _take(columns: list[NDArray[Any]], rows: NDArray[np.intp]) -> Targets | None:
    if not columns:
        return None
    if len(columns) == 1:
        return columns[0][rows]
    return [column[rows] for column in columns]


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
    """

    def __init__(self, n_neighbors: int = 10, *, approximate: bool = False) -> None:
        self.n_neighbors = n_neighbors
        self.approximate = approximate

    def pair_weights(self, first: Targets | None, second: Targets | None) -> float:
        """Return a weight of one for each pair."""
        return 1.0


class TargetSimilarityGraph(NeighborGraph):
    r"""Target-similarity Laplacian, TSL: neighbours of like target are tied (eqs. tsl-class-weight, tsl-reg-weight).

    For classes, a neighbouring pair weighs 1 where the classes are equal and 0 otherwise.  For a numeric target it
    weighs :math:`\exp(-(y_i - y_{i'})^2 / \sigma_y^2)`.  Of several targets the weights are multiplied: all classes
    must be equal, and distances of numbers are Euclidean.  Rows with a missing target have no pairs.

    Parameters
    ----------
    n_neighbors, approximate
        As in `GeometricGraph`.
    scale : float or "std", default=1.0
        :math:`\sigma_y`, in the target's own units; the paper standardises the target and takes 1.  "std" takes the
        standard deviation of the anchor targets, which amounts to the same: take it for numbers not standardised.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" treats floating-point targets as numbers and all others as classes, whole numbers too: pass ages as
        ``ages.astype(float)``.  Classes that are whole numbers with NaN among them need "classification".
    """

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

    def pair_weights(self, first: Targets | None, second: Targets | None) -> FloatArray:
        """Return similarity of the targets at the two ends, between 0 and 1."""
        assert first is not None
        assert second is not None
        if isinstance(first, list):
            # That of vectors of numbers, exp(-|y - y'|^2 / sigma^2), is the product over their entries.
            each = [TargetSimilarityGraph.pair_weights(self, *ends) for ends in zip(first, second, strict=True)]
            return np.asarray(np.prod(each, axis=0))
        assert not isinstance(second, list)
        if self.task == "classification" or (self.task == "auto" and first.dtype.kind != "f"):
            return np.asarray(first == second, dtype=np.float64)
        first = first.astype(np.float64, copy=False)
        second = second.astype(np.float64, copy=False)
        # Every anchor row is the first end of equally many pairs, so this is the spread of the anchor targets.
        scale = float(first.std()) if self.scale == "std" else float(self.scale)
        if scale == 0:
            raise NumericalError(f"{type(self).__name__}: scale='std', but all anchor targets are equal.")
        # sigma_y of the weight exp(-(y - y')^2 / sigma_y^2) (eq. tsl-reg-weight) is the scale.
        return np.asarray(np.exp(-(((first - second) / scale) ** 2)))


class TargetDissimilarityGraph(TargetSimilarityGraph):
    """Target-dissimilarity Laplacian, TDL: neighbours of unlike target (eqs. tdl-class-weight, tdl-reg-weight).

    Meant as the penalty graph: the total distance over its pairs is held fixed, which keeps them apart.  A pair weighs
    one minus its weight in `TargetSimilarityGraph`, whose parameters it has.
    """

    def pair_weights(self, first: Targets | None, second: Targets | None) -> FloatArray:
        """Return dissimilarity of the targets at the two ends, between 0 and 1."""
        return np.asarray(1.0 - super().pair_weights(first, second))
