"""Cross-validation in which every party is in every fold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from ._roles import owners


class PartyStratifiedKFold(BaseCrossValidator):
    """K folds, stratified by party, and by class within each party where the target has classes.

    A collaboration can only predict for parties it was fitted with, so folds that leave a party out of training (as
    those of ``GroupKFold`` do) are of no use, and plain folds may leave out a small one by chance.  Every party's
    share of two folds differs by at most one row.

    Parameters
    ----------
    n_splits : int, default=5
    party_column : str or int, default=None
        Column of X that names the owner of each row; it replaces `groups`.
    shuffle : bool, default=False
        Whether rows of one party and class are dealt out in random order.
    random_state : int, RandomState or None, default=None
        Seed of the shuffling.

    Examples
    --------
    >>> import numpy as np
    >>> hospital = np.repeat(["a", "b"], [6, 3])
    >>> y = np.array([0, 0, 0, 1, 1, 1, 0, 1, 1])
    >>> for train, test in PartyStratifiedKFold(3).split(y, y, groups=hospital):
    ...     print(hospital[test], y[test])
    ['a' 'a' 'b'] [0 1 0]
    ['a' 'a' 'b'] [0 1 1]
    ['a' 'a' 'b'] [0 1 1]
    """

    __metadata_request__split: ClassVar = {"groups": True}

    def __init__(
        self,
        n_splits: int = 5,
        *,
        party_column: str | int | None = None,
        shuffle: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        if n_splits < 2:
            raise ValueError(f"n_splits={n_splits}: expected at least 2 folds.")
        self.n_splits = n_splits
        self.party_column = party_column
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return self.n_splits

    def _iter_test_indices(
        self, X: Any = None, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[NDArray[np.intp]]:
        if groups is None and self.party_column is None:
            raise ValueError("PartyStratifiedKFold needs groups, one party name per row, or party_column.")
        _, names = owners(X, groups, self.party_column)
        parties, codes, counts = np.unique(names, return_inverse=True, return_counts=True)
        small = {party: n for party, n in zip(parties.tolist(), counts.tolist(), strict=True) if n < self.n_splits}
        if small:
            raise ValueError(f"n_splits={self.n_splits} needs at least as many rows of every party; got {small}.")

        classes = np.zeros_like(codes)
        if y is not None and type_of_target(y) in {"binary", "multiclass"}:
            classes = np.unique(np.asarray(y), return_inverse=True)[1]
        ties = np.arange(len(codes))
        if self.shuffle:
            check_random_state(self.random_state).shuffle(ties)
        # Rows in the order of party, then class, are dealt out in turn, as one deals cards: even shares for parties
        # and, as nearly as can be, for the classes within them, however few rows a class has.
        dealt = np.empty(len(codes), dtype=np.intp)
        dealt[np.lexsort((ties, classes, codes))] = np.arange(len(codes)) % self.n_splits
        for fold in range(self.n_splits):
            yield np.flatnonzero(dealt == fold)
