"""What h says of a party's own rows when they are left out: one array, for that party alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._typing import FloatArray
from ..bundle import arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError
from ._refusal import malformed

__all__ = ["check_left_out", "left_out_from", "left_out_to"]

_NAME = "left_out"
_TOLERANCE = 1e-3


def left_out_to(left_out: ArrayLike) -> bytes:
    """One array of double precision as bytes."""
    return arrays_to_bytes({_NAME: np.asarray(left_out, dtype=np.float64)})


def left_out_from(data: bytes) -> FloatArray:
    """The array that `left_out_to` wrote; what is in it is left to `check_left_out`.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED.
    """
    try:
        arrays = bytes_to_arrays(data, what="The predictions for rows left out")
    except ExchangeError:
        raise malformed("its predictions for rows left out cannot be read") from None
    if arrays.keys() != {_NAME} or arrays[_NAME].dtype != np.float64:
        raise malformed("its predictions for rows left out are no table of double precision")
    return arrays[_NAME]


def check_left_out(left_out: FloatArray, classes: NDArray[Any] | None) -> None:
    """Refuse what is neither numbers, one for each row, nor a probability of each class.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED.
    """
    wanted = left_out.shape[:1] if classes is None else (*left_out.shape[:1], len(classes))
    if left_out.ndim < 1 or left_out.shape != wanted or not left_out.size or not np.isfinite(left_out).all():
        raise malformed("its predictions for rows left out do not have the shape of its targets, or are not finite")
    if classes is None:
        return
    off = np.abs(left_out.sum(axis=1) - 1.0).max()
    if left_out.min() < -_TOLERANCE or left_out.max() > 1 + _TOLERANCE or off > _TOLERANCE:
        raise malformed("its predictions for rows left out are no probabilities")
