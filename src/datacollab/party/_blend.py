"""A party's own models and the collaboration's as one, settled on left-out outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from .._validation import FloatArray
from ._opinion_pool import fit_convex_pool, fit_log_pool, log_pool, weights_by_loss
from ._own_models import SHARE_SCALES, Candidate
from ._own_scorers import FLOOR

__all__ = [
    "Blend",
    "Blender",
    "ClassBlend",
    "ClassBlender",
    "NumberBlend",
    "NumberBlender",
    "Opinions",
    "left_out_opinions",
]

BIAS_RIDGE = 1.0
"""Of class biases, which are logarithms of ratios: without rows they stay within a factor of about three."""


@dataclass(frozen=True, eq=False)
class Opinions:
    """What each side says of rows: log probabilities (n_rows, n_classes), or standardised numbers (n_rows,)."""

    alone: FloatArray
    collaboration: FloatArray
    pooled: FloatArray


class Blend(ABC):
    """What was chosen and how it is weighed.

    Attributes
    ----------
    own : tuple of int
        Positions of the candidates, one of each family.
    own_weights : ndarray of shape (n_families,)
    weights : ndarray of shape (2,)
        Of alone and collaboration.
    """

    own: tuple[int, ...]
    own_weights: FloatArray
    weights: FloatArray

    @abstractmethod
    def speak(self, own: Sequence[FloatArray], collaboration: FloatArray) -> Opinions:
        """Apply it to outputs of its candidates and of the collaboration, each of shape (n_rows, n_outputs)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassBlend(Blend):
    """A log-opinion pool of log-opinion pools.

    Attributes
    ----------
    own, own_weights, weights
        As for `Blend`.
    own_scales : tuple of float
    collaboration_scale : float
    biases : dict of str to ndarray of shape (n_classes,)
        Of "alone", "collaboration" and "pooled", where the party's own class mix counts; else empty.
    columns : ndarray of shape (n_own_classes,)
        Where the classes of the candidates stand among all.
    n_classes : int
    """

    own: tuple[int, ...]
    own_weights: FloatArray
    weights: FloatArray
    own_scales: tuple[float, ...]
    collaboration_scale: float
    biases: dict[str, FloatArray]
    columns: NDArray[np.intp]
    n_classes: int

    def speak(self, own: Sequence[FloatArray], collaboration: FloatArray) -> Opinions:
        """Log probabilities of all classes by each side, each of shape (n_rows, n_classes)."""
        logs = np.stack(
            [_logs(one, scale, self.columns, self.n_classes) for one, scale in zip(own, self.own_scales, strict=True)]
        )
        alone = _pooled(logs, self.own_weights, self.biases.get("alone"))
        told = _logs(collaboration, self.collaboration_scale, np.arange(self.n_classes), self.n_classes)
        told = _pooled(told[None], np.ones(1), self.biases.get("collaboration"))
        pooled = log_pool(np.stack([alone, told]), self.weights, self.biases.get("pooled"))
        return Opinions(alone, told, pooled)


@dataclass(frozen=True, eq=False, kw_only=True)
class NumberBlend(Blend):
    """A weighted mean of weighted means.

    Attributes
    ----------
    own, own_weights, weights
        As for `Blend`.
    """

    own: tuple[int, ...]
    own_weights: FloatArray
    weights: FloatArray

    def speak(self, own: Sequence[FloatArray], collaboration: FloatArray) -> Opinions:
        """Numbers by each side, each of shape (n_rows,)."""
        alone = np.column_stack(list(own)) @ self.own_weights
        told = collaboration[:, 0]
        return Opinions(alone, told, np.column_stack([alone, told]) @ self.weights)


