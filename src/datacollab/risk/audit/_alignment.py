"""Whether a table and a share are in the same order."""

from __future__ import annotations

import numpy as np

from ..._validation import FloatArray
from ...errors import AgreementError
from ...share import Share
from ..attacks import KernelRidgeAttack

__all__ = ["check_alignment"]

_PERMUTATIONS = 1000
_UNLIKELY = 0.005
"""Share of random orders that may fit as well as the one given."""


def check_alignment(share: Share, X: FloatArray, anchor: FloatArray, random: np.random.RandomState) -> None:
    """Refuse rows that fit the share no better than in a random order: every attack on them would seem to fail.

    Parameters
    ----------
    share : Share
    X : ndarray of shape (n_rows, n_features)
    anchor : ndarray of shape (n_anchors, n_features)
    random : numpy.random.RandomState

    Raises
    ------
    AgreementError
        When a map learnt from the anchor does not bring the rows to their place.
    """
    learnt = KernelRidgeAttack().fit(anchor, share.anchor_representation).reconstruct(X)
    centred = [rows - rows.mean(axis=0) for rows in (learnt, share.representation)]
    given = float(np.vdot(*centred))
    shuffled = [np.vdot(centred[0], centred[1][random.permutation(len(X))]) for _ in range(_PERMUTATIONS)]
    as_good = float(np.mean(np.asarray(shuffled) >= given))
    if as_good > _UNLIKELY:
        raise AgreementError(
            f"Party {share.party!r}: the rows of X fit the share no better than in another order ({as_good:.0%} of "
            "random orders fit as well), so an audit would find nothing, whatever there is. Give the rows in the "
            "share's order, or the Party, which knows it. Where a defence really leaves nothing, audit the Party."
        )
