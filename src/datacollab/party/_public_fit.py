"""An obfuscator that learns from public rows: a secret half of them, and a secret rotation after it."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._validation import FloatArray, PartyName, count_missing
from ..errors import ObfuscationError


def components_wanted(obfuscator: Any) -> list[int]:
    """Return all whole-numbered parameters called n_components, also of nested steps."""
    return [
        value
        for name, value in obfuscator.get_params(deep=True).items()
        if name.rpartition("__")[2] == "n_components" and isinstance(value, int)
    ]


def likely_reasons(obfuscator: Any, X: Any) -> list[str]:
    """Return sentences on why an obfuscator refused a table, about shapes, names and types; they quote no entry."""
    shape = np.shape(X)
    if len(shape) != 2:
        return [f"it has shape {shape} instead of rows and columns."]
    return [*_column_differences(obfuscator, X, shape), *_unusable_columns(X), *_too_many_components(obfuscator, shape)]


def _column_differences(obfuscator: Any, X: Any, shape: tuple[int, ...]) -> list[str]:
    expected = list(getattr(obfuscator, "feature_names_in_", []))
    if expected and hasattr(X, "columns"):
        names = list(X.columns)
        missing = [name for name in expected if name not in names]
        if missing:
            return [f"it lacks the columns {missing[:10]!r}."]
        if names != expected and sorted(map(str, names)) == sorted(map(str, expected)):
            return ["its columns come in another order than in fit."]
    n_features = getattr(obfuscator, "n_features_in_", shape[1])
    return [f"it has {shape[1]} columns, but {n_features} in fit."] if n_features != shape[1] else []


def _unusable_columns(X: Any) -> list[str]:
    if hasattr(X, "columns"):
        columns = {name: np.asarray(X[name]) for name in X.columns}
    else:
        columns = dict(enumerate(np.asarray(X).T))
    texts = [name for name, column in columns.items() if column.dtype.kind in "OSUT"]
    incomplete = {name: missing for name, column in columns.items() if (missing := count_missing(column))}
    reasons = []
    if incomplete:
        reasons.append(f"values are missing in {len(incomplete)} of its columns ({sum(incomplete.values())} entries).")
    if texts:
        reasons.append(f"{len(texts)} of its columns do not hold numbers.")
    return reasons


def _too_many_components(obfuscator: Any, shape: tuple[int, ...]) -> list[str]:
    wanted = components_wanted(obfuscator)
    if wanted and max(wanted) > min(shape):
        return [f"n_components={max(wanted)} is more than its {shape[0]} rows or {shape[1]} columns allow."]
    return []


SUBSAMPLE = 0.5
"""Share of the public rows that a party's obfuscator is fitted on."""


def public_subsample(public: Any, obfuscator: Any, generator: np.random.RandomState, party: PartyName) -> Any:
    """Draw half of the public rows, but at least two more than the obfuscator has components.

    Raises
    ------
    TypeError
        If `public` is no table.
    ObfuscationError
        If it has too few rows.
    """
    if len(np.shape(public)) != 2:
        raise TypeError(
            f"Party {party!r}: fit_on must be public rows, an array or frame of shape (n_rows, n_features); got "
            f"{type(public).__name__} of shape {np.shape(public)}."
        )
    n_rows, least = _num_samples(public), max(components_wanted(obfuscator), default=0) + 2
    if n_rows < least:
        raise ObfuscationError(
            f"Party {party!r}: fit_on has {n_rows} rows, but it needs {least} at least, two more than the obfuscator "
            "has components. Give more public rows, or lower n_components. Nothing left the party."
        )
    chosen = generator.permutation(n_rows)[: max(ceil(SUBSAMPLE * n_rows), least)]
    return _safe_indexing(public, chosen)


def random_rotation(n_columns: int, generator: np.random.RandomState) -> FloatArray:
    """Draw an orthogonal matrix uniformly from rotations and reflections, shape (n_columns, n_columns)."""
    Q, R = np.linalg.qr(generator.standard_normal((n_columns, n_columns)))
    # Without this, the signs would be those that the factorisation happens to choose.
    return np.asarray(Q * np.sign(np.diag(R)))
