"""The usual obfuscators by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from .._obfuscators import OBFUSCATORS as ENTRIES

__all__ = ["OBFUSCATORS", "obfuscator"]

OBFUSCATORS = tuple(ENTRIES)
"""Kinds that `obfuscator` knows."""


def obfuscator(
    kind: str,
    n_components: int = 10,
    *,
    random_state: int | np.random.RandomState | None = None,
    standardize: bool | None = None,
    **options: Any,
) -> BaseEstimator:
    """Make an obfuscator f_k: a scikit-learn transformer that maps each row by itself.

    Parameters
    ----------
    kind : {"pca", "kernel-pca", "umap", "random-projection"}
        `sklearn.decomposition.PCA`, `KernelPCAObfuscator` (RBF kernel, median bandwidth), `UMAPObfuscator` (row-wise
        on new rows), or `sklearn.random_projection.GaussianRandomProjection`.
    n_components : int, default=10
        Columns of the intermediate representation.
    random_state : int, RandomState or None, default=None
        Passed on.  None is the choice outside experiments: who knows the number can rebuild the obfuscation.
    standardize : bool or None, default=None
        Whether the party's columns are first brought to mean 0 and variance 1.  None means yes for "kernel-pca" and
        "umap", no for "pca" and "random-projection", which suits images.  For a table, whose columns have units, set
        it to True for these as well.
    **options
        Further parameters of the transformer, such as ``out_of_sample="umap"`` for "umap", or ``whiten=True`` for
        "pca".

    Returns
    -------
    transformer
        Not fitted.  Where standardised, a `Pipeline` with the steps "standardize" and "reduce"; otherwise the
        transformer itself.

    Raises
    ------
    ValueError
        When `kind` is unknown.
    TypeError
        When the transformer takes no such option.

    Notes
    -----
    In a grid search the number of columns is ``obfuscator__n_components`` where the columns are not standardised, and
    ``obfuscator__reduce__n_components`` where they are.

    With ``random_state=None`` a `Party` has every secret drawn from the operating system.  Fitted without a `Party`,
    "random-projection" draws from NumPy's global generator, which ``numpy.random.seed`` makes predictable.

    Leaves the party: the transformed rows and anchors.  Stays: the fitted transformer.  Kernel PCA and UMAP hold the
    raw table, PCA the mean row.

    Examples
    --------
    >>> from datacollab import obfuscator
    >>> obfuscator("pca", n_components=8)
    PCA(n_components=8)
    >>> [name for name, step in obfuscator("umap").steps]
    ['standardize', 'reduce']
    """
    if kind not in ENTRIES:
        raise ValueError(f"Unknown obfuscator {kind!r}; choose one of {sorted(ENTRIES)}, or any transformer instead.")
    transformer = ENTRIES[kind].load()
    allowed = sorted({*transformer().get_params(), "standardize"})
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        raise TypeError(f"The obfuscator {kind!r} takes no option {unknown}; it takes {allowed}.")
    reducer = transformer(n_components=n_components, random_state=random_state, **options)
    if standardize is None:
        standardize = ENTRIES[kind].standardize
    return Pipeline([("standardize", StandardScaler()), ("reduce", reducer)]) if standardize else reducer
