"""What a party can learn without the others, and how it weighs that with the common model."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from .._frames import equal_rows
from .._validation import FloatArray
from ..linalg import Kernel, full_ridge_path, groups_of_several, median_gamma, ridge_coefficients
from ..model import probabilities_of

FLOOR = 0.01
"""Part of every probability that is spread over all classes: nothing is ever ruled out."""


def log_of_shares(shares: FloatArray) -> FloatArray:
    """Return logarithms of rows of shares, with a floor; rows without any share are even, shape as given."""
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
        known = self.estimator.predict_proba(Z)
        return log_of_shares(probabilities_of(known, self.estimator.classes_, np.arange(self.n_classes)))


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
    order = np.lexsort([generator.uniform(size=len(first)), strata[first]])
    folds = np.empty(len(first), dtype=np.intp)
    folds[order] = np.arange(len(first)) % n_folds
    return np.asarray(folds[inverse.ravel()])


def spreading_matrix(W: FloatArray, alpha: float) -> FloatArray:
    r"""Return the factor of label spreading, :math:`(1-\alpha)(I - \alpha D^{-1/2} W D^{-1/2})^{-1}`."""
    roots = np.sqrt(np.maximum(W.sum(axis=1), np.finfo(np.float64).tiny))
    S = W / roots[:, None] / roots
    return np.asarray(scipy.linalg.solve(np.eye(len(W)) - alpha * S, (1 - alpha) * np.eye(len(W)), assume_a="pos"))


def left_out_spreading(M: FloatArray, Y: FloatArray, groups: NDArray[np.intp] | None = None) -> FloatArray:
    """Return labels spread to each row when its own label, and those of its group, are hidden."""
    # Spreading is linear in the labels, so a row's own part is taken off.
    F = M @ Y - np.diag(M)[:, None] * Y
    for members in groups_of_several(groups):
        for place, member in enumerate(members):
            rest = np.delete(members, place)
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
        """Return how many rows to learn from, and what to call them: the own, and with labelled public ones."""
        own = [(self.n_own, "own rows")]
        return own if len(self.target) == self.n_own else [*own, (len(self.target), "own and public rows")]

    def one_hot(self, n: int) -> FloatArray:
        """Return targets of the first n rows as columns, shape (n, n_outputs)."""
        if self.n_classes is None:
            return np.asarray(self.target[:n, None], dtype=np.float64)
        return np.asarray(np.eye(self.n_classes)[self.target[:n]])

    def units(self) -> list[tuple[FloatArray, str]]:
        """Return what columns may be multiplied by."""
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
    """Return all candidates for a party's own model."""
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
                    left_out = T - path.errors_left_out(alpha, T, groups=groups[:n])
                    yield Candidate(
                        family="kernel ridge",
                        name=f"kernel ridge regression ({kind}, ridge {alpha:.2g}, columns {units}), {name}",
                        left_out=np.concatenate([left_out, gram[n:, :n] @ coefficients]),
                        scales=RIDGE_SCALES,
                        fit=partial(_fit_kernel_ridge, data.rows[:n], T, kernel, scaled, alpha),
                        own_only=n == data.n_own,
                    )


def _kernels(rows: FloatArray, factors: FloatArray, widths: tuple[float, ...]) -> Iterator[tuple[Kernel, Any, str]]:
    """Yield kernels, what they want columns to be multiplied by, and their names; none where all rows are equal."""
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
        known = np.nan_to_num(fitted.oob_decision_function_)
        left_out = log_of_shares(probabilities_of(known, fitted.classes_, np.arange(data.n_classes)))
    if n == len(data.target):
        return left_out
    return np.concatenate([left_out, EstimatorScorer(fitted, data.n_classes)(data.rows[n : len(data.target)])])


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
                fit=partial(_fit_on, model, data, np.ones(n, dtype=bool)),
                own_only=n == data.n_own,
            )


def _cross_fitted(
    model: Any, data: OwnData, n: int, groups: NDArray[np.intp], generator: np.random.RandomState, n_folds: int
) -> FloatArray:
    """Return outputs for all labelled rows, by folds of the first n; equal rows are left out together."""
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


def _fit_on(model: Any, data: OwnData, kept: NDArray[np.bool_]) -> EstimatorScorer:
    rows, target = data.rows[: len(kept)][kept], data.target[: len(kept)][kept]
    if data.n_classes is not None and len(np.unique(target)) == 1:
        model = RandomForestClassifier(1)  # gives every row that one class, as any model would
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return EstimatorScorer(clone(model).fit(rows, target), data.n_classes)


def _spreadings(data: OwnData, groups: NDArray[np.intp]) -> Iterator[Candidate]:
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


