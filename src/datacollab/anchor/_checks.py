"""Checks of an anchor at a party: private rows in it, and rows that were made for single private rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.stats import beta
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from .._encoder import TableEncoder
from .._frames import has_numbers_alone, plain_table
from .._typing import FloatArray
from ..errors import AgreementError, AnchorError
from ._sources import check_table, rows_among

_MOST_ROWS = 5000
_NEAR = 0.2
"""Part of the distance to the nearest own row within which an anchor row is near."""
_FEWEST_NEAR = 10
_MOST_NEAR = 0.1
"""Part of the anchor that may be near own rows by chance, in tables of few columns."""
_LEAST_SPREAD = 0.7
_MOST_COMPARED = 2000
_FEWEST_AROUND, _PART_AROUND = 3, 0.05
"""How many own rows a ball around an own row holds, at least, and as a part of them."""
_LEVEL = 1e-3
_CONSTANT = 1e-9
"""Columns that vary less, as a part of their largest entry, count as constant."""


def find_private_rows(anchor: ArrayLike, X_private: ArrayLike, *, tolerance: float = 0.0) -> NDArray[np.intp]:
    """Find the anchor rows that are private rows, in any order of the private table.

    Parameters
    ----------
    anchor : array-like of shape (n_anchors, n_features)
    X_private : array-like of shape (n_samples, n_features)
        The party's own table.  Columns of two data frames are matched by name, and otherwise by their order.
    tolerance : float, default=0.0
        With 0, find rows that are equal as float64; a gap equals the median.  With more, also those whose root mean
        square difference from a private row, each column in units of its standard deviation over the anchor, is at
        most `tolerance`.

    Returns
    -------
    ndarray of shape (n_found,)
        Positions in the anchor, ascending.

    Raises
    ------
    AnchorError
        If a table cannot be used, names or numbers of columns differ, or the tolerance is negative.

    Notes
    -----
    Run it at the party; the private table goes nowhere.  A table that was stored in lower precision on the way, say
    float32, is not equal any more: use a small tolerance such as 1e-6 there.
    """
    if not 0 <= tolerance < np.inf:
        raise AnchorError(f"tolerance must be a finite number, 0 or above; got {tolerance!r}.")
    anchor, X_private = plain_table(anchor, "anchor", AnchorError), plain_table(X_private, "X_private", AnchorError)
    X_private = _in_order(X_private, anchor)
    if np.ndim(anchor) == np.ndim(X_private) == 2 and not (has_numbers_alone(anchor) and has_numbers_alone(X_private)):
        # Gaps are filled, so that rows which differ in one alone count as equal.
        try:
            encoder = TableEncoder("A table", standardise=False).fit(anchor, beside=[X_private])
        except AgreementError as error:
            raise AnchorError(str(error)) from None
        anchor, X_private = encoder.transform(anchor), encoder.transform(X_private)
    A, X = check_table(anchor, "anchor"), check_table(X_private, "X_private")
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
    """Return a frame with its columns in the order of another: equal rows would not be found in unequal orders."""
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


@dataclass(frozen=True, kw_only=True)
class AnchorFit:
    """A comparison of an anchor with a party's own rows.

    Attributes
    ----------
    n_crowded : int
        Own rows with at least ten anchor rows much nearer than any other own row.
    n_near : int
        Anchor rows that are much nearer to an own row than any other own row is.
    n_anchors : int
    spread : float
        Median over columns of the anchor's standard deviation over that of the own rows.
    density : float
        The anchor's part around an own row over the own rows' part there, or that of `expected` rows if it is larger,
        at its densest, by 99.8 % intervals.
    """

    n_crowded: int
    n_near: int
    n_anchors: int
    spread: float
    density: float

    @property
    def is_crowded(self) -> bool:
        """Return whether anchor rows lie around single own rows, as they do not by chance."""
        return self.n_crowded > 0 or self.n_near > max(_FEWEST_NEAR, _MOST_NEAR * self.n_anchors)

    @property
    def is_narrow(self) -> bool:
        """Return whether the anchor varies less than .7 times as much as the own rows in most columns."""
        return self.spread < _LEAST_SPREAD


def anchor_fit(anchor: ArrayLike, X_private: ArrayLike, *, expected: ArrayLike | None = None) -> AnchorFit:
    """Compare an anchor with a party's own rows, at the party.

    An anchor that was planted around people lets others read what these people add, and a map of a narrow anchor sees
    little of the table.  With more than 5,000 own rows, as many at even distances are compared.

    Parameters
    ----------
    anchor : array-like of shape (n_anchors, n_features)
    X_private : array-like of shape (n_samples, n_features)
        At least two rows.
    expected : array-like of shape (n_expected, n_features), optional
        Rows drawn by the recipe that the anchor is said to follow, if it does not follow the distribution of the own
        rows: an honest anchor is as dense as these.

    Raises
    ------
    AnchorError
        If a table cannot be used.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> own = rng.normal(size=(100, 5))
    >>> anchor_fit(rng.normal(size=(300, 5)), own).is_crowded
    False
    >>> anchor_fit(own[7] + 0.01 * rng.normal(size=(300, 5)), own).is_crowded
    True
    """
    A, X = check_table(anchor, "anchor"), check_table(X_private, "X_private")
    E = A[:0] if expected is None else check_table(expected, "expected")
    X = X[:: -(-len(X) // _MOST_ROWS)]
    # The own rows give the units, which the maker of the anchor does not know.
    deviation = X.std(axis=0)
    varies = deviation > _CONSTANT * np.abs(X).max(axis=0)
    A, X, E = (each[:, varies] / deviation[varies] for each in (A, X, E))
    if not varies.any() or len(X) < 2:
        return AnchorFit(n_crowded=0, n_near=0, n_anchors=len(A), spread=1.0, density=0.0)
    own, _ = NearestNeighbors(n_neighbors=2).fit(X).kneighbors(X)
    radius = _NEAR * own[:, 1]
    near = NearestNeighbors(n_neighbors=min(_FEWEST_NEAR, len(A))).fit(A).kneighbors(X)[0] < radius[:, None]
    distances, nearest = NearestNeighbors(n_neighbors=1).fit(X).kneighbors(A)
    return AnchorFit(
        n_crowded=int(near.all(axis=1).sum()) if len(A) >= _FEWEST_NEAR else 0,
        n_near=int((distances[:, 0] < radius[nearest[:, 0]]).sum()),
        n_anchors=len(A),
        spread=float(np.median(A.std(axis=0))),
        density=_density(A, X, E),
    )


def _density(A: FloatArray, X: FloatArray, E: FloatArray) -> float:
    """Compare, around each own row, the anchor's part with that of the own rows, or of the expected ones."""
    X = X[:: -(-len(X) // _MOST_COMPARED)]
    n_others = len(X) - 1
    k = min(n_others, max(_FEWEST_AROUND, round(_PART_AROUND * n_others)))
    among = cdist(X, X)
    np.fill_diagonal(among, np.inf)
    radius = np.partition(among, k - 1, axis=1)[:, k - 1 : k] * (1 + 1e-9)

    def n_around(rows: FloatArray) -> FloatArray:
        # All rows of the anchor: its maker could know which of them are left out.
        starts = range(0, len(rows), _MOST_COMPARED)
        counts = [(cdist(X, rows[start : start + _MOST_COMPARED]) <= radius).sum(axis=1) for start in starts]
        return np.asarray(np.sum(counts, axis=0, dtype=np.float64))

    def most(n_inside: FloatArray, n: int) -> FloatArray:
        return np.asarray(beta.ppf(1 - _LEVEL, n_inside + 1, np.maximum(n - n_inside, 1e-9)))

    fair = most((among <= radius).sum(axis=1), n_others)
    if len(E):
        fair = np.maximum(fair, most(n_around(E), len(E)))
    n_anchors = n_around(A)
    least_anchors = np.where(n_anchors, beta.ppf(_LEVEL, np.maximum(n_anchors, 1), len(A) - n_anchors + 1), 0.0)
    return float((least_anchors / fair).max())
