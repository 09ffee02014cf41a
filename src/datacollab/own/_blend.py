"""Pools of opinions: a party's own models with one another, and with the common model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from .._validation import FloatArray
from ._own_models import FLOOR, SHARE_SCALES, OwnCandidate


def weights_by_loss(losses: FloatArray) -> FloatArray:
    r"""Return weights before any fit, :math:`\beta_0 \propto 1/\mathrm{loss}^2` with sum 1, shape (n_opinions,)."""
    # A loss of zero would take all weight; it counts as the rounding of the largest one.
    least = np.finfo(np.float64).eps * max(1.0, float(np.max(losses)))
    weights = 1.0 / np.maximum(losses, least) ** 2
    return np.asarray(weights / weights.sum())


def log_pool(logs: FloatArray, weights: FloatArray) -> FloatArray:
    r"""Return log probabilities of the pool, :math:`\log p = \sum_m \beta_m \log p_m - \mathrm{const}`."""
    scores = np.tensordot(weights, logs, axes=1)
    return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))


def penalise_log_loss(
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
    """Return weights of the pool, none negative.  The problem is convex."""
    solution = scipy.optimize.minimize(
        penalise_log_loss,
        prior,
        args=(logs, codes, prior, tau),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(logs),
        options={"ftol": 1e-12, "gtol": 1e-7, "maxiter": 500},
    )
    return np.asarray(solution.x)


def fit_convex_pool(opinions: FloatArray, target: FloatArray, *, prior: FloatArray, tau: float) -> FloatArray:
    r"""Minimise :math:`\tfrac12\|y - Pw\|^2 + \tfrac\tau2\|w-w_0\|^2` over :math:`w \ge 0`, :math:`\sum w = 1`."""
    # With sum 1, Pw - y = (P - y) w: weights of residuals, so that where the target lies does not matter.
    residuals = opinions - target[:, None]
    Q = residuals.T @ residuals + tau * np.eye(len(prior))
    best = prior
    least = float(np.inf)
    # Opinions are few, so every choice of those with a weight is tried.
    for size in range(1, len(prior) + 1):
        for chosen in map(list, combinations(range(len(prior)), size)):
            weights = np.zeros(len(prior))
            # Lagrange's conditions for the least penalised squares among all weights of sum 1.
            solved = np.linalg.solve(Q[np.ix_(chosen, chosen)], np.column_stack([tau * prior[chosen], np.ones(size)]))
            weights[chosen] = solved[:, 0] + solved[:, 1] * (1 - solved[:, 0].sum()) / solved[:, 1].sum()
            value = float(0.5 * weights @ Q @ weights - tau * prior @ weights)
            if weights.min() >= 0 and value < least:
                best = weights
                least = value
    return best


SCALE_SPREAD = 0.7
"""Of the logarithm of a scale about what is likely before any row is seen."""

TAU = 20.0
"""How much the weights of a pool are held to those by loss."""


class Opinions(NamedTuple):
    """Each side's outputs for rows: log probabilities (n_rows, n_classes), or standardised numbers (n_rows,)."""

    local: FloatArray
    collaboration: FloatArray
    combined: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Blend(ABC):
    """The chosen own models, and weights of these and of both sides."""

    own: tuple[int, ...]
    own_weights: FloatArray
    weights: FloatArray

    @abstractmethod
    def speak(self, own: Sequence[FloatArray], collaboration: FloatArray) -> Opinions:
        """Pool outputs of own models and of the common one, each of shape (n_rows, n_outputs)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassBlend(Blend):
    """A log-opinion pool of log-opinion pools."""

    own_scales: tuple[float, ...]
    collaboration_scale: float
    columns: NDArray[np.intp]
    n_classes: int

    def speak(self, own: Sequence[FloatArray], collaboration: FloatArray) -> Opinions:
        """Return log probabilities of all classes by each side, each of shape (n_rows, n_classes)."""
        local = _add_floor(log_pool(self.own_logs(own), self.own_weights))
        common = self.common_logs(collaboration)
        combined = log_pool(np.stack([_on_known(local, common, self.columns), common]), self.weights)
        return Opinions(local, common, combined)

    def own_logs(self, own: Sequence[FloatArray]) -> FloatArray:
        """Return each own model's log probabilities, shape (n_own_models, n_rows, n_classes)."""
        scaled = zip(own, self.own_scales, strict=True)
        return np.stack([_logs(one, scale, self.columns, self.n_classes) for one, scale in scaled])

    def common_logs(self, collaboration: FloatArray) -> FloatArray:
        """Return the common model's log probabilities."""
        logs = _logs(collaboration, self.collaboration_scale, np.arange(self.n_classes), self.n_classes)
        return _add_floor(log_pool(logs[None], np.ones(1)))


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

    candidates: Sequence[OwnCandidate]
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
        # First, own models are chosen without each fold in turn, and give opinions on its rows.
        parts = [(fold, self._choose_own(~fold)) for fold in (folds == number for number in np.unique(folds))]
        local = _join([(fold, self._speak(chosen, fold).local) for fold, chosen in parts])
        # Then the sides are weighed by these opinions: once for later rows, and without each fold for the report.
        blend = self._weigh_sides(self.choose_local(), local, everything)
        opinions = [(fold, self._speak(self._weigh_sides(chosen, local, ~fold), fold)) for fold, chosen in parts]
        return blend, Opinions(*(_join([(fold, each[side]) for fold, each in opinions]) for side in range(3)))

    def choose_local(self) -> Blend:
        """Return the candidates chosen and weighed by all own rows, for `Opinions.local`."""
        return self._choose_own(np.ones(len(self.target), dtype=bool))

    def _outputs_left_out(self, place: int, rows: NDArray[np.bool_]) -> FloatArray:
        """Return one candidate's left-out outputs for own rows."""
        return self.candidates[place].left_out[: len(rows)][rows]

    def _speak(self, blend: Blend, rows: NDArray[np.bool_]) -> Opinions:
        return blend.speak([self._outputs_left_out(place, rows) for place in blend.own], self.collaboration[rows])

    @abstractmethod
    def _choose_own(self, rows: NDArray[np.bool_]) -> Blend:
        """Choose and weigh own models with nothing but these rows, a mask of shape (n_own,)."""

    @abstractmethod
    def _weigh_sides(self, own: Blend, local: FloatArray, rows: NDArray[np.bool_]) -> Blend:
        """Weigh the sides with nothing but these rows, by the party's own opinions of them."""


