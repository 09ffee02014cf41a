"""One experimental condition, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Condition"]


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What is held fixed while methods are compared.  The defaults are the paper's, where it states any.

    Attributes
    ----------
    dataset : str
        A name that `datacollab.datasets.load` knows.
    n_parties, n_per_party : int
        K and n(k).
    n_test : int
        Common test rows; every party predicts all of them.
    n_anchors : int
        n_a.
    n_sources : int or None
        Real rows that SMOTE starts from, included in the anchor and disjoint from all other rows.  None takes all
        anchors from real rows.
    obfuscator : {"pca", "kernel-pca", "umap", "random-projection"}
        f_k of every party.
    out_of_sample : {"row-wise", "umap"}
        How UMAP maps rows it was not fitted on: row by row, or by umap-learn's own transform as in the paper, where
        anchor, training and test rows each go in one batch.
    n_components : int
        d~ = d^.
    n_neighbors : int
        Neighbours for SMOTE and for the graphs.
    preset : {"recommended", "paper"}
        Hyperparameters of KTI; see `method`.
    """

    dataset: str = "mnist"
    n_parties: int = 10
    n_per_party: int = 100
    n_test: int = 1000
    n_anchors: int = 1000
    n_sources: int | None = 100
    obfuscator: str = "umap"
    out_of_sample: str = "row-wise"
    n_components: int = 10
    n_neighbors: int = 10
    preset: str = "recommended"

    def as_dict(self) -> dict[str, Any]:
        """All settings, for a report."""
        return asdict(self)
