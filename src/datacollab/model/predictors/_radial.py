"""A step of Gaussian kernels at landmarks."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ._parts import Parts
from ._step import Step

__all__ = ["Radial"]


class Radial(Step):
    """exp(-γ ‖x - s‖²) for each landmark s, which is a row of the anchor or made of such rows."""

    kind = "radial"

    def __init__(self, landmarks: FloatArray, gamma: float) -> None:
        self.landmarks, self.gamma = landmarks, gamma
        self.n_out, self.n_in = landmarks.shape

    def __call__(self, rows: FloatArray) -> FloatArray:
        # Not by rbf_kernel, which raises where an entry is infinite.
        squares = np.sum(rows**2, axis=1)[:, None] + np.sum(self.landmarks**2, axis=1) - 2 * rows @ self.landmarks.T
        return np.asarray(np.exp(-self.gamma * np.maximum(squares, 0.0)))

    @property
    def work(self) -> float:
        """A product, and an exponential for each landmark."""
        return 0.25 * self.n_in * self.n_out + 20.0 * self.n_out

    def facts(self) -> dict[str, Any]:
        return {"gamma": self.gamma}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"landmarks": self.landmarks}

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(parts.table("landmarks", (None, n_in)), parts.number("gamma", least=0))
