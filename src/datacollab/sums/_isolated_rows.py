r"""Rows that stand alone: shortened before they are added up, so that a total tells little more of them than of others.

An analyst and one party that know all rows v read the target of one of them (one of two classes, equally frequent, that
nothing else tells) rightly with probability

.. math:: \Phi(\sqrt h), \qquad h = d^\top (S + \tau I)^{-1} d,

where S are the centred moments of all other rows, d is v less their mean, and τ the variance of the noise of S_xy over
that of the target.  A row with a value that nobody else has is long in a direction in which S is zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from .._typing import FloatArray
from ._ridge_sums import RidgeSums

# A row stands alone if its target is read rightly this much more often than the usual row's.
_MOST_BEYOND = 0.05
# τ / s²: the noise of S_xy has the variance 2 s², and the indicator of one of two equally frequent classes 1/4.
_NOISE = 8.0
# Numbers of mapped rows in memory (8 MB) from which on rows are dropped that cannot stand alone any more.
_MOST_KEPT = 2**20


class IsolatedRows:
    """A party's rows while they are added up, and which of them stand alone.

    The party takes other parties' rows to be like its own.  Anchor rows do not count: the anchor may have one person's
    value, and no other row of the total.

    Parameters
    ----------
    statistic : RidgeSums
    n_parties : int
        All but one, which works with the analyst, are taken to have as many rows as this one.
    """

    def __init__(self, statistic: RidgeSums, n_parties: int) -> None:
        self.statistic = statistic
        self.n_parties = n_parties
        self._others = n_parties - 1
        self._sums: FloatArray = np.zeros(statistic.n_numbers)
        self._kept = list[tuple[FloatArray, NDArray[Any]]]()
        self._most_kept = _MOST_KEPT
        self._n_rows = 0
        self._moments: _Moments | None = None
        self._n_in_moments = 0

    def part(self, v: FloatArray, y: ArrayLike) -> FloatArray:
        """Return `RidgeSums.part` of some rows, and remember those that may stand alone."""
        added = self.statistic.part(v, y)
        self._sums += added
        self._n_rows += len(v)
        # Without noise all targets can be read, and shortening does not help.
        if len(v) and self.statistic.noise:
            self._keep(v, np.asarray(y))
        if sum(rows.size for rows, _ in self._kept) > self._most_kept:
            # Moments of half of the rows tell nearly as well which ones to drop.
            if self._moments is None or self._n_rows >= 2 * self._n_in_moments:
                self._moments = _Moments(self.statistic, self._sums, self._others)
                self._n_in_moments = self._n_rows
            rows, target = self._rows()
            self._kept = []
            self._keep(rows, target)
            # Rows that stay are not looked at again with every batch.
            self._most_kept = max(_MOST_KEPT, 2 * sum(each.size for each, _ in self._kept))
        return added

    def add(self, other: IsolatedRows) -> None:
        """Take the rows of another part of the party's rows into account."""
        self._sums = self._sums + other._sums
        self._n_rows += other._n_rows
        # What its own moments dropped cannot stand alone among more rows either.
        self._kept = [*self._kept, *other._kept]

    def _keep(self, v: FloatArray, y: NDArray[Any]) -> None:
        """Remember those rows that may stand alone, as far as moments of earlier rows tell."""
        if self._moments is not None:
            # With more rows, h plus the variance of their mean can only fall.
            is_above = self._moments.may_exceed(v, _h_beyond(0.0) - self._moments.variance_of_mean)
            v = v[is_above]
            y = y[is_above]
        self._kept.append((v, y))

    def shorten(self, v: FloatArray) -> FloatArray:
        """Return some of the rows, each shortened that stands alone; usual rows are the same bit for bit."""
        moments = _Moments(self.statistic, self._sums, self._others)
        is_alone = moments.h(v) > _h_beyond(moments.usual)
        shortened = v.copy()
        shortened[is_alone] = moments.shorten(v[is_alone])
        return shortened

    def correction(self) -> tuple[FloatArray, int]:
        """Return the difference of the sums over shortened rows to the parts, and how many rows stand alone."""
        if not self._kept:
            return np.zeros(self.statistic.n_numbers), 0
        v, y = self._rows()
        shortened = self.shorten(v)
        is_alone = (shortened != v).any(axis=1)
        part = self.statistic.part
        less = part(v[is_alone], y[is_alone])
        return part(shortened[is_alone], y[is_alone]) - less, int(is_alone.sum())

    def _rows(self) -> tuple[FloatArray, NDArray[Any]]:
        return np.concatenate([v for v, _ in self._kept]), np.concatenate([y for _, y in self._kept])


