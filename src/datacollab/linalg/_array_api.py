"""The few steps that NumPy and the array API standard do differently, so that one code serves both.

The standard has no output arguments, no products into an existing array, and neither triangular solves nor sparse
matrices.  If that costs speed, NumPy and LAPACK go a way of their own here.  Data types are given as NumPy's.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import DTypeLike
from scipy.linalg.blas import dgemm, dsyrk, sgemm, ssyrk
from threadpoolctl import threadpool_info

from .._validation import Array, FloatArray, array_library, array_namespace, to_numpy

_WITH_SMALL_KERNELS = {"SkylakeX", "Cooperlake", "SapphireRapids"}
"""Architectures, as OpenBLAS calls them, on which it multiplies small matrices as they are."""
_SMALL_PRODUCT = 10**6
"""Multiplications up to which it does.  It copies what is larger, which costs more than a product with few columns."""
_COPIED_PRODUCT = 4 * 10**6
"""Multiplications at a time if it copies all matrices; more at a time are no faster."""


def cast(X: Array, dtype: DTypeLike) -> Array:
    """Return ``X`` with another data type; uncopied if it has it."""
    if isinstance(X, np.ndarray):
        return X.astype(dtype, copy=False)
    xp = array_namespace(X)
    return xp.astype(X, getattr(xp, np.dtype(dtype).name), copy=False)


def matching(X: Array, Y: Array, *, copy: bool = False) -> Array:
    """Return ``X`` with the data type of ``Y``, of the same library; uncopied if it has it, unless asked for."""
    if isinstance(X, np.ndarray):
        if copy:
            return np.array(X, dtype=Y.dtype, order="C")
        return X.astype(Y.dtype, copy=False)
    return array_namespace(X).astype(X, Y.dtype, copy=copy)


def as_precise_as(values: Array, X: Array) -> Array:
    """Return results of another library in the floating-point type of the rows they are for, if that is one."""
    if array_library(values) is None or not array_namespace(X).isdtype(X.dtype, "real floating"):
        return values
    return matching(values, X)


def like(values: Array, X: Array) -> Array:
    """Return NumPy values as an array of the library and on the device of ``X``; other values as they are."""
    if isinstance(X, np.ndarray) or not isinstance(values, np.ndarray):
        return values
    return array_namespace(X).asarray(np.array(values), device=X.device)


def zeros(shape: tuple[int, ...], X: Array, dtype: DTypeLike = np.float64) -> Array:
    """Return zeros of the library and on the device of ``X``."""
    if isinstance(X, np.ndarray):
        return np.zeros(shape, dtype=dtype)
    xp = array_namespace(X)
    return xp.zeros(shape, dtype=getattr(xp, np.dtype(dtype).name), device=X.device)


def hstack(arrays: list[Array]) -> Array:
    """Return columns side by side."""
    if isinstance(arrays[0], np.ndarray):
        return np.hstack(arrays)
    return array_namespace(arrays[0]).concat(arrays, axis=1)


def column_norms(X: Array) -> FloatArray:
    """Return the Euclidean norm of each column, as a NumPy array."""
    xp = array_namespace(X)
    return to_numpy(xp.sqrt(xp.sum(X * X, axis=0)))


def exp_of_nonpositive(X: Array) -> Array:
    """Return exponentials of entries that nothing but rounding makes positive; may be written over ``X``."""
    if isinstance(X, np.ndarray):
        # Changing signs is much faster than np.minimum with a number, and no larger an error.
        np.negative(np.abs(X, out=X), out=X)
        return np.exp(X, out=X)
    xp = array_namespace(X)
    return xp.exp(xp.clip(X, max=0.0))


def subtract_product(C: Array, A: Array, B: Array) -> None:
    r"""Replace ``C`` by :math:`C - A B^\top`, in place; all are C-ordered."""
    if isinstance(C, np.ndarray):
        gemm = _gemm_of(C)
        # BLAS counts columns first, so that all arguments are transposed, and nothing is copied.
        gemm(-1.0, B.T, A.T, 1.0, C.T, trans_a=1, overwrite_c=1)
    else:
        C -= A @ B.T


def add_tall_product(C: Array, A: Array, B: Array, factor: float = 1.0) -> None:
    """Add ``factor`` times A B to ``C``, C-ordered, in place; A has many rows, and B few columns."""
    if isinstance(C, np.ndarray):
        gemm = _gemm_of(C)
        B = np.ascontiguousarray(B)
        for part in _pieces(A, B.shape[1]):
            gemm(factor, B.T, A[part].T, 1.0, C[part].T, overwrite_c=1)
    else:
        C += factor * (A @ B)


def add_wide_product(C: Array, A: Array, B: Array, factor: float = 1.0) -> None:
    r"""Add ``factor`` times :math:`A^\top B` to ``C`` in place; A has many rows, and B few columns."""
    if isinstance(C, np.ndarray):
        gemm = _gemm_of(C)
        B = np.ascontiguousarray(B)
        # Vectors of the processor run along columns of the result, which may be few, but not short.
        total = np.zeros(C.shape, C.dtype, order="F")
        for part in _pieces(A, B.shape[1]):
            gemm(factor, A[part].T, B[part].T, 1.0, total, trans_b=1, overwrite_c=1)
        C += total
    else:
        C += factor * (A.T @ B)


def slices(n: int, size: int) -> list[slice]:
    """Return slices of at most ``size`` places, one after the other, over ``n`` places."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _gemm_of(C: FloatArray) -> Any:
    return sgemm if C.dtype == np.float32 else dgemm


