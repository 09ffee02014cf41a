"""Anchor rows in folds: those that candidates are fitted to, and those that they are scored on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from .._validation import FloatArray, PartyName
from ._graphs import NeighborGraph
from ._kti_scoring import Fold, halves

__all__ = ["anchor_folds"]


def anchor_folds(
    anchors: Mapping[PartyName, FloatArray],
    target: NDArray[Any] | None,
    *,
    cv: Any,
    graph: NeighborGraph | None,
    is_classification: bool,
    random_state: np.random.RandomState,
) -> Iterator[Fold]:
    """Cut the anchor rows into folds.

    Parameters
    ----------
    anchors : dict of party to ndarray of shape (n_anchors, n_intermediate)
    target : ndarray of shape (n_anchors,) or None
    cv : int or cross-validation generator
        A number means so many random folds, stratified by class where there are classes.
    graph : NeighborGraph or None
        Whose Laplacian between the rows fitted to each fold gets.
    is_classification : bool
    random_state : RandomState
    """
    n_anchors = next(iter(anchors.values())).shape[0]
    for train, test in _splitter(cv, is_classification, random_state).split(np.zeros((n_anchors, 1)), target):
        seen = {party: A[train] for party, A in anchors.items()}
        seen_target = None if target is None else target[train]
        yield Fold(
            train=seen,
            train_target=seen_target,
            laplacian=None if graph is None else graph.laplacian(seen, seen_target),
            held_out={party: A[test] for party, A in anchors.items()},
            held_out_target=None if target is None else target[test],
            parts=None if target is None else halves(target[test], random_state),
        )


def _splitter(cv: Any, is_classification: bool, random_state: np.random.RandomState) -> Any:
    if not isinstance(cv, Integral):
        return check_cv(cv)
    # Anchors often come class after class, so unshuffled folds would hold out what training has never seen.
    folds = StratifiedKFold if is_classification else KFold
    return folds(cv, shuffle=True, random_state=random_state)