class _Moments:
    """Moments of a party's rows without any one row, in their eigenvectors."""

    def __init__(self, statistic: RidgeSums, sums: FloatArray, others: int) -> None:
        D = statistic.n_components
        n, self._mean, _ = statistic.means(sums)
        S = statistic._matrix(sums)[:D, :D] - n * np.outer(self._mean, self._mean)
        e, self._U = scipy.linalg.eigh(S)
        e = np.maximum(e, 0.0)
        self._e = others * e + _NOISE * statistic.noise**2
        # A row is n / (n - 1) times as far from the mean of the others as from that of all; a single row is the mean.
        self._factor = n / max(n - 1, 1.0)
        self._weight = others / self._factor
        self.variance_of_mean = 1 / (others * max(n - 1, 1.0))
        mean_q = float(self._factor**2 * (e / self._e).sum() / n)
        self.usual = mean_q / (1 - self._weight * mean_q)

    def h(self, v: FloatArray) -> FloatArray:
        """Return how well each row's target is read, shape (n_rows,); see the head of this file."""
        return self._h_after(self._apart(v), 0.0)

    def may_exceed(self, v: FloatArray, least: float) -> NDArray[np.bool_]:
        """Return which rows may have an h above `least`, from the few directions in which the others vary little.

        In the other directions a row counts as if the others varied as little as they do in any of these, which is no
        less than its h.
        """
        # h = q / (1 - weight q) grows with q = wᵀ M⁻¹ w.
        most_q = least / (1 + self._weight * least)
        mean = self._mean
        squares = self._factor**2 * (np.einsum("ij,ij->i", v, v) - 2 * v @ mean + mean @ mean)
        # As many directions as leave at most half of the bound to the others, for the longest row.
        n_few = int(np.searchsorted(self._e, 2 * squares.max(initial=0.0) / most_q))
        few = self._factor * self._U[:, :n_few]
        w = v @ few - mean @ few
        q = np.square(w) @ (1 / self._e[:n_few])
        if n_few < len(self._e):
            q += np.maximum(squares - np.einsum("ij,ij->i", w, w), 0.0) / self._e[n_few]
        # Rounding must not lose a row.
        return np.asarray(q * (1 + 1e-9) > most_q)

    def shorten(self, v: FloatArray) -> FloatArray:
        """Return rows moved to the mean of the others, until each is read as well as the usual row.

        With M the moments of the others and the noise, d becomes (I + μ/M)⁻¹ d: it stays in directions in which others
        vary, and vanishes in those in which nobody else does.
        """
        w = self._apart(v)
        # From far below the smallest moment to far above the largest one, 60 halvings find log μ up to rounding.
        low = np.full(len(w), np.log(self._e[0]) - 20)
        high = np.full(len(w), np.log(self._e[-1]) + 20)
        for _ in range(60):
            middle = (low + high) / 2
            is_far = self._h_after(w, np.exp(middle)[:, None]) > self.usual
            low = np.where(is_far, middle, low)
            high = np.where(is_far, high, middle)
        mu = np.exp(high)[:, None]
        shortened = v - mu * self._solve(w, mu) @ self._U.T
        return np.asarray(shortened / np.maximum(1.0, np.linalg.norm(shortened, axis=1, keepdims=True)))

    def _apart(self, v: FloatArray) -> FloatArray:
        return np.asarray(self._factor * (v - self._mean) @ self._U)

    def _solve(self, w: FloatArray, mu: FloatArray | float) -> FloatArray:
        """Return (M + μI)⁻¹ d for each row; Sherman and Morrison's formula takes the row out of the moments."""
        z = w / (self._e + mu)
        return np.asarray(z / (1 - self._weight * (w * z).sum(axis=1, keepdims=True)))

    def _h_after(self, w: FloatArray, mu: FloatArray | float) -> FloatArray:
        z = self._solve(w, mu)
        return np.asarray(((w - mu * z) * z).sum(axis=1))


def _h_beyond(usual: float) -> float:
    """Return the h from which on a row stands alone among rows with the usual h."""
    read = ndtr(np.sqrt(usual)) + _MOST_BEYOND
    return float(ndtri(read) ** 2) if read < 1 else np.inf