def weights_by_loss(losses: FloatArray) -> FloatArray:
    r"""Return weights before any fit, :math:`\beta_0 \propto 1/\mathrm{loss}^2` with sum 1, shape (n_opinions,)."""
    least = np.finfo(np.float64).eps * max(1.0, float(np.max(losses)))
    weights = 1.0 / np.maximum(losses, least) ** 2
    return np.asarray(weights / weights.sum())


def log_pool(logs: FloatArray, weights: FloatArray) -> FloatArray:
    r"""Return log probabilities of the pool, :math:`\log p = \sum_m \beta_m \log p_m - \mathrm{const}`."""
    scores = np.tensordot(weights, logs, axes=1)
    return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))


def penalised_log_loss(
    weights: FloatArray, logs: FloatArray, codes: NDArray[np.intp], prior: FloatArray, tau: float
) -> tuple[float, FloatArray]:
    r"""Return :math:`-\sum_i \log p_{i,y_i} + \tfrac\tau2 \|\beta-\beta_0\|^2`, and its gradient."""
    combined = log_pool(logs, weights)
    rows = np.arange(len(codes))
    # d loss / d score: the probability, less one at the class that it was.
    slope = np.exp(combined)
    slope[rows, codes] -= 1.0
    value = -combined[rows, codes].sum() + 0.5 * tau * np.sum((weights - prior) ** 2)
    return float(value), np.tensordot(logs, slope, axes=2) + tau * (weights - prior)


def fit_log_pool(logs: FloatArray, codes: NDArray[np.intp], *, prior: FloatArray, tau: float) -> FloatArray:
    """Return weights of the pool, none negative.  Convex."""
    found = scipy.optimize.minimize(
        penalised_log_loss,
        prior,
        args=(logs, codes, prior, tau),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(logs),
        options={"ftol": 1e-12, "gtol": 1e-7, "maxiter": 500},
    )
    return np.asarray(found.x)


def fit_convex_pool(opinions: FloatArray, target: FloatArray, *, prior: FloatArray, tau: float) -> FloatArray:
    r"""Minimise :math:`\tfrac12\|y - Pw\|^2 + \tfrac\tau2\|w-w_0\|^2` over :math:`w \ge 0`, :math:`\sum w = 1`."""
    # With sum 1, Pw - y = (P - y) w: weights of residuals, so that where the target lies does not matter.
    residuals = opinions - target[:, None]
    Q = residuals.T @ residuals + tau * np.eye(len(prior))
    best, least = prior, float(np.inf)
    # Opinions are few, so every choice of those with a weight is tried.
    for size in range(1, len(prior) + 1):
        for chosen in map(list, combinations(range(len(prior)), size)):
            weights = np.zeros(len(prior))
            # Where the penalised squares are least among all weights of sum 1.
            solved = np.linalg.solve(Q[np.ix_(chosen, chosen)], np.column_stack([tau * prior[chosen], np.ones(size)]))
            weights[chosen] = solved[:, 0] + solved[:, 1] * (1 - solved[:, 0].sum()) / solved[:, 1].sum()
            value = float(0.5 * weights @ Q @ weights - tau * prior @ weights)
            if weights.min() >= 0 and value < least:
                best, least = weights, value
    return best


SCALE_SPREAD = 0.7
"""Of the logarithm of a scale about what is likely before any row is seen."""

TAU = 20.0
"""How much the weights of a pool are held to those by loss."""


class Opinions(NamedTuple):
    """What each side says of rows: log probabilities (n_rows, n_classes), or standardised numbers (n_rows,)."""

    local: FloatArray
    collaboration: FloatArray
    combined: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Blend(ABC):
    """What was chosen and how it is weighed."""

    own: tuple[int, ...]
    own_weights: FloatArray
    weights: FloatArray

    @abstractmethod
    def speak(self, own: Sequence[FloatArray], collaboration: FloatArray) -> Opinions:
        """Apply it to outputs of its candidates and of the collaboration, each of shape (n_rows, n_outputs)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassBlend(Blend):
    """A log-opinion pool of log-opinion pools."""

    own_scales: tuple[float, ...]
    collaboration_scale: float
    columns: NDArray[np.intp]
    n_classes: int

    def speak(self, own: Sequence[FloatArray], collaboration: FloatArray) -> Opinions:
        """Return log probabilities of all classes by each side, each of shape (n_rows, n_classes)."""
        local, common = _floored(log_pool(self.own_logs(own), self.own_weights)), self.of_common(collaboration)
        combined = log_pool(np.stack([_on_known(local, common, self.columns), common]), self.weights)
        return Opinions(local, common, combined)

    def own_logs(self, own: Sequence[FloatArray]) -> FloatArray:
        """Return each own model's log probabilities, shape (n_own_models, n_rows, n_classes)."""
        scaled = zip(own, self.own_scales, strict=True)
        return np.stack([_logs(one, scale, self.columns, self.n_classes) for one, scale in scaled])

    def of_common(self, collaboration: FloatArray) -> FloatArray:
        """Return the common model's log probabilities."""
        logs = _logs(collaboration, self.collaboration_scale, np.arange(self.n_classes), self.n_classes)
        return _floored(log_pool(logs[None], np.ones(1)))


