"""An obfuscator that learns from public rows: a secret part of them, and a secret rotation after it."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._validation import FloatArray, PartyName
from ..errors import ObfuscationError
from ._diagnosis import components_wanted

__all__ = ["SUBSAMPLE", "public_subsample", "random_rotation"]

SUBSAMPLE = 0.5
"""Share of the public rows that a party's obfuscator is fitted on, drawn at random."""


def public_subsample(public: Any, obfuscator: Any, generator: np.random.RandomState, party: PartyName) -> Any:
    """Half of the public rows, but at least two more than the obfuscator has components.

    Parameters
    ----------
    public : array-like or dataframe of shape (n_public, n_features)
    obfuscator : transformer
    generator : RandomState
    party : str or int
        Whom an error names.

    Raises
    ------
    TypeError
        When `public` is no table.
    ObfuscationError
        When it has too few rows.
    """
    if len(np.shape(public)) != 2:
        raise TypeError(
            f"Party {party!r}: fit_on must be public rows, an array or frame of shape (n_rows, n_features); got "
            f"{type(public).__name__} of shape {np.shape(public)}."
        )
    n_rows, least = _num_samples(public), max(components_wanted(obfuscator), default=0) + 2
    if n_rows < least:
        raise ObfuscationError(
            f"Party {party!r}: fit_on has {n_rows} rows, but at least {least} are wanted, two more than the obfuscator "
            "has components. Give more public rows, or lower n_components. Nothing left the party."
        )
    chosen = generator.permutation(n_rows)[: max(ceil(SUBSAMPLE * n_rows), least)]
    return _safe_indexing(public, chosen)


def random_rotation(n_columns: int, generator: np.random.RandomState) -> FloatArray:
    """An orthogonal matrix from the uniform distribution over rotations and reflections.

    Parameters
    ----------
    n_columns : int
    generator : RandomState

    Returns
    -------
    ndarray of shape (n_columns, n_columns)
    """
    Q, R = np.linalg.qr(generator.standard_normal((n_columns, n_columns)))
    # Without this, the signs would be those that the factorisation happens to choose.
    return np.asarray(Q * np.sign(np.diag(R)))
