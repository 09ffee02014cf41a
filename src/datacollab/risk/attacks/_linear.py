"""Attacks that reconstruct by a linear map."""

from __future__ import annotations

from abc import abstractmethod

from ..._validation import FloatArray
from ...linalg import leading_left_singular
from ._attack import IntArray, ReconstructionAttack, SideInformation

__all__ = ["LinearRegressionAttack", "PseudoinverseAttack"]


class _LinearAttack(ReconstructionAttack):
    coefficients_: FloatArray

    def _fit(self, Z: FloatArray, A: FloatArray, side: SideInformation) -> None:
        self.coefficients_ = self._solve(Z, A)

    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        return Z @ self.coefficients_

    @abstractmethod
    def _solve(self, Z: FloatArray, A: FloatArray) -> FloatArray:
        """Map from centred representations to centred originals, shape (n_intermediate, n_features)."""


class LinearRegressionAttack(_LinearAttack):
    r"""Least squares from the representation to the original, the attack "LR" of [1]_.

    With the centred leaked pairs :math:`\tilde A^c` and :math:`A^c`, a representation z becomes
    :math:`\bar A + (z - \bar{\tilde A}) (\tilde A^c)^\dagger A^c`: of all maps that fit the pairs best, the one of
    minimum norm.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_intermediate, n_features)
        :math:`(\tilde A^c)^\dagger A^c`.
    mean_representation_ : ndarray of shape (n_intermediate,)
    mean_original_ : ndarray of shape (n_features,)
    n_features_in_, n_features_out_ : int
        n_intermediate and n_features.

    Notes
    -----
    With more leaked pairs than columns in general position, an invertible affine change of the representation does not
    change the reconstruction.

    References
    ----------
    .. [1] Suetake, Kawakami, Ikeda and Takano. Nonlinear data integration via kernel methods for data collaboration
       analysis.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.risk.attacks import LinearRegressionAttack
    >>> rng = np.random.default_rng(0)
    >>> leaked, private, obfuscation = rng.normal(size=(20, 4)), rng.normal(size=(5, 4)), rng.normal(size=(4, 4))
    >>> attack = LinearRegressionAttack().fit(leaked @ obfuscation, leaked)
    >>> np.allclose(attack.reconstruct(private @ obfuscation), private)
    True
    """

    def _solve(self, Z: FloatArray, A: FloatArray) -> FloatArray:
        U, singular_values, V = leading_left_singular(Z)
        return (V / singular_values) @ (U.T @ A)


class PseudoinverseAttack(_LinearAttack):
    r"""Estimate the obfuscator as a linear map and invert it, the attack "PINV" of [1]_.

    With the centred leaked pairs :math:`\tilde A^c` and :math:`A^c`, the estimate is the map of minimum norm among
    those that fit best, :math:`F = (A^c)^\dagger \tilde A^c`.  A representation z becomes
    :math:`\bar A + (z - \bar{\tilde A}) F^\dagger`.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_intermediate, n_features)
        :math:`F^\dagger`.
    mean_representation_ : ndarray of shape (n_intermediate,)
    mean_original_ : ndarray of shape (n_features,)
    n_features_in_, n_features_out_ : int
        n_intermediate and n_features.

    Notes
    -----
    An obfuscator that is not linear may make all reconstructions nearly equal.  A judge then puts them all into one
    class, and the label-match rate is that class's share of the rows: the attack has failed, and nothing is known about
    the obfuscator.

    References
    ----------
    .. [1] Suetake, Kawakami, Ikeda and Takano. Nonlinear data integration via kernel methods for data collaboration
       analysis.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.risk.attacks import PseudoinverseAttack
    >>> rng = np.random.default_rng(0)
    >>> leaked, private, obfuscation = rng.normal(size=(20, 4)), rng.normal(size=(5, 4)), rng.normal(size=(4, 4))
    >>> attack = PseudoinverseAttack().fit(leaked @ obfuscation, leaked)
    >>> np.allclose(attack.reconstruct(private @ obfuscation), private)
    True
    """

    def _solve(self, Z: FloatArray, A: FloatArray) -> FloatArray:
        U, singular_values, V = leading_left_singular(A)
        F = (V / singular_values) @ (U.T @ Z)
        U, singular_values, V = leading_left_singular(F)
        return (V / singular_values) @ U.T
