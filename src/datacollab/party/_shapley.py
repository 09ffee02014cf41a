r"""Shapley values of coalitions' worths: exact, and along paths that begin with nobody and end with all.

.. math:: \varphi_j = \sum_{S \not\ni j} \frac{|S|!\,(d - |S| - 1)!}{d!} \bigl( v(S \cup j) - v(S) \bigr)
   = \mathbb{E}_\pi \bigl[ v(\pi_{\le j}) - v(\pi_{< j}) \bigr] .

The mean over orders :math:`\pi` is estimated from orders and their reverses [Mitchell2022]: where v is a sum over
players and pairs of them, one such pair of orders is exact.  Along a path differences telescope, so that values add up
to :math:`v(\text{all}) - v(\emptyset)` whatever the orders.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray

__all__ = ["all_coalitions", "antithetic_orders", "coalitions_along", "values_along", "values_of_all"]

Coalitions = NDArray[np.bool_]


def all_coalitions(n_players: int) -> Coalitions:
    """Every coalition once, shape (2**n_players, n_players); that of row i has the players of i's binary digits."""
    return np.asarray((np.arange(1 << n_players)[:, None] >> np.arange(n_players)) & 1, dtype=np.bool_)


def values_of_all(worths: FloatArray) -> FloatArray:
    """Exact Shapley values.

    Parameters
    ----------
    worths : ndarray of shape (2**n_players, ...)
        Of `all_coalitions`, in its order.

    Returns
    -------
    ndarray of shape (n_players, ...)

    Examples
    --------
    Two shoes are worth something as a pair alone:

    >>> import numpy as np
    >>> from datacollab.party._shapley import values_of_all
    >>> values_of_all(np.array([0.0, 0.0, 0.0, 8.0]))
    array([4., 4.])
    """
    n_players = (len(worths) - 1).bit_length()
    codes = np.arange(len(worths))
    sizes = all_coalitions(n_players).sum(axis=1)
    weights = np.array([1.0 / (n_players * comb(n_players - 1, size)) for size in range(n_players)])
    values = np.empty((n_players, *worths.shape[1:]))
    for player in range(n_players):
        without = codes[(codes >> player) & 1 == 0]
        gains = worths[without | (1 << player)] - worths[without]
        values[player] = np.tensordot(weights[sizes[without]], gains, axes=1)
    return values


def antithetic_orders(n_paths: int, n_players: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Random orders of players, each followed by its reverse, shape (2 n_paths, n_players)."""
    orders = np.argsort(generator.random((n_paths, n_players)), axis=1)
    return np.stack([orders, orders[:, ::-1]], axis=1).reshape(2 * n_paths, n_players)


def coalitions_along(orders: NDArray[np.intp]) -> Coalitions:
    """Coalitions between nobody and all on each path, shape (n_paths, n_players - 1, n_players)."""
    n_players = orders.shape[1]
    ranks = np.argsort(orders, axis=1)
    return np.asarray(ranks[:, None, :] < np.arange(1, n_players)[None, :, None])


def values_along(orders: NDArray[np.intp], worths: FloatArray) -> FloatArray:
    """Mean over paths of what each player adds when it comes.

    Parameters
    ----------
    orders : ndarray of shape (n_paths, n_players)
    worths : ndarray of shape (n_paths, n_players + 1, ...)
        Of nobody, of `coalitions_along`, and of all.

    Returns
    -------
    ndarray of shape (n_players, ...)
    """
    gains = np.diff(worths, axis=1)
    ranks = np.argsort(orders, axis=1)
    return np.asarray(gains[np.arange(len(orders))[:, None], ranks].mean(axis=0))
