"""What a party can learn without the others: candidates, each with its left-out outputs.

* Fitted models of one party's own rows: scores of classes, or numbers, for encoded rows.
* What a model would say of a row that it was not fitted on, in closed form.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from .._validation import FloatArray
from ..linalg import Kernel, full_ridge_path, groups_of_several, median_gamma, ridge_coefficients

__all__ = [
    "FLOOR",
    "Candidate",
    "EstimatorScorer",
    "KernelScorer",
    "OwnData",
    "Scorer",
    "SpreadScorer",
    "equal_rows",
    "fold_numbers",
    "left_out_spreading",
    "log_of_shares",
    "nearest_weights",
    "own_candidates",
    "spreading_matrix",
]


FLOOR = 0.01
"""Part of every probability that is spread over all classes: nothing is ever ruled out."""


def log_of_shares(shares: FloatArray) -> FloatArray:
    """Logarithms of rows of shares, with a floor; rows without any share are even, shape as given."""
    totals = shares.sum(axis=1, keepdims=True)
    even = 1.0 / shares.shape[1]
    normal = np.divide(shares, totals, out=np.full_like(shares, even), where=totals > 0)
    return np.asarray(np.log((1 - FLOOR) * normal + FLOOR * even))


@dataclass(frozen=True, eq=False)
class KernelScorer:
    """Kernel ridge regression, with a constant in the kernel for an intercept."""

    rows: FloatArray
    coefficients: FloatArray
    kernel: Kernel
    factors: FloatArray

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Outputs for encoded rows, shape (n_rows, n_outputs)."""
        return np.asarray((self.kernel.between(Z * self.factors, self.rows) + 1.0) @ self.coefficients)


@dataclass(frozen=True, eq=False)
class EstimatorScorer:
    """A scikit-learn estimator."""

    estimator: Any
    n_classes: int | None

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Logarithms of class shares (n_rows, n_classes), or numbers (n_rows, 1)."""
        if self.n_classes is None:
            return np.asarray(self.estimator.predict(Z), dtype=np.float64)[:, None]
        shares = np.zeros((len(Z), self.n_classes))
        shares[:, np.asarray(self.estimator.classes_, dtype=np.intp)] = self.estimator.predict_proba(Z)
        return log_of_shares(shares)


@dataclass(frozen=True, eq=False)
class SpreadScorer:
    """What the nearest rows were told when labels were spread."""

    rows: FloatArray
    labels: FloatArray
    gamma: float
    n_neighbors: int
    factors: FloatArray

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Logarithms of class shares, shape (n_rows, n_classes)."""
        return log_of_shares(nearest_weights(Z * self.factors, self.rows, self.gamma, self.n_neighbors) @ self.labels)


def nearest_weights(X: FloatArray, rows: FloatArray, gamma: float, n_neighbors: int) -> FloatArray:
    r"""Weights :math:`e^{-\gamma |x - r|^2}` of the nearest rows, 0 for all others, shape (n_X, n_rows)."""
    weights = Kernel(metric="rbf", parameters={"gamma": gamma}).between(X, rows)
    if n_neighbors < weights.shape[1]:
        far: NDArray[np.intp] = np.argpartition(weights, -n_neighbors, axis=1)[:, :-n_neighbors]
        np.put_along_axis(weights, far, 0.0, axis=1)
    return np.asarray(weights)


def equal_rows(rows: FloatArray) -> NDArray[np.intp]:
    """Number of the group of rows that each row equals, shape (n_rows,)."""
    return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1], dtype=np.intp).ravel()


def fold_numbers(
    groups: NDArray[np.intp], strata: FloatArray | NDArray[np.intp], n_folds: int, generator: np.random.RandomState
) -> NDArray[np.intp]:
    """Fold of each row: groups stay together, and each fold has its part of every stratum."""
    first = np.unique(groups, return_index=True)[1]
    order = np.lexsort([generator.uniform(size=len(first)), strata[first]])
    folds = np.empty(len(first), dtype=np.intp)
    folds[order] = np.arange(len(first)) % n_folds
    return np.asarray(folds[np.unique(groups, return_inverse=True)[1].ravel()])


