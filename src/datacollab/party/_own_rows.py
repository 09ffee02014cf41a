"""Finding a party's own rows in a table, without keeping them."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["OwnRows", "TableDigest"]


class OwnRows:
    """Keyed digests of a party's rows, to recognise equal rows elsewhere.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)

    Notes
    -----
    Numbers are compared as float64, anything else as text.  A row that was rounded on its way is not recognised.
    """

    def __init__(self, X: Any) -> None:
        self._key = secrets.token_bytes(32)
        self._names = _names(X)
        self._digests = frozenset(self._hashed(X))

    def count_in(self, table: Any) -> int:
        """How many rows of a table are among the own ones; 0 where its columns are others."""
        if self._names and _names(table):
            if not set(self._names) <= set(_names(table)):
                return 0
            table = table[self._names]
        return sum(digest in self._digests for digest in self._hashed(table))

    def _hashed(self, table: Any) -> list[bytes]:
        parts = [_comparable(column) for column in _columns(table)]
        rows = zip(*parts, strict=True) if any(isinstance(part, list) for part in parts) else _joined(parts)
        return [hashlib.blake2b(_as_bytes(row), digest_size=16, key=self._key).digest() for row in rows]

    def __repr__(self) -> str:
        return f"OwnRows({len(self._digests)} distinct)"


class TableDigest:
    """A keyed digest of a whole table, to recognise the same rows and columns in the same order."""

    def __init__(self, X: Any) -> None:
        self._key = secrets.token_bytes(32)
        self._digest = self._hashed(X)

    def matches(self, table: Any) -> bool:
        """Whether this is the table."""
        return self._hashed(table) == self._digest

    def _hashed(self, table: Any) -> bytes:
        hashed = hashlib.blake2b(digest_size=16, key=self._key)
        for name in _names(table):
            hashed.update(str(name).encode() + b"\0")
        for column in _columns(table):
            hashed.update(_as_bytes(_comparable(column)))
        return hashed.digest()

    def __repr__(self) -> str:
        return "TableDigest()"


def _names(table: Any) -> list[str]:
    return list(getattr(table, "columns", []))


def _columns(table: Any) -> list[Any]:
    if hasattr(table, "columns"):
        return [np.asarray(table[name]) for name in table.columns]
    return list((table.toarray() if sparse.issparse(table) else np.asarray(table)).T)


def _comparable(column: Any) -> Any:
    """Numbers as float64, anything else as a list of texts."""
    try:
        # Adding zero makes one of the two zeros of floating-point numbers.
        return np.asarray(column, dtype=np.float64) + 0.0
    except (TypeError, ValueError):
        return [str(entry) for entry in column]


def _joined(parts: list[Any]) -> Any:
    return np.column_stack(parts) if parts else []


def _as_bytes(row: Any) -> bytes:
    return row.tobytes() if isinstance(row, np.ndarray) else repr([str(entry) for entry in row]).encode()
