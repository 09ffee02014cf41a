"""Models that a party can learn without the others, each with its outputs for rows left out."""

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

from .._frames import equal_rows
from .._validation import FloatArray
from ..linalg import Kernel, full_ridge_path, groups_of_several, median_gamma, ridge_coefficients
from ..model import probabilities_of

# Part of every probability that is spread over all classes: nothing is ever ruled out.
FLOOR = 0.01


def log_of_shares(shares: FloatArray) -> FloatArray:
    """Return logarithms of rows of shares, with a floor; rows without any share are even, shape as given."""
    totals = shares.sum(axis=1, keepdims=True)
    # A row without any share, such as one that every tree of a forest has seen, is as likely of each class.
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
        """Return outputs for encoded rows, shape (n_rows, n_outputs)."""
        return np.asarray((self.kernel.between(Z * self.factors, self.rows) + 1.0) @ self.coefficients)


@dataclass(frozen=True, eq=False)
class EstimatorScorer:
    """A scikit-learn estimator."""

    estimator: Any
    n_classes: int | None

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Return logarithms of class shares (n_rows, n_classes), or numbers (n_rows, 1)."""
        if self.n_classes is None:
            return np.asarray(self.estimator.predict(Z), dtype=np.float64)[:, None]
        # A model knows the classes of the rows that it saw, which may be fewer than the party has.
        shares = self.estimator.predict_proba(Z)
        return log_of_shares(probabilities_of(shares, self.estimator.classes_, np.arange(self.n_classes)))


@dataclass(frozen=True, eq=False)
class SpreadScorer:
    """The labels that spreading gave the nearest rows."""

    rows: FloatArray
    labels: FloatArray
    gamma: float
    n_neighbors: int
    factors: FloatArray

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Return logarithms of class shares, shape (n_rows, n_classes)."""
        return log_of_shares(nearest_weights(Z * self.factors, self.rows, self.gamma, self.n_neighbors) @ self.labels)


def nearest_weights(X: FloatArray, rows: FloatArray, gamma: float, n_neighbors: int) -> FloatArray:
    r"""Return weights :math:`e^{-\gamma |x - r|^2}` of the nearest rows, 0 for all others, shape (n_X, n_rows)."""
    weights = Kernel(metric="rbf", parameters={"gamma": gamma}).between(X, rows)
    if n_neighbors < weights.shape[1]:
        far: NDArray[np.intp] = np.argpartition(weights, -n_neighbors, axis=1)[:, :-n_neighbors]
        np.put_along_axis(weights, far, 0.0, axis=1)
    return np.asarray(weights)


def fold_numbers(
    groups: NDArray[np.intp], strata: FloatArray | NDArray[np.intp], n_folds: int, generator: np.random.RandomState
) -> NDArray[np.intp]:
    """Return fold of each row: groups stay together, and each fold has its part of every stratum."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    # In order of strata, and by chance within one, folds are dealt out in turn.
    order = np.lexsort([generator.uniform(size=len(first)), strata[first]])
    folds = np.empty(len(first), dtype=np.intp)
    folds[order] = np.arange(len(first)) % n_folds
    return np.asarray(folds[inverse.ravel()])


def spreading_matrix(W: FloatArray, alpha: float) -> FloatArray:
    r"""Return the factor of label spreading, :math:`(1-\alpha)(I - \alpha D^{-1/2} W D^{-1/2})^{-1}`."""
    # The inverse exists for alpha below 1, since no eigenvalue of S is above 1.
    roots = np.sqrt(np.maximum(W.sum(axis=1), np.finfo(np.float64).tiny))
    S = W / roots[:, None] / roots
    return np.asarray(scipy.linalg.solve(np.eye(len(W)) - alpha * S, (1 - alpha) * np.eye(len(W)), assume_a="pos"))


def spread_left_out(M: FloatArray, Y: FloatArray, groups: NDArray[np.intp] | None = None) -> FloatArray:
    """Return labels spread to each row when its own label, and those of its group, are hidden."""
    # Spreading is linear in the labels, so a row's own part is taken off.
    F = M @ Y - np.diag(M)[:, None] * Y
    for members in groups_of_several(groups):
        for place, member in enumerate(members):
            others = np.delete(members, place)
            F[member] -= M[member, others] @ Y[others]
    return F


Scorer = Callable[[FloatArray], FloatArray]

RIDGES = tuple(np.geomspace(1e-3, 10, 9))
WIDTHS = (1.0, 2.0, 0.5)
"""Of the RBF kernel, as multiples of one over the median squared distance."""

RIDGE_SCALES = np.geomspace(1, 64, 19)
SHARE_SCALES = np.geomspace(0.25, 4, 13)
"""Factors of scores before they become probabilities: of ridge outputs, of logarithms of shares.  The middle of each is
the likeliest before any row is seen."""

MOST_KERNEL_ROWS = 2500
"""Rows beyond which a full kernel matrix and its decomposition take too long."""
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
        """Return numbers of rows to learn from, with a name: the own rows, and these with labelled public ones."""
        sizes = [(self.n_own, "own rows")]
        if len(self.target) > self.n_own:
            sizes.append((len(self.target), "own and public rows"))
        return sizes

    def one_hot(self, n: int) -> FloatArray:
        """Return targets of the first n rows as columns, shape (n, n_outputs)."""
        if self.n_classes is None:
            return np.asarray(self.target[:n, None], dtype=np.float64)
        return np.asarray(np.eye(self.n_classes)[self.target[:n]])

    def units(self) -> list[tuple[FloatArray, str]]:
        """Return factors of the columns, with a name."""
        units = [(np.ones(self.rows.shape[1]), "standardised")]
        # Columns that share a unit, such as pixels, may be worth more where they vary more.
        if self.common_units is not None:
            units.append((self.common_units, "in common units"))
        return units


@dataclass(frozen=True, eq=False)
class OwnCandidate:
    """One way to learn, with outputs for every labelled row of models that did not see it.

    Scales are those that its scores may be multiplied by; `fit` learns from all rows.
    """

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
) -> list[OwnCandidate]:
    """Return all candidates for a party's own model."""
    groups = equal_rows(data.rows)
    candidates = list(_kernel_ridges(data, groups, WIDTHS if thorough else WIDTHS[:1]))
    candidates += _forests(data, groups, generator, n_trees, n_jobs)
    if thorough and data.n_classes is not None:
        candidates += _logistic(data, groups, generator)
        if len(data.rows) > len(data.target):
            candidates += _spreadings(data, groups)
    return candidates