def spreading_matrix(W: FloatArray, alpha: float) -> FloatArray:
    r"""Return the factor of label spreading, :math:`(1-\alpha)(I - \alpha D^{-1/2} W D^{-1/2})^{-1}`."""
    roots = np.sqrt(np.maximum(W.sum(axis=1), np.finfo(np.float64).tiny))
    S = W / roots[:, None] / roots
    return np.asarray(scipy.linalg.solve(np.eye(len(W)) - alpha * S, (1 - alpha) * np.eye(len(W)), assume_a="pos"))


def left_out_spreading(M: FloatArray, Y: FloatArray, groups: NDArray[np.intp] | None = None) -> FloatArray:
    """Labels spread to each row when its own label, and those of its group, are hidden.

    Spreading is linear in the labels, so a row's own part is taken off.
    """
    F = M @ Y - np.diag(M)[:, None] * Y
    for members in groups_of_several(groups):
        others = [np.delete(members, place) for place in range(len(members))]
        for member, rest in zip(members, others, strict=True):
            F[member] -= M[member, rest] @ Y[rest]
    return F


Scorer = Callable[[FloatArray], FloatArray]

RIDGES = tuple(np.geomspace(1e-3, 10, 9))
WIDTHS = (1.0, 2.0, 0.5)
"""Of the RBF kernel, as multiples of one over the median squared distance."""

RIDGE_SCALES = np.geomspace(1, 64, 19)
SHARE_SCALES = np.geomspace(0.25, 4, 13)
"""What scores are multiplied by before they become probabilities: of ridge outputs, of logarithms of shares.  The
middle of each is what is likely before any row is seen."""

MOST_KERNEL_ROWS = 2500
MOST_LOGISTIC_WORK = 2_000_000
"""Rows times columns times classes beyond which logistic regression takes long and linear ridge regression stays."""


@dataclass(frozen=True, eq=False)
class OwnData:
    """Encoded rows that a party may learn from without the others; its own come first."""

    rows: FloatArray
    target: NDArray[Any]
    n_own: int
    n_classes: int | None
    common_units: FloatArray | None = None

    def sizes(self) -> list[tuple[int, str]]:
        """How many rows to learn from, and what to call them: the own, and with labelled public ones."""
        own = [(self.n_own, "own rows")]
        return own if len(self.target) == self.n_own else [*own, (len(self.target), "own and public rows")]

    def one_hot(self, n: int) -> FloatArray:
        """Targets of the first n rows as columns, shape (n, n_outputs)."""
        if self.n_classes is None:
            return np.asarray(self.target[:n, None], dtype=np.float64)
        return np.asarray(np.eye(self.n_classes)[self.target[:n]])

    def units(self) -> list[tuple[FloatArray, str]]:
        """What columns may be multiplied by."""
        standard = [(np.ones(self.rows.shape[1]), "standardised")]
        return standard if self.common_units is None else [*standard, (self.common_units, "in common units")]


@dataclass(frozen=True, eq=False)
class Candidate:
    """One way to learn."""

    family: str
    name: str
    left_out: FloatArray
    scales: FloatArray
    fit: Callable[[], Scorer]
    own_only: bool = False


def own_candidates(
    data: OwnData,
    generator: np.random.RandomState,
    *,
    n_trees: int = 300,
    n_jobs: int | None = None,
    thorough: bool = True,
) -> list[Candidate]:
    """All candidates for a party's own model."""
    groups = equal_rows(data.rows)
    candidates = list(_kernel_ridges(data, groups, WIDTHS if thorough else WIDTHS[:1]))
    candidates += _forests(data, groups, generator, n_trees, n_jobs)
    if thorough and data.n_classes is not None:
        candidates += _logistic(data, groups, generator)
        if len(data.rows) > len(data.target):
            candidates += _spreadings(data, groups)
    return candidates


