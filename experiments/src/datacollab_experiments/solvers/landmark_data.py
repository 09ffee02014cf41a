"""Parties whose anchor representations need few landmarks or many: features of a Gaussian latent, and real tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from datacollab.datasets import load

from .mnist_parties import ROWS_PER_PARTY, Array, Parties, data_directory, draw_parties

__all__ = ["DATA", "draw"]

_CLASSES = 10
_HIDDEN = 32

REAL = {
    "mnist-pca": ("mnist", "pca"),
    "mnist-kpca": ("mnist", "kernel-pca"),
    "fashion-pca": ("fashion-mnist", "pca"),
    "fashion-kpca": ("fashion-mnist", "kernel-pca"),
    "uji-pca": ("ujiindoorloc", "pca"),
    "uji-kpca": ("ujiindoorloc", "kernel-pca"),
    "digits-pca": ("digits", "pca"),
}
LATENT = {f"tanh-{n_latent}": n_latent for n_latent in (4, 12, 30)}
DATA = (*LATENT, *REAL)


def draw(
    name: str,
    *,
    n_anchors: int,
    n_parties: int = 10,
    n_columns: int = 16,
    n_test: int,
    data_dir: Path | None = None,
    seed: int = 0,
) -> Parties:
    """One draw of a data set of `DATA`."""
    if name in LATENT:
        return _draw_latent(LATENT[name], n_anchors, n_parties, n_columns, n_test, seed)
    table, kind = REAL[name]
    X, y = load(table, data_dir=data_directory(data_dir))
    if table == "ujiindoorloc":
        # The latitude in metres, as one of ten classes of the same size.
        y = np.searchsorted(np.quantile(y, np.arange(1, _CLASSES) / _CLASSES), y)
    sizes = {"n_anchors": n_anchors, "n_parties": n_parties, "n_columns": n_columns, "n_test": n_test}
    return draw_parties(X, y.astype(np.int64), kind=kind, seed=seed, **sizes)


def _draw_latent(n_latent: int, n_anchors: int, n_parties: int, n_columns: int, n_test: int, seed: int) -> Parties:
    """Every party sees tanh of its own linear combinations of a Gaussian latent; classes bend it once more."""
    rng = np.random.default_rng([seed, n_latent])
    hidden, outer = rng.normal(size=(n_latent, _HIDDEN)), rng.normal(size=(_HIDDEN, _CLASSES))

    def classes(latent: Array) -> NDArray[np.int64]:
        return np.asarray(np.argmax(np.tanh(latent @ hidden / np.sqrt(n_latent)) @ outer, axis=1), dtype=np.int64)

    common, test = rng.normal(size=(n_anchors, n_latent)), rng.normal(size=(n_test, n_latent))
    anchors, rows, targets, tests = {}, {}, {}, {}
    for index in range(n_parties):
        party = f"party-{index}"
        weights = rng.normal(size=(n_latent, n_columns)) / np.sqrt(n_latent)
        f = partial(_features, weights)
        own = rng.normal(size=(ROWS_PER_PARTY, n_latent))
        scale = StandardScaler().fit(f(common))
        anchors[party] = scale.transform(f(common))
        rows[party], targets[party] = scale.transform(f(own)), classes(own)
        tests[party] = scale.transform(f(test))
    return Parties(anchors=anchors, rows=rows, targets=targets, test=tests, test_target=classes(test))


def _features(weights: Array, latent: Array) -> Array:
    return np.tanh(latent @ weights)
