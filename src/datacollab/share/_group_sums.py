"""Sums over a group's parties: what such a sum can be, checked before anybody computes with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.lapack import dpotrf, dtpttr, dtrttp

from .._typing import FloatArray
from ..errors import ShareError
from ._group_settings import CENTRED

__all__ = ["SUMS", "adjacency_of", "check_sums", "from_triangle", "to_triangle"]

SUMS = {"LTI": ("factor",), "GEP": ("factor",), "MPP": ("factor",), "KTI": ("triangle",)}
"""Arrays that each method sends; KTI with a graph adds `GRAPH`."""
_GRAPH = ("edges", "edge_weights")
_ROUNDING = 1e-6
_MOST_ENTRY = 1e30


def arrays_wanted(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the arrays that a message with these settings has."""
    return (*SUMS[settings["method"]], *(_GRAPH if settings.get("graph") is not None else ()))


def to_triangle(M: FloatArray) -> FloatArray:
    """The lower triangle of a symmetric matrix, column by column, shape (n (n + 1) / 2,).

    Parameters
    ----------
    M : ndarray of shape (n, n)
        Its lower triangle is read.
    """
    packed, _ = dtrttp(M, uplo="L")
    return np.asarray(packed)


def from_triangle(packed: FloatArray, n: int) -> FloatArray:
    """The matrix of `to_triangle`, in its lower triangle, Fortran-ordered; the upper one is zero."""
    M, _ = dtpttr(n, packed, uplo="L")
    return np.asarray(M)


def adjacency_of(arrays: Mapping[str, NDArray[Any]], n_anchors: int) -> sparse.csr_array:
    """Symmetric weights of a graph from its edges."""
    first, second = arrays["edges"].T
    half = sparse.csr_array((arrays["edge_weights"], (first, second)), shape=(n_anchors, n_anchors))
    return sparse.csr_array(half + half.T)


def check_sums(settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_anchors: int, n_parties: int) -> None:
    """Refuse arrays that no sum over so many parties can be.

    A party's term is a projector or a smoother's complement, with eigenvalues from 0 to 1 (of MPP any not negative),
    so that a sum of K of them has eigenvalues from 0 to K.

    Raises
    ------
    ShareError
    """
    if arrays.keys() != set(arrays_wanted(settings)):
        raise ShareError(f"arrays {list(arrays_wanted(settings))!r} are wanted; got {sorted(arrays)!r}")
    for name, array in arrays.items():
        if array.dtype != (np.int64 if name == "edges" else np.float64):
            raise ShareError(f"{name} is of type {array.dtype}")
        if array.dtype == np.float64 and not (np.abs(array) <= _MOST_ENTRY).all():
            raise ShareError(f"{name} has entries that are not finite, or beyond {_MOST_ENTRY:g}")
    if "factor" in arrays:
        _check_factor(arrays["factor"], settings, n_anchors, n_parties)
    else:
        _check_triangle(arrays["triangle"], n_anchors, n_parties)
    if "edges" in arrays:
        _check_graph(arrays["edges"], arrays["edge_weights"], n_anchors, n_parties)


def _check_factor(F: FloatArray, settings: Mapping[str, Any], n_anchors: int, n_parties: int) -> None:
    if F.ndim != 2 or F.shape[0] != n_anchors or not 1 <= F.shape[1] <= n_anchors:
        raise ShareError(f"factor must have {n_anchors} rows, and from 1 to {n_anchors} columns; got shape {F.shape}")
    largest = float(scipy.linalg.eigvalsh(F.T @ F, check_finite=False)[-1])
    if settings["method"] != "MPP" and largest > n_parties * (1 + _ROUNDING):
        raise ShareError(f"factor is larger than a sum over {n_parties} projectors can be")
    is_centred = settings.get(CENTRED.get(settings["method"], ""), False)
    if is_centred and np.abs(F.sum(axis=0)).max() > _ROUNDING * np.sqrt(n_anchors * largest):
        raise ShareError("factor has columns that do not sum to zero, where settings say that they do")


def _check_triangle(packed: FloatArray, n_anchors: int, n_parties: int) -> None:
    if packed.shape != (n_anchors * (n_anchors + 1) // 2,):
        raise ShareError(f"triangle must have {n_anchors * (n_anchors + 1) // 2} entries; got shape {packed.shape}")
    for sign, shift in ((1.0, _ROUNDING * n_parties), (-1.0, n_parties * (1 + _ROUNDING))):
        M = np.asfortranarray(sign * from_triangle(packed, n_anchors))
        M[np.diag_indices(n_anchors)] += shift
        if dpotrf(M, lower=True, clean=False, overwrite_a=True)[1] != 0:
            raise ShareError(f"triangle has eigenvalues that a sum over {n_parties} parties cannot have")


def _check_graph(edges: NDArray[np.int64], weights: FloatArray, n_anchors: int, n_parties: int) -> None:
    if edges.ndim != 2 or edges.shape[1] != 2 or weights.shape != (len(edges),) or not len(edges):
        raise ShareError("a graph has edges of two ends each, and one weight for each edge")
    first, second = edges.T
    if not (second.min() >= 0 and first.max() < n_anchors and (second < first).all()):
        raise ShareError("a graph's edges must go from an anchor row to an earlier one")
    if len(np.unique(first * n_anchors + second)) != len(edges):
        raise ShareError("a graph has an edge twice")
    if not (weights > 0).all() or weights.max() > n_parties * (1 + _ROUNDING):
        raise ShareError(f"a graph over {n_parties} parties has weights above 0, up to {n_parties}")
