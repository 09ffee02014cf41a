"""Checks of an anchor at a party: private rows in it, and rows that were made for single private rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import fftconvolve
from scipy.spatial.distance import cdist
from scipy.stats import beta, binom, hypergeom, poisson
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from .._encoder import TableEncoder
from .._frames import has_numbers_alone, plain_table, rows_among
from .._typing import FloatArray
from ..errors import AgreementError, AnchorError
from ._sources import check_table

_MOST_ROWS = 5000
"""Own rows that are compared, at most."""
_NEAR = 0.2
"""Part of the distance to the nearest own row within which an anchor row is near."""
_MOST_COMPARED = 2000
_MOST_ALONG = 500
"""Own rows around which each column is compared."""
_MOST_AROUND_ONE = 9
"""With twelve of 300, owner and analyst together read a person's class more often than with an honest anchor."""
_UNEVENNESS = 4.0
_RULE_OF_THREE = 3
"""A kind of row that none of n rows is has a part of 3/n of all rows at most, at 95 %."""
_FEWEST_AROUND = 3
"""Own rows that a ball around an own row holds, at least."""
_PART_AROUND = 0.05
"""Part of the own rows that a ball around an own row holds."""
_LEVEL = 1e-3
"""How often chance may exceed the number that is taken for chance, in one comparison."""
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
    anchor = plain_table(anchor, "anchor", AnchorError)
    X_private = _in_order(plain_table(X_private, "X_private", AnchorError), anchor)
    if np.ndim(anchor) == np.ndim(X_private) == 2 and not (has_numbers_alone(anchor) and has_numbers_alone(X_private)):
        # Gaps are filled, so that rows which differ in one alone count as equal.
        try:
            encoder = TableEncoder("A table", standardise=False).fit(anchor, beside=[X_private])
        except AgreementError as error:
            raise AnchorError(str(error)) from None
        anchor = encoder.transform(anchor)
        X_private = encoder.transform(X_private)
    A = check_table(anchor, "anchor")
    X = check_table(X_private, "X_private")
    if A.shape[1] != X.shape[1]:
        raise AnchorError(
            f"The anchor has {A.shape[1]} columns but X_private has {X.shape[1]}; give both with the same columns in "
            "the same order."
        )
    is_private = rows_among(A, X)
    if tolerance > 0:
        scaler = StandardScaler().fit(A)
        distances, _ = NearestNeighbors(n_neighbors=1).fit(scaler.transform(X)).kneighbors(scaler.transform(A))
        # The root mean square over columns is the distance over the root of their number.
        is_private |= distances[:, 0] <= tolerance * np.sqrt(A.shape[1])
    return np.flatnonzero(is_private)


def _in_order(table: ArrayLike, like: ArrayLike) -> ArrayLike:
    """Return a frame with its columns in the order of another: equal rows would not be found in unequal orders."""
    names = list(getattr(table, "columns", ()))
    wanted = list(getattr(like, "columns", ()))
    if not names or not wanted or names == wanted:
        return table
    # Names are compared as texts, since frames may number their columns.
    if sorted(map(str, names)) != sorted(map(str, wanted)):
        others = sorted({*map(str, names)} ^ {*map(str, wanted)})
        raise AnchorError(
            f"The anchor and X_private have columns of other names ({', '.join(others[:5])}); give both with the same "
            "columns."
        )
    ordered: ArrayLike = table[wanted]  # type: ignore[index,call-overload]
    return ordered


@dataclass(frozen=True, kw_only=True)
class EqualRows:
    """How many different rows an anchor and a party's table both have, and the most that chance explains."""

    n_equal: int
    by_chance: int

    @property
    def n_beyond_chance(self) -> int:
        """Return how many more rows are in both than chance explains."""
        return max(0, self.n_equal - self.by_chance)


def equal_rows(anchor: NDArray[Any], X_private: NDArray[Any]) -> EqualRows:
    """Count the rows that an anchor and a party's own table both have, and say how many chance explains.

    Tables have shape (n_rows, n_features), or (n_rows,) if each row has a key.  Those of codes and whole numbers have
    equal rows by chance.  Rows of the same kind of people are exchangeable: of all rows of both tables, the own ones
    are a draw without replacement.  So the chance that g equal rows are not all of one table follows from the sizes of
    both.  The count is a sum of such trials (Poisson's binomial distribution).  Chance explains the counts that it
    reaches in one of a thousand anchors.
    """
    # Adding zero turns -0.0 into 0.0, which is equal to it.
    rows = np.concatenate([anchor, X_private]) + np.zeros(1, dtype=X_private.dtype)
    _, group, sizes = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    of_anchor = np.bincount(group.ravel()[: len(anchor)], minlength=len(sizes))
    is_of_both = (of_anchor > 0) & (of_anchor < sizes)
    repeated, counts = np.unique(sizes[sizes > 1], return_counts=True)
    all_of_anchor = hypergeom.pmf(repeated, len(rows), len(anchor), repeated)
    all_own = hypergeom.pmf(0, len(rows), len(anchor), repeated)
    by_chance = _most_successes(counts, 1 - all_of_anchor - all_own)
    return EqualRows(n_equal=int(is_of_both.sum()), by_chance=by_chance)