def _kernel_ridges(data: OwnData, groups: NDArray[np.intp], widths: tuple[float, ...]) -> Iterator[OwnCandidate]:
    for n, name in data.sizes():
        if not 2 <= n <= MOST_KERNEL_ROWS:
            continue
        T = data.one_hot(n)
        for factors, units in data.units():
            for kernel, scaled, kind in _kernels(data.rows[:n], factors, widths):
                # The one added is the intercept: a constant in the kernel.
                gram = kernel.gram(data.rows[: len(data.target)] * scaled) + 1.0
                path = full_ridge_path(gram[:n, :n])
                for alpha in RIDGES:
                    coefficients = path.vectors @ ((path.vectors.T @ T) / (path.eigenvalues + alpha)[:, None])
                    left_out = T - path.errors_left_out(alpha, T, groups=groups[:n])
                    yield OwnCandidate(
                        family="kernel ridge",
                        name=f"kernel ridge regression ({kind}, ridge {alpha:.2g}, columns {units}), {name}",
                        left_out=np.concatenate([left_out, gram[n:, :n] @ coefficients]),
                        scales=RIDGE_SCALES,
                        fit=partial(_fit_kernel_ridge, data.rows[:n], T, kernel, scaled, alpha),
                        own_only=n == data.n_own,
                    )


def _kernels(rows: FloatArray, factors: FloatArray, widths: tuple[float, ...]) -> Iterator[tuple[Kernel, Any, str]]:
    """Yield kernels with the factors of the columns for each, and their names; no RBF where all rows are equal."""
    gamma = median_gamma(rows * factors)
    length = float(np.sqrt(np.mean(np.sum((rows * factors) ** 2, axis=1))))
    if np.isfinite(gamma):
        for width in widths:
            yield Kernel(metric="rbf", parameters={"gamma": width * gamma}), factors, f"RBF, {width:g}/median"
    # Rows of mean length one, so that the same penalties suit all tables.
    if length > 0:
        factors = factors / length
    yield Kernel(metric="linear"), factors, "linear"


def _fit_kernel_ridge(
    rows: FloatArray, T: FloatArray, kernel: Kernel, factors: FloatArray, alpha: float
) -> KernelScorer:
    scaled = rows * factors
    return KernelScorer(scaled, ridge_coefficients(kernel.gram(scaled) + 1.0, alpha, T), kernel, factors)


def _forests(
    data: OwnData, groups: NDArray[np.intp], generator: np.random.RandomState, n_trees: int, n_jobs: int | None
) -> Iterator[OwnCandidate]:
    for n, name in data.sizes():
        seed = generator.randint(np.iinfo(np.int32).max)
        forest: Any = RandomForestClassifier(n_trees, random_state=seed, n_jobs=n_jobs)
        if data.n_classes is None:
            forest = RandomForestRegressor(n_trees, max_features=1 / 3, random_state=seed, n_jobs=n_jobs)
        # A tree that did not draw a row may have drawn its equal: out-of-bag would not be left out.
        if len(np.unique(groups[:n])) == n and n > 2:
            left_out = _out_of_bag(forest, data, n)
        else:
            left_out = _cross_fit(forest, data, n, groups, generator, n_folds=10)
        yield OwnCandidate(
            family="random forest",
            name=f"random forest, {name}",
            left_out=left_out,
            scales=SHARE_SCALES,
            fit=partial(_fit_on, forest, data, np.ones(n, dtype=bool)),
            own_only=n == data.n_own,
        )


