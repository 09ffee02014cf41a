"""Attacks that learn from leaked pairs: linear maps, nearest rows, kernels, and a library of public rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.covariance import ledoit_wolf
from sklearn.neighbors import NearestNeighbors

from ..._constraints import StrOptions
from ..._validation import FloatArray
from ...linalg import Kernel, RidgePath, ridge_coefficients, ridge_path
from ._attack import IntArray, ReconstructionAttack, centre, check_pairs, column_scale, least_squares, row_blocks


class LinearRegressionAttack(ReconstructionAttack):
    r"""Least squares from the representation to the original, the attack "LR" of [1]_.

    With the centred leaked pairs :math:`\tilde A^c` and :math:`A^c`, a representation z becomes
    :math:`\bar A + (z - \bar{\tilde A}) (\tilde A^c)^\dagger A^c`: of all maps that fit the pairs best, the one of
    minimum norm, which is ``coefficients_``.

    References
    ----------
    .. [1] Suetake, Kawakami, Ikeda and Takano. Nonlinear data integration via kernel methods for data collaboration
       analysis.
    """

    def _fit(self, Z: FloatArray, A: FloatArray, *side: Any) -> None:
        self.coefficients_ = least_squares(Z, A)

    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        return Z @ self.coefficients_


class _Scaling(ReconstructionAttack):
    """Base of attacks that divide the representation's columns by their standard deviations, or choose whether to."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {"standardize": [StrOptions({"auto"}), "boolean"]}

    def __init__(self, *, standardize: str | bool = "auto") -> None:
        self.standardize = standardize

    @property
    def _scalings(self) -> tuple[bool, ...]:
        if isinstance(self.standardize, str):
            return (False, True)
        return (self.standardize,)


CANDIDATES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


class NearestNeighborsAttack(_Scaling):
    """Mean of the leaked rows whose representations are nearest; `standardize` is as in `KernelRidgeAttack`.

    The errors of leaked rows left out choose how many these are (``n_neighbors_``, up to 64), whether a neighbour at
    distance d weighs 1 - (d / h)^2, with h the distance of the first row beyond them (``weights_``), and the scaling.
    """

    def _fit(self, Z: FloatArray, A: FloatArray, *side: Any) -> None:
        most = max(1, len(Z) - 2)
        numbers = sorted({min(number, most) for number in CANDIDATES})
        outputs = leading_directions(A)
        best: tuple[float, int, str, bool] = np.inf, numbers[0], "uniform", False
        for standardize in self._scalings:
            scaled = Z * column_scale(Z, standardize)
            # Of two rows each has one other only, and there is nothing to choose.
            reach = min(numbers[-1] + 1, len(Z) - 1)
            distances, neighbors = NearestNeighbors(n_neighbors=reach).fit(scaled).kneighbors()
            if reach <= 1:
                continue
            for number, kind in product(numbers, ("uniform", "kernel")):
                guesses = _mean_by_weight(outputs, distances, neighbors, number, kind)
                error = float(((outputs - guesses) ** 2).sum())
                # Of equals the first is kept, which has the fewest neighbours.
                best = min(best, (error, number, kind, standardize), key=lambda one: one[0])
        _, self.n_neighbors_, self.weights_, self.standardize_ = best
        self._multiplier = column_scale(Z, self.standardize_)
        self._search = NearestNeighbors(n_neighbors=self.n_neighbors_ + 1).fit(Z * self._multiplier)
        self._originals = A

    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        distances, neighbors = self._search.kneighbors(Z * self._multiplier)
        return _mean_by_weight(self._originals, distances, neighbors, self.n_neighbors_, self.weights_)


def _mean_by_weight(rows: FloatArray, distances: FloatArray, neighbors: IntArray, number: int, kind: str) -> FloatArray:
    """Average the first neighbours of each row, shape (n_rows, rows.shape[1])."""
    weights = np.ones((len(distances), number))
    if kind == "kernel":
        width = distances[:, number : number + 1]
        weights -= np.divide(distances[:, :number], width, out=np.ones_like(weights), where=width > 0) ** 2
        # Where all neighbours are as far as the next row, none counts less.
        weights[weights.sum(axis=1) <= 0] = 1.0
    weights /= weights.sum(axis=1, keepdims=True)
    # Neighbour by neighbour: all at once would take a table for each of up to 64.
    mean = np.zeros((len(distances), rows.shape[1]))
    for weight, neighbor in zip(weights.T, neighbors.T[:number], strict=True):
        mean += weight[:, np.newaxis] * rows[neighbor]
    return mean


MAX_FIRST = 250
FINALISTS = 2
MAX_CHOICE = 500
MAX_PAIRS = 5000
"""Rows that compare all settings, settings that are compared again, rows for that, and rows that are learnt from."""
DIRECTIONS = 64
"""Principal directions of the outputs on which the errors are computed; the rest cannot be distinguished from noise."""