@dataclass(frozen=True, eq=False, kw_only=True)
class NumberBlend(Blend):
    """A weighted mean of weighted means."""

    def speak(self, own: Sequence[FloatArray], collaboration: FloatArray) -> Opinions:
        """Return numbers by each side, each of shape (n_rows,)."""
        local = np.column_stack(list(own)) @ self.own_weights
        common = collaboration[:, 0]
        return Opinions(local, common, np.column_stack([local, common]) @ self.weights)


_EVENLY = np.array([0.5, 0.5])


@dataclass(eq=False)
class Blender(ABC):
    """Settles a blend on left-out outputs for a party's own rows.

    Choosing among many candidates flatters the one that is chosen.  So each row's own opinion comes from a choice that
    was made without it, and the weights of the two sides are fitted to these.
    """

    candidates: Sequence[Candidate]
    collaboration: FloatArray
    target: NDArray[Any]
    public: NDArray[Any]

    def __post_init__(self) -> None:
        self.public_weight = min(1.0, len(self.target) / max(1, len(self.public)))
        self.judged: NDArray[np.bool_] = np.asarray(np.isfinite(self.collaboration).all(axis=1))
        names = [candidate.family for candidate in self.candidates]
        self.families = [
            [place for place, name in enumerate(names) if name == family] for family in dict.fromkeys(names)
        ]

    def settle(self, folds: NDArray[np.intp]) -> tuple[Blend, Opinions]:
        """Return the blend, and opinions on each own row by one that was settled without the row's fold."""
        everything = np.ones(len(self.target), dtype=bool)
        parts = [(out, self._own(~out)) for out in (folds == fold for fold in np.unique(folds))]
        local = _joined([(out, self._said(chosen, out).local) for out, chosen in parts])
        blend = self._blend(self.local(), local, everything)
        said = [(out, self._said(self._blend(chosen, local, ~out), out)) for out, chosen in parts]
        return blend, Opinions(*(_joined([(out, each[side]) for out, each in said]) for side in range(3)))

    def local(self) -> Blend:
        """Return the candidates chosen and weighed by all own rows, for `Opinions.local`."""
        return self._own(np.ones(len(self.target), dtype=bool))

    def _left_out(self, place: int, rows: NDArray[np.bool_]) -> FloatArray:
        """Return one candidate's left-out outputs for own rows."""
        return self.candidates[place].left_out[: len(rows)][rows]

    def _said(self, blend: Blend, rows: NDArray[np.bool_]) -> Opinions:
        return blend.speak([self._left_out(place, rows) for place in blend.own], self.collaboration[rows])

    @abstractmethod
    def _own(self, rows: NDArray[np.bool_]) -> Blend:
        """Choose and weigh own models with nothing but these rows, a mask of shape (n_own,)."""

    @abstractmethod
    def _blend(self, own: Blend, local: FloatArray, rows: NDArray[np.bool_]) -> Blend:
        """Weigh the sides with nothing but these rows, by what the party says of them."""


