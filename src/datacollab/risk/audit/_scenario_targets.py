"""Targets of the party's rows and of other rows, as numbers where they have fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _num_samples

from ..._validation import FloatArray, PartyName, check_single_targets
from ...errors import AgreementError
from ...party import Party
from ...share import Share
from ...targets import TargetKind
from ._named_targets import TargetNumbers

__all__ = ["all_targets", "drawn_targets", "other_targets", "own_targets"]


def own_targets(
    y: ArrayLike | None,
    party: Party | Share,
    X: ArrayLike,
    share: Share,
    order: NDArray[np.intp] | None,
    coding: TargetNumbers,
) -> NDArray[Any] | None:
    """Targets of the whole table: those given, else those shared where every row is shared."""
    n_samples = _num_samples(X)
    if y is not None:
        given = np.asarray(y)
        # A defence may share others than the party has.
        if isinstance(party, Party):
            fits = party.was_fitted_on(X, y)
        else:
            fits = given.dtype.names == coding.kind.names and np.array_equal(coding.numbers(given), share.target)
        if not fits:
            raise AgreementError(
                f"Party {share.party!r}: y differs from the targets that are shared; give the rows and targets the "
                "party was fitted on, in the same order."
            )
        return coding.numbers(party.shown_target(given) if isinstance(party, Party) else given)
    if order is None or len(order) < n_samples:
        return None
    target = np.empty_like(share.target)
    target[order] = share.target
    return target


def all_targets(
    own: NDArray[Any] | None, outsiders: FloatArray | None, theirs: NDArray[Any] | None, shared: NDArray[Any]
) -> NDArray[Any] | None:
    """Targets of the table and of the outsiders, of the type that is shared; None where there are rows without any."""
    if own is None or (outsiders is not None and theirs is None):
        return None
    known = own if theirs is None else np.concatenate([own, theirs])
    # Means of whole numbers are none.
    return known.astype(shared.dtype) if shared.dtype.kind == "f" else known


def drawn_targets(share: Share, n_rows: int, random: np.random.RandomState) -> NDArray[Any]:
    """As many as there are rows: a share may have others, and a made-up table has to be of the table's size."""
    n_shared = len(share.target)
    if n_shared == n_rows:
        return share.target
    return share.target[random.choice(n_shared, n_rows, replace=n_shared < n_rows)]


def other_targets(
    values: ArrayLike | None,
    rows: Any,
    party: PartyName,
    what: str,
    coding: TargetNumbers,
    shown: Callable[[Any], NDArray[Any]],
) -> NDArray[Any] | None:
    if values is None or rows is None:
        return None
    target = np.asarray(values)
    if coding.kind is TargetKind.SINGLE or target.dtype.names is None:
        check_single_targets(target, f"Party {party!r}: {what}", AgreementError)
    if target.dtype.names != coding.kind.names:
        raise AgreementError(
            f"Party {party!r}: {what} is not of kind {coding.kind.value!r}, as the party's targets are. Give such "
            "targets, made with datacollab.targets, or none."
        )
    if target.shape != (_num_samples(rows),):
        raise AgreementError(
            f"Party {party!r}: {what} must have one entry per row, shape ({_num_samples(rows)},); got {target.shape}."
        )
    return coding.numbers(shown(target))
