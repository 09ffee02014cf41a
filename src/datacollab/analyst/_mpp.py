"""Minimum perturbation problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._validation import FloatArray, PartyName, StrOptions
from ..errors import NumericalError
from ..linalg import ColumnSpace, column_space, fix_signs, leading_left_singular
from ._base import check_n_components
from ._linear import LinearIntegrator, residual
from ._parameters import N_COMPONENTS

__all__ = ["MPP"]

_MUCH_LARGER = 1e8
"""Beyond this the digits of one party are lost in the rounding of another's."""


class MPP(LinearIntegrator):
    r"""Minimum perturbation problem [1]_: a common target from the singular vectors of all representations.

    With :math:`W_A = [\tilde A^{(1)}, \ldots, \tilde A^{(K)}]` and its leading left singular vectors
    :math:`U_{\hat d}`, the target is :math:`Z = U_{\hat d} R` and each party gets
    :math:`G^{(k)} = (\tilde A^{(k)})^\dagger Z` (eq. fixed-Z-linear-solution).

    Parameters
    ----------
    n_components : int, default=10
        :math:`\hat d`, columns of the collaboration representation.
    basis : {"orthonormal", "singular_values"} or array-like of shape (n_components, n_components)
        The invertible matrix R that the method leaves open: the identity, the diagonal of the singular values, or
        any other.  The choice matters to models that are not invariant to scaling and rotation.

    Attributes
    ----------
    target_ : ndarray of shape (n_anchors, n_components)
        Z.
    eigenvalues_ : ndarray of shape (n_components,)
        The largest eigenvalues of :math:`W_A W_A^\top`, descending.
    objective_ : float
        :math:`\sum_k \|\tilde A^{(k)} G^{(k)} - Z\|_F^2`.
    integration_functions_ : dict of party to LinearMap

    References
    ----------
    .. [1] Imakura, Ye and Sakurai (2021). Collaborative data analysis: non-model sharing-type machine learning for
       distributed data. Knowledge Management and Acquisition for Intelligent Systems, 14-29.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab import MPP
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(50, 3))
    >>> integrator = MPP(n_components=2).fit({"a": A, "b": A @ rng.normal(size=(3, 3))})
    >>> aligned = integrator.transform({"a": A[:4]})
    >>> aligned["a"].shape
    (4, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": N_COMPONENTS,
        "basis": [StrOptions({"orthonormal", "singular_values"}), "array-like"],
    }

    target_: FloatArray
    eigenvalues_: FloatArray
    objective_: float

    def __init__(self, n_components: int = 10, *, basis: str | ArrayLike = "orthonormal") -> None:
        self.n_components = n_components
        self.basis = basis

    def _align(self, anchors: dict[PartyName, FloatArray]) -> dict[PartyName, FloatArray]:
        U, singular_values, _ = leading_left_singular(np.hstack(list(anchors.values())))
        reason = f"that is the rank of all representations together{_dwarfed(anchors)}"
        check_n_components(self.n_components, U.shape[1], reason)
        spaces = {party: column_space(A) for party, A in anchors.items()}
        return self._onto(spaces, U[:, : self.n_components], singular_values[: self.n_components])

    def _onto(
        self, spaces: Mapping[PartyName, ColumnSpace], U: FloatArray, singular_values: FloatArray
    ) -> dict[PartyName, FloatArray]:
        """Every party's matrix onto a target that is there, and the other learnt attributes."""
        target = U * fix_signs(U) @ self._mixing(singular_values)
        coordinates = {party: space.basis.T @ target for party, space in spaces.items()}
        matrices = {party: space.coefficients(coordinates[party]) for party, space in spaces.items()}
        self.target_ = target
        self.eigenvalues_ = singular_values**2
        self.objective_ = residual((spaces[party].basis @ c for party, c in coordinates.items()), target)
        return matrices

    def _mixing(self, singular_values: FloatArray) -> FloatArray:
        """The matrix R of shape (n_components, n_components)."""
        if isinstance(self.basis, str):
            return np.diag(singular_values) if self.basis == "singular_values" else np.eye(self.n_components)
        R = np.asarray(self.basis, dtype=np.float64)
        if R.shape != (self.n_components, self.n_components):
            raise ValueError(f"basis must be square with n_components={self.n_components} rows; got shape {R.shape}.")
        if not np.isfinite(R).all() or np.linalg.cond(R) > 1 / np.finfo(np.float64).eps:
            raise NumericalError("basis must be an invertible matrix of finite numbers; this one is singular.")
        return R


def _dwarfed(representations: Mapping[PartyName, FloatArray]) -> str:
    """Words on a party beside whose numbers those of another one vanish, for MPP compares sizes."""
    sizes = {party: float(np.abs(A).max()) for party, A in representations.items()}
    largest, smallest = max(sizes, key=lambda party: sizes[party]), min(sizes, key=lambda party: sizes[party])
    if sizes[largest] < _MUCH_LARGER * sizes[smallest]:
        return ""
    return f", beside the numbers of party {largest!r}, which dwarf those of party {smallest!r}"
