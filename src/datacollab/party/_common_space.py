"""A table as numbers by its declared columns, and the space that all parties' sums are of."""

from __future__ import annotations

import importlib
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .._recommended import FEWEST_ALIKE, MOST_COMPONENTS, Recommended, recommended
from .._validation import FloatArray, PartyName, count_missing
from ..errors import AgreementError
from ..sums import CommonMap
from ._local_party import TableForm


class TableEncoder:
    """Columns of mean 0 and variance 1, gaps filled with the median, categories one column each."""

    def __init__(self, X: Any, public: Any | None, party: PartyName) -> None:
        self.party = party
        self._form = TableForm.of(X)
        self.n_features_in_ = self._form.n_columns
        table = self._brought(X)
        together = table
        if public is not None:
            stack = np.concatenate if self._form.library is None else importlib.import_module(self._form.library).concat
            together = stack([table, self._brought(public)])
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
        """Return rows as an array of shape (n_rows, n_encoded)."""
        return np.asarray(self._call(self._columns.transform, self._brought(X)), dtype=np.float64)

    def _brought(self, X: Any) -> Any:
        if sparse.issparse(X):
            X = X.toarray()
        table = self._form.bring(X, self.party) if hasattr(X, "columns") else np.asarray(X)
        if np.ndim(table) != 2 or np.shape(table)[1] != self._form.n_columns:
            raise AgreementError(
                f"Party {self.party!r}: expected a table of {self._form.n_columns} columns, as its own rows have; got "
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


def _column(table: Any, name: Any) -> NDArray[Any]:
    return np.asarray(table[name] if hasattr(table, "columns") else table[:, name])


def _is_numeric(column: NDArray[Any]) -> bool:
    if column.dtype.kind != "O":
        return column.dtype.kind in "biuf"
    return all(isinstance(entry, Number) or count_missing(np.array([entry], dtype=object)) for entry in column)


_ALIKE = 10.0
"""Columns are taken to have one unit if none varies more than so many times as much as the median one."""
_EQUAL = 1e-9
"""Values of an anchor are equal if they differ by less than this part of its range."""


class CommonSpace:
    """The common map of raw rows, for parties alone: who has anchor and secret has the map.

    Encoding follows from the anchor.  Gaps are filled with its medians, and its categories get a column of zeros and
    ones each.  Numbers are divided by their standard deviations over the anchor, unless all columns are numbers of
    nearly one spread, such as pixels: these keep their units.

    Parameters
    ----------
    anchor : array-like or dataframe of shape (n_anchors, n_features)
        Public rows, the same at all parties.
    secret : bytes of length 32
        Of all parties, and not of the analyst.
    n_components : int, default=128
        Upper bound; the anchor may leave fewer.

    Raises
    ------
    AgreementError, AnchorError
        If the anchor cannot be read, or no map can be made of it.

    Attributes
    ----------
    alike : bool
        Whether all columns are of one kind, as pixels are: 50 numbers or more, and most of them have the same smallest
        or the same largest value in the anchor, of three or more.
    """

    def __init__(self, anchor: Any, secret: bytes, *, n_components: int = MOST_COMPONENTS) -> None:
        self._encoder = TableEncoder(anchor, None, "all parties")
        encoded, units, centre = self._encoder.encode(anchor), self._encoder.common_units, self._encoder.common_centre
        self.alike, self._units = False, np.ones(encoded.shape[1])
        if units is not None and centre is not None:
            self.alike = _have_one_range(encoded * units + centre)
            if self.alike or units.max() <= _ALIKE * np.median(units):
                self._units = units
        self._anchor = encoded * self._units
        self._map = CommonMap.from_anchor(self._anchor, secret, n_components=n_components)

    @property
    def n_components(self) -> int:
        """Columns of a mapped row."""
        return self._map.n_components

    @property
    def recommended(self) -> Recommended:
        """Noise and least penalty for such columns."""
        return recommended(alike=self.alike)

    @cached_property
    def anchor(self) -> FloatArray:
        """The anchor's rows, mapped."""
        return self._map.transform(self._anchor)

    def transform(self, X: Any) -> FloatArray:
        """Map rows, shape (n_rows, n_components); no row is longer than 1.

        Raises
        ------
        AgreementError
            If the columns are not the anchor's, or cannot be read.
        """
        return self._map.transform(self.encode(X))

    def encode(self, X: Any) -> FloatArray:
        """Return rows as the numbers that are mapped, shape (n_rows, n_encoded); errors are as in `transform`."""
        return self._encoder.encode(X) * self._units

    def __repr__(self) -> str:
        return f"CommonSpace(n_components={self.n_components})"


def _have_one_range(table: FloatArray) -> bool:
    """Return whether the numbers of an anchor have one range, as far as its rows show."""
    low, high = table.min(), table.max()
    is_low, is_high = table <= low + _EQUAL * (high - low), table >= high - _EQUAL * (high - low)
    if table.shape[1] < FEWEST_ALIKE or (is_low | is_high).all():
        return False
    return bool(max(is_low.any(axis=0).mean(), is_high.any(axis=0).mean()) > 0.5)
