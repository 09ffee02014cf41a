"""Attacks that learn to undo f_k, or f_k itself, by kernels; and the one that takes rows for normal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from sklearn.utils import gen_batches

from ..._validation import FloatArray, StrOptions
from ...linalg import Kernel, RidgePath, ridge_coefficients, ridge_path
from ._attack import IntArray, ReconstructionAttack, SideInformation, column_scale, noise_covariance

__all__ = [
    "EmulatorAttack",
    "GaussianPriorAttack",
    "KernelRidgeAttack",
    "Settings",
    "kernel_regression",
    "leading_directions",
]

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
    return setting, error, path.left_out_errors_of_centred(setting.alpha, Y)


def _best_penalty(
    X: FloatArray, Y: FloatArray, setting: Setting, alphas: Sequence[float]
) -> tuple[float, Setting, RidgePath]:
    """Least mean squared leave-one-out error over the penalties, the setting with that one, and the eigenvectors."""
    scaled = X * column_scale(X, setting.standardize)
    K, _ = _centred(_kernel(scaled, setting).between(scaled, scaled))
    path = ridge_path(K, min(alphas))
    # From the largest penalty on, so that of equals the smoothest is kept.
    descending = sorted(alphas, reverse=True)
    errors = [float((path.left_out_errors_of_centred(alpha, Y) ** 2).sum() / len(X)) for alpha in descending]
    best = int(np.argmin(errors))
    return errors[best], replace(setting, alpha=float(descending[best])), path


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


GAMMAS = (0.1, 0.3, 1.0, 3.0, 10.0)
ALPHAS = tuple(10.0 ** (power / 2) for power in range(-12, 3))


class KernelRidgeAttack(ReconstructionAttack):
    r"""Kernel ridge regression from the representation to the original, its settings chosen by leave-one-out errors.

    A representation z becomes :math:`b + \sum_i \kappa(z, \tilde a_i) \gamma_i`, with an intercept that is not
    penalised.  Kernel, width, penalty and scaling of the columns are those with which the leaked rows, each left out in
    turn, are reconstructed best; the errors have a closed form.

    Parameters
    ----------
    kernel : {"auto", "linear", "rbf"}, default="auto"
        "auto" chooses between the other two.
    gammas : sequence of float, default=(0.1, 0.3, 1, 3, 10)
        Widths of the RBF kernel to choose from, as multiples of one over the mean squared distance between leaked
        representations.
    alphas : sequence of float, default=1e-6 to 10, two to a decade
        Penalties to choose from, for a kernel that is 1, on average, of a row with itself.
    standardize : {"auto"} or bool, default="auto"
        Whether columns are divided by their standard deviations; "auto" chooses.  Only with False is the attack
        indifferent to a rotation of the representation.

    Attributes
    ----------
    regression_ : KernelRegression
        ``regression_.setting`` is what was chosen.
    mean_representation_ : ndarray of shape (n_intermediate,)
    mean_original_ : ndarray of shape (n_features,)
    n_features_in_, n_features_out_ : int
        n_intermediate and n_features.

    Notes
    -----
    With targets, they are further columns that vary as much, in all, as the representation.

    Of more than 400 leaked pairs, 400 drawn at random, always by the same seed, compare all kernels and scalings; the
    best two are compared again on up to 1,000.  Of more than 5,000 pairs, 5,000 are learnt from.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.risk.attacks import KernelRidgeAttack
    >>> rng = np.random.default_rng(0)
    >>> leaked, private = rng.uniform(-1, 1, size=(200, 2)), rng.uniform(-1, 1, size=(5, 2))
    >>> attack = KernelRidgeAttack().fit(np.exp(leaked), leaked)
    >>> bool(np.abs(attack.reconstruct(np.exp(private)) - private).max() < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({"auto", "linear", "rbf"})],
        "gammas": ["array-like"],
        "alphas": ["array-like"],
        "standardize": [StrOptions({"auto"}), "boolean"],
    }

    regression_: KernelRegression

    def __init__(
        self,
        kernel: str = "auto",
        *,
        gammas: Sequence[float] = GAMMAS,
        alphas: Sequence[float] = ALPHAS,
        standardize: str | bool = "auto",
    ) -> None:
        self.kernel = kernel
        self.gammas = gammas
        self.alphas = alphas
        self.standardize = standardize

    def _fit(self, Z: FloatArray, A: FloatArray, side: SideInformation) -> None:
        self.regression_ = kernel_regression(
            Z,
            A,
            Settings(
                kernels=("linear", "rbf") if self.kernel == "auto" else (self.kernel,),
                gammas=self.gammas,
                standardize=(False, True) if isinstance(self.standardize, str) else (self.standardize,),
                alphas=self.alphas,
            ),
        )

    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        return self.regression_.predict(Z)


_PRIOR_ALPHAS = tuple(10.0 ** (power / 2) for power in range(-16, 5))


