"""How much of its rows a party lets be seen, where no model says what that is worth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...party import Party
from ...share import Share

__all__ = ["kept_variance"]


def kept_variance(party: Party, X: FloatArray, share: Share, order: NDArray[np.intp] | None) -> float:
    """Squared correlation of the shared rows with the own ones that they stand for, over all columns at once.

    1 where rows leave as their representations, and the less the more groups and noise take away.

    Parameters
    ----------
    party : Party
        Fitted.
    X : ndarray of shape (n_rows, n_features)
    share : Share
    order : ndarray of shape (n_shared,) or None
        Which own row each shared one stands for; None where it stands for none, and nothing of them is kept.
    """
    if order is None:
        return 0.0
    own = party.obfuscate(X)[order]
    own, shared = own - own.mean(axis=0), share.representation - share.representation.mean(axis=0)
    scale = float((own**2).sum() * (shared**2).sum())
    return float((own * shared).sum()) ** 2 / scale if scale else 0.0
