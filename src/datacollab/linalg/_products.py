"""Products and factors in place, by BLAS and LAPACK."""

from __future__ import annotations

import functools

import numpy as np
import scipy.linalg
from scipy.linalg.blas import dgemm, dsyrk, sgemm, ssyrk
from threadpoolctl import threadpool_info

from .._typing import FloatArray

_WITH_SMALL_KERNELS = {"SkylakeX", "Cooperlake", "SapphireRapids"}
"""Architectures, as OpenBLAS calls them, on which it multiplies small matrices as they are."""
_SMALL_PRODUCT = 10**6
"""Multiplications up to which it does.  It copies what is larger, which costs more than a product with few columns."""
_COPIED_PRODUCT = 4 * 10**6
"""Multiplications at a time if it copies all matrices; more at a time are no faster."""


def column_norms(X: FloatArray) -> FloatArray:
    """Return the Euclidean norm of each column."""
    return np.asarray(np.sqrt(np.sum(X * X, axis=0)))


def exp_of_nonpositive(X: FloatArray) -> FloatArray:
    """Return exponentials of entries that nothing but rounding makes positive; written over ``X``."""
    # Changing signs is much faster than np.minimum with a number, and no larger an error.
    np.negative(np.abs(X, out=X), out=X)
    return np.asarray(np.exp(X, out=X))


def subtract_product(C: FloatArray, A: FloatArray, B: FloatArray) -> None:
    r"""Replace ``C`` by :math:`C - A B^\top`, in place; all are C-ordered."""
    gemm = sgemm if C.dtype == np.float32 else dgemm
    gemm(-1.0, B.T, A.T, 1.0, C.T, trans_a=1, overwrite_c=1)


def add_tall_product(C: FloatArray, A: FloatArray, B: FloatArray, factor: float = 1.0) -> None:
    """Add ``factor`` times A B to ``C``, C-ordered, in place; A has many rows, and B few columns."""
    gemm = sgemm if C.dtype == np.float32 else dgemm
    B = np.ascontiguousarray(B)
    for part in _pieces(A, B.shape[1]):
        gemm(factor, B.T, A[part].T, 1.0, C[part].T, overwrite_c=1)


def add_wide_product(C: FloatArray, A: FloatArray, B: FloatArray, factor: float = 1.0) -> None:
    r"""Add ``factor`` times :math:`A^\top B` to ``C`` in place; A has many rows, and B few columns."""
    gemm = sgemm if C.dtype == np.float32 else dgemm
    B = np.ascontiguousarray(B)
    # Vectors of the processor run along columns of the result, which may be few, but not short.
    total = np.zeros(C.shape, C.dtype, order="F")
    for part in _pieces(A, B.shape[1]):
        gemm(factor, A[part].T, B[part].T, 1.0, total, trans_b=1, overwrite_c=1)
    C += total


def _pieces(A: FloatArray, n_columns: int) -> list[slice]:
    if A.size == 0 or n_columns == 0:
        return []
    most = _SMALL_PRODUCT if _has_small_kernels() else _COPIED_PRODUCT
    height = max(64, most // (A.shape[1] * n_columns) // 32 * 32)
    return [slice(start, start + height) for start in range(0, len(A), height)]


@functools.cache
def _has_small_kernels() -> bool:
    return any(library.get("architecture") in _WITH_SMALL_KERNELS for library in threadpool_info())


def add_gram(gram: FloatArray, F: FloatArray) -> FloatArray:
    r"""Return the lower triangle, at least, of :math:`G + F^\top F`; overwrites ``gram``, float64 and F-ordered."""
    syrk = ssyrk if F.dtype == np.float32 else dsyrk
    gram += syrk(1.0, F.T, lower=1)
    return gram


def times_upper(X: FloatArray, U: FloatArray) -> FloatArray:
    """Return X U for an upper triangular U of the same type; written over a C-ordered ``X``."""
    (trmm,) = scipy.linalg.get_blas_funcs(("trmm",), (X, U))
    return np.asarray(trmm(1.0, U.T, X.T, lower=1, overwrite_b=1).T)


def inverse_cholesky(A: FloatArray) -> FloatArray:
    r"""Return :math:`L^{-1}`, lower triangular, of a small matrix :math:`A = L L^\top`.

    Raises
    ------
    scipy.linalg.LinAlgError
        If the matrix is not positive definite in its precision.
    """
    potrf, trtri = scipy.linalg.get_lapack_funcs(("potrf", "trtri"), (A,))
    lower, failed = potrf(A, lower=1)
    if failed:
        raise scipy.linalg.LinAlgError("not positive definite")
    inverse, _ = trtri(lower, lower=1, overwrite_c=1)
    return np.asarray(inverse)
