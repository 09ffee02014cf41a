"""Sums under masks with all roles in one process: what the supervised one-process estimators do by default."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from .._validation import FloatArray, PartyName
from ..errors import AgreementError
from ..party import TableEncoder
from ..sums import FEWEST_PARTIES, CommonMap, MaskedSum, MaskKey, RidgeFromSums, RidgeSums

__all__ = ["PlayedSums"]

_LEAST_PROBABILITY = 1e-3


class PlayedSums:
    """A common model from masked sums, and what parties need to predict with it.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    rows : mapping of party to ndarray of int
        Row numbers of each party.
    anchor : array-like or dataframe of shape (n_anchors, n_features)
        Public rows.
    anchor_target : ndarray of shape (n_anchors,) or None
        Their targets: the first party adds these rows to its own.
    classes : ndarray or None
    limits : (float, float) or None
        The range of numeric targets.
    random_state : RandomState or None
        For experiments; None leaves secrets and noise to the operating system.

    Raises
    ------
    AgreementError
        If there are fewer than three parties.
    """

    def __init__(
        self,
        X: Any,
        y: NDArray[Any],
        rows: Mapping[PartyName, NDArray[np.intp]],
        anchor: Any,
        anchor_target: NDArray[Any] | None,
        *,
        classes: NDArray[Any] | None,
        limits: tuple[float, float] | None,
        random_state: np.random.RandomState | None,
    ) -> None:
        if len(rows) < FEWEST_PARTIES:
            raise AgreementError(
                f"Sums need at least {FEWEST_PARTIES} parties; groups names {len(rows)}, with n_samples={len(y)}. With "
                "two, each party learns the other's sums by subtracting its own. Pass sharing='rows' to share rows."
            )
        draw = secrets.token_bytes if random_state is None else random_state.bytes
        self._encoder = TableEncoder(anchor, None, "all parties")
        public = self._encoder.encode(anchor)
        self._map = CommonMap.from_anchor(public, draw(32))
        self.statistic = RidgeSums(
            self._map.n_components, classes=None if classes is None else tuple(classes.tolist()), limits=limits
        )
        keys = {party: MaskKey(draw(32)) for party in rows}
        agreed = MaskedSum(
            {"purpose": "ridge regression"},
            {party: key.public for party, key in keys.items()},
            noise=self.statistic.noise_of_each,
        )
        messages = []
        for place, (party, index) in enumerate(rows.items()):
            part = self.statistic.part(self.transform(_safe_indexing(X, index)), y[index])
            if place == 0 and anchor_target is not None:
                part = part + self.statistic.part(self._map.transform(public), anchor_target)
            noise_key = None if random_state is None else draw(32)
            messages.append(agreed.mask(party, part, keys[party], noise_key=noise_key))
        self.model: RidgeFromSums = self.statistic.solve(agreed.total(messages))

    def transform(self, X: Any) -> FloatArray:
        """Return rows in the common map, shape (n_rows, n_components)."""
        return self._map.transform(self._encoder.encode(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return classes or numbers, shape (n_rows,)."""
        return self.statistic.decode(self.model.predict(self.transform(X)))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities, shape (n_rows, n_classes): outputs plus 1/C, none below one in a thousand."""
        outputs = self.model.predict(self.transform(X)) + 1 / self.statistic.n_outputs
        kept = np.maximum(outputs, _LEAST_PROBABILITY)
        return np.asarray(kept / kept.sum(axis=1, keepdims=True))