@dataclass(frozen=True)
class Setting:
    """Choices of a regression: gamma times the rows' mean squared distance, and a penalty for a kernel of size one."""

    kernel: str
    gamma: float
    standardize: bool
    alpha: float = 0.0


def _settings(scalings: Sequence[bool] = (False, True)) -> list[Setting]:
    """List a linear kernel and RBF kernels, for each way of scaling columns."""
    kernels = [("linear", 1.0), *(("rbf", gamma) for gamma in (0.1, 0.3, 1.0, 3.0, 10.0))]
    return [Setting(kernel, gamma, scaled) for scaled in scalings for kernel, gamma in kernels]


@dataclass(frozen=True, eq=False)
class KernelRegression:
    """Fitted regression on scaled inputs, with leave-one-out `residuals` of the rows that it was `chosen_on`."""

    setting: Setting
    scale: FloatArray
    inputs: FloatArray
    kernel: Kernel
    coefficients: FloatArray
    intercept: FloatArray
    residuals: FloatArray
    chosen_on: IntArray

    def predict(self, X: FloatArray) -> FloatArray:
        blocks = row_blocks(len(X), len(self.inputs))
        kernels = (self.kernel.between(X[block] * self.scale, self.inputs) for block in blocks)
        return np.concatenate([K @ self.coefficients + self.intercept for K in kernels])


def kernel_regression(
    X: FloatArray, Y: FloatArray, settings: Sequence[Setting], alphas: Sequence[float]
) -> KernelRegression:
    r"""Fit :math:`y = b + \sum_i \gamma_i \kappa(x, x_i)`, the intercept b unpenalised, to centred pairs.

    For each kernel one eigendecomposition of the centred kernel matrix serves all penalties: the error of a row left
    out is :math:`(y_i - (HY)_i)/(1 - h_{ii})`, with the smoother H, exactly, for a given kernel and scaling.
    """
    # A seed of its own, so that the same pairs always give the same attack; the rows may come sorted by class.
    order = np.random.default_rng(0).permutation(len(X))
    chosen_on = np.sort(order[:MAX_CHOICE])
    used = np.sort(order[:MAX_PAIRS])
    setting, residuals = _choose(X[chosen_on], Y[chosen_on], settings, alphas)
    X = X[used]
    Y = Y[used]
    scale = column_scale(X, setting.standardize)
    inputs = X * scale
    kernel = _kernel(inputs, setting)
    K, mean = _centre_kernel(kernel.between(inputs, inputs))
    coefficients = ridge_coefficients(K, setting.alpha, Y - Y.mean(axis=0))
    # The kernel matrix was centred, and `predict` uses it uncentred: the difference goes into the intercept.
    intercept = Y.mean(axis=0) - mean @ coefficients
    return KernelRegression(setting, scale, inputs, kernel, coefficients, intercept, residuals, chosen_on)


def leading_directions(Y: FloatArray, n_directions: int = DIRECTIONS) -> FloatArray:
    """Return coordinates of centred rows along their leading principal directions, or the rows if they are as few."""
    if min(Y.shape) <= n_directions:
        return Y
    # The smaller of the two products has the same eigenvalues; of YY' = VDV' the coordinates are V times the root of D.
    if Y.shape[1] <= Y.shape[0]:
        _, V = _last_eigenpairs(Y.T @ Y, n_directions)
        return np.asarray(Y @ V)
    eigenvalues, V = _last_eigenpairs(Y @ Y.T, n_directions)
    return np.asarray(V * np.sqrt(np.maximum(eigenvalues, 0.0)))


