"""What `split_parties` returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

__all__ = ["PartyData", "PartySplit"]


class PartyData(NamedTuple):
    """One party's rows and targets, of the types of the whole table's."""

    X: Any
    y: Any


@dataclass(frozen=True, eq=False, repr=False)
class PartySplit(Mapping[str, PartyData]):
    """A table split into parties: a mapping from ``"party-0"``, ``"party-1"``, ... to their rows.

    The rows of a party are taken from the table whenever they are asked for; the split itself holds only indices.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        The whole table.
    y : array-like of shape (n_samples,)
    indices : mapping of str to ndarray of shape (n_per_party,)
        Rows of `X` that each party has.
    rest : ndarray of shape (n_samples - n_parties * n_per_party,)
        Rows of `X` that no party has, in random order; for anchors and tests.
    """

    X: Any
    y: Any
    indices: Mapping[str, NDArray[np.intp]]
    rest: NDArray[np.intp]

    def __getitem__(self, party: str) -> PartyData:
        return self._take(self.indices[party])

    def __iter__(self) -> Iterator[str]:
        return iter(self.indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        sizes = {len(rows) for rows in self.indices.values()}
        return f"PartySplit({len(self)} parties of {', '.join(map(str, sorted(sizes)))} rows, rest {len(self.rest)})"

    def pooled(self) -> tuple[Any, Any, NDArray[np.str_]]:
        """All parties' rows together, as an estimator's ``fit(X, y, groups=groups)`` takes them.

        Returns
        -------
        X : array or dataframe of shape (n_parties * n_per_party, n_features)
            Party after party, of the type of the whole table.
        y : array of shape (n_parties * n_per_party,)
        groups : ndarray of str of shape (n_parties * n_per_party,)
            The party of each row.
        """
        sizes = [len(rows) for rows in self.indices.values()]
        X, y = self._take(np.concatenate(list(self.indices.values())))
        return X, y, np.repeat(np.array(list(self.indices)), sizes)

    def remaining(self) -> PartyData:
        """The rows that no party has, in the order of `rest`."""
        return self._take(self.rest)

    def _take(self, rows: NDArray[np.intp]) -> PartyData:
        return PartyData(_safe_indexing(self.X, rows), _safe_indexing(self.y, rows))
