"""Integration functions g_k: linear maps and kernel expansions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol, Self

from numpy.typing import ArrayLike

from .._validation import Array, FloatArray, PartyName, check_representation, to_numpy
from ..linalg import Kernel, as_precise_as, kernel_expansion

__all__ = ["IntegrationFunction", "KernelMap", "LinearMap"]


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
    r"""The linear integration function :math:`g_k(x) = x G^{(k)}` (eq. lki-linear-map), or the affine one.

    Attributes
    ----------
    party : str or int
    coefficients : ndarray of shape (n_intermediate, n_components)
        :math:`G^{(k)}`.
    intercept : ndarray of shape (n_components,) or None
        What is added to each row.

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
    intercept: FloatArray | None = None

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
        mapped = check_representation(X, self.party, n_features=self.n_intermediate) @ self.coefficients
        return mapped if self.intercept is None else mapped + self.intercept

    def __repr__(self) -> str:
        return f"LinearMap(party={self.party!r}, {self.n_intermediate} -> {self.n_components})"


@dataclass(frozen=True, eq=False, repr=False)
class KernelMap:
    r"""The kernel integration function :math:`g_k(x) = \kappa_k(x) \Gamma_k` (eq. nki-optimal-function).

    The kernel matrix is never formed: extra memory is the same for any number of rows.

    Attributes
    ----------
    party : str or int
    anchor_representation : ndarray of shape (n_anchors, n_intermediate)
        The party's own :math:`\tilde A^{(k)}`, or the landmarks among its rows; nobody else's.
    coefficients : ndarray of shape (n_anchors, n_components)
        :math:`\Gamma_k = S_k Z`.
    kernel : Kernel
    precision : {"auto", "float32", "float64"}, default="auto"
        In which an RBF kernel is computed.  "auto" takes single precision, from 1024 anchor rows on, where this
        changes a row by no more than about 2e-6 of its largest entry, as estimated from the anchors and
        coefficients, and double precision elsewhere.  The result is float64 in any case.  Other kernels are always
        computed in double precision.

    Notes
    -----
    A row's result depends on the row alone.  What other rows come with it changes no more than the rounding.

    After a fit on torch or CuPy arrays the map holds such arrays and takes rows of the same library and device.  It
    computes in double precision and returns the rows' own floating-point type.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.linalg import Kernel
    >>> kernel = Kernel(metric="rbf", parameters={"gamma": 1.0})
    >>> g = KernelMap("hospital-a", np.array([[0.0], [2.0]]), np.array([[1.0], [-1.0]]), kernel)
    >>> g([[1.0], [0.0]]).round(4) + 0.0
    array([[0.    ],
           [0.9817]])
    """

    party: PartyName
    anchor_representation: Array
    coefficients: Array
    kernel: Kernel
    precision: str = "auto"

    @property
    def n_intermediate(self) -> int:
        """Columns taken."""
        return int(self.anchor_representation.shape[1])

    @property
    def n_components(self) -> int:
        """Columns returned."""
        return int(self.coefficients.shape[1])

    @cached_property
    def _expansion(self) -> Callable[[FloatArray], FloatArray]:
        return kernel_expansion(self.anchor_representation, self.coefficients, self.kernel, precision=self.precision)

    def __call__(self, X: ArrayLike) -> FloatArray:
        """Map rows of shape (n_rows, n_intermediate) to shape (n_rows, n_components)."""
        beside = self.anchor_representation
        rows = check_representation(X, self.party, n_features=self.n_intermediate, beside=beside)
        mapped: FloatArray = as_precise_as(self._expansion(rows), X)
        return mapped

    def to_numpy(self) -> Self:
        """The same map with NumPy arrays, for where there is no graphics processor."""
        rows, coefficients = to_numpy(self.anchor_representation), to_numpy(self.coefficients)
        return replace(self, anchor_representation=rows, coefficients=coefficients)

    def __getstate__(self) -> dict[str, Any]:
        # What was prepared for speed is as large as the map, and is prepared again where it is needed.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        metric = self.kernel.metric
        name = metric if isinstance(metric, str) else type(metric).__name__
        return f"KernelMap(party={self.party!r}, {self.n_intermediate} -> {self.n_components}, kernel={name!r})"
