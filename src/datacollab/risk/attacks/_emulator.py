"""Reconstruction by a library of public rows sent through an emulated obfuscator."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from sklearn.utils import gen_batches

from ..._validation import FloatArray
from ._attack import ReconstructionAttack
from ._kernel_regression import KernelRegression, Settings, kernel_regression, leading_directions
from ._noise import noise_covariance
from ._side import SideInformation
from ._targets import IntArray

__all__ = ["EmulatorAttack"]

GAMMAS = (0.1, 0.3, 1.0, 3.0)
ALPHAS = tuple(10.0 ** (power / 2) for power in range(-12, 5))

TEMPERATURES = (0.1, 0.2, 0.35, 0.6, 1.0, 1.7, 3.0, 6.0)
"""Factors of the noise covariance to choose from."""

MAX_TEMPERED = 300
"""Leaked rows, at most, whose errors choose the temperature."""

BLOCK_ENTRIES = 2**22
"""Entries of the weights that are in memory at a time (32 MiB)."""


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
        settings = Settings(kernels=("linear", "rbf"), gammas=GAMMAS, standardize=(False, True), alphas=ALPHAS)
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