def _most_successes(counts: NDArray[np.intp], chances: FloatArray) -> int:
    """Return the most successes of so many trials at each chance, but for one in a thousand cases."""
    probabilities = np.ones(1)
    for n_trials, chance in zip(counts, chances, strict=True):
        probabilities = fftconvolve(probabilities, binom.pmf(np.arange(n_trials + 1), n_trials, chance))
    at_least = np.cumsum(probabilities[::-1])[::-1]
    # If even the most that can be is not rare, chance explains all of it.
    return int(np.flatnonzero(at_least >= _LEVEL).max())


@dataclass(frozen=True, kw_only=True)
class AnchorFit:
    """A comparison of an anchor with a party's own rows.

    Attributes
    ----------
    n_anchors : int
    n_near : int
        Anchor rows that equal an own row, or are much nearer to it than any other own row is.
    near_by_chance : int
        The most of them that chance explains.
    n_around_one : int
        The most different anchor rows that are that near to one own row.
    around_one_by_chance : int
        The most of them that chance explains.
    spread : float
        Median over columns of the anchor's standard deviation over that of the own rows.
    density : float
        The anchor's part around an own row over the own rows' part there, or that of `expected` rows if it is larger,
        at its densest, by 99.8 % intervals.
    """

    n_anchors: int
    n_near: int = 0
    near_by_chance: int = 0
    n_around_one: int = 0
    around_one_by_chance: int = 0
    spread: float = 1.0
    density: float = 0.0

    @property
    def n_near_beyond_chance(self) -> int:
        """Return how many more anchor rows lie near own rows, or near one of them, than chance explains."""
        return max(0, self.n_near - self.near_by_chance, self.n_around_one - self.around_one_by_chance)