class GaussianPriorAttack(ReconstructionAttack):
    r"""The most probable original under a linear obfuscator with noise and a Gaussian prior from public rows.

    The leaked pairs give a forward map, :math:`z \approx b + F^\top x`, by ridge regression, and its error covariance R
    by leaving rows out; the public rows give the mean :math:`\mu` and the covariance S of the originals.  Then

    .. math:: \hat x = \mu + S F (F^\top S F + R)^{-1} (z - b - F^\top \mu).

    With targets, mean and covariance are those of the row's class, or of the public rows with similar numeric targets.

    Attributes
    ----------
    forward_ : KernelRegression
        The forward map; ``forward_.setting`` is what was chosen.
    noise_ : ndarray of shape (n_intermediate, n_intermediate)
        R.
    mean_representation_ : ndarray of shape (n_intermediate,)
    mean_original_ : ndarray of shape (n_features,)
    n_features_in_, n_features_out_ : int
        n_intermediate and n_features.

    Notes
    -----
    The covariance of a group is shrunk towards that within all groups as if n_intermediate more rows had been seen.
    A row of a class without public rows gets the prior over all public rows.

    A rotation of the representation does not change the reconstruction.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.risk.attacks import GaussianPriorAttack
    >>> rng = np.random.default_rng(0)
    >>> mixing = rng.normal(size=(2, 6))  # six columns that two numbers determine
    >>> leaked, public, private = (rng.normal(size=(n, 2)) @ mixing for n in (4, 100, 3))
    >>> f = rng.normal(size=(6, 2))
    >>> attack = GaussianPriorAttack().fit(leaked @ f, leaked, public=public)
    >>> bool(np.abs(attack.reconstruct(private @ f) - private).max() < 0.01)
    True
    """

    needs_public: ClassVar[bool] = True
    _targets_as_columns: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    forward_: KernelRegression
    noise_: FloatArray

    def _fit(self, Z: FloatArray, A: FloatArray, side: SideInformation) -> None:
        assert side.public is not None  # as needs_public says
        settings = Settings(kernels=("linear",), gammas=(1.0,), standardize=(False, True), alphas=_PRIOR_ALPHAS)
        forward = kernel_regression(A, Z, settings)
        noise = noise_covariance(forward.residuals, Z)
        F = forward.linear_map()
        self._priors = {-1: _posterior(side.public, F, noise, None, 0.0)}
        if side.public_groups is not None:
            within = _within(side.public, side.public_groups)
            spread = within.T @ (within @ F) / len(within)
            for group in np.unique(side.public_groups):
                rows = side.public[side.public_groups == group]
                self._priors[int(group)] = _posterior(rows, F, noise, spread, Z.shape[1])
        self.forward_, self.noise_ = forward, noise
        self._F = F

    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        groups = np.full(len(Z), -1) if groups is None else groups
        guesses = np.empty((len(Z), self._F.shape[0]))
        for group in np.unique(groups):
            mean, gain = self._priors.get(int(group), self._priors[-1])
            of_group = groups == group
            guesses[of_group] = mean + (Z[of_group] - self.forward_.intercept - mean @ self._F) @ gain
        return guesses


def _posterior(
    rows: FloatArray, F: FloatArray, noise: FloatArray, spread: FloatArray | None, weight: float
) -> tuple[FloatArray, FloatArray]:
    """Prior mean, and the gain (F'SF + R)^-1 F'S of shape (n_intermediate, n_features)."""
    mean = rows.mean(axis=0)
    centred = rows - mean
    SF = centred.T @ (centred @ F) / len(rows)
    if spread is not None:
        SF = (len(rows) * SF + weight * spread) / (len(rows) + weight)
    covariance = F.T @ SF
    gain: FloatArray = scipy.linalg.solve((covariance + covariance.T) / 2 + noise, SF.T, assume_a="pos")
    return mean, gain


def _within(rows: FloatArray, groups: IntArray) -> FloatArray:
    """Rows without the mean of their group."""
    centred = rows.copy()
    for group in np.unique(groups):
        centred[groups == group] -= rows[groups == group].mean(axis=0)
    return centred


_EMULATOR_GAMMAS = (0.1, 0.3, 1.0, 3.0)
_EMULATOR_ALPHAS = tuple(10.0 ** (power / 2) for power in range(-12, 5))
TEMPERATURES = (0.1, 0.2, 0.35, 0.6, 1.0, 1.7, 3.0, 6.0)
"""Factors of the noise covariance to choose from."""
MAX_TEMPERED = 300
"""Leaked rows, at most, whose errors choose the temperature."""


