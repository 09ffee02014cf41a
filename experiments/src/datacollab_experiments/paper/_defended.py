"""Parties that defend their shares, and the published representation of each row."""

import copy
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datacollab._validation import FloatArray, PartyName
from datacollab.errors import PrivateRowsWarning, SuppressedRowsWarning
from datacollab.party import Microaggregation, Party

# The defence's default size of groups, and the intervals of numeric targets.
_K = 5
_BINS = 10


def make_defended_party(
    name: PartyName, f_k: Any, own: Any, others: FloatArray, task: str, random_state: np.random.RandomState
) -> Party:
    """A fitted party that shares means of five rows or more, and any obfuscator.

    Parameters
    ----------
    others : ndarray of shape (n_others, n_features)
        Rows to fit on instead, a random half of them.
    task : {"classification", "regression"}
        Numeric targets stand in ten intervals for classes.
    random_state : RandomState
        Source of the choice of half, of the rotation and of the defence.
    """
    defence = Microaggregation(_K, n_bins=_BINS if task == "regression" else None)
    party = Party(name, f_k, fit_on=others, defences=(defence,), random_state=random_state)
    with warnings.catch_warnings():
        # Small parties have classes of a few rows, and some data sets have a row twice.  Both go into the scores.
        warnings.simplefilter("ignore", SuppressedRowsWarning)
        warnings.simplefilter("ignore", PrivateRowsWarning)
        return party.fit(own.X, own.y)


def list_published(
    party: Party, X: FloatArray, rows: NDArray[np.int64], anchor: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return those of a party's rows that it shares, and their representations.

    `X` are all its rows, and `rows` numbers of some of them, of which those are left out that a defence suppresses.
    """
    if not party.defences:
        return rows, party.obfuscate(X)[rows]
    # Unshuffled, published rows can be matched with the originals.
    in_order = copy.copy(party)
    in_order.shuffle = False
    share, order = in_order.share_with_order(anchor)
    published = rows[np.isin(rows, order)]
    return published, share.representation[np.searchsorted(order, published)]