class Blender(ABC):
    """Settles a blend on the rows that it is told of.

    Parameters
    ----------
    candidates : sequence of Candidate
    collaboration : ndarray of shape (n_own, n_outputs)
        Left-out outputs of the collaboration for the own rows, NaN where there is none.
    target : ndarray of shape (n_own,)
        Columns of the classes, or standardised numbers.
    tau : float
        How much the weights are held to those by loss.
    """

    def __init__(
        self, candidates: Sequence[Candidate], collaboration: FloatArray, target: NDArray[Any], tau: float
    ) -> None:
        self.candidates = candidates
        self.collaboration = collaboration
        self.target = target
        self.tau = tau
        self.judged = np.isfinite(collaboration).all(axis=1)
        names = [candidate.family for candidate in candidates]
        self.families = [
            [place for place, name in enumerate(names) if name == family] for family in dict.fromkeys(names)
        ]

    def own_left_out(self, blend: Blend) -> list[FloatArray]:
        """Left-out outputs of the chosen candidates."""
        return [self.candidates[place].left_out for place in blend.own]

    @abstractmethod
    def settle(self, rows: NDArray[np.bool_]) -> Blend:
        """Choose and weigh, with nothing but these rows, a mask of shape (n_own,)."""


def left_out_opinions(blender: Blender, folds: NDArray[np.intp]) -> Opinions:
    """Opinions on each own row by a blend that was settled without the row's fold.

    Parameters
    ----------
    blender : Blender
    folds : ndarray of shape (n_own,)
    """
    parts: list[Opinions] = []
    order: list[NDArray[np.intp]] = []
    for fold in np.unique(folds):
        out = folds == fold
        blend = blender.settle(~out)
        own = [outputs[out] for outputs in blender.own_left_out(blend)]
        parts.append(blend.speak(own, blender.collaboration[out]))
        order.append(np.flatnonzero(out))
    back = np.argsort(np.concatenate(order))
    together = (
        np.concatenate([getattr(part, name) for part in parts])[back] for name in ("alone", "collaboration", "pooled")
    )
    return Opinions(*together)


