"""Dealing rows, and columns, to parties."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc

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
