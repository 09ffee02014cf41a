"""A step of Gaussian kernels at landmarks."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

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
        return np.asarray(rbf_kernel(rows, self.landmarks, gamma=self.gamma))

    def facts(self) -> dict[str, Any]:
        return {"gamma": self.gamma}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"landmarks": self.landmarks}

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(parts.table("landmarks", (None, n_in)), parts.number("gamma", least=0))
