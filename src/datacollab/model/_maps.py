"""Integration functions g_k: linear maps and kernel expansions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from .._validation import FloatArray, PartyName, check_representation
from ..linalg import Kernel

__all__ = ["IntegrationFunction", "KernelMap", "LinearMap"]

_BLOCK = 1024
"""Rows transformed at a time: kernel blocks of this height stay in the processor's cache."""


class IntegrationFunction(Protocol):
    """One party's map from its intermediate representation into the common feature space."""

    @property
    def party(self) -> PartyName:
        """Whose map it is."""

    @property
    def n_intermediate(self) -> int:
        """Columns taken."""

    @property
    def n_components(self) -> int:
        """Columns returned."""

    def __call__(self, X: ArrayLike) -> FloatArray:
        """Map rows of shape (n_rows, n_intermediate) to collaboration representations (n_rows, n_components)."""


@dataclass(frozen=True, eq=False, repr=False)
class LinearMap:
    r"""The linear integration function :math:`g_k(x) = x G^{(k)}` (eq. lki-linear-map).

    Attributes
    ----------
    party : str or int
    coefficients : ndarray of shape (n_intermediate, n_components)
        :math:`G^{(k)}`.

    Examples
    --------
    >>> import numpy as np
    >>> g = LinearMap("hospital-a", np.array([[2.0], [0.0]]))
    >>> g([[1.0, 5.0]])
    array([[2.]])
    >>> g
    LinearMap(party='hospital-a', 2 -> 1)
    """

    party: PartyName
    coefficients: FloatArray

    @property
    def n_intermediate(self) -> int:
        """Columns taken."""
        return int(self.coefficients.shape[0])

    @property
    def n_components(self) -> int:
        """Columns returned."""
        return int(self.coefficients.shape[1])

    def __call__(self, X: ArrayLike) -> FloatArray:
        """Map rows of shape (n_rows, n_intermediate) to shape (n_rows, n_components)."""
        return check_representation(X, self.party, n_features=self.n_intermediate) @ self.coefficients

    def __repr__(self) -> str:
        return f"LinearMap(party={self.party!r}, {self.n_intermediate} -> {self.n_components})"


@dataclass(frozen=True, eq=False, repr=False)
class KernelMap:
    r"""The kernel integration function :math:`g_k(x) = \kappa_k(x) \Gamma_k` (eq. nki-optimal-function).

    Attributes
    ----------
    party : str or int
    anchor_representation : ndarray of shape (n_anchors, n_intermediate)
        The party's own :math:`\tilde A^{(k)}`; nobody else's.
    coefficients : ndarray of shape (n_anchors, n_components)
        :math:`\Gamma_k = S_k Z`.
    kernel : Kernel
    """

    party: PartyName
    anchor_representation: FloatArray
    coefficients: FloatArray
    kernel: Kernel

    @property
    def n_intermediate(self) -> int:
        """Columns taken."""
        return int(self.anchor_representation.shape[1])

    @property
    def n_components(self) -> int:
        """Columns returned."""
        return int(self.coefficients.shape[1])

    def __call__(self, X: ArrayLike) -> FloatArray:
        """Map rows of shape (n_rows, n_intermediate) to shape (n_rows, n_components)."""
        rows = check_representation(X, self.party, n_features=self.n_intermediate)
        result = np.empty((rows.shape[0], self.n_components))
        for start in range(0, rows.shape[0], _BLOCK):
            block = slice(start, start + _BLOCK)
            result[block] = self.kernel.between(rows[block], self.anchor_representation) @ self.coefficients
        return result

    def __repr__(self) -> str:
        metric = self.kernel.metric
        name = metric if isinstance(metric, str) else type(metric).__name__
        return f"KernelMap(party={self.party!r}, {self.n_intermediate} -> {self.n_components}, kernel={name!r})"