def _pieces(A: FloatArray, n_columns: int) -> list[slice]:
    """Return the rows of a tall matrix that OpenBLAS multiplies fastest at a time."""
    if A.size == 0 or n_columns == 0:
        return []
    most = _SMALL_PRODUCT if _has_small_kernels() else _COPIED_PRODUCT
    height = max(64, most // (A.shape[1] * n_columns) // 32 * 32)
    return slices(len(A), height)


@functools.cache
def _has_small_kernels() -> bool:
    return any(library.get("architecture") in _WITH_SMALL_KERNELS for library in threadpool_info())


def add_gram(gram: Array, F: Array) -> Array:
    r"""Return the lower triangle, at least, of :math:`G + F^\top F`; may overwrite ``gram``, float64 and F-ordered."""
    if isinstance(F, np.ndarray):
        syrk = ssyrk if F.dtype == np.float32 else dsyrk
        gram += syrk(1.0, F.T, lower=1)
        return gram
    return gram + cast(F.T @ F, np.float64)


def times_upper(X: Array, U: Array) -> Array:
    """Return X U for an upper triangular U of the same type; written over ``X`` if that is NumPy's and C-ordered."""
    if isinstance(X, np.ndarray):
        (trmm,) = scipy.linalg.get_blas_funcs(("trmm",), (X, U))
        return np.asarray(trmm(1.0, U.T, X.T, lower=1, overwrite_b=1).T)
    return X @ U


def inverse_cholesky(A: Array) -> Array:
    r"""Return :math:`L^{-1}`, lower triangular, of a small matrix :math:`A = L L^\top`.

    Raise LinAlgError if the matrix is not positive definite in its precision.
    """
    if isinstance(A, np.ndarray):
        potrf, trtri = scipy.linalg.get_lapack_funcs(("potrf", "trtri"), (A,))
        lower, failed = potrf(A, lower=1)
        if failed:
            raise scipy.linalg.LinAlgError("not positive definite")
        inverse, _ = trtri(lower, lower=1, overwrite_c=1)
        return np.asarray(inverse)
    xp = array_namespace(A)
    try:
        lower = xp.linalg.cholesky(A)
    except (np.linalg.LinAlgError, RuntimeError) as error:
        # torch has a LinAlgError of its own; its other errors, such as a full memory, are not ours.
        if "LinAlgError" not in type(error).__name__:
            raise
        raise scipy.linalg.LinAlgError("not positive definite") from None
    # CuPy raises nothing, and what it returns then does not reproduce the matrix.
    if not xp.max(xp.abs(lower @ lower.T - A)) <= 1e-3 * xp.max(xp.abs(A)):
        raise scipy.linalg.LinAlgError("not positive definite")
    return xp.tril(xp.linalg.inv(lower))


def device_memory(X: Array) -> int | None:
    """Return the free memory, in bytes, of the graphics processor that holds ``X``; None for main memory."""
    library = array_library(X)
    if library == "torch" and X.device.type == "cuda":
        return int(importlib.import_module("torch").cuda.mem_get_info(X.device)[0])
    if library == "cupy":
        return int(X.device.mem_info[0])
    return None


def _poly(X: Array, Y: Array, parameters: Mapping[str, Any]) -> Array:
    return (parameters["gamma"] * (X @ Y.T) + parameters["coef0"]) ** parameters["degree"]


def _unit_rows(X: Array) -> Array:
    xp = array_namespace(X)
    lengths = xp.sqrt(xp.sum(X * X, axis=1, keepdims=True))
    # Below this, scikit-learn takes a length for zero.
    zero = lengths < 10 * float(np.finfo(np.float64).eps)
    return X / xp.where(zero, xp.ones_like(lengths), lengths)


def _laplacian(X: Array, Y: Array, parameters: Mapping[str, Any]) -> Array:
    xp = array_namespace(X)
    # Column by column, since all differences at once would be d times as large as the result.
    distances = sum(xp.abs(X[:, j : j + 1] - Y[:, j : j + 1].T) for j in range(X.shape[1]))
    return xp.exp(-parameters["gamma"] * distances)


ARRAY_KERNELS: Mapping[str, Callable[[Array, Array, Mapping[str, Any]], Array]] = {
    "laplacian": _laplacian,
    "linear": lambda X, Y, _: X @ Y.T,
    "poly": _poly,
    "polynomial": _poly,
    "cosine": lambda X, Y, _: _unit_rows(X) @ _unit_rows(Y).T,
}
"""Kernels other than RBF that any library computes; NumPy leaves them to scikit-learn."""
