"""What candidates' targets say about which group they may be in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._validation import FloatArray
from ._targets import check_targets

__all__ = ["CandidateTargets"]


class CandidateTargets:
    """Targets of candidates, as further equations for the members of a group.

    Of a group whose rows have several targets, each member has one of these.  Of one with a single number, it is the
    mean of the members' numbers; if it is a class, it is that of each.

    Parameters
    ----------
    target : array-like of shape (n_candidates,)
    n_candidates : int
    shared : ndarray of shape (n_shared,)
        Targets as shared.
    scale : float
        Standard deviation of the representation, in whose units gaps between numbers are given.

    Raises
    ------
    AgreementError
        When there is not one target per candidate, or they are of another kind than those shared.
    """

    def __init__(self, target: ArrayLike, n_candidates: int, shared: NDArray[Any], scale: float) -> None:
        self._target = check_targets(target, n_candidates, "The candidates' target", like=shared)
        self._is_numeric = shared.dtype.kind == "f"
        spread = float(np.std(self._target)) if self._is_numeric else 0.0
        self._unit = scale / spread if spread > 0 else 0.0

    def may_be(self, targets: NDArray[Any]) -> NDArray[np.bool_]:
        """Which candidates may be in a group with these targets, shape (n_candidates,)."""
        if self._is_numeric and len(np.unique(targets)) == 1:
            return np.ones(len(self._target), dtype=bool)
        return np.isin(self._target, targets)

    def gaps(self, candidates: NDArray[np.intp], targets: NDArray[Any]) -> FloatArray:
        """What has to add up to zero over the members besides: a column for numbers, none for classes."""
        if not self._is_numeric or self._unit == 0:
            return np.empty((len(candidates), 0))
        return np.asarray((self._target[candidates] - targets.mean())[:, None] * self._unit)
