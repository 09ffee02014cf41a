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
from ..party import CommonSpace
from ..sums import FEWEST_PARTIES, MaskKey, RidgeSums, SumsPlan

__all__ = ["PlayedSums"]


class PlayedSums:
    """A common model from masked sums, and what parties need to predict with it."""

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
        epsilon: float | None,
        random_state: np.random.RandomState | None,
    ) -> None:
        if len(rows) < FEWEST_PARTIES:
            raise AgreementError(
                f"Sums need at least {FEWEST_PARTIES} parties; groups names {len(rows)}, with n_samples={len(y)}. With "
                "two, each party learns the other's sums by subtracting its own. Pass sharing='rows' to share rows."
            )
        draw = secrets.token_bytes if random_state is None else random_state.bytes
        keys = {party: MaskKey(draw(32)) for party in rows}
        self.space = CommonSpace(anchor, draw(32))
        target: dict[str, Any] = {"classes": None if classes is None else tuple(classes.tolist()), "limits": limits}
        noise = self.space.recommended.noise
        if epsilon is not None:
            noise = max(noise, RidgeSums(self.space.n_components, **target).noise_for(epsilon))
        self.plan = SumsPlan(
            {party: key.public for party, key in keys.items()},
            n_components=self.space.n_components,
            **target,
            noise=noise,
            least_penalty=self.space.recommended.least_penalty,
        )
        messages = []
        for place, (party, index) in enumerate(rows.items()):
            v, t = self.transform(_safe_indexing(X, index)), y[index]
            if place == 0 and anchor_target is not None:
                v, t = np.vstack([v, self.space.anchor]), np.concatenate([t, anchor_target])
            noise_key = None if random_state is None else draw(32)
            messages.append(self.plan.message(party, v, t, keys[party], noise_key=noise_key))
        self.model = self.plan.solve(messages)

    def transform(self, X: Any) -> FloatArray:
        """Return rows in the common map, shape (n_rows, n_components)."""
        return self.space.transform(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return classes or numbers, shape (n_rows,)."""
        return self.model.predict(self.transform(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities, shape (n_rows, n_classes)."""
        return self.model.predict_proba(self.transform(X))
