"""What is likely wrong with a table that an obfuscator refused, said without quoting an entry."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import count_missing

__all__ = ["components_wanted", "likely_reasons"]


def components_wanted(obfuscator: Any) -> list[int]:
    """All whole-numbered parameters called n_components, also of nested steps."""
    return [
        value
        for name, value in obfuscator.get_params(deep=True).items()
        if name.rpartition("__")[2] == "n_components" and isinstance(value, int)
    ]


def likely_reasons(obfuscator: Any, X: Any) -> list[str]:
    """Sentences about shapes, names and types.

    Parameters
    ----------
    obfuscator : transformer
        Where fitted, its notes on columns are compared with those of `X`.
    X : array-like or dataframe
    """
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
