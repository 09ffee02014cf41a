"""DC-Clustering: k-means on collaboration representations of tables split by rows and by columns.

Two institutions hold 40 % of the rows each, and two parties of each hold half of the columns. A party standardises its
columns and drops the last principal component. The anchor is the remaining 20 % of the rows. MPP integrates. It leaves
a matrix open, and the abstract does not say which one they take. With singular values, directions keep their lengths.
In an orthonormal basis, all directions are equally long, and k-means finds other clusters. Local is k-means of one
party's rows and columns, judged on its own rows. The index is the adjusted one, with the classes.
"""

from collections.abc import Iterator

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

import datacollab as dc
from datacollab.analyst import integrate

from .dealing import Array, FamilyRow, Figure, at_least, block_shares, standardize

TABLES = {"iris": (load_iris, 3), "wine": (load_wine, 3), "breast cancer": (load_breast_cancer, 2)}
PAPER = "Y. Kawamata et al. (2025). A new type of federated clustering: a non-model-sharing approach. arXiv:2506.10244."
MEASURE = "Rand index"
_CLAIMS = (at_least(-0.05, "Central"), at_least(0.0, "Local"))
# The matrix that MPP leaves open.
BASES = {"DC-Clustering, singular values": "singular_values", "DC-Clustering, orthonormal": "orthonormal"}
ROWS = tuple(
    FamilyRow(PAPER, method, f"{table} 2x2", MEASURE, '"comparable to centralized clustering" (abstract)', _CLAIMS)
    for method in BASES
    for table in TABLES
)


def measure(seed: int, *, small: bool) -> Iterator[Figure]:
    for table, (load, n_clusters) in TABLES.items():
        X, y = load(return_X_y=True)
        rng = np.random.default_rng([seed, len(X)])
        order = rng.permutation(len(X))
        n_own = 2 * int(0.4 * len(X))
        # The remaining fifth of the rows is public.
        anchor = X[order[n_own:]]
        X = X[order[:n_own]]
        y = y[order[:n_own]]
        owner = np.repeat([0, 1], n_own // 2)
        blocks = np.array_split(rng.permutation(X.shape[1]), 2)

        def clusters(rows: Array, n_clusters: int = n_clusters) -> Array:
            return np.asarray(KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(rows))

        # Each party drops its last principal component, so that nobody can undo its map.
        shares = block_shares(X, y, owner, blocks, anchor, 1, rng)
        found = {
            "Central": adjusted_rand_score(y, clusters(standardize(X, X))),
            "Local": np.mean(
                [
                    adjusted_rand_score(y[own], clusters(standardize(X[own], X[own])[:, block]))
                    for own in (owner == 0, owner == 1)
                    for block in blocks
                ]
            ),
        }
        for method, basis in BASES.items():
            rows = integrate(shares, dc.MPP(X.shape[1] - 2, basis=basis)).combined
            found[method] = adjusted_rand_score(y, clusters(rows))
        for method, value in found.items():
            yield f"{table} 2x2", method, MEASURE, float(value)