class ClassBlender(Blender):
    """For classes: log-opinion pools.

    Parameters
    ----------
    candidates, collaboration, target, tau
        As for `Blender`; `collaboration` holds logarithms of shares of all classes.
    columns : ndarray of shape (n_own_classes,)
        Where the classes of the candidates stand among all.
    own_mix : bool
        Whether class biases are fitted.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        collaboration: FloatArray,
        target: NDArray[np.intp],
        tau: float,
        columns: NDArray[np.intp],
        own_mix: bool,
    ) -> None:
        super().__init__(candidates, collaboration, target, tau)
        self.columns = columns
        self.n_classes = collaboration.shape[1]
        self.bias_ridge = BIAS_RIDGE if own_mix else None
        self._own_tables = [
            self._table(candidate.left_out, candidate.scales, self.columns) for candidate in self.candidates
        ]
        self._collaboration_table = self._table(np.nan_to_num(collaboration), SHARE_SCALES, np.arange(self.n_classes))

    def settle(self, rows: NDArray[np.bool_]) -> ClassBlend:
        """Choose candidates and scales by log loss, then fit the pools."""
        own, scales = [], []
        for family in self.families:
            losses = np.array([self._loss(self._own_tables[place], rows) for place in family])
            best, step = np.unravel_index(np.argmin(losses), losses.shape)
            own.append(family[best])
            scales.append(float(self.candidates[family[best]].scales[step]))
        left_out = [self.candidates[place].left_out[rows] for place in own]
        logs = np.stack(
            [_logs(one, scale, self.columns, self.n_classes) for one, scale in zip(left_out, scales, strict=True)]
        )
        biases: dict[str, FloatArray] = {}
        own_weights = self._fitted(logs, rows, "alone", biases)
        judged = rows & self.judged
        scale, weights = 1.0, np.array([0.5, 0.5])
        if judged.any():
            scale = float(SHARE_SCALES[np.argmin(self._loss(self._collaboration_table, judged))])
            told = _logs(self.collaboration[judged], scale, np.arange(self.n_classes), self.n_classes)[None]
            self._fitted(told, judged, "collaboration", biases)
            sides = [
                _pooled(logs, own_weights, biases.get("alone"))[judged[rows]],
                _pooled(told, np.ones(1), biases.get("collaboration")),
            ]
            weights = self._fitted(np.stack(sides), judged, "pooled", biases)
        return ClassBlend(
            own=tuple(own),
            own_weights=own_weights,
            weights=weights,
            own_scales=tuple(scales),
            collaboration_scale=scale,
            biases=biases,
            columns=self.columns,
            n_classes=self.n_classes,
        )

    def _fitted(
        self, logs: FloatArray, rows: NDArray[np.bool_], side: str, biases: dict[str, FloatArray]
    ) -> FloatArray:
        codes = self.target[rows]
        losses = -logs[:, np.arange(len(codes)), codes].mean(axis=1)
        if len(logs) == 1 and self.bias_ridge is None:
            return np.ones(1)
        prior = weights_by_loss(losses)
        weights, bias = fit_log_pool(logs, codes, prior=prior, tau=self.tau, bias_ridge=self.bias_ridge)
        if len(logs) == 1:
            # The scale of a single opinion was chosen before; only its bias is new.
            weights = np.ones(1)
        if bias is not None:
            biases[side] = bias
        return weights

    def _table(
        self, scores: FloatArray, scales: FloatArray, columns: NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray]:
        """Log loss of every row at every scale, with its class and with an even mix, each (n_scales, n_own)."""
        logs = [_logs(scores, scale, columns, self.n_classes) for scale in scales]
        own = np.arange(len(self.target))
        return -np.stack([each[own, self.target] for each in logs]), -np.stack([each.mean(axis=1) for each in logs])

    @staticmethod
    def _loss(table: tuple[FloatArray, FloatArray], rows: NDArray[np.bool_]) -> FloatArray:
        """Loss at every scale; one row more, of no class, keeps few rows from making a scale of infinity."""
        as_it_was, even = table
        return np.asarray(as_it_was[:, rows].sum(axis=1) + even[:, rows].mean(axis=1))


class NumberBlender(Blender):
    """For numbers: convex pools of squared error."""

    def settle(self, rows: NDArray[np.bool_]) -> NumberBlend:
        """Choose candidates by squared error, then fit the pools."""
        own = []
        for family in self.families:
            errors = [self._squares(self.candidates[place].left_out[rows, 0], rows) for place in family]
            own.append(family[int(np.argmin(errors))])
        left_out = np.column_stack([self.candidates[place].left_out[rows] for place in own])
        own_weights = self._fitted(left_out, rows)
        judged = rows & self.judged
        weights = np.array([0.5, 0.5])
        if judged.any():
            alone = (left_out @ own_weights)[judged[rows]]
            weights = self._fitted(np.column_stack([alone, self.collaboration[judged, 0]]), judged)
        return NumberBlend(own=tuple(own), own_weights=own_weights, weights=weights)

    def _fitted(self, opinions: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        losses = np.array([self._squares(opinion, rows) for opinion in opinions.T])
        return fit_convex_pool(opinions, self.target[rows], prior=weights_by_loss(losses), tau=self.tau)

    def _squares(self, numbers: FloatArray, rows: NDArray[np.bool_]) -> float:
        return float(np.mean((numbers - self.target[rows]) ** 2))


def _logs(scores: FloatArray, scale: float, columns: NDArray[np.intp], n_classes: int) -> FloatArray:
    """Log probabilities of all classes from scores of some, with a floor."""
    shares = np.zeros((len(scores), n_classes))
    shares[:, columns] = np.exp(log_softmax(scale * scores, axis=1))
    return np.asarray(np.log((1 - FLOOR) * shares + FLOOR / n_classes))


def _pooled(logs: FloatArray, weights: FloatArray, bias: FloatArray | None) -> FloatArray:
    """Pool log probabilities, and let nothing be ruled out."""
    return np.asarray(np.log((1 - FLOOR) * np.exp(log_pool(logs, weights, bias)) + FLOOR / logs.shape[2]))
