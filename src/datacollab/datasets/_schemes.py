"""Who gets which rows: pure functions of class or region codes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import randomized_svd

from .._validation import FloatArray

__all__ = ["iid", "mixed", "regions", "stratified"]

Codes = NDArray[np.intp]


def iid(n_samples: int, n_parties: int, n_per_party: int, generator: np.random.RandomState) -> Codes:
    """Equal random disjoint parties, as rows of shape (n_parties, n_per_party)."""
    return generator.permutation(n_samples)[: n_parties * n_per_party].reshape(n_parties, n_per_party)


def stratified(codes: Codes, n_parties: int, n_per_party: int, generator: np.random.RandomState) -> Codes:
    """The same, each party with the class shares of the whole table.

    The rows of a class of size c are spread evenly, 1/c apart from a random start, over [0, 1); any run of consecutive
    rows in that order then has every class in its share, give or take one row at either end.
    """
    shuffled = generator.permutation(codes.size)
    counts = np.bincount(codes)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    rank = np.arange(codes.size) - np.repeat(np.cumsum(counts) - counts, counts)
    place = (rank + np.repeat(generator.random_sample(counts.size), counts)) / np.repeat(counts, counts)
    parties = by_class[np.argsort(place, kind="stable")][: n_parties * n_per_party].reshape(n_parties, n_per_party)
    return np.array([generator.permutation(rows) for rows in parties])


def mixed(
    codes: Codes, n_parties: int, n_per_party: int, concentration: float, generator: np.random.RandomState
) -> Codes:
    """Each party draws its own mix of the classes from a Dirichlet distribution around the shares in the table."""
    stock = np.bincount(codes)
    mixes = _dirichlet(concentration * stock.size * stock / codes.size, n_parties, generator)
    counts = _draw_counts(mixes, stock, n_per_party, generator)
    shuffled = generator.permutation(codes.size)
    by_class = np.split(shuffled[np.argsort(codes[shuffled], kind="stable")], np.cumsum(stock)[:-1])
    taken = [np.split(rows, np.cumsum(counts[:, code]))[:-1] for code, rows in enumerate(by_class)]
    return np.array([generator.permutation(np.concatenate(pieces)) for pieces in zip(*taken, strict=True)])


def regions(X: FloatArray, n_regions: int, generator: np.random.RandomState) -> Codes:
    """Cut the rows into equally large slices along the first principal direction of the standardised columns."""
    standardised = StandardScaler().fit_transform(X)
    scores = randomized_svd(standardised, 1, random_state=generator)[0][:, 0]
    codes = np.empty(scores.size, dtype=np.intp)
    codes[np.argsort(scores, kind="stable")] = np.arange(scores.size) * n_regions // scores.size
    return codes  # (n_samples,)


def _dirichlet(alpha: FloatArray, size: int, generator: np.random.RandomState) -> FloatArray:
    """Draw by logarithms of gamma variates, Γ(a) = Γ(a + 1) U^(1/a): small `alpha` would underflow to 0/0."""
    logs = np.log(generator.standard_gamma(alpha + 1, (size, alpha.size)))
    logs -= generator.standard_exponential((size, alpha.size)) / alpha
    mixes: FloatArray = softmax(logs, axis=1)
    return mixes  # (size, n_classes)


def _draw_counts(mixes: FloatArray, stock: Codes, n_per_party: int, generator: np.random.RandomState) -> Codes:
    """How many rows of each class each party gets, shape (n_parties, n_classes).

    All parties draw at once.  A class asked for more often than it has rows is raffled among those who asked; who went
    away short draws again from the classes that are left.  Every round fills all parties or exhausts a class.
    """
    counts = np.zeros(mixes.shape, dtype=np.intp)
    while (short := n_per_party - counts.sum(axis=1)).any():
        left = stock - counts.sum(axis=0)
        weights = np.where(left > 0, mixes, 0)
        weights[weights.sum(axis=1) == 0] = left
        weights /= weights.sum(axis=1, keepdims=True)
        asked = np.array([generator.multinomial(n, row) for n, row in zip(short, weights, strict=True)])
        for code in np.flatnonzero(asked.sum(axis=0) > left):
            tickets = generator.permutation(np.repeat(np.arange(len(mixes)), asked[:, code]))
            asked[:, code] = np.bincount(tickets[: left[code]], minlength=len(mixes))
        counts += asked
    return counts