def _kernel_ridges(data: OwnData, groups: NDArray[np.intp], widths: tuple[float, ...]) -> Iterator[Candidate]:
    for n, name in data.sizes():
        if not 2 <= n <= MOST_KERNEL_ROWS:
            continue
        T = data.one_hot(n)
        for factors, units in data.units():
            for kernel, scaled, kind in _kernels(data.rows[:n], factors, widths):
                gram = kernel.gram(data.rows[: len(data.target)] * scaled) + 1.0
                path = full_ridge_path(gram[:n, :n])
                for alpha in RIDGES:
                    coefficients = path.vectors @ ((path.vectors.T @ T) / (path.eigenvalues + alpha)[:, None])
                    left_out = T - path.left_out_errors(alpha, T, groups=groups[:n])
                    yield Candidate(
                        family="kernel ridge",
                        name=f"kernel ridge regression ({kind}, ridge {alpha:.2g}, columns {units}), {name}",
                        left_out=np.concatenate([left_out, gram[n:, :n] @ coefficients]),
                        scales=RIDGE_SCALES,
                        fit=partial(_fit_kernel_ridge, data.rows[:n], T, kernel, scaled, alpha),
                        own_only=n == data.n_own,
                    )


def _kernels(rows: FloatArray, factors: FloatArray, widths: tuple[float, ...]) -> Iterator[tuple[Kernel, Any, str]]:
    """Kernels, what they want columns to be multiplied by, and their names; none where all rows are equal."""
    gamma = median_gamma(rows * factors)
    length = float(np.sqrt(np.mean(np.sum((rows * factors) ** 2, axis=1))))
    if np.isfinite(gamma):
        for width in widths:
            yield Kernel(metric="rbf", parameters={"gamma": width * gamma}), factors, f"RBF, {width:g}/median"
    yield Kernel(metric="linear"), factors / length if length > 0 else factors, "linear"


def _fit_kernel_ridge(
    rows: FloatArray, T: FloatArray, kernel: Kernel, factors: FloatArray, alpha: float
) -> KernelScorer:
    scaled = rows * factors
    return KernelScorer(scaled, ridge_coefficients(kernel.gram(scaled) + 1.0, alpha, T), kernel, factors)


def _forests(
    data: OwnData, groups: NDArray[np.intp], generator: np.random.RandomState, n_trees: int, n_jobs: int | None
) -> Iterator[Candidate]:
    for n, name in data.sizes():
        seed = generator.randint(np.iinfo(np.int32).max)
        forest = (
            RandomForestRegressor(n_trees, max_features=1 / 3, random_state=seed, n_jobs=n_jobs)
            if data.n_classes is None
            else RandomForestClassifier(n_trees, random_state=seed, n_jobs=n_jobs)
        )
        # A tree that did not draw a row may have drawn its equal: out-of-bag would not be left out.
        alone = len(np.unique(groups[:n])) == n and n > 2
        left_out = (
            _out_of_bag(forest, data, n) if alone else _cross_fitted(forest, data, n, groups, generator, n_folds=10)
        )
        yield Candidate(
            family="random forest",
            name=f"random forest, {name}",
            left_out=left_out,
            scales=SHARE_SCALES,
            fit=partial(_fit_estimator, forest, data, n),
            own_only=n == data.n_own,
        )


def _out_of_bag(forest: Any, data: OwnData, n: int) -> FloatArray:
    with warnings.catch_warnings():
        # A row that every tree has drawn gets no share, and so even ones.
        warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
        fitted = clone(forest).set_params(oob_score=True).fit(data.rows[:n], data.target[:n])
    beyond = EstimatorScorer(fitted, data.n_classes)(data.rows[n : len(data.target)]) if n < len(data.target) else None
    if data.n_classes is None:
        left_out = np.asarray(fitted.oob_prediction_[:, None], dtype=np.float64)
    else:
        shares = np.zeros((n, data.n_classes))
        shares[:, fitted.classes_] = np.nan_to_num(fitted.oob_decision_function_)
        left_out = log_of_shares(shares)
    return left_out if beyond is None else np.concatenate([left_out, beyond])