def _last_eigenpairs(gram: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Return the n largest eigenvalues, ascending, with their eigenvectors."""
    eigenvalues, V = scipy.linalg.eigh(gram, subset_by_index=(len(gram) - n, len(gram) - 1))
    return eigenvalues, V


def _choose(
    X: FloatArray, Y: FloatArray, candidates: Sequence[Setting], alphas: Sequence[float]
) -> tuple[Setting, FloatArray]:
    """Return the setting of the least leave-one-out error, and the errors row by row."""
    Y = Y - Y.mean(axis=0)
    leading = leading_directions(Y)
    # An eigendecomposition's time grows with the cube of the rows: few rows sort out all but the finalists.
    if len(X) > MAX_FIRST:
        first = np.random.default_rng(1).choice(len(X), MAX_FIRST, replace=False)
        of_first = leading[first] - leading[first].mean(axis=0)
        compared = [_best_penalty(X[first], of_first, one, alphas) for one in candidates]
        order = np.argsort([error for error, _, _ in compared], kind="stable")
        candidates = [candidates[number] for number in order[:FINALISTS]]
    _, setting, path = min((_best_penalty(X, leading, one, alphas) for one in candidates), key=lambda one: one[0])
    return setting, path.errors_left_out_of_centred(setting.alpha, Y)


def _best_penalty(
    X: FloatArray, Y: FloatArray, setting: Setting, alphas: Sequence[float]
) -> tuple[float, Setting, RidgePath]:
    """Return the least mean squared leave-one-out error over the penalties, its setting, and the eigenvectors."""
    scaled = X * column_scale(X, setting.standardize)
    K, _ = _centre_kernel(_kernel(scaled, setting).between(scaled, scaled))
    path = ridge_path(K, min(alphas))
    # From the largest penalty on, so that of equals the smoothest is kept.
    descending = sorted(alphas, reverse=True)
    errors = [float((path.errors_left_out_of_centred(alpha, Y) ** 2).sum() / len(X)) for alpha in descending]
    best = int(np.argmin(errors))
    return errors[best], replace(setting, alpha=float(descending[best])), path


def _kernel(inputs: FloatArray, setting: Setting) -> Kernel:
    """Return the kernel on the scale of scaled inputs; of rows that coincide it is constant."""
    spread = float(((inputs - inputs.mean(axis=0)) ** 2).sum() / len(inputs))
    unit = 1.0
    if spread > 0:
        unit = 1.0 / spread
    if setting.kernel == "linear":
        # A polynomial of degree one has the factor that the linear kernel has not.
        return Kernel(metric="poly", parameters={"gamma": unit, "degree": 1, "coef0": 0.0})
    return Kernel(metric="rbf", parameters={"gamma": setting.gamma * unit / 2})


def _centre_kernel(K: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the kernel matrix of rows centred in feature space, and the means over its rows before."""
    mean = K.mean(axis=0)
    return K - mean - mean[:, np.newaxis] + mean.mean(), mean


def _alphas(first: int, last: int) -> tuple[float, ...]:
    """List powers of ten, two to a decade."""
    return tuple(10.0 ** (power / 2) for power in range(first, last))


class KernelRidgeAttack(_Scaling):
    r"""Kernel ridge regression from the representation to the original, its settings chosen by leave-one-out errors.

    A representation z becomes :math:`b + \sum_i \kappa(z, \tilde a_i) \gamma_i`, with an intercept that is not
    penalised.  Kernel, width, penalty and scaling of the columns (``regression_.setting``) are those with which the
    leaked rows, each left out in turn, are reconstructed best.  Up to 5,000 leaked pairs are learnt from.

    Parameters
    ----------
    standardize : {"auto"} or bool, default="auto"
        Whether columns are divided by their standard deviations; "auto" chooses.  Only with False is the attack
        indifferent to a rotation of the representation.
    """

    def _fit(self, Z: FloatArray, A: FloatArray, *side: Any) -> None:
        self.regression_ = kernel_regression(Z, A, _settings(self._scalings), _alphas(-12, 3))

    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        return self.regression_.predict(Z)


_LEAST_NOISE = 1e-10
"""Least variance of the noise, as a part of the representation's."""
_TEMPERATURES = (0.1, 0.2, 0.35, 0.6, 1.0, 1.7, 3.0, 6.0)
_MAX_TEMPERED = 300
"""Factors of the noise covariance to choose from, and leaked rows, at most, whose errors choose."""


class EmulatorAttack(ReconstructionAttack):
    r"""Mean of a library of rows, weighted by how likely each gives the representation.

    Kernel ridge regression on the leaked pairs, ``emulator_``, emulates the obfuscator.  It is applied to the library,
    which are the public rows and the leaked ones; R is the covariance of its leave-one-out errors.  A representation z
    becomes

    .. math:: \hat x = \sum_j w_j x_j, \quad
        w_j \propto \exp\bigl(-\tfrac{1}{2 \tau} (z - \hat f(x_j))^\top R^{-1} (z - \hat f(x_j))\bigr),

    an approximation to the posterior mean.  The temperature :math:`\tau`, ``temperature_``, is the one that
    reconstructs leaked rows best, each left out of the library in turn.

    With targets, the library is restricted to the row's class, or to rows with similar numeric targets; a row of a
    class that is not in the library is looked for in all of it.
    """

    needs_public: ClassVar[bool] = True
    _targets_as_columns: ClassVar[bool] = False

    def _fit(self, Z: FloatArray, A: FloatArray, groups: Any, public: Any, public_groups: Any) -> None:
        emulator = self._emulator_of(A, Z)
        # Ledoit and Wolf's shrinkage turns with the representation, so attacks do not depend on its axes.
        noise: FloatArray = ledoit_wolf(emulator.residuals, assume_centered=True)[0]
        noise[np.diag_indices_from(noise)] += _LEAST_NOISE * float((Z**2).mean()) or 1.0
        root = scipy.linalg.cholesky(noise, lower=True)
        emulated = np.vstack([emulator.predict(public), emulator.predict(A)])
        # A leaked row must stand where the emulator would put it unseen, as the public ones do.
        emulated[len(public) + emulator.chosen_on] = Z[emulator.chosen_on] - emulator.residuals
        self._root = root
        self._emulated = _whiten(emulated, root)
        self._library = np.vstack([public, A])
        self._library_groups: IntArray | None = None
        if groups is not None:
            self._library_groups = np.concatenate([public_groups, groups])
        self.emulator_ = emulator
        self.temperature_ = self._choose_temperature(Z, emulator.chosen_on, len(public))

    def emulate(self, original: ArrayLike, representation: ArrayLike) -> Callable[[FloatArray], FloatArray]:
        """Return an estimate of the obfuscator f_k, the one on which a fit to these pairs rests.

        It takes originals, shape (n_rows, n_features), to representations, shape (n_rows, n_components).  `fit` and
        this method learn it once for the same pairs.  Raise AgreementError or RepresentationError if these are no
        pairs, or no tables of finite numbers.
        """
        rows, images = check_pairs(original, representation)
        A, mean_original = centre(rows)
        Z, mean_representation = centre(images)
        emulator = self._emulator_of(A, Z)
        return lambda X: mean_representation + emulator.predict(X - mean_original)

    def _emulator_of(self, A: FloatArray, Z: FloatArray) -> KernelRegression:
        """Emulate f; targets do not change it, so a second fit to the same pairs repeats nothing."""
        known = getattr(self, "_known", None)
        if known is None or not (np.array_equal(known[0], A) and np.array_equal(known[1], Z)):
            known = A, Z, kernel_regression(A, Z, _settings(), _alphas(-12, 5))
            self._known: tuple[FloatArray, FloatArray, KernelRegression] = known
        return known[2]

    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        guesses = np.empty((len(Z), self._library.shape[1]))
        for block in row_blocks(len(Z), len(self._library)):
            of_block = groups
            if groups is not None:
                of_block = groups[block]
            exponents = self._exponents(Z[block], of_block)
            guesses[block] = _mean_by(exponents, self.temperature_, self._library)
        return guesses

    def _exponents(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        """Return logarithms of the weights at temperature one, shape (n_rows, n_library)."""
        # Of -|z - f|^2 / 2 the term -|z|^2 / 2 is the same for the whole library, and cancels in the weights.
        columns = self._emulated
        exponents = np.asarray(_whiten(Z, self._root) @ columns.T - (columns**2).sum(axis=1) / 2)
        if groups is not None and self._library_groups is not None:
            # A row of a class that the library lacks is compared with all of it.
            same = groups[:, np.newaxis] == self._library_groups
            exponents[~same & same.any(axis=1, keepdims=True)] = -np.inf
        return exponents

    def _choose_temperature(self, Z: FloatArray, candidates: IntArray, n_public: int) -> float:
        rows = candidates[:: -(-len(candidates) // _MAX_TEMPERED)]
        groups = None
        if self._library_groups is not None:
            groups = self._library_groups[n_public + rows]
        exponents = self._exponents(Z[rows], groups)
        # Each row is left out of the library: with itself in it, the lowest temperature would always win.
        exponents[np.arange(len(rows)), n_public + rows] = -np.inf
        # A row alone in its class has no library without itself, and shows nothing.
        found = np.isfinite(exponents).any(axis=1)
        if not found.any():
            return 1.0
        outputs = leading_directions(self._library)
        truth = outputs[n_public + rows[found]]
        errors = [
            float(((_mean_by(exponents[found], temperature, outputs) - truth) ** 2).sum())
            for temperature in _TEMPERATURES
        ]
        return _TEMPERATURES[int(np.argmin(errors))]


def _whiten(Z: FloatArray, root: FloatArray) -> FloatArray:
    """Transform rows so that the noise has the identity for its covariance."""
    return np.asarray(scipy.linalg.solve_triangular(root, Z.T, lower=True).T)


def _mean_by(exponents: FloatArray, temperature: float, rows: FloatArray) -> FloatArray:
    """Average rows with the weights exp(exponents / temperature), shape (n_means, n_rows)."""
    # The matrix is large: it is changed in place, and the means are divided in place of the weights.
    weights = exponents - exponents.max(axis=1, keepdims=True)
    weights /= temperature
    np.exp(weights, out=weights)
    return np.asarray((weights @ rows) / weights.sum(axis=1, keepdims=True))