class EmulatorAttack(ReconstructionAttack):
    r"""The mean of a library of rows, weighted by how likely each gives the representation.

    Kernel ridge regression on the leaked pairs emulates the obfuscator.  It is applied to the library, which are the
    public rows and the leaked ones; R is the covariance of its leave-one-out errors.  A representation z becomes

    .. math:: \hat x = \sum_j w_j x_j, \quad
        w_j \propto \exp\bigl(-\tfrac{1}{2 \tau} (z - \hat f(x_j))^\top R^{-1} (z - \hat f(x_j))\bigr),

    an approximation to the posterior mean.  The temperature :math:`\tau` is the one that reconstructs leaked rows best,
    each taken out of the library in turn.

    With targets, the library is restricted to the row's class, or to rows with similar numeric targets.

    Attributes
    ----------
    emulator_ : KernelRegression
        ``emulator_.setting`` is what was chosen.
    temperature_ : float
        :math:`\tau`.
    mean_representation_ : ndarray of shape (n_intermediate,)
    mean_original_ : ndarray of shape (n_features,)
    n_features_in_, n_features_out_ : int
        n_intermediate and n_features.

    Notes
    -----
    A row of a class that is not in the library is looked for in all of it.

    Reconstructions are means of real rows: where they can all be told apart, they look like real rows, but no
    direction can be recovered in which the library does not vary.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.risk.attacks import EmulatorAttack
    >>> rng = np.random.default_rng(0)
    >>> leaked, public = rng.uniform(-1, 1, size=(100, 2)), rng.uniform(-1, 1, size=(3000, 2))
    >>> attack = EmulatorAttack().fit(np.tanh(leaked), leaked, public=public)
    >>> bool(np.abs(attack.reconstruct([[np.tanh(0.5), np.tanh(-0.2)]]) - [0.5, -0.2]).max() < 0.1)
    True
    """

    needs_public: ClassVar[bool] = True
    _targets_as_columns: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    emulator_: KernelRegression
    temperature_: float

    def _fit(self, Z: FloatArray, A: FloatArray, side: SideInformation) -> None:
        assert side.public is not None  # as needs_public says
        settings = Settings(
            kernels=("linear", "rbf"), gammas=_EMULATOR_GAMMAS, standardize=(False, True), alphas=_EMULATOR_ALPHAS
        )
        emulator = kernel_regression(A, Z, settings)
        root = scipy.linalg.cholesky(noise_covariance(emulator.residuals, Z), lower=True)
        emulated = np.vstack([emulator.predict(side.public), emulator.predict(A)])
        # A leaked row must stand where the emulator would put it unseen, as the public ones do.
        leaked = len(side.public) + emulator.chosen_on
        emulated[leaked] = Z[emulator.chosen_on] - emulator.residuals
        self._root = root
        self._library = np.vstack([side.public, A])
        self._emulated = _whitened(emulated, root)
        self._groups = None
        if side.groups is not None and side.public_groups is not None:
            self._groups = np.concatenate([side.public_groups, side.groups])
        self.emulator_ = emulator
        self.temperature_ = self._choose_temperature(Z, emulator.chosen_on, len(side.public))

    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        guesses = np.empty((len(Z), self._library.shape[1]))
        for block in gen_batches(len(Z), max(1, BLOCK_ENTRIES // len(self._library))):
            exponents = self._exponents(Z[block], None if groups is None else groups[block])
            guesses[block] = _softmax(exponents / self.temperature_) @ self._library
        return guesses

    def _exponents(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        """Logarithms of the weights at temperature one, shape (n_rows, n_library)."""
        rows, columns = _whitened(Z, self._root), self._emulated
        squares = (columns**2).sum(axis=1)
        exponents: FloatArray = rows @ columns.T - squares / 2
        if groups is not None and self._groups is not None:
            same = groups[:, np.newaxis] == self._groups
            exponents[~same & same.any(axis=1, keepdims=True)] = -np.inf
        return exponents

    def _choose_temperature(self, Z: FloatArray, candidates: IntArray, n_public: int) -> float:
        rows = candidates[:: -(-len(candidates) // MAX_TEMPERED)]
        groups = None if self._groups is None else self._groups[n_public + rows]
        exponents = self._exponents(Z[rows], groups)
        exponents[np.arange(len(rows)), n_public + rows] = -np.inf
        found = np.isfinite(exponents).any(axis=1)
        if not found.any():
            return 1.0
        outputs = leading_directions(self._library)
        truth = outputs[n_public + rows[found]]
        errors = [
            float(((_softmax(exponents[found] / temperature) @ outputs - truth) ** 2).sum())
            for temperature in TEMPERATURES
        ]
        return TEMPERATURES[int(np.argmin(errors))]


def _whitened(Z: FloatArray, root: FloatArray) -> FloatArray:
    """Rows as they are where the noise has the identity for its covariance."""
    whitened: FloatArray = scipy.linalg.solve_triangular(root, Z.T, lower=True).T
    return whitened


def _softmax(exponents: FloatArray) -> FloatArray:
    weights: FloatArray = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights
