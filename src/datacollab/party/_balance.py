"""How alike treated rows and others are in a party's raw columns, as sums that it can send."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LinearRegression

from .._validation import FloatArray, PartyName, check_representation
from ..errors import AgreementError, ObfuscationError, RepresentationError
from ..linalg import PROPENSITY_CLIP, treatment_weights
from ..model import PartyModel
from ..share import FEWEST_OF_ARM, BalanceSums
from ._inference import LocalInference

__all__ = ["balance_sums"]


def balance_sums(
    party: LocalInference,
    X: ArrayLike,
    treatment: ArrayLike,
    model: PartyModel,
    *,
    anchor: ArrayLike,
    target: str = "ATE",
    columns: Sequence[str] | None = None,
) -> BalanceSums:
    """Sums of the raw columns by arm, unweighted and weighted by the analyst's propensity, to send.

    Parameters
    ----------
    party : Party or LocalParty
        Fitted.
    X : array-like or dataframe of shape (n_rows, n_features)
        The party's own rows, numbers only.
    treatment : array-like of shape (n_rows,)
        1 where treated, 0 where not.
    model : PartyModel
        The propensity, as `Effect.party_model` makes it for this party.
    anchor : array-like or dataframe of shape (n_anchors, n_features)
        The one that was shared: columns are sent as differences from its means, in its standard deviations.
    target : {"ATE", "ATT"}, default="ATE"
        Of the effect.
    columns : sequence of str, optional
        Names of the columns; those of a dataframe by default, and otherwise x0, x1 and so on.

    Returns
    -------
    BalanceSums

    Raises
    ------
    AgreementError
        When the model was made for another party, or the treatment is not one of 0 and 1 per row.
    ObfuscationError
        When an arm has fewer than 10 rows, or rows cannot be used; nothing is to be sent then.

    Notes
    -----
    Leaves the party, when the result is sent: of each arm the number of rows and, for each column, sums of the values
    and of their squares, without and with weights; and how much of each column the anchor's collaboration
    representation has kept.  Of a column of yes and no, this is how many there are of each: look at small counts before
    it is sent.  Stays: the rows and their scores.  Send it once: sums over two tables that differ by a row tell that
    row.  Nothing here is differentially private.
    """
    named = columns if columns is not None else getattr(X, "columns", None)
    rows, public = _numbers(party.name, X), _numbers(party.name, anchor)
    names = tuple(map(str, named)) if named is not None else tuple(f"x{j}" for j in range(rows.shape[1]))
    arms = np.asarray(treatment)
    if arms.shape != (len(rows),) or not np.isin(arms, (0, 1)).all():
        raise AgreementError(f"Party {party.name!r}: treatment must be 0 or 1 for each of {len(rows)} rows.")
    if rows.shape[1] != public.shape[1] or len(names) != rows.shape[1]:
        raise AgreementError(
            f"Party {party.name!r}: the rows have {rows.shape[1]} columns, the anchor {public.shape[1]}, and there are "
            f"{len(names)} names; the same columns are wanted in the same order."
        )
    if target not in ("ATE", "ATT"):
        raise ValueError(f"target must be 'ATE' or 'ATT'; got {target!r}.")
    arms = arms.astype(np.int64)
    counts = np.bincount(arms, minlength=2)
    if counts.min() < FEWEST_OF_ARM:
        raise ObfuscationError(
            f"Party {party.name!r}: an arm has fewer than {FEWEST_OF_ARM} rows, and sums of so few would say much of "
            "each. Nothing is to be sent; the balance is that of the other parties."
        )
    propensity = np.clip(party.predict_proba(X, model)[:, 1], PROPENSITY_CLIP, 1.0 - PROPENSITY_CLIP)
    weights = np.stack([np.ones(len(rows)), treatment_weights(arms, propensity, target)])
    masks = np.stack([arms == 0, arms == 1]).astype(np.float64)
    spread = public.std(axis=0)
    units = (rows - public.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return BalanceSums(
        party=party.name,
        columns=names,
        target=target,
        counts=counts,
        kept=_kept(public, party.transform(anchor, model)),
        weights=masks @ weights[1],
        squared_weights=masks @ weights[1] ** 2,
        sums=np.einsum("vi,ai,ij->vaj", weights, masks, units),
        squares=np.einsum("vi,ai,ij->vaj", weights, masks, units**2),
    )


def _numbers(party: PartyName, X: ArrayLike) -> FloatArray:
    try:
        return check_representation(X, party, what="raw table")
    except RepresentationError as error:
        raise ObfuscationError(str(error)) from None


def _kept(public: FloatArray, mapped: FloatArray) -> FloatArray:
    """Coefficient of determination of each raw column on the mapped anchor, shape (n_features,)."""
    total = ((public - public.mean(axis=0)) ** 2).sum(axis=0)
    missed = ((public - LinearRegression().fit(mapped, public).predict(mapped)) ** 2).sum(axis=0)
    # Of a column that is constant over the anchor there is nothing to lose.
    lost = np.divide(missed, total, out=np.zeros(len(total)), where=total > 0)
    return np.asarray(np.clip(1.0 - lost, 0.0, 1.0))