def _out_of_bag(forest: Any, data: OwnData, n: int) -> FloatArray:
    with warnings.catch_warnings():
        # A row that every tree has drawn gets no share, and so even ones.
        warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
        fitted = clone(forest).set_params(oob_score=True).fit(data.rows[:n], data.target[:n])
    if data.n_classes is None:
        left_out = np.asarray(fitted.oob_prediction_[:, None], dtype=np.float64)
    else:
        shares = np.nan_to_num(fitted.oob_decision_function_)
        left_out = log_of_shares(probabilities_of(shares, fitted.classes_, np.arange(data.n_classes)))
    if n == len(data.target):
        return left_out
    return np.concatenate([left_out, EstimatorScorer(fitted, data.n_classes)(data.rows[n : len(data.target)])])


def _logistic(data: OwnData, groups: NDArray[np.intp], generator: np.random.RandomState) -> Iterator[OwnCandidate]:
    for n, name in data.sizes():
        work = n * data.rows.shape[1] * (data.n_classes or 1)
        if len(np.unique(data.target[:n])) < 2 or work > MOST_LOGISTIC_WORK:
            continue
        for strength in (0.1, 1.0):
            model = LogisticRegression(C=strength, max_iter=500)
            yield OwnCandidate(
                family="logistic regression",
                name=f"logistic regression (C {strength:g}), {name}",
                left_out=_cross_fit(model, data, n, groups, generator, n_folds=5),
                scales=SHARE_SCALES,
                fit=partial(_fit_on, model, data, np.ones(n, dtype=bool)),
                own_only=n == data.n_own,
            )


def _cross_fit(
    model: Any, data: OwnData, n: int, groups: NDArray[np.intp], generator: np.random.RandomState, n_folds: int
) -> FloatArray:
    """Return outputs for all labelled rows, by folds of the first n; equal rows are left out together."""
    folds = np.full(len(data.target), -1, dtype=np.intp)
    folds[:n] = fold_numbers(groups[:n], data.target[:n], n_folds, generator)
    outputs = np.zeros((len(data.target), data.n_classes or 1))
    for fold in np.unique(folds):
        # Fold -1 is the labelled rows beyond the first n, which no model here learns from.
        tested = np.flatnonzero(folds == fold)
        kept = ~np.isin(groups[:n], groups[tested])
        # Even shares, or the mean, where nothing is left to learn from.
        if kept.any():
            outputs[tested] = _fit_on(model, data, kept)(data.rows[tested])
    return outputs


def _fit_on(model: Any, data: OwnData, kept: NDArray[np.bool_]) -> EstimatorScorer:
    rows = data.rows[: len(kept)][kept]
    target = data.target[: len(kept)][kept]
    # Logistic regression refuses rows of one class; any model would give that class, as one tree does.
    if data.n_classes is not None and len(np.unique(target)) == 1:
        model = RandomForestClassifier(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return EstimatorScorer(clone(model).fit(rows, target), data.n_classes)


def _spreadings(data: OwnData, groups: NDArray[np.intp]) -> Iterator[OwnCandidate]:
    """Yield label spreading over own rows and public ones without labels."""
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
            # Each row is the nearest of itself; the graph has no loops, and edges of both ends.
            W = nearest_weights(rows, rows, width * median, neighbors + 1)
            W = (W + W.T) / 2
            np.fill_diagonal(W, 0.0)
            for alpha in (0.8, 0.95):
                M = spreading_matrix(W, alpha)
                yield OwnCandidate(
                    family="label spreading",
                    name=f"label spreading ({neighbors} neighbours, {width:g}/median, {alpha:g}, columns {units})",
                    left_out=log_of_shares(np.maximum(spread_left_out(M, Y, groups)[: len(data.target)], 0.0)),
                    scales=SHARE_SCALES,
                    fit=partial(_spread, rows, M @ Y, width * median, neighbors, factors),
                )


def _spread(rows: FloatArray, F: FloatArray, gamma: float, n_neighbors: int, factors: FloatArray) -> SpreadScorer:
    # A row among labelled ones has large entries, one far from them small ones; the share of each class counts.
    labels = F / np.maximum(F.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return SpreadScorer(rows, labels, gamma, n_neighbors, factors)
