"""UMAP as a function of the row."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from .._constraints import Interval, StrOptions
from .._notebooks import FittedUnseen
from .._validation import FloatArray, require
from ..errors import ObfuscationError

METRICS = ("correlation", "cosine", "euclidean")

BLOCK_ENTRIES = 2**22
"""Entries of the distance matrix that are in memory at a time (32 MiB)."""

HARMLESS_WARNINGS = (
    # With few neighbours the graph falls apart; only the starting point of the optimisation is affected.
    "Graph is not fully connected, spectral embedding may not work as expected",
    "Spectral initialisation failed",
)


class UMAPObfuscator(FittedUnseen, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""UMAP [McInnes2018]_ with a row-wise rule for new rows, and hyperparameters drawn by each party.

    The training rows are embedded by umap-learn.  A new row x goes to the weighted mean of the embeddings of its
    `n_neighbors_` nearest training rows, with weights :math:`\exp(-(d_i - \rho) / \sigma)`: :math:`d_i` the distances
    under `metric_`, :math:`\rho` the smallest of them, :math:`\sigma` the mean of :math:`d_i - \rho`.  So f_k is a
    function of the row alone (eq. row-wise-obfuscation of the paper): the other rows of a batch change no bit of it.

    Parameters
    ----------
    n_components : int, default=10
        Columns of the intermediate representation; at most the number of training rows less two.
    n_neighbors : int or None, default=None
        Neighbours of a row, itself included; below the number of training rows.  None draws from {2, ..., 7} below it.
    min_dist : float or None, default=None
        How close UMAP may place two rows.  None draws uniformly from [0, 0.8).
    metric : {"correlation", "cosine", "euclidean"} or None, default=None
        None draws one of the three.  With one or two columns choose "euclidean".
    out_of_sample : {"row-wise", "umap"}, default="row-wise"
        Rule for new rows.  "umap" is umap-learn's own `transform`, as in the paper's experiments.  It is *not* a
        function of the row: the prediction for one row would depend on the other rows in the file.
    n_epochs : int or None, default=None
        Optimisation steps; None leaves the choice to umap-learn.
    random_state : int, RandomState or None, default=None
        Of the draws and of the embedding.  None takes fresh entropy from the operating system, as a secret should.

    Attributes
    ----------
    n_neighbors_, min_dist_, metric_
        The hyperparameters, given or drawn.
    embedding_ : ndarray of shape (n_samples, n_components)
        By umap-learn, of the training rows.
    n_features_in_ : int

    Raises
    ------
    MissingExtraError
        In `fit`, if umap-learn is not installed.  The row-wise `transform` does not need it.
    ObfuscationError
        If there are too few rows for `n_components` or `n_neighbors`, all rows coincide under the metric, or the
        numbers are too large for a distance.

    Notes
    -----
    Stays at the party: the fitted object, which holds the training rows, the embedding and the drawn hyperparameters.

    Training rows are treated like any other: each is among its own neighbours, at distance zero.  Ties are taken in the
    order of the training rows.  Rows without direction (all zero under "cosine", constant under "correlation") are, as
    in umap-learn, at distance zero from each other and one from all others.

    Two neighbours have the weights :math:`1` and :math:`e^{-2}` for every new row, so f_k has one value for each
    ordered pair of nearest training rows.  All edges of the graph then weigh the same, and umap-learn's spectral start
    would go on from a random vector that no `random_state` controls; principal components are taken instead, or random
    numbers if the table has fewer columns than `n_components`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 2, None, closed="left"), None],
        "min_dist": [Interval(Real, 0, 1, closed="both"), None],
        "metric": [StrOptions(set(METRICS)), None],
        "out_of_sample": [StrOptions({"row-wise", "umap"})],
        "n_epochs": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    n_neighbors_: int
    min_dist_: float
    metric_: str
    embedding_: FloatArray

    def __init__(
        self,
        n_components: int = 10,
        *,
        n_neighbors: int | None = None,
        min_dist: float | None = None,
        metric: str | None = None,
        out_of_sample: str = "row-wise",
        n_epochs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.min_dist = min_dist
        self.metric = metric
        self.out_of_sample = out_of_sample
        self.n_epochs = n_epochs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Draw the hyperparameters that are not given, and embed the training rows; `y` is ignored."""
        self._validate_params()
        table: FloatArray = validate_data(self, X, dtype=np.float64, order="C", copy=True)
        n_samples, n_features = table.shape
        if self.n_components > n_samples - 2:
            raise ObfuscationError(
                f"UMAP: n_components={self.n_components} needs at least {self.n_components + 2} training rows; got "
                f"n_samples={n_samples}. Lower n_components, or fit on more rows."
            )
        if self.n_neighbors is not None and self.n_neighbors >= n_samples:
            raise ObfuscationError(
                f"UMAP: n_neighbors={self.n_neighbors} needs more training rows than that; got n_samples={n_samples}. "
                "Lower n_neighbors, or fit on more rows."
            )
        # check_random_state(None) would be NumPy's global generator, which a user may have seeded.
        random = check_random_state(self.random_state)
        if self.random_state is None:
            random = np.random.RandomState()
        self.n_neighbors_, self.min_dist_, self.metric_ = self._draw(random, n_samples)
        points = _points(table, self.metric_)
        if (points == points[0]).all():
            raise ObfuscationError(
                f"UMAP: all rows coincide under the {self.metric_!r} metric (n_features={n_features}), so there is "
                "nothing to embed. Check the columns, or set metric='euclidean'."
            )
        fitted = self._fit_umap(table, random)
        embedding = np.asarray(fitted.embedding_, dtype=np.float64)
        self._umap = fitted if self.out_of_sample == "umap" else None
        self._points = points
        self.embedding_ = embedding
        self._n_features_out = self.n_components
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Map rows by the rule chosen with `out_of_sample`, to shape (n_rows, n_components)."""
        check_is_fitted(self, "embedding_")
        rows: FloatArray = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        if self._umap is not None:
            return np.array(self._umap.transform(rows), dtype=np.float64)
        # In blocks, so that memory does not grow with the rows; each row is mapped by itself.
        blocks = gen_batches(rows.shape[0], max(1, BLOCK_ENTRIES // len(self._points)))
        return np.concatenate([self._row_wise(_points(rows[block], self.metric_)) for block in blocks])

    def _draw(self, random: np.random.RandomState, n_samples: int) -> tuple[int, float, str]:
        """Return hyperparameters, those not given drawn as in the paper's section on dimensionality reduction."""
        n_neighbors = self.n_neighbors
        min_dist = self.min_dist
        metric = self.metric
        if n_neighbors is None:
            n_neighbors = int(random.randint(2, min(7, n_samples - 1) + 1))
        if min_dist is None:
            min_dist = float(random.uniform(0.0, 0.8))
        if metric is None:
            metric = METRICS[random.randint(len(METRICS))]
        return n_neighbors, min_dist, metric

    def _fit_umap(self, table: FloatArray, random: np.random.RandomState) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Tensorflow not installed", ImportWarning)
            umap = require("umap", "umap")
        start = "spectral"
        # With two neighbours all edges weigh the same, and the spectral start would not follow `random_state`.
        if self.n_neighbors_ == 2:
            start = "pca" if self.n_components <= table.shape[1] else "random"
        reducer = umap.UMAP(
            n_components=self.n_components,
            n_neighbors=self.n_neighbors_,
            min_dist=self.min_dist_,
            metric=self.metric_,
            init=start,
            n_epochs=self.n_epochs,
            random_state=random,
            n_jobs=1,
        )
        try:
            with warnings.catch_warnings():
                for message in HARMLESS_WARNINGS:
                    warnings.filterwarnings("ignore", message, UserWarning)
                reducer.fit(table)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ObfuscationError(
                f"UMAP: umap-learn failed on a table of shape {table.shape} ({type(error).__name__}). "
                "Standardise the columns; umap-learn computes in single precision.",
                error,
            ) from None
        if not np.isfinite(reducer.embedding_).all():
            raise ObfuscationError("UMAP: the embedding is not finite. Standardise the columns, or drop repeated rows.")
        return reducer

    def _row_wise(self, points: FloatArray) -> FloatArray:
        """Map points by the neighbour rule; each operation treats a row as if it were alone."""
        D = _distances(points, self._points, self.metric_)
        # A stable order: ties go to the earlier training row.
        order = np.argsort(D, axis=1, kind="stable")[:, : self.n_neighbors_]
        nearest = np.take_along_axis(D, order, axis=1)
        weights = _neighbor_weights(nearest)
        mapped = np.zeros((points.shape[0], self.embedding_.shape[1]))
        for weight, neighbor in zip(weights.T, order.T, strict=True):
            mapped += weight[:, np.newaxis] * self.embedding_[neighbor]
        # A row without direction is at the same distance from all training rows, where none of these is like it.
        if self.metric_ != "euclidean" and not self._points[:, -1].any():
            mapped[points[:, -1] == 1] = self.embedding_.mean(axis=0)
        return mapped


