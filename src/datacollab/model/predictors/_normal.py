"""A step of normal densities: what Gaussian naive Bayes computes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ._parts import MOST_NUMBER, Parts
from ._refusals import bad_predictor
from ._step import Step

__all__ = ["NormalDensities"]


class NormalDensities(Step):
    """log p(class) + log p(x | class), with columns independent and normal in each class.

    Parameters
    ----------
    means, variances : ndarray of shape (n_out, n_in)
    log_priors : ndarray of shape (n_out,)
    """

    kind = "normal"

    def __init__(self, means: FloatArray, variances: FloatArray, log_priors: FloatArray) -> None:
        self.means, self.variances, self.log_priors = means, variances, log_priors
        self.n_out, self.n_in = means.shape

    def __call__(self, rows: FloatArray) -> FloatArray:
        constants = self.log_priors - 0.5 * np.sum(np.log(2.0 * np.pi * self.variances), axis=1)
        # Class by class: a table of rows by classes by columns may be large.
        densities = [
            constant - 0.5 * np.sum((rows - mean) ** 2 / variance, axis=1)
            for constant, mean, variance in zip(constants, self.means, self.variances, strict=True)
        ]
        return np.column_stack(densities)

    @property
    def work(self) -> float:
        """Each column of each class."""
        return 5.0 * self.n_in * self.n_out

    @property
    def calls(self) -> int:
        """One for each class."""
        return self.n_out

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"means": self.means, "variances": self.variances, "log_priors": self.log_priors}

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        means = parts.table("means", (None, n_in))
        variances = parts.table("variances", means.shape)
        if (variances < 1 / MOST_NUMBER).any():
            raise bad_predictor("has variances that are not positive")
        return cls(means, variances, parts.table("log_priors", (len(means),)))
