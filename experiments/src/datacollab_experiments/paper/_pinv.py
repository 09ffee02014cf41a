"""Reconstruction by the inverse of a linear estimate of the obfuscator."""

from typing import Any

from datacollab._validation import FloatArray
from datacollab.linalg import leading_left_singular
from datacollab.risk.attacks import ReconstructionAttack
from datacollab.risk.attacks._attack import IntArray


class PseudoinverseAttack(ReconstructionAttack):
    r"""Inverse of the obfuscator estimated as a linear map, the attack "PINV" of [1]_.

    Of the linear maps that fit the centred leaked pairs best, :math:`F = (A^c)^\dagger \tilde A^c` has minimum norm.  A
    representation z becomes :math:`\bar A + (z - \bar{\tilde A}) F^\dagger`.  An obfuscator that is not linear may make
    all reconstructions nearly equal: the attack has failed, which shows nothing about the obfuscator.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_intermediate, n_features)

    References
    ----------
    .. [1] Suetake, Kawakami, Ikeda and Takano. Nonlinear data integration via kernel methods for data collaboration
       analysis.
    """

    coefficients_: FloatArray

    def _fit(self, Z: FloatArray, A: FloatArray, *side: Any) -> None:
        U, singular_values, V = leading_left_singular(A)
        # The pseudoinverse of the leaked rows, without directions that are rounding.
        F = (V / singular_values) @ (U.T @ Z)
        U, singular_values, V = leading_left_singular(F)
        self.coefficients_ = (V / singular_values) @ U.T

    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        return Z @ self.coefficients_
