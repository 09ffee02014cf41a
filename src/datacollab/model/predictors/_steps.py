"""Steps that compute a table from a table of rows: products, functions of single numbers, links, densities, kernels."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from ..._typing import FloatArray
from ._step import MOST_NUMBER, Parts, Step, bad_predictor, large_predictor

__all__ = [
    "Affine",
    "Binary",
    "Clip",
    "Complement",
    "Elementwise",
    "Isotonic",
    "LogFloor",
    "NormalDensities",
    "Normalise",
    "Radial",
    "Scale",
    "Softmax",
    "Stretch",
]

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


_MOST_KNOTS = 10**7


class Softmax(Step):
    """exp(x) over its sum."""

    kind = "softmax"

    def __init__(self, n_columns: int) -> None:
        self.n_in = self.n_out = n_columns

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(softmax(rows, axis=1))

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(n_in)


class Normalise(Step):
    """Rows over their sums; alike where the sum is zero."""

    kind = "normalise"

    def __init__(self, n_columns: int) -> None:
        self.n_in = self.n_out = n_columns

    def __call__(self, rows: FloatArray) -> FloatArray:
        total = rows.sum(axis=1, keepdims=True)
        alike = np.full_like(rows, 1 / self.n_in)
        return np.asarray(np.divide(rows, total, out=alike, where=total != 0))

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        return cls(n_in)


class Complement(Step):
    """The probability of the second class to those of both."""

    kind = "complement"
    n_in, n_out = 1, 2

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.concatenate([1 - rows, rows], axis=1)

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        _check_one_column(n_in)
        return cls()


class Binary(Complement):
    """The score of the second class to the probabilities of both, by the logistic function."""

    kind = "binary"

    def __call__(self, rows: FloatArray) -> FloatArray:
        return super().__call__(np.asarray(expit(rows)))


class Isotonic(Step):
    """A rising line through knots for each column, level beyond them."""

    kind = "isotonic"

    def __init__(self, lengths: NDArray[Any], knots: FloatArray, heights: FloatArray) -> None:
        self.lengths, self.knots, self.heights = lengths, knots, heights
        self.n_in = self.n_out = len(lengths)

    def __call__(self, rows: FloatArray) -> FloatArray:
        ends = np.cumsum(self.lengths)[:-1]
        lines = zip(rows.T, np.split(self.knots, ends), np.split(self.heights, ends), strict=True)
        return np.column_stack([np.interp(column, knots, heights) for column, knots, heights in lines])

    @property
    def work(self) -> float:
        """Each number is searched for among knots."""
        return 100.0 * self.n_in

    @property
    def calls(self) -> int:
        """One for each column."""
        return self.n_in

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"lengths": self.lengths, "knots": self.knots, "heights": self.heights}

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        lengths = parts.integers("lengths", least=1, most=_MOST_KNOTS)
        if len(lengths) != n_in:
            raise bad_predictor("has knots for other columns than there are")
        n_knots = int(lengths.sum(dtype=np.int64))
        if n_knots > _MOST_KNOTS:
            raise large_predictor(f"{n_knots} knots; {_MOST_KNOTS} are allowed")
        knots, heights = parts.table("knots", (n_knots,)), parts.table("heights", (n_knots,))
        first = np.zeros(n_knots, dtype=bool)
        first[np.concatenate([[0], np.cumsum(lengths)[:-1]])] = True
        for values in (knots, heights):
            if ((np.diff(values, prepend=-np.inf) < 0) & ~first).any():
                raise bad_predictor("has knots that do not rise")
        return cls(lengths, knots, heights)


def _check_one_column(n_in: int) -> None:
    if n_in != 1:
        raise bad_predictor(f"makes two classes of {n_in} scores; one is wanted")


class NormalDensities(Step):
    """log p(class) + log p(x | class), with columns independent and normal in each class."""

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
