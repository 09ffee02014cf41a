"""One clustering of the anchor out of several parties'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import KMeans

from datacollab._validation import FloatArray, PartyName, name_parties
from datacollab.errors import AgreementError

__all__ = ["consensus_labels", "indicators"]

_N_INIT = 20


def consensus_labels(
    labels: Mapping[Any, ArrayLike] | Sequence[ArrayLike],
    n_clusters: int,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.intp]:
    """One clustering out of several of the same anchor rows.

    Each party clusters its own rows at home, and says in which of its clusters each anchor row would be.  Nothing else
    crosses; numbers of clusters mean nothing between parties, and need not be as many.  The consensus is k-means of
    the rows' indicators of all parties' clusters: the partition that shares the most quadratic mutual information with
    the parties' [1]_.

    Parameters
    ----------
    labels : mapping of party to array-like of shape (n_anchors,), or sequence of array-like
        A number for each anchor row; negative where a party says nothing of it.
    n_clusters : int
        Wanted; fewer come out where the parties tell fewer kinds of rows apart.
    random_state : int, RandomState instance or None, default=None
        Of the beginnings of k-means.

    Returns
    -------
    ndarray of shape (n_anchors,)
        From 0 on, clusters in the order in which they first occur.

    Raises
    ------
    AgreementError
        When there are no labels, not as many from each party, rows without any, or parties that have no row in common
        with the rest.

    References
    ----------
    .. [1] Topchy, Jain and Punch (2005). Clustering ensembles: models of consensus and weak partitions. IEEE
       Transactions on Pattern Analysis and Machine Intelligence 27(12), 1866-1881.

    Examples
    --------
    >>> from datacollab_experiments.consensus import consensus_labels
    >>> consensus_labels({"a": [0, 0, 1, 1], "b": [5, 5, 2, 2], "c": [1, 0, 0, 0]}, n_clusters=2, random_state=0)
    array([0, 0, 1, 1])
    """
    rows = indicators(_checked(labels))
    n_kinds = len(np.unique(rows, axis=0))
    kmeans = KMeans(min(n_clusters, n_kinds), n_init=_N_INIT, random_state=random_state)
    return _in_order(kmeans.fit_predict(rows))


def indicators(codes: NDArray[np.intp]) -> FloatArray:
    """For each party's clusters a column that is 1 in its rows, less the column's mean.

    Rows of which a party says nothing are 0 in its columns: at the mean of the others, so that they lean nowhere.

    Parameters
    ----------
    codes : ndarray of shape (n_parties, n_rows)

    Returns
    -------
    ndarray of shape (n_rows, n_clusters of all parties)
    """
    columns = []
    for labels in codes:
        known = labels >= 0
        member = labels[:, None] == np.unique(labels[known])
        columns.append(np.where(known[:, None], member - member[known].mean(axis=0), 0.0))
    return np.concatenate(columns, axis=1)


def _checked(labels: Mapping[Any, ArrayLike] | Sequence[ArrayLike]) -> NDArray[np.intp]:
    named: dict[PartyName, NDArray[Any]] = {
        party: np.asarray(each) for party, each in name_parties(labels, what="clustering of the anchor").items()
    }
    shapes = {party: each.shape for party, each in named.items()}
    if len(set(shapes.values())) > 1 or len(next(iter(shapes.values()))) != 1:
        raise AgreementError(f"One label for each anchor row is wanted of every party; got the shapes {shapes}.")
    if any(each.dtype.kind not in "iu" for each in named.values()):
        raise AgreementError("Labels of clusters must be whole numbers.")
    codes = np.stack([each.astype(np.intp) for each in named.values()])
    unnamed = int((codes < 0).all(axis=0).sum())
    if unnamed:
        raise AgreementError(f"Of {unnamed} of {codes.shape[1]} anchor rows no party says anything; leave these out.")
    known = (codes >= 0).astype(np.intp)
    if connected_components(known @ known.T, directed=False, return_labels=False) > 1:
        raise AgreementError(
            "Some parties have no anchor row in common with the others, and nothing says which of their clusters are "
            "the same; have all parties name all rows."
        )
    # In an order and with names of their own, so that ties do not go by who is named how.
    named_alike = np.stack([_canonical(labels) for labels in codes])
    return named_alike[np.lexsort(named_alike.T[::-1])]


def _canonical(labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Clusters from 0 on, in the order in which they first occur; -1 stays."""
    canonical = np.full(len(labels), -1, dtype=np.intp)
    canonical[labels >= 0] = _in_order(labels[labels >= 0])
    return canonical


def _in_order(labels: NDArray[np.intp]) -> NDArray[np.intp]:
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[codes])
