r"""Messages of a method, and their evidence on one record: the same recipe for all methods.

An attacker has some records with two targets each, the own one and another.  A message answers with numbers for each
record, its evidence: `Model` with its outputs for the record and its neighbours, `Points` with how near the nearest
rows of both targets are, and `Total` with the sum along the record's own direction.  The attack learns the meaning of
these numbers from other worlds (`attacks`), so a scale or a sign is no matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from datacollab.sums import CommonMap, RidgeSums

from ..pays.draws import FLOOR, Rows
from ..pays.library import Predict
from ..pays.tables import Array
from ..sums.attacks import ETA

# Added before a logarithm: a row that was sent as it is has distance 0.
_NEAR = 1e-9
# Relative to the whole: below it a direction is rounding.
_RANK = 1e-9
# How much of the variance that the kind's rows do not span an attacker reckons with.
_REST = (0.3, 3.0)
# Exact sums have no noise, and a covariance needs some to be inverted.
_LEAST_NOISE = 1e-3


@dataclass(frozen=True, eq=False)
class Records:
    """Records that an attacker asks about.

    Attributes
    ----------
    X : ndarray of shape (n_records, n_columns)
    y, other : ndarray of shape (n_records,)
        The record's own class and another one.
    near : ndarray of shape (n_neighbours, n_records, n_columns)
        Rows close by.
    """

    X: Array
    y: NDArray[np.intp]
    other: NDArray[np.intp]
    near: Array


class Message(Protocol):
    """Anything that somebody sees."""

    def evidence(self, records: Records) -> Array:
        """Return the evidence on each record, shape (n_records, n_numbers)."""


@dataclass(frozen=True, eq=False)
class Model:
    """A model: the attacker asks it for the record and for rows close by.

    Attributes
    ----------
    outputs : callable
        Map from rows to outputs, shape (n_rows, n_classes), on the scale of logarithms of probabilities.
    """

    outputs: Predict

    @classmethod
    def of(cls, predict: Predict) -> Model:
        """Return the message of a model that gives probabilities."""
        return cls(lambda rows: np.log(np.maximum(predict(rows), FLOOR)))

    def evidence(self, records: Records) -> Array:
        """Return the outputs for both classes, less the mean of all, of the record and of its neighbours' mean."""
        found = []
        for rows in (records.X[None], records.near):
            said = self.outputs(rows.reshape(-1, rows.shape[-1])).reshape(*rows.shape[:2], -1).mean(axis=0)
            # Only differences of outputs tell classes apart.
            said = said - said.mean(axis=1, keepdims=True)
            found += [said[np.arange(len(said)), target] for target in (records.y, records.other)]
        return np.column_stack(found)


@dataclass(frozen=True, eq=False)
class Points:
    """Rows with targets: the attacker looks for the nearest ones of both classes.

    Attributes
    ----------
    image : callable
        Map from the attacker's records to where the rows lie.
    """

    rows: Rows
    image: Callable[[Array], Array] = lambda rows: rows

    def evidence(self, records: Records) -> Array:
        """Return logarithms of the distances to the nearest row of either class, and to the nearest row at all."""
        # Members lie near a shared or made-up row.
        distances = cdist(self.image(records.X), self.rows.X)
        # A class that is not there counts as far as the median row.
        scale = float(np.median(distances)) or 1.0
        found = [np.full(len(records.y), scale)] * 3
        for place, target in enumerate((records.y, records.other)):
            of_class = np.where(self.rows.y == target[:, None], distances, np.inf).min(axis=1)
            found[place] = np.minimum(of_class, scale)
        found[2] = distances.min(axis=1)
        return np.asarray(np.log(np.column_stack(found) / scale + _NEAR))


