"""The parties, public rows and test rows that all methods get, drawn once and kept in a file.

`read` needs NumPy alone, so that Flower's environment can use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from mlp import Float32
from numpy.typing import NDArray

N_PARTIES = 10
N_PER_PARTY = 100
N_PUBLIC = 1000
N_TEST = 2000
CONCENTRATION = 0.1
"""Of the label-skewed split: most parties have three to five of the ten classes."""

Split = Literal["iid", "label-skew"]
SPLITS: tuple[Split, ...] = ("iid", "label-skew")
DEVELOPMENT = 1_000
"""Seed of the draw on which hyperparameters are chosen."""

_N_DEVELOPMENT_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw of everybody's rows.

    Attributes
    ----------
    seed : int
    X, y : ndarray of shape (n_parties, n_per_party, n_features) and (n_parties, n_per_party)
        Private rows and classes.
    X_public, y_public : ndarray of shape (n_public, n_features) and (n_public,)
    X_test, y_test : ndarray of shape (n_test, n_features) and (n_test,)
        From all classes, also where the parties' own rows are skewed: every party wants to predict everything.
    """

    seed: int
    X: Float32
    y: NDArray[np.int64]
    X_public: Float32
    y_public: NDArray[np.int64]
    X_test: Float32
    y_test: NDArray[np.int64]

    @property
    def parties(self) -> list[tuple[Float32, NDArray[np.int64]]]:
        """Rows and classes party by party."""
        return list(zip(self.X, self.y, strict=True))


def draw(data: Any, split: Split, seed: int) -> Draw:
    """Draw parties from MNIST.

    The development draw is from 10,000 rows of the data set, all others from the remaining 60,000: no row that a
    hyperparameter was chosen on is ever tested, trained on or public in the comparison.
    """
    from datacollab.datasets import split_parties

    order = np.random.RandomState(0).permutation(len(data.X))
    pool = order[:_N_DEVELOPMENT_ROWS] if seed == DEVELOPMENT else order[_N_DEVELOPMENT_ROWS:]
    X, y = data.X[pool].astype(np.float32), data.y[pool]
    parties = split_parties(X, y, N_PARTIES, N_PER_PARTY, scheme=split, concentration=CONCENTRATION, random_state=seed)
    test, public = parties.rest[:N_TEST], parties.rest[N_TEST : N_TEST + N_PUBLIC]
    return Draw(
        seed=seed,
        X=np.stack([rows.X for rows in parties.values()]),
        y=np.stack([rows.y for rows in parties.values()]),
        X_public=X[public],
        y_public=y[public],
        X_test=X[test],
        y_test=y[test],
    )


def write(path: Path, drawn: Draw) -> None:
    """Keep a draw in a compressed NumPy file."""
    np.savez_compressed(path, **vars(drawn))


@lru_cache(maxsize=4)
def read(path: Path) -> Draw:
    """The draw that `write` kept; the last few are held, since a party asks for its own in every round."""
    with np.load(path) as arrays:
        return Draw(**{name: arrays[name] for name in arrays.files} | {"seed": int(arrays["seed"])})
