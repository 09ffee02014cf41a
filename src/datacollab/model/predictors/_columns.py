"""Steps that multiply, shift and bend columns."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..._typing import FloatArray
from ._parts import MOST_NUMBER, Parts
from ._refusals import bad_predictor
from ._step import Step

__all__ = ["Affine", "Clip", "Elementwise", "LogFloor", "Scale", "Stretch"]

_LEAST_SPREAD = 1e-100


class Affine(Step):
    """x A + b, with A of shape (n_in, n_out)."""

    kind = "affine"

    def __init__(self, coefficients: FloatArray, intercept: FloatArray) -> None:
        self.coefficients, self.intercept = coefficients, intercept
        self.n_in, self.n_out = coefficients.shape

    def __call__(self, rows: FloatArray) -> FloatArray:
        return rows @ self.coefficients + self.intercept

    @property
    def work(self) -> float:
        """A product is fast."""
        return 0.25 * self.n_in * self.n_out

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"coefficients": self.coefficients, "intercept": self.intercept}

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        coefficients = parts.table("coefficients", (n_in, None))
        return cls(coefficients, parts.table("intercept", (coefficients.shape[1],)))


class Scale(Step):
    """(x - c) / s, column by column."""

    kind = "scale"

    def __init__(self, centre: FloatArray, spread: FloatArray) -> None:
        self.centre, self.spread = centre, spread
        self.n_in = self.n_out = len(centre)

    def __call__(self, rows: FloatArray) -> FloatArray:
        return (rows - self.centre) / self.spread

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"centre": self.centre, "spread": self.spread}

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        centre, spread = parts.table("centre", (n_in,)), parts.table("spread", (n_in,))
        if (np.abs(spread) < _LEAST_SPREAD).any():
            raise bad_predictor("divides a column by nothing")
        return cls(centre, spread)


class Stretch(Step):
    """x a + b, column by column."""

    kind = "stretch"

    def __init__(self, factor: FloatArray, offset: FloatArray) -> None:
        self.factor, self.offset = factor, offset
        self.n_in = self.n_out = len(factor)

    def __call__(self, rows: FloatArray) -> FloatArray:
        return rows * self.factor + self.offset

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"factor": self.factor, "offset": self.offset}

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(parts.table("factor", (n_in,)), parts.table("offset", (n_in,)))


class Clip(Step):
    """Each column cut off at two numbers."""

    kind = "clip"

    def __init__(self, n_columns: int, low: float, high: float) -> None:
        self.n_in = self.n_out = n_columns
        self.low, self.high = low, high

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.clip(rows, self.low, self.high)

    def facts(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high}

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        low = parts.number("low")
        return cls(n_in, low, parts.number("high", least=low))


class Elementwise(Step):
    """One function of every number."""

    kind = "elementwise"
    FUNCTIONS: ClassVar[dict[str, Any]] = {
        "exp": np.exp,
        "logistic": expit,
        "relu": lambda rows: np.maximum(rows, 0.0),
        "tanh": np.tanh,
    }

    def __init__(self, n_columns: int, function: str) -> None:
        self.n_in = self.n_out = n_columns
        self.function = function

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(self.FUNCTIONS[self.function](rows))

    def facts(self) -> dict[str, Any]:
        return {"function": self.function}

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(n_in, parts.choice("function", cls.FUNCTIONS))


class LogFloor(Step):
    """log max(x, least)."""

    kind = "log"

    def __init__(self, n_columns: int, least: float) -> None:
        self.n_in = self.n_out = n_columns
        self.least = least

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(np.log(np.maximum(rows, self.least)))

    def facts(self) -> dict[str, Any]:
        return {"least": self.least}

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(n_in, parts.number("least", least=1 / MOST_NUMBER))
