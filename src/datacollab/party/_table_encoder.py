"""A party's raw table as numbers: units, gaps, constant columns and categories, settled at home."""

from __future__ import annotations

import importlib
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .._validation import FloatArray, PartyName, count_missing
from ..errors import AgreementError
from ._batches import TableForm

__all__ = ["TableEncoder"]


class TableEncoder:
    """Columns of mean 0 and variance 1, gaps filled with the median, categories one column each."""

    def __init__(self, X: Any, public: Any | None, party: PartyName) -> None:
        self.party = party
        self._form = TableForm.of(X)
        self.n_features_in_ = self._form.n_columns
        table = self._brought(X)
        together = table if public is None else _stacked(table, self._brought(public), self._form)
        names = self._form.columns if self._form.columns is not None else list(range(np.shape(table)[1]))
        numeric = [name for name in names if _is_numeric(_column(together, name))]
        categories = [name for name in names if name not in numeric]
        fill_and_scale = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
        one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        steps = [("numbers", fill_and_scale, numeric), ("categories", one_hot, categories)]
        self._columns = ColumnTransformer([step for step in steps if step[2]], sparse_threshold=0)
        self._call(self._columns.fit, together)
        self.common_units: FloatArray | None = None
        self.common_centre: FloatArray | None = None
        if not categories:
            scaler = self._columns.named_transformers_["numbers"][-1]
            factor = np.sqrt(np.mean(scaler.scale_**2))
            self.common_units, self.common_centre = scaler.scale_ / factor, scaler.mean_ / factor

    def encode(self, X: Any) -> FloatArray:
        """Rows as an array of shape (n_rows, n_encoded)."""
        return np.asarray(self._call(self._columns.transform, self._brought(X)), dtype=np.float64)

    def _brought(self, X: Any) -> Any:
        if sparse.issparse(X):
            X = X.toarray()
        table = self._form.bring(X, self.party) if hasattr(X, "columns") else np.asarray(X)
        if np.ndim(table) != 2 or np.shape(table)[1] != self._form.n_columns:
            raise AgreementError(
                f"Party {self.party!r}: a table of {self._form.n_columns} columns is wanted, as its own rows have; got "
                f"shape {np.shape(table)}. Give raw rows, with the same columns in the same order."
            )
        if hasattr(X, "columns") != (self._form.library is not None):
            raise AgreementError(
                f"Party {self.party!r}: its own rows and the rows given must both be frames with column names, or both "
                "arrays without."
            )
        return table

    def _call(self, step: Any, table: Any) -> Any:
        try:
            return step(table)
        except Exception as error:
            # The words of what failed may quote an entry.
            raise AgreementError(
                f"Party {self.party!r}: a table of shape {np.shape(table)} cannot be read as numbers and categories "
                f"({type(error).__name__}). Columns must hold the same kind of entries as in the party's own table, "
                "and no infinity."
            ) from None

    def __repr__(self) -> str:
        return f"TableEncoder(party={self.party!r}, {self.n_features_in_} columns)"


def _stacked(first: Any, second: Any, form: TableForm) -> Any:
    if form.library is None:
        return np.concatenate([first, second])
    return importlib.import_module(form.library).concat([first, second])


def _column(table: Any, name: Any) -> NDArray[Any]:
    return np.asarray(table[name] if hasattr(table, "columns") else table[:, name])


def _is_numeric(column: NDArray[Any]) -> bool:
    if column.dtype.kind != "O":
        return column.dtype.kind in "biuf"
    return all(isinstance(entry, Number) or count_missing(np.array([entry], dtype=object)) for entry in column)