@dataclass(eq=False)
class ClassBlender(Blender):
    """For classes: log-opinion pools."""

    columns: NDArray[np.intp]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.n_classes = self.collaboration.shape[1]
        self._own_tables = [self._table(each.left_out, each.scales, self.columns) for each in self.candidates]
        # Rows that the common model has no opinion on are left out later, by `judged`.
        common = np.nan_to_num(self.collaboration)
        self._collaboration_table = self._table(common, SHARE_SCALES, np.arange(self.n_classes))

    def _choose_own(self, rows: NDArray[np.bool_]) -> ClassBlend:
        own = []
        scales = []
        for family in self.families:
            losses = np.array([_smooth_losses(self._own_tables[place], rows) for place in family])
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
        logs = blend.own_logs([self._outputs_left_out(place, rows) for place in own])
        return replace(blend, own_weights=self._fit_weights(logs, rows))

    def _weigh_sides(self, own: Blend, local: FloatArray, rows: NDArray[np.bool_]) -> ClassBlend:
        assert isinstance(own, ClassBlend)
        judged = rows & self.judged
        if not judged.any():
            return own
        scale = float(SHARE_SCALES[np.argmin(_smooth_losses(self._collaboration_table, judged))])
        own = replace(own, collaboration_scale=scale)
        common = own.common_logs(self.collaboration[judged])
        placed = _on_known(local[judged], common, self.columns)
        return replace(own, weights=self._fit_weights(np.stack([placed, common]), judged))

    def _fit_weights(self, logs: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        codes = self.target[rows]
        # One row more, of an even mix of classes, keeps few rows from making a loss of zero.
        losses = -logs[:, np.arange(len(codes)), codes].mean(axis=1) - logs.mean(axis=(1, 2)) / len(codes)
        prior = weights_by_loss(losses)
        if len(logs) == 1:
            return prior
        return fit_log_pool(logs, codes, prior=prior, tau=TAU)

    def _table(
        self, scores: FloatArray, scales: FloatArray, columns: NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log loss of every own row at every scale, with its class and with an even mix, each (n_scales, n_own).

        The third array, shape (n_scales,), is the loss on public rows, and a penalty for unlikely scales.
        """
        n_own = len(self.target)
        codes = np.concatenate([self.target, self.public])[: len(scores)]
        logs = [_logs(scores, scale, columns, self.n_classes) for scale in scales]
        with_class = -np.stack([each[np.arange(len(codes)), codes] for each in logs])
        even = -np.stack([each[:n_own].mean(axis=1) for each in logs])
        # A normal prior of the scale's logarithm, about the middle of the scales that are tried.
        unlikely = 0.5 * (np.log(scales / np.sqrt(scales[0] * scales[-1])) / SCALE_SPREAD) ** 2
        return with_class[:, :n_own], even, self.public_weight * with_class[:, n_own:].sum(axis=1) + unlikely


class NumberBlender(Blender):
    """For numbers: convex pools of squared error."""

    def _choose_own(self, rows: NDArray[np.bool_]) -> NumberBlend:
        own = []
        for family in self.families:
            errors = [
                self._mean_square(self._outputs_left_out(place, rows)[:, 0], rows) * rows.sum() for place in family
            ]
            # Public rows may outnumber the own ones, so together they count as these at most.
            of_public = [self.candidates[place].left_out[len(self.target) :, 0] for place in family]
            besides = [float(self.public_weight * np.sum((each - self.public) ** 2)) for each in of_public]
            own.append(family[int(np.argmin(np.add(errors, besides)))])
        left_out = np.column_stack([self._outputs_left_out(place, rows) for place in own])
        return NumberBlend(own=tuple(own), own_weights=self._fit_weights(left_out, rows), weights=_EVENLY)

    def _weigh_sides(self, own: Blend, local: FloatArray, rows: NDArray[np.bool_]) -> Blend:
        judged = rows & self.judged
        if not judged.any():
            return own
        sides = np.column_stack([local[judged], self.collaboration[judged, 0]])
        return replace(own, weights=self._fit_weights(sides, judged))

    def _fit_weights(self, opinions: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        losses = np.array([self._mean_square(opinion, rows) for opinion in opinions.T])
        return fit_convex_pool(opinions, self.target[rows], prior=weights_by_loss(losses), tau=TAU)

    def _mean_square(self, numbers: FloatArray, rows: NDArray[np.bool_]) -> float:
        return float(np.mean((numbers - self.target[rows]) ** 2))


def _smooth_losses(table: tuple[FloatArray, FloatArray, FloatArray], rows: NDArray[np.bool_]) -> FloatArray:
    """Return loss at every scale; one row more, of no class, keeps few rows from making a scale of infinity."""
    with_class, even, besides = table
    return np.asarray(with_class[:, rows].sum(axis=1) + even[:, rows].mean(axis=1) + besides)


def _join(parts: Sequence[tuple[NDArray[np.bool_], FloatArray]]) -> FloatArray:
    """Return outputs for the rows of each mask, in the order of the rows."""
    whole = np.empty((len(parts[0][0]), *parts[0][1].shape[1:]))
    for rows, outputs in parts:
        whole[rows] = outputs
    return whole


def _logs(scores: FloatArray, scale: float, columns: NDArray[np.intp], n_classes: int) -> FloatArray:
    """Return log probabilities of all classes from scores of some, with a floor."""
    shares = np.zeros((len(scores), n_classes))
    shares[:, columns] = np.exp(log_softmax(scale * scores, axis=1))
    return np.asarray(np.log((1 - FLOOR) * shares + FLOOR / n_classes))


def _add_floor(logs: FloatArray) -> FloatArray:
    """Return log probabilities that rule nothing out."""
    return np.asarray(np.log((1 - FLOOR) * np.exp(logs) + FLOOR / logs.shape[1]))


def _on_known(local: FloatArray, common: FloatArray, columns: NDArray[np.intp]) -> FloatArray:
    """Return the party's log probabilities, with the common model's for classes that the party has no row of."""
    # A party that has no row of a class knows nothing of it, and must not rule it out.
    placed = common.copy()
    room = logsumexp(common[:, columns], axis=1, keepdims=True)
    placed[:, columns] = log_softmax(local[:, columns], axis=1) + room
    return placed
