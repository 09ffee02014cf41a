"""Membership by shadow shares: what a share would look like with one record in the table, and without."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from ..._validation import FloatArray
from ...errors import AgreementError
from ...share import Share
from ._checks import check_rows
from ._share_statistics import IntArray, Reference, View, share_statistics
from ._targets import check_targets, learn_target_code

__all__ = ["ShadowAttack"]

_LEAST_SHADOWS = 8
_LEAST_SPREAD = 1e-9
_RECORDS = 1500
"""Public rows at most that are learnt from; each is in some of the tables."""


class ShadowAttack:
    """Tell from one share whether a record is in its table, by shares made for the purpose [1]_.

    The attacker knows how the party shares, and makes many shares of tables of its own with as many rows of each class.
    On these it learns how figures about a record differ where the record is in the table; each figure is compared with
    what it is for the same record in tables without it.  No list of candidates is needed: every record is judged by
    itself.

    Parameters
    ----------
    make_share : callable
        The party's way of sharing: takes images (n_rows, n_intermediate) under f, their targets and a RandomState, and
        returns a `Share` of them.
    n_shadows : int, default=64
    seconds : float, default=inf
        After which no further share is made; eight at least are.
    random_state : int, RandomState or None, default=None

    References
    ----------
    .. [1] Carlini, Chien, Nasr, Song, Terzis and Tramer (2022). Membership inference attacks from first principles.
       IEEE Symposium on Security and Privacy.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.risk.attacks import ShadowAttack, membership
    >>> from datacollab.share import Share
    >>> rng = np.random.default_rng(0)
    >>> def share_means(images, target, random):
    ...     return Share(party="a", representation=images.reshape(-1, 2, 6).mean(axis=1),
    ...                  anchor_representation=images, target=target[::2])
    >>> own, others, public = rng.normal(size=(20, 6)), rng.normal(size=(200, 6)), rng.normal(size=(1000, 6))
    >>> labels = np.zeros(1000, dtype=int)
    >>> attack = ShadowAttack(share_means, random_state=0).fit(public, labels, labels[:20])
    >>> share = share_means(own, labels[:20], None)
    >>> scores = [attack.score(share, rows, labels[: len(rows)]) for rows in (own, others)]
    >>> membership(*scores).auc > 0.7
    True
    """

    def __init__(
        self,
        make_share: Callable[[FloatArray, NDArray[Any], np.random.RandomState], Share],
        n_shadows: int = 64,
        *,
        seconds: float = math.inf,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.make_share = make_share
        self.n_shadows = n_shadows
        self.seconds = seconds
        self.random_state = random_state

    def fit(self, images: ArrayLike, target: ArrayLike, table_target: ArrayLike) -> Self:
        """Make shares, and learn what a record changes.

        Parameters
        ----------
        images : array-like of shape (n_public, n_intermediate)
            Public rows through the attacker's estimate of f.
        target : array-like of shape (n_public,)
        table_target : array-like of shape (n_samples,)
            Targets of the table under attack, whose classes the shadow tables follow.

        Returns
        -------
        self

        Raises
        ------
        AgreementError
            When there are fewer than twice as many public rows as the table has.
        """
        random = check_random_state(self.random_state)
        pool = check_rows(images, "The public images")
        labels = check_targets(target, len(pool), "The public rows' target")
        wanted = check_targets(table_target, np.size(table_target), "The table's target", like=labels)
        if len(pool) < 2 * len(wanted):
            raise AgreementError(
                f"Shadow tables of {len(wanted)} rows need at least {2 * len(wanted)} public rows; got {len(pool)}."
            )
        self._code = learn_target_code(labels)
        groups = np.maximum(self._code.groups(labels), 0)
        counts = np.bincount(np.maximum(self._code.groups(wanted), 0), minlength=self._code.n_groups)
        self._reference = Reference(pool, groups, self._code.n_groups)
        tables: list[IntArray] = []
        self._views: list[View] = []
        started = time.monotonic()
        while len(tables) < self.n_shadows:
            if len(tables) >= _LEAST_SHADOWS and time.monotonic() - started > self.seconds:
                break
            rows = _drawn(groups, counts, random)
            share = self.make_share(pool[rows], labels[rows], np.random.RandomState(random.randint(2**31)))
            tables.append(rows)
            self._views.append(self._view(share))
        used = random.permutation(np.unique(np.concatenate(tables)))[:_RECORDS]
        inside = np.array([np.isin(used, rows) for rows in tables])
        statistics = self._statistics(self._views, pool[used], groups[used])
        self._model = _fitted(statistics, inside, random)
        return self

    def score(self, share: Share, images: ArrayLike, target: ArrayLike) -> FloatArray:
        """Score records: log odds of having been in the table.

        Parameters
        ----------
        share : Share
            Under attack.
        images : array-like of shape (n_records, n_intermediate)
            The records through the attacker's estimate of f; none of them among the public rows.
        target : array-like of shape (n_records,)
            Their targets, or what the attacker takes for these.

        Returns
        -------
        ndarray of shape (n_records,)
        """
        rows = check_rows(images, "The images")
        groups = np.maximum(self._code.groups(np.asarray(target)), 0)
        without = self._statistics(self._views, rows, groups)
        found = self._statistics([self._view(share)], rows, groups)[0]
        features = _compared(found, without.mean(axis=0), without.std(axis=0))
        return np.asarray(self._model.decision_function(features))

    def _view(self, share: Share) -> View:
        origins = None if share.anchor_rows is None else share.anchor_representation[share.anchor_rows]
        return View(share.representation, np.maximum(self._code.groups(share.target), 0), origins)

    def _statistics(self, views: list[View], images: FloatArray, groups: IntArray) -> FloatArray:
        """Shape (n_views, n_records, n_statistics)."""
        return np.stack([share_statistics(view, self._reference, images, groups) for view in views])


def _drawn(groups: IntArray, counts: IntArray, random: np.random.RandomState) -> IntArray:
    """Rows of a shadow table, so many of each class; where a class has too few, others instead."""
    order = random.permutation(len(groups))
    chosen = [order[groups[order] == label][:count] for label, count in enumerate(counts)]
    rows = np.concatenate(chosen)
    missing = int(counts.sum()) - len(rows)
    return np.concatenate([rows, order[~np.isin(order, rows)][:missing]]) if missing else rows


def _compared(found: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Figures less what they are without the record, as they are and in units of their spread."""
    difference = found - mean
    return np.hstack([difference, difference / np.maximum(spread, _LEAST_SPREAD)])


