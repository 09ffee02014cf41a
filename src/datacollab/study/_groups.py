"""Rows, or whole clusters of rows, that are dealt secretly at random to groups which all parties agree on."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._frames import are_missing, plain_column
from ..sums import key_stream

# Groups that have rows of each party, if clusters are dealt; twenty clusters nearly always fill as many.
_FEWEST = 0.7


def shuffle(n_rows: int, secret: bytes) -> NDArray[np.intp]:
    """Return the places of rows in a secret random order, shape (n_rows,), as `deal` has it.

    Examples
    --------
    >>> sorted(shuffle(4, bytes(32)).tolist())
    [0, 1, 2, 3]
    """
    return np.argsort(key_stream(secret, n_rows + 1)[1:], kind="stable")


def deal(n_rows: int, n_groups: int, secret: bytes, clusters: ArrayLike | None = None) -> NDArray[np.intp]:
    """Deal rows to groups.

    Rows by themselves fill all groups alike, but for one row.  A cluster goes to a group that a keyed hash of its label
    chooses, so that batches of a file agree on it, and no other row's group depends on who is in the table.

    Parameters
    ----------
    n_rows, n_groups : int
    secret : bytes of length 32
        Drawn by the party for one message, for example with `secrets.token_bytes`.
    clusters : array-like of shape (n_rows,), optional
        Labels, as texts or numbers.  A row without one (None or NaN) is a cluster of its own.

    Returns
    -------
    ndarray of shape (n_rows,)
        The group of each row, from 0.

    Examples
    --------
    >>> groups = deal(4, 2, bytes(32))
    >>> sorted(groups.tolist())
    [0, 0, 1, 1]
    >>> first, second, third = deal(3, 1000, bytes(32), ["Dr A", "Dr B", "Dr A"])
    >>> bool(first == third), bool(first == second)
    (True, False)
    """
    words = key_stream(secret, n_rows + 1)
    order = np.empty(n_rows, dtype=np.intp)
    order[shuffle(n_rows, secret)] = np.arange(n_rows)
    if clusters is None:
        return (order + int(words[0] % np.uint64(n_groups))) % n_groups
    # Rows without a label are clusters of their own.
    alone = (words[1:] % np.uint64(n_groups)).tolist()
    group = functools.cache(lambda label: _group(label, n_groups, secret))
    labels = plain_column(clusters)
    each = zip(labels.tolist(), are_missing(labels), alone, strict=True)
    return np.array([own if missing else group(label) for label, missing, own in each], dtype=np.intp)


def alone(rows: NDArray[np.float64], cluster: str | None) -> str | None:
    """Return that a party's clusters are so few that a group's total might be its own, if they are.

    `rows` are the party's in each group, shape (n_groups,), and `cluster` is the column of clusters.
    """
    n_groups = len(rows)
    there = np.count_nonzero(rows)
    least = math.ceil(_FEWEST * n_groups)
    if cluster is None or there >= least:
        return None
    return (
        f"The clusters by {cluster!r} fill {there} of {n_groups} groups at this party; expected {least}, or a group's "
        "total might be this party's alone. Nothing was sent. Agree on smaller clusters, twenty or more at each "
        "party, or on none."
    )


def _group(label: object, n_groups: int, secret: bytes) -> int:
    """Return the group of a cluster."""
    text = str(label)
    with contextlib.suppress(ValueError):
        # A batch of a file may read 1 as 1.0.
        text = repr(float(text))
    return int.from_bytes(hashlib.blake2b(text.encode(), key=secret, digest_size=8).digest(), "little") % n_groups
