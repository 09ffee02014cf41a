"""Reading tables; an error shows shapes and types, never an entry."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..._validation import FloatArray
from ...anchor._base import check_table
from ...errors import AnchorError, RepresentationError

__all__ = ["check_rows"]


def check_rows(values: ArrayLike, what: str) -> FloatArray:
    """Turn an array, a list or a data frame into a finite, two-dimensional float64 array.

    Raises
    ------
    RepresentationError
        When it is sparse, not numeric, not two-dimensional, empty or not finite; the message names it by `what`.
    """
    try:
        return check_table(values, what)
    except AnchorError as error:
        raise RepresentationError(str(error)) from None