def _fitted(statistics: FloatArray, inside: NDArray[np.bool_], random: np.random.RandomState) -> Any:
    """A model that tells shares with a record from those without.

    Parameters
    ----------
    statistics : ndarray of shape (n_shadows, n_records, n_statistics)
    inside : ndarray of shape (n_shadows, n_records)
        Which tables have which record.
    random : numpy.random.RandomState
    """
    weights = (~inside)[:, :, None].astype(np.float64)
    examples, truth = [], []
    for shadow, rows in enumerate(inside):
        # A share of its own table would otherwise count among those that it is compared with.
        others = weights.copy()
        others[shadow] = 0
        n = np.maximum(others.sum(axis=0), 1)
        mean = (others * statistics).sum(axis=0) / n
        spread = np.sqrt(np.maximum((others * statistics**2).sum(axis=0) / n - mean**2, 0))
        outside = random.choice(np.flatnonzero(~rows), min(int(rows.sum()), int((~rows).sum())), replace=False)
        chosen = np.concatenate([np.flatnonzero(rows), outside])
        examples.append(_compared(statistics[shadow][chosen], mean[chosen], spread[chosen]))
        truth.append(rows[chosen])
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    return model.fit(np.clip(np.vstack(examples), -1e6, 1e6), np.concatenate(truth))
