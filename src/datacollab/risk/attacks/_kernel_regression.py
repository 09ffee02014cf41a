r"""Kernel ridge regression with an intercept whose kernel, scaling and penalty leave-one-out errors choose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from sklearn.utils import gen_batches

from ..._validation import FloatArray
from ...linalg import Kernel, RidgePath, ridge_coefficients, ridge_path
from ._side import column_scale
from ._targets import IntArray

__all__ = ["KernelRegression", "Setting", "Settings", "kernel_regression", "leading_directions"]

MAX_FIRST = 400
"""Rows on which all settings are compared: each kernel takes the eigenvectors of a matrix of this order."""

MAX_CHOICE = 1000
"""Rows on which the best few are compared again."""

FINALISTS = 2
"""How many these are, each with all penalties."""

MAX_PAIRS = 5000
"""Rows that the coefficients are fitted to: more would hardly help, and take memory with their square."""

DIRECTIONS = 64
"""Principal directions of the outputs on which the errors are computed; the rest cannot be told from noise."""

BLOCK_ENTRIES = 2**22
"""Entries of the kernel matrix between new rows and pairs that are in memory at a time (32 MiB)."""


@dataclass(frozen=True)
class Setting:
    """One way to regress.

    Attributes
    ----------
    kernel : {"linear", "rbf"}
    gamma : float
        Of the RBF kernel, as a multiple of one over the mean squared distance between rows.
    standardize : bool
        Whether columns are divided by their standard deviations.
    alpha : float
        Penalty for a kernel that is 1, on average, of a row with itself.
    """

    kernel: str
    gamma: float
    standardize: bool
    alpha: float


@dataclass(frozen=True)
class Settings:
    """What to choose from: all combinations."""

    kernels: Sequence[str]
    gammas: Sequence[float]
    standardize: Sequence[bool]
    alphas: Sequence[float]

    def __post_init__(self) -> None:
        for name in ("gammas", "alphas"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if values.ndim != 1 or not values.size or not (np.isfinite(values) & (values > 0)).all():
                raise ValueError(f"{name} must be a sequence of positive numbers, at least one.")

    def __iter__(self) -> Iterator[Setting]:
        """All but the penalties, which share a decomposition; the smallest penalty stands for them."""
        for standardize in self.standardize:
            for kernel in self.kernels:
                for gamma in self.gammas if kernel == "rbf" else (1.0,):
                    yield Setting(kernel, gamma, standardize, min(self.alphas))


@dataclass(frozen=True, eq=False)
class KernelRegression:
    """A fitted regression on centred inputs and outputs.

    Attributes
    ----------
    setting : Setting
    scale : ndarray of shape (n_inputs,)
        What inputs are multiplied with.
    inputs : ndarray of shape (n_pairs, n_inputs)
        Scaled.
    kernel : Kernel
    coefficients : ndarray of shape (n_pairs, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    error : float
        Mean over rows of the squared leave-one-out error, on the outputs' leading directions.
    residuals : ndarray of shape (n_chosen_on, n_outputs)
        Leave-one-out errors of the rows that the choice was made on.
    chosen_on : ndarray of shape (n_chosen_on,)
        Numbers of these rows.
    """

    setting: Setting
    scale: FloatArray
    inputs: FloatArray
    kernel: Kernel
    coefficients: FloatArray
    intercept: FloatArray
    error: float
    residuals: FloatArray
    chosen_on: IntArray

    def predict(self, X: FloatArray) -> FloatArray:
        """Outputs of centred inputs, shape (n_rows, n_outputs)."""
        step = max(1, BLOCK_ENTRIES // len(self.inputs))
        return np.concatenate(
            [
                self.kernel.between(X[block] * self.scale, self.inputs) @ self.coefficients + self.intercept
                for block in gen_batches(len(X), step)
            ]
        )

    def linear_map(self) -> FloatArray:
        """For a linear kernel the matrix that inputs are multiplied with, shape (n_inputs, n_outputs)."""
        gamma = float(self.kernel.parameters["gamma"])
        return gamma * self.scale[:, np.newaxis] * (self.inputs.T @ self.coefficients)


def kernel_regression(X: FloatArray, Y: FloatArray, settings: Settings) -> KernelRegression:
    r"""Fit :math:`y = b + \sum_i \gamma_i \kappa(x, x_i)`, the intercept b unpenalised.

    For each kernel one eigendecomposition of the centred kernel matrix serves all penalties: with the smoother
    :math:`H = 11^\top/n + U \mathrm{diag}(s/(s+\lambda)) U^\top`, the error of a row left out is
    :math:`(y_i - (HY)_i)/(1 - h_{ii})`, exactly, for a given kernel and scaling.

    Parameters
    ----------
    X : ndarray of shape (n_pairs, n_inputs)
        Centred.  At most 400 compare all kernels, 1,000 the best two; 5,000 are used.
    Y : ndarray of shape (n_pairs, n_outputs)
        Centred.
    settings : Settings

    Returns
    -------
    KernelRegression
    """
    order = np.random.default_rng(0).permutation(len(X))
    chosen_on = np.sort(order[:MAX_CHOICE])
    setting, error, residuals = _choose(X[chosen_on], Y[chosen_on], settings)
    used = np.sort(order[:MAX_PAIRS])
    X, Y = X[used], Y[used]
    scale = column_scale(X, setting.standardize)
    inputs = X * scale
    kernel = _kernel(inputs, setting)
    K, mean = _centred(kernel.between(inputs, inputs))
    coefficients = ridge_coefficients(K, setting.alpha, Y - Y.mean(axis=0))
    intercept = Y.mean(axis=0) - mean @ coefficients
    return KernelRegression(setting, scale, inputs, kernel, coefficients, intercept, error, residuals, chosen_on)


def leading_directions(Y: FloatArray, n_directions: int = DIRECTIONS) -> FloatArray:
    """Coordinates of centred rows along their leading principal directions, or the rows if they are as few."""
    if min(Y.shape) <= n_directions:
        return Y
    wide = Y.shape[1] > Y.shape[0]
    gram = Y @ Y.T if wide else Y.T @ Y
    eigenvalues, V = scipy.linalg.eigh(gram, subset_by_index=(len(gram) - n_directions, len(gram) - 1))
    leading: FloatArray = V * np.sqrt(np.maximum(eigenvalues, 0.0)) if wide else Y @ V
    return leading


def _choose(X: FloatArray, Y: FloatArray, settings: Settings) -> tuple[Setting, float, FloatArray]:
    """The setting of the least leave-one-out error, that error, and the errors row by row."""
    Y = Y - Y.mean(axis=0)
    leading = leading_directions(Y)
    candidates = list(settings)
    if len(X) > MAX_FIRST:
        first = np.random.default_rng(1).choice(len(X), MAX_FIRST, replace=False)
        of_first = leading[first] - leading[first].mean(axis=0)
        compared = [_best_penalty(X[first], of_first, one, settings.alphas) for one in candidates]
        order = np.argsort([error for error, _, _ in compared], kind="stable")
        candidates = [candidates[number] for number in order[:FINALISTS]]
    error, setting, path = min(
        (_best_penalty(X, leading, one, settings.alphas) for one in candidates), key=lambda one: one[0]
    )
    return setting, error, _left_out(path, setting.alpha, Y)


def _best_penalty(
    X: FloatArray, Y: FloatArray, setting: Setting, alphas: Sequence[float]
) -> tuple[float, Setting, RidgePath]:
    """Least mean squared leave-one-out error over the penalties, the setting with that one, and the eigenvectors."""
    scaled = X * column_scale(X, setting.standardize)
    K, _ = _centred(_kernel(scaled, setting).between(scaled, scaled))
    path = ridge_path(K, min(alphas))
    # From the largest penalty on, so that of equals the smoothest is kept.
    descending = sorted(alphas, reverse=True)
    errors = [float((_left_out(path, alpha, Y) ** 2).sum() / len(X)) for alpha in descending]
    best = int(np.argmin(errors))
    return errors[best], replace(setting, alpha=float(descending[best])), path


def _left_out(path: RidgePath, alpha: float, Y: FloatArray) -> FloatArray:
    weights = path.eigenvalues / (path.eigenvalues + alpha)
    fitted = path.vectors @ (weights[:, np.newaxis] * (path.vectors.T @ Y))
    freedom = 1 - 1 / len(Y) - (path.vectors**2) @ weights
    left_out: FloatArray = (Y - fitted) / np.maximum(freedom, np.finfo(np.float64).eps)[:, np.newaxis]
    return left_out


def _kernel(inputs: FloatArray, setting: Setting) -> Kernel:
    """The kernel on the scale of scaled inputs; of rows that coincide it is constant."""
    spread = float(((inputs - inputs.mean(axis=0)) ** 2).sum() / len(inputs))
    unit = 1.0 / spread if spread > 0 else 1.0
    if setting.kernel == "linear":
        # A polynomial of degree one has the factor that the linear kernel has not.
        return Kernel(metric="poly", parameters={"gamma": unit, "degree": 1, "coef0": 0.0})
    return Kernel(metric="rbf", parameters={"gamma": setting.gamma * unit / 2})


def _centred(K: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Kernel matrix of rows centred in feature space, and the means over its rows before."""
    mean = K.mean(axis=0)
    return K - mean - mean[:, np.newaxis] + mean.mean(), mean
