"""How many rows do not fit, and where the first of them is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["affected_rows"]


def affected_rows(rows: NDArray[np.bool_], first_row: int | None, *, earlier: int = 0) -> str:
    """Count rows in the words of a refusal.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,)
        Which of them are meant.
    first_row : int or None
        Rows of the file before these; None when these are all.
    earlier : int, default=0
        How many of those are meant, too; where there are any, the first is not named.

    Examples
    --------
    >>> rows = np.array([False, True, True])
    >>> affected_rows(rows, None)
    '2 of 3 rows (the first: row 2)'
    >>> affected_rows(rows, 16384)
    '2 of the first 16387 rows (the first: row 16386)'
    >>> affected_rows(rows, 16384, earlier=5)
    '7 of the first 16387 rows'
    """
    before = first_row or 0
    counted = (
        f"{earlier + np.count_nonzero(rows)} of {'' if first_row is None else 'the first '}{before + rows.size} rows"
    )
    if earlier or (not before and rows.all()):
        return counted
    return f"{counted} (the first: row {before + int(np.argmax(rows)) + 1})"
