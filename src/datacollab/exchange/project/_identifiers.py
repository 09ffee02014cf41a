"""Columns of numbers that may be record numbers, which are no feature and tell who somebody is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._numbers import NotNumericError, as_numbers

__all__ = ["like_record_numbers"]

_FEWEST_ROWS = 20


def like_record_numbers(table: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Columns that have another whole number in every row.

    A measurement may look like that too, in few rows or a fine unit, so this is a reason to ask and not to refuse.
    Text of this kind is refused where categories are wanted.

    Parameters
    ----------
    table : DataFrame
        Of fewer than 20 rows nothing is said.
    names : sequence of str
        Columns to look at.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"record": range(501, 531), "age": [40, 50, 60] * 10})
    >>> like_record_numbers(table, ["record", "age"])
    ('record',)
    """
    return tuple(name for name in names if _is_like_one(table[name]))


def _is_like_one(column: Any) -> bool:
    try:
        numbers = as_numbers(column)
    except NotNumericError:
        return False
    is_whole = bool((numbers % 1 == 0).all())
    return is_whole and numbers.size >= _FEWEST_ROWS and np.unique(numbers).size == numbers.size
