"""How well a survival model orders the rows of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import NumericalError
from ...survival import concordance_index

__all__ = ["SurvivalScores"]


class SurvivalScores:
    """Harrell's concordance of the log risk with times to an event, over all batches together."""

    def __init__(self) -> None:
        self._targets: list[NDArray[Any]] = []
        self._risks: list[NDArray[Any]] = []

    def add(self, target: NDArray[Any], predicted: NDArray[Any]) -> None:
        """Keep a batch."""
        self._targets.append(target)
        self._risks.append(predicted)

    def to_dict(self) -> dict[str, Any]:
        """The figures; the concordance is None where the order of no pair of rows is known."""
        n_rows = sum(map(len, self._targets))
        n_events = int(sum(np.count_nonzero(each["event"]) for each in self._targets))
        return {"n_rows": n_rows, "n_events": n_events, "concordance": self._concordance() if n_rows else None}

    def _concordance(self) -> float | None:
        try:
            return float(concordance_index(np.concatenate(self._targets), np.concatenate(self._risks)))
        except NumericalError:
            return None