def anchor_fit(
    anchor: ArrayLike, X_private: ArrayLike, *, expected: ArrayLike | None = None, by_column: bool = False
) -> AnchorFit:
    """Compare an anchor with a party's own rows, at the party.

    An anchor that was planted around people lets others read these people's entries, and a map of a narrow anchor sees
    little of the table.  With more than 5,000 own rows, as many at even distances are compared.

    Parameters
    ----------
    anchor : array-like of shape (n_anchors, n_features)
    X_private : array-like of shape (n_samples, n_features)
        At least two rows.
    expected : array-like of shape (n_expected, n_features), optional
        Rows drawn by the recipe that the anchor is said to follow, if it does not follow the distribution of the own
        rows: an honest anchor is as dense as these.
    by_column : bool, default=False
        Whether `density` is also that along each column of numbers, as for sums of columns that are not all alike.

    Raises
    ------
    AnchorError
        If a table cannot be used.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> own = rng.normal(size=(100, 5))
    >>> anchor_fit(rng.normal(size=(300, 5)), own).n_near_beyond_chance
    0
    >>> anchor_fit(own[7] + 0.01 * rng.normal(size=(300, 5)), own).n_near_beyond_chance > 200
    True
    """
    A = check_table(anchor, "anchor")
    X = check_table(X_private, "X_private")
    E = A[:0] if expected is None else check_table(expected, "expected")
    # Each 2nd, 3rd, ... row: the same at every run, and the anchor's maker cannot choose them.
    X = X[:: -(-len(X) // _MOST_ROWS)]
    # The own rows give the units, which the maker of the anchor does not know.
    deviation = X.std(axis=0)
    varies = deviation > _CONSTANT * np.abs(X).max(axis=0)
    if not varies.any() or len(X) < 2:
        return AnchorFit(n_anchors=len(A))
    is_equal = rows_among(A, X)
    A, X, E = (each[:, varies] / deviation[varies] for each in (A, X, E))
    distances, nearest = NearestNeighbors(n_neighbors=min(3, len(X))).fit(X).kneighbors(X)
    apart, places = NearestNeighbors(n_neighbors=1).fit(X).kneighbors(A)
    place = places[:, 0]
    # Much nearer to its nearest own row than any other own row is.
    is_near = apart[:, 0] < _NEAR * distances[place, 1]
    n_near_own = _count_near_own(distances, nearest)
    # Equal anchor rows count once: those of codes are equal by chance, those around a person differ a little.
    around = np.unique(np.column_stack([place, A])[is_near], axis=0)[:, 0].astype(np.intp)
    tables = _along_columns(A, X, E) if by_column else [(A, X, E)]
    return AnchorFit(
        n_anchors=len(A),
        n_near=int((is_equal | is_near).sum()),
        near_by_chance=_most_near(n_near_own, len(X), len(A)),
        n_around_one=int(np.bincount(around, minlength=1).max()),
        around_one_by_chance=_most_around_one(n_near_own, len(X), len(A)),
        spread=float(np.median(A.std(axis=0))),
        density=max(_density(*each) for each in tables),
    )


def _most_near(n_own: int, n_rows: int, n_anchors: int) -> int:
    """Return the most anchor rows near own rows that chance explains, if so many of the own rows are near others.

    Rows of the same kind of people are exchangeable.  So which of all that are near are anchor rows is a draw without
    replacement: Fisher's exact test, one-sided, at one in a thousand.  Own rows are near one another in pairs, so they
    say as much as half as many rows would.
    """
    n_own //= 2
    n_rows = max(1, n_rows // 2)
    counts = np.arange(n_anchors + 1)
    tails = hypergeom.sf(counts - 1, n_rows + n_anchors, n_own + counts, n_anchors)
    return int(counts[tails >= _LEVEL].max())


def _most_around_one(n_own: int, n_rows: int, n_anchors: int) -> int:
    """Return the most different anchor rows near one own row that chance explains.

    In tables of many columns that is none.  In those of few, as many are near as own rows are near others, spread over
    all rows: Poisson's distribution, with four times the mean as rows lie more densely in some places.
    """
    mean = n_anchors * (n_own + _RULE_OF_THREE) / n_rows**2
    return max(_MOST_AROUND_ONE, int(poisson.isf(_LEVEL / n_rows, _UNEVENNESS * mean)))


def _count_near_own(distances: FloatArray, nearest: NDArray[np.intp]) -> int:
    """Return how many own rows would be near, or equal, if they were the anchor and all others the own rows."""
    rows = np.arange(len(distances))
    closest = nearest[:, 1]
    # The nearest own row's own neighbour, the row that is left out aside.
    second = np.minimum(2, distances.shape[1] - 1)
    # If two rows are each other's nearest, the second nearest is the own neighbour without the first.
    is_mutual = nearest[closest, 1] == rows
    apart = np.where(is_mutual, distances[closest, second], distances[closest, 1])
    own = distances[rows, 1]
    return int(((own == 0) | (own < _NEAR * apart)).sum())


def _along_columns(A: FloatArray, X: FloatArray, E: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Yield whole rows, then each column of numbers: rows that crowd along two columns may be sparse among all."""
    yield A, X, E
    some = X[:: -(-len(X) // _MOST_ALONG)]
    for place in range(A.shape[1]):
        # The map stretches no columns of two values, as categories have.
        if len(np.unique(A[:, place])) > 2:
            yield A[:, [place]], some[:, [place]], E[:, [place]]


def _density(A: FloatArray, X: FloatArray, E: FloatArray) -> float:
    """Compare, around each own row, the anchor's part with that of the own rows, or of the expected ones."""
    X = X[:: -(-len(X) // _MOST_COMPARED)]
    n_others = len(X) - 1
    k = min(n_others, max(_FEWEST_AROUND, round(_PART_AROUND * n_others)))
    among = cdist(X, X)
    np.fill_diagonal(among, np.inf)
    # A little more than the k-th distance, so that rounding leaves no neighbour outside.
    radius = np.partition(among, k - 1, axis=1)[:, k - 1 : k] * (1 + 1e-9)

    def n_around(rows: FloatArray) -> FloatArray:
        # All rows of the anchor: its maker could know which of them are left out.
        starts = range(0, len(rows), _MOST_COMPARED)
        counts = [(cdist(X, rows[start : start + _MOST_COMPARED]) <= radius).sum(axis=1) for start in starts]
        return np.asarray(np.sum(counts, axis=0, dtype=np.float64))

    def most(n_inside: FloatArray, n: int) -> FloatArray:
        return np.asarray(beta.ppf(1 - _LEVEL, n_inside + 1, np.maximum(n - n_inside, 1e-9)))

    # The anchor's lowest plausible part over the own rows' highest: chance alone stays below 1.
    fair = most((among <= radius).sum(axis=1), n_others)
    if len(E):
        fair = np.maximum(fair, most(n_around(E), len(E)))
    n_anchors = n_around(A)
    least_anchors = np.where(n_anchors, beta.ppf(_LEVEL, np.maximum(n_anchors, 1), len(A) - n_anchors + 1), 0.0)
    return float((least_anchors / fair).max())