@dataclass(eq=False)
class ClassBlender(Blender):
    """For classes: log-opinion pools."""

    columns: NDArray[np.intp]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.n_classes = self.collaboration.shape[1]
        self._own_tables = [self._table(each.left_out, each.scales, self.columns) for each in self.candidates]
        common = np.nan_to_num(self.collaboration)
        self._collaboration_table = self._table(common, SHARE_SCALES, np.arange(self.n_classes))

    def _own(self, rows: NDArray[np.bool_]) -> ClassBlend:
        own, scales = [], []
        for family in self.families:
            losses = np.array([_smoothed(self._own_tables[place], rows) for place in family])
            best, step = np.unravel_index(np.argmin(losses), losses.shape)
            own.append(family[best])
            scales.append(float(self.candidates[family[best]].scales[step]))
        blend = ClassBlend(
            own=tuple(own),
            own_weights=np.ones(len(own)),
            weights=_EVENLY,
            own_scales=tuple(scales),
            collaboration_scale=1.0,
            columns=self.columns,
            n_classes=self.n_classes,
        )
        logs = blend.own_logs([self._left_out(place, rows) for place in own])
        return replace(blend, own_weights=self._fitted(logs, rows))

    def _blend(self, own: Blend, local: FloatArray, rows: NDArray[np.bool_]) -> ClassBlend:
        assert isinstance(own, ClassBlend)
        judged = rows & self.judged
        if not judged.any():
            return own
        scale = float(SHARE_SCALES[np.argmin(_smoothed(self._collaboration_table, judged))])
        own = replace(own, collaboration_scale=scale)
        common = own.of_common(self.collaboration[judged])
        heard = _on_known(local[judged], common, self.columns)
        return replace(own, weights=self._fitted(np.stack([heard, common]), judged))

    def _fitted(self, logs: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        codes = self.target[rows]
        losses = -logs[:, np.arange(len(codes)), codes].mean(axis=1) - logs.mean(axis=(1, 2)) / len(codes)
        prior = weights_by_loss(losses)
        return prior if len(logs) == 1 else fit_log_pool(logs, codes, prior=prior, tau=TAU)

    def _table(
        self, scores: FloatArray, scales: FloatArray, columns: NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log loss of every own row at every scale, with its class and with an even mix, each (n_scales, n_own).

        And what speaks against a scale besides, shape (n_scales,): public rows, and that it is unlikely.
        """
        n_own = len(self.target)
        codes = np.concatenate([self.target, self.public])[: len(scores)]
        logs = [_logs(scores, scale, columns, self.n_classes) for scale in scales]
        with_class = -np.stack([each[np.arange(len(codes)), codes] for each in logs])
        even = -np.stack([each[:n_own].mean(axis=1) for each in logs])
        unlikely = 0.5 * (np.log(scales / np.sqrt(scales[0] * scales[-1])) / SCALE_SPREAD) ** 2
        return with_class[:, :n_own], even, self.public_weight * with_class[:, n_own:].sum(axis=1) + unlikely


class NumberBlender(Blender):
    """For numbers: convex pools of squared error."""

    def _own(self, rows: NDArray[np.bool_]) -> NumberBlend:
        own = []
        for family in self.families:
            errors = [self._squares(self._left_out(place, rows)[:, 0], rows) * rows.sum() for place in family]
            said = [self.candidates[place].left_out[len(self.target) :, 0] for place in family]
            besides = [float(self.public_weight * np.sum((each - self.public) ** 2)) for each in said]
            own.append(family[int(np.argmin(np.add(errors, besides)))])
        left_out = np.column_stack([self._left_out(place, rows) for place in own])
        return NumberBlend(own=tuple(own), own_weights=self._fitted(left_out, rows), weights=_EVENLY)

    def _blend(self, own: Blend, local: FloatArray, rows: NDArray[np.bool_]) -> Blend:
        judged = rows & self.judged
        if not judged.any():
            return own
        sides = np.column_stack([local[judged], self.collaboration[judged, 0]])
        return replace(own, weights=self._fitted(sides, judged))

    def _fitted(self, opinions: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        losses = np.array([self._squares(opinion, rows) for opinion in opinions.T])
        return fit_convex_pool(opinions, self.target[rows], prior=weights_by_loss(losses), tau=TAU)

    def _squares(self, numbers: FloatArray, rows: NDArray[np.bool_]) -> float:
        return float(np.mean((numbers - self.target[rows]) ** 2))


def _smoothed(table: tuple[FloatArray, FloatArray, FloatArray], rows: NDArray[np.bool_]) -> FloatArray:
    """Return loss at every scale; one row more, of no class, keeps few rows from making a scale of infinity."""
    with_class, even, besides = table
    return np.asarray(with_class[:, rows].sum(axis=1) + even[:, rows].mean(axis=1) + besides)


def _joined(parts: Sequence[tuple[NDArray[np.bool_], FloatArray]]) -> FloatArray:
    """Return what was said of the rows of each mask, in the order of the rows."""
    whole = np.empty((len(parts[0][0]), *parts[0][1].shape[1:]))
    for rows, said in parts:
        whole[rows] = said
    return whole


def _logs(scores: FloatArray, scale: float, columns: NDArray[np.intp], n_classes: int) -> FloatArray:
    """Return log probabilities of all classes from scores of some, with a floor."""
    shares = np.zeros((len(scores), n_classes))
    shares[:, columns] = np.exp(log_softmax(scale * scores, axis=1))
    return np.asarray(np.log((1 - FLOOR) * shares + FLOOR / n_classes))


def _floored(logs: FloatArray) -> FloatArray:
    """Return log probabilities that rule nothing out."""
    return np.asarray(np.log((1 - FLOOR) * np.exp(logs) + FLOOR / logs.shape[1]))


def _on_known(local: FloatArray, common: FloatArray, columns: NDArray[np.intp]) -> FloatArray:
    """Return what the party says, in the place that the other side leaves to classes that the party has rows of."""
    # A party that has no row of a class knows nothing of it, and must not rule it out.
    heard = common.copy()
    room = logsumexp(common[:, columns], axis=1, keepdims=True)
    heard[:, columns] = log_softmax(local[:, columns], axis=1) + room
    return heard
