"""Which row of a solved group is whose: by the rows' own targets, where these differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.ensemble import RandomForestClassifier

from ..._validation import FloatArray
from ..attacks import KernelRidgeAttack

__all__ = ["Guess", "assigned", "differ", "known_targets", "predicted_targets"]

Guess = Callable[[NDArray[Any], NDArray[np.intp]], FloatArray]
"""From targets of rows (n,) and numbers of records (m,) to how little each fits each, shape (n, m)."""

_LEAST_PROBABILITY = 1e-3


def differ(target: NDArray[Any], groups: Sequence[NDArray[np.intp]]) -> bool:
    """Whether rows of some group have different targets."""
    return any(len(np.unique(target[group])) > 1 for group in groups)


def known_targets(target: NDArray[Any]) -> Guess:
    """The attacker knows the records' targets, shape (n_records,)."""
    if target.dtype.kind == "f":
        return lambda shown, records: np.asarray(np.abs(shown[:, None] - target[records][None, :]))
    return lambda shown, records: np.asarray(shown[:, None] != target[records][None, :], dtype=np.float64)


def predicted_targets(representation: FloatArray, target: NDArray[Any], images: FloatArray) -> Guess:
    """The attacker predicts them from the records' images, by what the anchor's targets teach.

    Parameters
    ----------
    representation : ndarray of shape (n_leaked, n_intermediate)
    target : ndarray of shape (n_leaked,)
    images : ndarray of shape (n_records, n_intermediate)
    """
    if target.dtype.kind == "f":
        numbers = KernelRidgeAttack().fit(representation, target.reshape(-1, 1)).reconstruct(images)[:, 0]
        return lambda shown, records: np.asarray((shown[:, None] - numbers[records][None, :]) ** 2)
    # A seed of its own: nothing of the forest is secret.
    forest = RandomForestClassifier(100, random_state=0).fit(representation, target)
    surprise = -np.log(np.maximum(forest.predict_proba(images), _LEAST_PROBABILITY))
    unknown = np.full((len(images), 1), -np.log(_LEAST_PROBABILITY))
    surprise = np.hstack([surprise, unknown])

    def fits(shown: NDArray[Any], records: NDArray[np.intp]) -> FloatArray:
        column = {label: number for number, label in enumerate(forest.classes_.tolist())}
        chosen = [column.get(label, surprise.shape[1] - 1) for label in shown.tolist()]
        return np.asarray(surprise[records][:, chosen].T)

    return fits


def assigned(target: NDArray[Any], members: NDArray[np.intp], guess: Guess | None) -> list[dict[int, float]]:
    """Chance that the attacker joins each row of a group to each member.

    Parameters
    ----------
    target : ndarray of shape (n_rows,)
        Of the group's rows.
    members : ndarray of shape (n_members,)
        Numbers of the records that the group was taken apart into; strangers taken for members are left out.
    guess : callable or None
        None where nothing tells rows apart.

    Returns
    -------
    list of dict of int to float
        For each row.
    """
    if guess is None or len(np.unique(target)) == 1 or not len(members):
        return [dict.fromkeys(members.tolist(), 1 / len(target)) for _ in target]
    rows, columns = linear_sum_assignment(guess(target, members))
    joined: dict[Any, list[int]] = {}
    for row, column in zip(rows, columns, strict=True):
        joined.setdefault(target[row].item(), []).append(int(members[column]))
    # Rows with one target are told apart by nothing.
    return [dict.fromkeys(joined.get(shown.item(), []), 1 / max(1, int((target == shown).sum()))) for shown in target]