def _points(X: FloatArray, metric: str) -> FloatArray:
    """Return points whose Euclidean distances give the metric.

    For "cosine" and "correlation" rows are scaled to unit length, u, for then the distance is |u - v|^2 / 2; unlike
    1 - u.v this is exact for equal rows and accurate for close ones.  A last column is 1 for rows without direction
    and 0 for others, which puts them at distance 1 from each other.
    """
    if metric == "euclidean":
        return X
    largest = np.abs(X).max(axis=1, keepdims=True)
    U = X / np.where(largest == 0, 1.0, largest)
    if metric == "correlation":
        U -= U.mean(axis=1, keepdims=True)
    length = np.sqrt((U**2).sum(axis=1, keepdims=True))
    # The entries are at most 1, so this is what rounding leaves of a constant row.
    flat = length <= X.shape[1] * np.finfo(np.float64).eps
    return np.hstack([np.where(flat, 0.0, U / np.where(flat, 1.0, length)), flat])


def _distances(points: FloatArray, others: FloatArray, metric: str) -> FloatArray:
    """Return the distance of each point from each of the others, shape (n_points, n_others)."""
    if metric != "euclidean":
        return np.asarray(cdist(points, others, "sqeuclidean") / 2)
    D = cdist(points, others)
    if not np.isfinite(D).all():
        raise ObfuscationError("UMAP: a row is too far from the training rows for a distance; check the units.")
    return np.asarray(D)


def _neighbor_weights(nearest: FloatArray) -> FloatArray:
    """Return weights of the neighbours at ascending distances, shape (n_rows, n_neighbors); each row sums to one."""
    excess = nearest - nearest[:, :1]
    # cumsum adds in a fixed order, whatever the shape of the batch.
    mean = excess.cumsum(axis=1)[:, -1:] / excess.shape[1]
    weights = np.exp(-excess / np.where(mean == 0, 1.0, mean))
    weights[mean[:, 0] == 0] = 1.0
    return np.asarray(weights / weights.cumsum(axis=1)[:, -1:])
