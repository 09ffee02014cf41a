"""How near neighbours are among interpolated and among real rows.

The median ratio of the distances to the first and to the tenth neighbour, under PCA of at most 16 columns fitted on the
anchor: of 300 rows that SMOTE made of 100, and of as many real ones, or all of fewer, from the tables of `pays`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.neighbors import NearestNeighbors

import datacollab as dc

from ..pays.draws import draw
from ..pays.settings import SIZES, Setting
from ..pays.tables import load_table
from ..solvers.mnist_parties import Array


def neighbour_ratio(rows: Array) -> float:
    """Median over the rows of the distance to the first neighbour over that to the tenth."""
    distances, _ = NearestNeighbors(n_neighbors=11).fit(rows).kneighbors(rows)
    # Equal rows have no distance at all.
    return float(np.median(distances[:, 1] / np.maximum(distances[:, 10], np.finfo(float).tiny)))


def ratios(dataset: str, seed: int, data_dir: Path | None) -> tuple[float, float]:
    """Of interpolated rows and of real ones."""
    n_parties, n_per_party = SIZES[dataset]
    setting = Setting(dataset=dataset, n_parties=n_parties, n_per_party=n_per_party, most_columns=16)
    drawn = draw(load_table(dataset, data_dir), setting, seed)
    f = dc.obfuscator("pca", drawn.n_components, standardize=drawn.standardize).fit(drawn.anchor)
    real = drawn.test.X[: len(drawn.anchor)]
    return neighbour_ratio(f.transform(drawn.anchor)), neighbour_ratio(f.transform(real))
