"""What comes out of a defence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray

__all__ = ["Published"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Published:
    """Rows as they may leave, with their targets.

    Attributes
    ----------
    rows : ndarray of shape (n_published, n_intermediate)
    target : ndarray of shape (n_published,)
    own_rows : ndarray of shape (n_published,) or None
        Which of the given rows each published row stands for.  Where it is made of all rows of a class, some row of
        that class, each at most once; None where it stands for none.
    anchor_rows : ndarray of shape (n_published,) or None
        Where published rows are made of the anchor's: which one each is made of.
    counts : ndarray of shape (n_published,) or None
        Where published rows are sums, one for each class of `target`: how many rows each class has, with noise.
    """

    rows: FloatArray
    target: NDArray[Any]
    own_rows: NDArray[np.intp] | None
    anchor_rows: NDArray[np.intp] | None = None
    counts: FloatArray | None = None

    def followed_by(self, later: Published) -> Published:
        """The same after another defence, to which these rows were given."""
        none = self.own_rows is None or later.own_rows is None
        anchor_rows = later.anchor_rows
        if anchor_rows is None and self.anchor_rows is not None and later.own_rows is not None:
            anchor_rows = self.anchor_rows[later.own_rows]
        return Published(
            rows=later.rows,
            target=later.target,
            own_rows=None if none else self.own_rows[later.own_rows],  # type: ignore[index]
            anchor_rows=anchor_rows,
            counts=later.counts,
        )

    def __repr__(self) -> str:
        return f"Published({self.rows.shape[0]} rows)"