@dataclass(frozen=True, eq=False)
class Kind:
    """The common map, and rows of the kind in it: their u, and products of all uuᵀ less their mean.

    Attributes
    ----------
    u : ndarray of shape (n_kind, size)
        Rows that are in no party.
    """

    common: CommonMap
    statistic: RidgeSums
    u: Array
    mean: Array = field(init=False)
    values: Array = field(init=False)
    vectors: Array = field(init=False)
    rest: float = field(init=False)

    def __post_init__(self) -> None:
        mean = self.u.T @ self.u / len(self.u)
        object.__setattr__(self, "mean", mean)
        G = self.products(self.u)
        values, vectors = scipy.linalg.eigh(G)
        object.__setattr__(self, "values", np.maximum(values, 0.0))
        object.__setattr__(self, "vectors", vectors)
        # Variance in each direction that the rows do not span, as one half of them says of the other.
        half = len(self.u) // 2
        size = self.statistic.size
        jitter = _RANK * np.trace(G[:half, :half]) * np.eye(half)
        solved = scipy.linalg.solve(G[:half, :half] + jitter, G[:half, half:], assume_a="pos")
        left = np.diag(G)[half:] - (G[:half, half:] * solved).sum(axis=0)
        object.__setattr__(self, "rest", float(np.maximum(left, 0.0).mean() / (size * (size + 1) / 2 - half)))

    @classmethod
    def of(cls, rows: Rows, common: CommonMap, statistic: RidgeSums) -> Kind:
        return cls(common, statistic, _lift(rows.X, rows.y, common, statistic))

    def lift(self, X: Array, y: NDArray[np.intp]) -> Array:
        """Return u of rows."""
        return _lift(X, y, self.common, self.statistic)

    def along(self, u: Array, M: Array) -> Array:
        """Return the product of M with each uuᵀ less the kind's mean."""
        return np.asarray(np.einsum("ij,jk,ik->i", u, M, u, optimize=True) - (self.mean * M).sum())

    def products(self, u: Array) -> Array:
        """Return the product of each uuᵀ with each of the kind, both less the mean, shape (n_rows, n_kind)."""
        of_u, of_kind = (np.einsum("ij,jk,ik->i", rows, self.mean, rows, optimize=True) for rows in (u, self.u))
        return np.asarray((u @ self.u.T) ** 2 - of_u[:, None] - of_kind + (self.mean**2).sum())

    def norms(self, u: Array) -> Array:
        """Return the squared length of each uuᵀ less the mean."""
        crossed = np.einsum("ij,jk,ik->i", u, self.mean, u, optimize=True)
        return np.asarray((u**2).sum(axis=1) ** 2 - 2 * crossed + (self.mean**2).sum())


def _lift(X: Array, y: NDArray[np.intp], common: CommonMap, statistic: RidgeSums) -> Array:
    return np.hstack([common.transform(X), ETA * statistic.encode(y), np.full((len(X), 1), ETA)])


@dataclass(frozen=True, eq=False)
class Total:
    """A sum of uuᵀ over rows: the attacker estimates how often the record's own uuᵀ is in it.

    Attributes
    ----------
    matrix : ndarray of shape (size, size)
        Less the part that the attacker knows.
    noise : float
        Standard deviation on the diagonal.
    """

    matrix: Array
    noise: float
    kind: Kind

    def evidence(self, records: Records) -> Array:
        """Return, for both classes, the sum along uuᵀ, as it is and whitened, and how much of u the sum spans."""
        found = []
        for target in (records.y, records.other):
            u = self.kind.lift(records.X, target)
            found += [*self._along(u), self._outside(u)]
        return np.column_stack(found)

    def _along(self, u: Array) -> list[Array]:
        """Estimate by generalised least squares where rows vary as the kind does, beside the noise (Woodbury)."""
        kind = self.kind
        m = len(self.kind.u)
        # The last entry of each uuᵀ is ETA squared, so that its sum tells the number of rows.
        n = max(float(self.matrix[-1, -1] / ETA**2), 1.0)
        # Other rows are as those of the kind on average.
        residual = self.matrix - n * kind.mean
        seen = kind.along(u, residual)
        along = kind.vectors.T @ kind.along(kind.u, residual)
        k = kind.products(u) @ kind.vectors
        norms = kind.norms(u)
        found = [seen / np.sqrt(norms)]
        for rest in _REST:
            variance = max(self.noise, _LEAST_NOISE) ** 2 + n * rest * kind.rest
            # Woodbury: the inverse of the kind's covariance plus the noise, through the kind's products.
            shrunk = kind.values + variance * m / n
            found.append((seen - k @ (along / shrunk)) / np.sqrt(norms - (k**2 / shrunk).sum(axis=1)))
        return found

    def _outside(self, u: Array) -> Array:
        """The logarithm of the part of u outside the span of the sum, with noise outside of its bulk."""
        values, vectors = scipy.linalg.eigh(self.matrix)
        size = len(self.matrix)
        # Eigenvalues of noise alone stay below twice its deviation times the root of the size.
        spanned = vectors[:, values > max(_RANK * values[-1], 2 * self.noise * np.sqrt(size))]
        # Without noise, a member's u lies in the span of the sum, and a stranger's does not.
        outside = (u**2).sum(axis=1) - ((u @ spanned) ** 2).sum(axis=1)
        return np.asarray(np.log(np.maximum(outside, 0.0) + _NEAR))
