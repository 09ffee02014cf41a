"""Parties that hold rows of MNIST, and their representations of common anchor rows."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.preprocessing import StandardScaler

from datacollab import obfuscator
from datacollab.datasets import load

Array = NDArray[np.float64]

ROWS_PER_PARTY = 100
_BLOCK = 5000


def data_directory(given: Path | None) -> Path | None:
    """Return the directory of the data sets: the one given, or the one beside the repository where there is one."""
    beside = Path(__file__).resolve().parents[5] / "shared" / "data"
    return given or (beside if beside.is_dir() else None)


def load_table(name: str, data_dir: Path | None) -> tuple[Array, NDArray[np.int64]]:
    X, y = load(name, data_dir=data_directory(data_dir))
    return X, y.astype(np.int64)


def draw_parties(
    X: Array,
    y: NDArray[np.int64],
    *,
    n_anchors: int,
    n_parties: int = 10,
    n_columns: int = 16,
    kind: str = "pca",
    seed: int = 0,
) -> dict[str, Array]:
    """Give each party rows of its own, fit its obfuscator on them, and map the anchor rows.

    Columns are standardised before every obfuscator.  Anchor rows are rows that nobody owns, and where those run out,
    points between two of them of the same class.  Return these by party, shape (n_anchors, n_columns), standardised.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    owned, free = np.split(order, [n_parties * ROWS_PER_PARTY])
    first, second, weight = _anchor_pairs(y, free, n_anchors, rng)
    anchors = {}
    for index, own in enumerate(np.split(owned, n_parties)):
        f = obfuscator(kind, n_columns, standardize=True, random_state=seed).fit(X[own])
        raw = _map_points(f, X, first, second, weight)
        anchors[f"party-{index}"] = StandardScaler().fit(raw).transform(raw)
    return anchors


def _anchor_pairs(
    y: NDArray[np.int64], free: NDArray[np.intp], n_anchors: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Return two rows for each anchor point and the weight of the second: 0 while there are plain rows to take."""
    # Rows that nobody owns come first; points between two of a class fill up.
    plain = free[:n_anchors]
    starts = rng.choice(free, size=n_anchors - len(plain))
    ends = starts.copy()
    for label in np.unique(y[starts]):
        of_label = y[starts] == label
        ends[of_label] = rng.choice(free[y[free] == label], size=of_label.sum())
    weight = np.concatenate([np.zeros(len(plain)), rng.uniform(size=len(starts))])
    return np.concatenate([plain, starts]), np.concatenate([plain, ends]), weight


def _map_points(
    f: TransformerMixin, X: Array, first: NDArray[np.intp], second: NDArray[np.intp], weight: Array
) -> Array:
    # In blocks, since a hundred thousand images are several times as large as their representations.
    mapped = []
    for start in range(0, len(first), _BLOCK):
        block = slice(start, start + _BLOCK)
        w = weight[block, np.newaxis]
        mapped.append(f.transform((1 - w) * X[first[block]] + w * X[second[block]]))
    return np.vstack(mapped)
