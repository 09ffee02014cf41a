"""Dealing rows, and columns, to parties, and verdicts on the papers' claims."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc

from ..pays.results import Difference, student

# Data, method, measure and value of one draw.
Figure = tuple[str, str, str, float]
# Values by data, method and measure, and by seed.
Scores = Mapping[tuple[str, str, str], Mapping[int, float]]


@dataclass(frozen=True)
class Bound:
    """Bounds for a figure or, `beside` another method, for its difference to that one's figure of the same draw."""

    says: str
    beside: str = ""
    least: float = -math.inf
    most: float = math.inf

    def verdict(self, found: Difference) -> str:
        """Return "held" or "not held" if all of the interval is within or beyond the bounds, and else "open"."""
        # The whole interval decides, so chance alone neither holds nor refutes a claim.
        if self.least <= found.low and found.high <= self.most:
            return "held"
        if found.high < self.least or found.low > self.most:
            return "not held"
        return "open"


def at_least(bound: float, beside: str = "") -> Bound:
    """Return the claim that a figure, or its difference to another method's, has a lower bound."""
    says = f"at least {bound:g}"
    if beside:
        says = f"at most {-bound:g} below {beside}" if bound else f"above {beside}"
    return Bound(says, beside, least=bound)


def at_most(bound: float, beside: str = "") -> Bound:
    """Return the claim that a figure, or its difference to another method's, has an upper bound."""
    says = f"at most {bound:g}"
    if beside:
        says = f"at most {bound:g} above {beside}" if bound else f"below {beside}"
    return Bound(says, beside, most=bound)


@dataclass(frozen=True)
class FamilyRow:
    """One figure of one method, beside its paper's, "–" if nothing could be had."""

    paper: str
    method: str
    data: str
    measure: str
    printed: str
    claims: tuple[Bound, ...]
    # The page says this with claims that are not held.
    caveat: str = ""

    def values(self, scores: Scores, method: str) -> Mapping[int, float]:
        """Return the values of a method in this row, by seed."""
        return scores.get((self.data, method, self.measure), {})

    def verdicts(self, scores: Scores) -> Iterator[tuple[Bound, Difference, str]]:
        """Judge each claim by the 95 % interval over draws."""
        ours = self.values(scores, self.method)
        for claim in self.claims:
            other: Mapping[int, float] = dict.fromkeys(ours, 0.0)
            if claim.beside:
                other = self.values(scores, claim.beside)
            found = student([ours[seed] - other[seed] for seed in sorted(ours.keys() & other.keys())])
            yield claim, found, claim.verdict(found)


Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Deal:
    """Rows of one draw, by owner, with targets: each party's, public ones, and those to test on."""

    parties: list[tuple[Array, NDArray[Any]]]
    public: tuple[Array, NDArray[Any]]
    test: tuple[Array, NDArray[Any]]

    @property
    def pooled(self) -> tuple[Array, NDArray[Any]]:
        """Return all parties' rows in one place."""
        return np.concatenate([X for X, _ in self.parties]), np.concatenate([y for _, y in self.parties])


@lru_cache
def load_images(*, small: bool) -> tuple[Array, NDArray[np.intp]]:
    """Return the 10,000 test images of MNIST, or for the smoke preset scikit-learn's digits."""
    if small:
        X, y = dc.datasets.load("digits")
    else:
        found = dc.datasets.load("mnist")
        X = found.data[found.n_train :].copy()
        y = found.target[found.n_train :]
    return X, y.astype(np.intp)


def deal_rows(
    X: Array, y: NDArray[Any], seed: int, *, n_parties: int, n_rows: int, n_public: int, n_test: int = 1000
) -> Deal:
    """Deal rows without replacement."""
    order = np.random.default_rng([seed, len(X)]).permutation(len(X))
    # Rows beyond the last end are nobody's.
    ends = np.cumsum([*[n_rows] * n_parties, n_public, n_test])
    *own, public, test = [(X[rows], y[rows]) for rows in np.split(order, ends)[:-1]]
    return Deal(own, public, test)


def draw_rotation(d: int, rng: np.random.Generator) -> Array:
    """Draw an orthogonal matrix of shape (d, d) uniformly."""
    # Signs of R's diagonal make QR of a normal matrix uniform over rotations (Haar).
    Q, R = np.linalg.qr(rng.normal(size=(d, d)))
    return np.asarray(Q * np.sign(np.diag(R)))


def block_shares(
    X: Array,
    target: NDArray[Any],
    owner: NDArray[np.intp],
    blocks: Sequence[NDArray[np.intp]],
    anchor: Array,
    n_dropped: int,
    rng: np.random.Generator,
) -> list[dc.Share]:
    """Share a table that is split by rows and by columns.

    Every party holds one institution's rows of one block of columns.  It standardises them, takes all principal
    components but the last `n_dropped`, and rotates these in secret.  The parties of one institution know their rows
    by a common number, so the analyst joins their representations.
    """
    shares = []
    for k in np.unique(owner):
        own = owner == k
        parts = []
        for block in blocks:
            f = dc.obfuscator("pca", len(block) - n_dropped, standardize=True).fit(X[own][:, block])
            turn = draw_rotation(len(block) - n_dropped, rng)
            parts.append([f.transform(rows[:, block]) @ turn for rows in (X[own], anchor)])
        representation, anchor_representation = (np.hstack(each) for each in zip(*parts, strict=True))
        shares.append(
            dc.Share(
                party=int(k),
                representation=representation,
                anchor_representation=anchor_representation,
                target=target[own],
            )
        )
    return shares


def standardize(X: Array, by: Array) -> Array:
    """Bring columns to mean 0 and variance 1 in the rows `by`."""
    return np.asarray(StandardScaler().fit(by).transform(X))


def logistic_model() -> Pipeline:
    """Return a logistic model of standardised columns."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=3000))
