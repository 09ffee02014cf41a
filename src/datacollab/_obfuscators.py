"""The obfuscators by name: from this table commands, policies, pages, experiments and files on disk take them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ObfuscatorEntry:
    """One obfuscator."""

    home: str
    """Module and class of the transformer."""
    title: str
    """Its name in tables and figures."""
    standardize: bool = False
    """Whether columns are brought to mean 0 and variance 1 first unless the caller says otherwise."""
    is_linear: bool = False
    """Whether it is linear: with as many components as a row has numbers it hides nothing."""

    def load(self) -> Any:
        """Return the class of the transformer."""
        module, _, name = self.home.rpartition(".")
        return getattr(importlib.import_module(module), name)


OBFUSCATORS = {
    "pca": ObfuscatorEntry(home="sklearn.decomposition.PCA", title="PCA", is_linear=True),
    "kernel-pca": ObfuscatorEntry(
        home="datacollab.party._kernel_pca.KernelPCAObfuscator", title="kernel PCA", standardize=True
    ),
    "umap": ObfuscatorEntry(home="datacollab.party._umap.UMAPObfuscator", title="UMAP", standardize=True),
    "random-projection": ObfuscatorEntry(
        home="sklearn.random_projection.GaussianRandomProjection", title="random projection", is_linear=True
    ),
}
"""The obfuscators by the name that options, policies and experiments use.  The first is the default."""


def takes_numbers_alone(obfuscator: Any) -> bool:
    """Return whether the first step is one that `datacollab.obfuscator` makes, which neither encodes nor fills."""
    from sklearn.preprocessing import StandardScaler  # slow, and commands read the table above

    (_, first), *_ = getattr(obfuscator, "steps", [("", obfuscator)])
    return type(first) in {StandardScaler, *(entry.load() for entry in OBFUSCATORS.values())}
