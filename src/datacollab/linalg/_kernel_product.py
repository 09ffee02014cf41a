r"""Kernel expansions :math:`\kappa(X, A)\,\Gamma` without the kernel matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._validation import Array, FloatArray, array_library
from ._array_api import zeros
from ._kernels import Kernel
from ._radial_expansion import RadialExpansion

__all__ = ["PRECISIONS", "kernel_expansion", "kernel_product"]

PRECISIONS = ("auto", "float32", "float64")

_KERNEL_ENTRIES = 2**20
"""Entries of the kernel blocks of other kernels (8 MiB)."""

_DEVICE_ENTRIES = 2**24
"""The same on a graphics processor, which small blocks would leave idle (128 MiB)."""

Expansion = Callable[[FloatArray], FloatArray]


def kernel_product(
    X: FloatArray, A: FloatArray, coefficients: FloatArray, kernel: Kernel, *, precision: str = "auto"
) -> FloatArray:
    r"""Kernel expansion :math:`\kappa(X, A)\,\Gamma` (eq. nki-optimal-function) in constant extra memory.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_intermediate)
    A : ndarray of shape (n_anchors, n_intermediate)
    coefficients : ndarray of shape (n_anchors, n_components)
        :math:`\Gamma`.
    kernel : Kernel
    precision : {"auto", "float32", "float64"}, default="auto"
        See `kernel_expansion`.

    Returns
    -------
    ndarray of shape (n_rows, n_components)
    """
    return kernel_expansion(A, coefficients, kernel, precision=precision)(X)


def kernel_expansion(A: FloatArray, coefficients: FloatArray, kernel: Kernel, *, precision: str = "auto") -> Expansion:
    r"""Prepare :math:`x \mapsto \kappa(x, A)\,\Gamma` for any number of calls.

    Parameters
    ----------
    A : ndarray of shape (n_anchors, n_intermediate)
    coefficients : ndarray of shape (n_anchors, n_components)
        :math:`\Gamma`.
    kernel : Kernel
    precision : {"auto", "float32", "float64"}, default="auto"
        For the RBF kernel; others are always computed in double precision.

        * "float64" errs by about 1e-14 times the sum of the terms' magnitudes.
        * "float32" uses single precision for every row that is not too far for its range, whatever the error.
        * "auto" uses single precision, from 1024 anchor rows on, where it errs by about 2e-6 of the row's largest
          entry at most.  The error is estimated from `A` and the coefficients, before any row is seen; large
          coefficients that cancel (a small ridge penalty) or a narrow kernel give double precision.  With single
          precision, rows that are far away, or whose result is too small for that error, are done again in double
          precision.

    Returns
    -------
    callable
        Takes rows of shape (n_rows, n_intermediate), gives shape (n_rows, n_components), both float64.  What it gives
        for a row does not depend on the other rows, but for rounding.

    Raises
    ------
    ValueError
        When `precision` is none of the three.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(map(repr, PRECISIONS))}; got {precision!r}.")
    gamma = _rbf_gamma(kernel, A.shape[1])
    if gamma is None or array_library(A) is not None:
        return lambda X: _by_kernel_blocks(X, A, coefficients, kernel)
    return RadialExpansion.prepare(A, coefficients, gamma, precision)


def _rbf_gamma(kernel: Kernel, n_features: int) -> float | None:
    """Width of an RBF kernel; None for other kernels."""
    if kernel.metric != "rbf":
        return None
    gamma = kernel.parameters.get("gamma")
    gamma = 1.0 / n_features if gamma is None else float(gamma)
    return gamma if 0 <= gamma < np.inf else None


def _by_kernel_blocks(X: Array, A: Array, coefficients: Array, kernel: Kernel) -> Array:
    n_rows = X.shape[0]
    result = zeros((n_rows, coefficients.shape[1]), A)
    height = max(1, (_KERNEL_ENTRIES if array_library(A) is None else _DEVICE_ENTRIES) // A.shape[0])
    for start in range(0, n_rows, height):
        block = slice(start, min(start + height, n_rows))
        result[block, :] = kernel.between(X[block, :], A) @ coefficients
    return result