def _logistic(data: OwnData, groups: NDArray[np.intp], generator: np.random.RandomState) -> Iterator[Candidate]:
    for n, name in data.sizes():
        work = n * data.rows.shape[1] * (data.n_classes or 1)
        if len(np.unique(data.target[:n])) < 2 or work > MOST_LOGISTIC_WORK:
            continue
        for strength in (0.1, 1.0):
            model = LogisticRegression(C=strength, max_iter=500)
            yield Candidate(
                family="logistic regression",
                name=f"logistic regression (C {strength:g}), {name}",
                left_out=_cross_fitted(model, data, n, groups, generator, n_folds=5),
                scales=SHARE_SCALES,
                fit=partial(_fit_estimator, model, data, n),
                own_only=n == data.n_own,
            )


def _cross_fitted(
    model: Any, data: OwnData, n: int, groups: NDArray[np.intp], generator: np.random.RandomState, n_folds: int
) -> FloatArray:
    """Outputs for all labelled rows, by folds of the first n; equal rows are left out together."""
    folds = np.full(len(data.target), -1, dtype=np.intp)
    folds[:n] = fold_numbers(groups[:n], data.target[:n], n_folds, generator)
    outputs = np.zeros((len(data.target), data.n_classes or 1))
    for fold in np.unique(folds):
        tested = np.flatnonzero(folds == fold)
        kept = ~np.isin(groups[:n], groups[tested])
        # Even shares, or the mean, where nothing is left to learn from.
        if kept.any():
            outputs[tested] = _fit_on(model, data, kept)(data.rows[tested])
    return outputs


def _fit_estimator(model: Any, data: OwnData, n: int) -> EstimatorScorer:
    return _fit_on(model, data, np.ones(n, dtype=bool))


def _fit_on(model: Any, data: OwnData, kept: NDArray[np.bool_]) -> EstimatorScorer:
    rows, target = data.rows[: len(kept)][kept], data.target[: len(kept)][kept]
    if data.n_classes is not None and len(np.unique(target)) == 1:
        model = RandomForestClassifier(1)  # says that one class of every row, whatever the model would
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return EstimatorScorer(clone(model).fit(rows, target), data.n_classes)


def _spreadings(data: OwnData, groups: NDArray[np.intp]) -> Iterator[Candidate]:
    """Label spreading over own rows and public ones without labels."""
    if len(data.rows) > MOST_KERNEL_ROWS:
        return
    Y = np.zeros((len(data.rows), data.n_classes or 1))
    Y[: len(data.target)] = data.one_hot(len(data.target))
    for factors, units in data.units():
        rows = data.rows * factors
        median = median_gamma(rows)
        if not np.isfinite(median):
            continue
        for width, neighbors in ((1.0, 7), (5.0, 7), (5.0, 20)):
            W = nearest_weights(rows, rows, width * median, neighbors + 1)
            W = (W + W.T) / 2
            np.fill_diagonal(W, 0.0)
            for alpha in (0.8, 0.95):
                M = spreading_matrix(W, alpha)
                yield Candidate(
                    family="label spreading",
                    name=f"label spreading ({neighbors} neighbours, {width:g}/median, {alpha:g}, columns {units})",
                    left_out=log_of_shares(np.maximum(left_out_spreading(M, Y, groups)[: len(data.target)], 0.0)),
                    scales=SHARE_SCALES,
                    fit=partial(_spread, rows, M @ Y, width * median, neighbors, factors),
                )


def _spread(rows: FloatArray, F: FloatArray, gamma: float, n_neighbors: int, factors: FloatArray) -> SpreadScorer:
    # A row among labelled ones has large entries, one far from them small ones; what counts is the share of each class.
    labels = F / np.maximum(F.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return SpreadScorer(rows, labels, gamma, n_neighbors, factors)
