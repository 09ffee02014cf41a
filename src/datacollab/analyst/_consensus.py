"""One clustering of the anchor out of several parties'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import AgglomerativeClustering

from .._validation import FloatArray, PartyName, name_parties
from ..errors import AgreementError

__all__ = ["coassociation", "consensus_labels", "matched_vote", "renamed_as"]

_METHODS = ("coassociation", "vote")
_MOST_ROWS = 20_000
"""Anchor rows of which all pairs are looked at: 3.2 GB."""


def consensus_labels(
    labels: Mapping[Any, ArrayLike] | Sequence[ArrayLike], n_clusters: int, *, method: str = "vote"
) -> NDArray[np.intp]:
    """One clustering out of several of the same anchor rows.

    Each party clusters its own rows at home, and says in which of its clusters each anchor row would be.  Nothing else
    crosses; numbers of clusters mean nothing between parties.

    Parameters
    ----------
    labels : mapping of party to array-like of shape (n_anchors,), or sequence of array-like
        A number for each anchor row; negative where a party says nothing of it.
    n_clusters : int
        Wanted.
    method : {"vote", "coassociation"}, default="vote"
        "vote": each clustering is renamed to agree best with one of them, in turn, and the majority decides
        (`matched_vote`).  "coassociation": rows are clustered by average linkage of the part of the parties that put
        them apart [1]_; memory grows with the square of the anchor rows.

    Returns
    -------
    ndarray of shape (n_anchors,)
        From 0 on, clusters in the order in which they first occur.

    Raises
    ------
    AgreementError
        When there are no labels, not as many from each party, or rows without any.
    ValueError
        When the method is unknown, there are too many rows for it, or "vote" finds all parties with more clusters.

    References
    ----------
    .. [1] Fred and Jain (2005). Combining multiple clusterings using evidence accumulation. IEEE Transactions on
       Pattern Analysis and Machine Intelligence 27(6), 835-850.

    Examples
    --------
    >>> from datacollab.analyst import consensus_labels
    >>> consensus_labels({"a": [0, 0, 1, 1], "b": [5, 5, 2, 2], "c": [1, 0, 0, 0]}, n_clusters=2)
    array([0, 0, 1, 1])
    """
    if method not in _METHODS:
        raise ValueError(f"method must be one of {_METHODS!r}; got {method!r}.")
    codes = _checked(labels)
    if method == "vote":
        return _in_order(matched_vote(codes, n_clusters))
    if codes.shape[1] > _MOST_ROWS:
        raise ValueError(f"{codes.shape[1]} anchor rows have too many pairs; take method='vote'.")
    linkage = AgglomerativeClustering(n_clusters, metric="precomputed", linkage="average")
    return _in_order(linkage.fit_predict(1.0 - coassociation(codes)))


def coassociation(codes: NDArray[np.intp]) -> FloatArray:
    """Part of the parties that put two rows together, of those that say something of both; 0 where none does.

    Parameters
    ----------
    codes : ndarray of shape (n_parties, n_rows)

    Returns
    -------
    ndarray of shape (n_rows, n_rows)
    """
    together, said = np.zeros((2, codes.shape[1], codes.shape[1]))
    for labels in codes:
        known = labels >= 0
        both = known[:, None] & known
        said += both
        together += both & (labels[:, None] == labels)
    return np.asarray(np.divide(together, said, out=together, where=said > 0))


def matched_vote(codes: NDArray[np.intp], n_clusters: int) -> NDArray[np.intp]:
    """What most parties say of each row, once their clusters have the names of a reference's that they overlap most.

    Every clustering of as many clusters as wanted, or the most below, serves as the reference once, and the vote that
    agrees with most labels is taken.

    Parameters
    ----------
    codes : ndarray of shape (n_parties, n_rows)
    n_clusters : int

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    ValueError
        When all parties have more clusters.
    AgreementError
        When clusters of rows of which the reference says nothing have no partner.
    """
    sizes = np.array([len(np.unique(labels[labels >= 0])) for labels in codes])
    if not (sizes <= n_clusters).any():
        raise ValueError(
            f"All parties have more than n_clusters={n_clusters} clusters, at least {sizes.min()}; take "
            "method='coassociation', or have them look for fewer."
        )
    references = codes[sizes == sizes[sizes <= n_clusters].max()]
    votes = [_votes(codes, reference) for reference in references]
    counts = max(votes, key=lambda each: float(each.max(axis=1).sum()))
    unnamed = int((counts.max(axis=1) == 0).sum())
    if unnamed:
        raise AgreementError(
            f"{unnamed} of {len(counts)} anchor rows are in clusters that overlap with none of another party's; take "
            "method='coassociation', or have all parties name all rows."
        )
    return np.asarray(np.argmax(counts, axis=1))


def _votes(codes: NDArray[np.intp], reference: NDArray[np.intp]) -> FloatArray:
    """How many parties give each row each of the reference's names, shape (n_rows, n_names)."""
    names = np.unique(reference[reference >= 0])
    counts = np.zeros((codes.shape[1], len(names)))
    for labels in codes:
        renamed = renamed_as(reference, labels)
        known = np.flatnonzero(renamed >= 0)
        counts[known, renamed[known]] += 1
    return counts


def renamed_as(reference: NDArray[np.intp], labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Labels as positions among the reference's names, one to one by the largest overlap in all.

    Clusters that this leaves without a partner, or with one that they do not overlap, get the name that they overlap
    most; -1 where there is none.

    Parameters
    ----------
    reference, labels : ndarray of shape (n_rows,)

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    names, clusters = (np.unique(each[each >= 0]) for each in (reference, labels))
    overlap = (labels == clusters[:, None]).astype(np.float64) @ (reference == names[:, None]).T
    if not overlap.size:
        return np.full(len(labels), -1, dtype=np.intp)
    partners = np.where(overlap.max(axis=1) > 0, overlap.argmax(axis=1), -1)
    rows, columns = linear_sum_assignment(-overlap)
    partners[rows] = np.where(overlap[rows, columns] > 0, columns, partners[rows])
    return np.where(labels >= 0, partners[np.minimum(np.searchsorted(clusters, labels), len(clusters) - 1)], -1)


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
