"""Reconstruction by a linear forward map and a Gaussian prior."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from ..._validation import FloatArray
from ._attack import ReconstructionAttack
from ._kernel_regression import KernelRegression, Settings, kernel_regression
from ._noise import noise_covariance
from ._side import SideInformation
from ._targets import IntArray

__all__ = ["GaussianPriorAttack"]

ALPHAS = tuple(10.0 ** (power / 2) for power in range(-16, 5))


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
        settings = Settings(kernels=("linear",), gammas=(1.0,), standardize=(False, True), alphas=ALPHAS)
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
