"""The space of all parties' sums: rows as the common map has them."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._encoder import TableEncoder
from .._frames import columns_of, plain_table
from .._typing import FloatArray
from ..errors import AgreementError
from ..sums import CommonMap
from ..sums._recommended import FEWEST_ALIKE, MOST_COMPONENTS, Recommended, recommended

_TABLE = "A table of the common map"
# Columns are taken to have one unit if none varies more than so many times as much as the median one.
_ALIKE = 10.0
# Values of an anchor are equal if they differ by less than this part of its range.
_EQUAL = 1e-9


class CommonSpace:
    """The common map of raw rows, for parties alone: who has anchor and secret has the map.

    Encoding follows from the anchor.  Gaps are filled with its medians, and its categories get a column of zeros and
    ones each.  Numbers are divided by their standard deviations over the anchor, unless all columns are numbers of
    nearly one spread, such as pixels: these keep their units.  `CommonMap` brings other numbers to normal scores.

    Parameters
    ----------
    anchor : array-like or dataframe of shape (n_anchors, n_features)
        Public rows, the same at all parties.  Rows come in any order, and so do columns with texts as names.
    secret : bytes of length 32
        Of all parties, and not of the analyst.
    n_components : int, default=128
        Upper bound; the anchor may leave fewer.  Of a wide table's own columns there may be up to 1,000.
    unknown : {"refuse", "warn", "allow"}, default="refuse"
        The answer to a table with categories in over 5 % of rows, and in two or more, that the anchor lacks.  A party
        sends one message, so it is stopped before; `DataCollaborationClassifier` sends nothing, and warns.

    Raises
    ------
    AgreementError, AnchorError
        If the anchor cannot be read, or no map can be made of it.
    ValueError
        If `unknown` is none of the three.

    Attributes
    ----------
    alike : bool
        Whether all columns are of one kind, as pixels are: 50 numbers or more, and most of them have the same smallest
        or the same largest value in the anchor, of three or more.
    """

    def __init__(
        self,
        anchor: Any,
        secret: bytes,
        *,
        n_components: int = MOST_COMPONENTS,
        unknown: Literal["refuse", "warn", "allow"] = "refuse",
    ) -> None:
        if unknown not in ("refuse", "warn", "allow"):
            raise ValueError(f"unknown must be 'refuse', 'warn' or 'allow'; got {unknown!r}.")
        anchor = plain_table(anchor, "The anchor")
        # Parties may have columns in other orders, and all need one map.
        if hasattr(anchor, "columns") and all(isinstance(name, str) for name in anchor.columns):
            anchor = anchor[sorted(anchor.columns)]
        columns_of(anchor, "The anchor", AgreementError)
        self._encoder = TableEncoder(_TABLE, standardise=True, unknown=unknown).fit(anchor)
        units = self._encoder.common_units
        centre = self._encoder.common_centre
        encoded = self._encoder.transform(anchor)
        self.alike = False
        self._units = np.ones(encoded.shape[1])
        # Neither is there unless all columns are numbers.
        if units is not None and centre is not None:
            self.alike = _have_one_range(encoded * units + centre)
            if self.alike or units.max() <= _ALIKE * np.median(units):
                self._units = units
        self._anchor = encoded * self._units
        # Parties may hold the anchor's rows in other orders.
        ordered = self._anchor[np.lexsort(self._anchor.T)]
        self._map = CommonMap.from_anchor(ordered, secret, n_components=n_components, as_they_are=self.alike)

    @property
    def n_components(self) -> int:
        """Columns of a mapped row."""
        return self._map.n_components

    @property
    def recommended(self) -> Recommended:
        """Noise and least penalty for such columns."""
        return recommended(alike=self.alike)

    def witness(self, context: bytes) -> NDArray[np.uint64]:
        """Return words that differ by maps, names of columns and categories; see `CommonMap.witness`."""
        # The same map of columns or categories in another order would be another one.
        columns = json.dumps([[str(name) for name in self._encoder.names_], self._encoder.levels_])
        return self._map.witness(hashlib.sha256(context + columns.encode()).digest())

    @cached_property
    def anchor(self) -> FloatArray:
        """The anchor's rows, mapped."""
        return self._map.transform(self._anchor)

    def transform(self, X: Any) -> FloatArray:
        """Map rows, shape (n_rows, n_components); no row is longer than 1.

        Raises
        ------
        AgreementError
            If the columns are not the anchor's, cannot be read, or are refused for categories that the anchor lacks.
        """
        return self.map_encoded(self.encode(X))

    def map_encoded(self, Z: FloatArray) -> FloatArray:
        """Map rows that `encode` gave, shape (n_rows, n_components)."""
        return self._map.transform(Z)

    def encode(self, X: Any) -> FloatArray:
        """Return rows as the numbers that are mapped, shape (n_rows, n_encoded); errors are as in `transform`."""
        return self._encoder.transform(X) * self._units

    def __repr__(self) -> str:
        return f"CommonSpace(n_components={self.n_components})"


def _have_one_range(table: FloatArray) -> bool:
    """Return whether the numbers of an anchor have one range, as far as its rows show."""
    low = table.min()
    high = table.max()
    is_low = table <= low + _EQUAL * (high - low)
    is_high = table >= high - _EQUAL * (high - low)
    # Columns of two values have one range whatever they mean.
    if table.shape[1] < FEWEST_ALIKE or (is_low | is_high).all():
        return False
    return bool(max(is_low.any(axis=0).mean(), is_high.any(axis=0).mean()) > 0.5)
