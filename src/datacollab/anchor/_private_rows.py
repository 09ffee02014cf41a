"""Finding private rows inside an anchor."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from ..errors import AnchorError
from ._base import check_table, rows_among

__all__ = ["check_anchor", "find_private_rows"]


def find_private_rows(anchor: ArrayLike, X_private: ArrayLike, *, tolerance: float = 0.0) -> NDArray[np.intp]:
    """Find the anchor rows that are private rows, wherever these stand in the private table.

    Parameters
    ----------
    anchor : array-like of shape (n_anchors, n_features)
    X_private : array-like of shape (n_samples, n_features)
        The party's own table.  Of two data frames columns are told by their names, and otherwise by their order.
    tolerance : float, default=0.0
        With 0, rows are found that are equal as float64.  With more, also those whose root mean square difference from
        a private row, each column in units of its standard deviation over the anchor, is at most `tolerance`.

    Returns
    -------
    ndarray of shape (n_found,)
        Positions in the anchor, ascending.

    Raises
    ------
    AnchorError
        When a table cannot be used, names or numbers of columns differ, or the tolerance is negative.

    Notes
    -----
    Run it at the party; the private table goes nowhere.  A table that was stored in lower precision on the way, say
    float32, is not equal any more: use a small tolerance such as 1e-6 there.  Time is linear in the rows for
    ``tolerance=0``, and that of a nearest-neighbour search otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.anchor import find_private_rows
    >>> anchor = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> find_private_rows(anchor, [[9.0, 9.0], [2.0, 3.0]])
    array([1])
    """
    if not 0 <= tolerance < np.inf:
        raise AnchorError(f"tolerance must be a finite number, 0 or above; got {tolerance!r}.")
    A, X = check_table(anchor, "anchor"), check_table(_in_order(X_private, anchor), "X_private")
    if A.shape[1] != X.shape[1]:
        raise AnchorError(
            f"The anchor has {A.shape[1]} columns but X_private has {X.shape[1]}; give both with the same columns in "
            "the same order."
        )
    found = rows_among(A, X)
    if tolerance > 0:
        scaler = StandardScaler().fit(A)
        neighbors = NearestNeighbors(n_neighbors=1).fit(scaler.transform(X))
        distances, _ = neighbors.kneighbors(scaler.transform(A))
        found |= distances[:, 0] <= tolerance * np.sqrt(A.shape[1])
    return np.flatnonzero(found)


def _in_order(table: ArrayLike, like: ArrayLike) -> ArrayLike:
    """A frame with its columns in the order of another: equal rows would not be found in unequal orders."""
    names, wanted = (list(getattr(each, "columns", ())) for each in (table, like))
    if not names or not wanted or names == wanted:
        return table
    if sorted(map(str, names)) != sorted(map(str, wanted)):
        others = sorted({*map(str, names)} ^ {*map(str, wanted)})
        raise AnchorError(
            f"The anchor and X_private have columns of other names ({', '.join(others[:5])}); give both with the same "
            "columns."
        )
    ordered: ArrayLike = table[wanted]  # type: ignore[index,call-overload]
    return ordered


def check_anchor(anchor: ArrayLike, X_private: ArrayLike, *, tolerance: float = 0.0) -> None:
    """Refuse an anchor that holds private rows.

    Parameters
    ----------
    anchor, X_private, tolerance
        As in `find_private_rows`.

    Raises
    ------
    AnchorError
        When private rows are found; the message names at most ten anchor positions, and no entry.

    Examples
    --------
    >>> from datacollab.anchor import check_anchor
    >>> check_anchor([[0.0, 1.0], [2.0, 3.0]], [[5.0, 6.0]])
    """
    found = find_private_rows(anchor, X_private, tolerance=tolerance)
    if found.size:
        listed = ", ".join(map(str, found[:10])) + (", ..." if found.size > 10 else "")
        raise AnchorError(
            f"{found.size} rows of the anchor are private rows (anchor positions {listed}). Every party sees the "
            "anchor, so nothing may be shared with it. Make a new anchor from public or synthetic rows."
        )
