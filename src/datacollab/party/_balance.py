"""How alike treated rows and others are in a party's raw columns, as sums that it can send."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, PartyName, check_representation
from ..errors import AgreementError, ObfuscationError, RepresentationError
from ..linalg import PROPENSITY_CLIP, treatment_weights
from ..model import PartyModel
from ..share import BALANCE_STEP, FEWEST_OF_ARM, BalanceSums
from ._dominance import least_effective_rows, rounded_weights, truncated_weights
from ._identification import determination
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
    truncate: bool = False,
) -> BalanceSums:
    r"""Sums of the raw columns by arm, unweighted and weighted by the analyst's propensity, to send.

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
    truncate : bool, default=False
        Whether weights that rest on too few rows are brought in, outermost first and as little as will do, instead of
        refused.  The balance is then of these weights, and looks worse than that of the effect; how many there are is
        sent along.

    Returns
    -------
    BalanceSums

    Raises
    ------
    AgreementError
        When the model was made for another party, or the treatment is not one of 0 and 1 per row.
    ObfuscationError
        When an arm has fewer than 10 rows, its weights rest on fewer than 10, or rows cannot be used; nothing is to be
        sent then.
    SharedBeforeError
        When the party has given other sums before; the same once more are given again.

    Notes
    -----
    Leaves the party, when the result is sent: of each arm the number of rows, sums of weights and of their squares and,
    for each column, sums of the values and of their squares, without and with weights, all four to a thousandth of the
    sum of weights; and how much of each column the anchor's collaboration representation has kept.  Stays: the rows and
    their scores.

    The weights are the analyst's: they come from whatever model it sends.  One that gives a single row another weight
    than all others would have that row as the difference of two sums.

    Excluded is that any combination of the sums of a column without and with weights, or of those of its squares, rests
    on few rows: weights are refused where any does on fewer than 10, counted by :math:`(\sum d^2)^2 / \sum d^4`; see
    `datacollab.party._dominance`.  Such a row's part in the variance of a combination is below a third.  So is a second
    answer with other weights, while this object lives.  It knows nothing of other objects, nor of sums over other rows
    that another one sends: sums over two tables that differ by a row tell that row.

    Not excluded, and for the party to judge before it sends:

    * A column that is the same for all rows but a few tells these; of a column of yes and no the sums are counts.  A
      value far beyond all others makes most of any sum.
    * Where rows were shared without a defence, and f_k is affine (PCA), sums of the shared columns are known: four sums
      and four sums of squares are equations for the coefficients of each raw column.  With 3 components or fewer the
      sums alone tell the map, and so every shared row in units of the anchor; with 4 to 7, squares may.

    Weights have three decimals, and sums a thousandth of their weights, so that a model cannot be made to write rows
    into last digits.  Nothing here is differentially private.
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
    chosen = rounded_weights(treatment_weights(arms, propensity, target))
    used = _safe_weights(party.name, chosen, arms, truncate=truncate)
    weights = np.stack([np.ones(len(rows)), used])
    masks = np.stack([arms == 0, arms == 1]).astype(np.float64)
    spread = public.std(axis=0)
    units = (rows - public.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    steps = BALANCE_STEP * (weights @ masks.T)[:, :, None]
    sums = BalanceSums(
        party=party.name,
        columns=names,
        target=target,
        counts=counts,
        truncated=np.bincount(arms[used != chosen], minlength=2),
        kept=_kept(public, party.transform(anchor, model)),
        weights=masks @ weights[1],
        squared_weights=masks @ weights[1] ** 2,
        sums=np.round(np.einsum("vi,ai,ij->vaj", weights, masks, units) / steps) * steps,
        squares=np.round(np.einsum("vi,ai,ij->vaj", weights, masks, units**2) / steps) * steps,
    )
    return party.balance_given_once(sums)


def _numbers(party: PartyName, X: ArrayLike) -> FloatArray:
    try:
        return check_representation(X, party, what="raw table")
    except RepresentationError as error:
        raise ObfuscationError(str(error)) from None


def _safe_weights(party: PartyName, weights: FloatArray, arms: NDArray[np.int64], *, truncate: bool) -> FloatArray:
    """The weights, or truncated ones, under which no sum rests on few rows of an arm."""
    safe = weights.copy()
    for arm in (0, 1):
        safe[arms == arm] = truncated_weights(weights[arms == arm], FEWEST_OF_ARM)
        if not truncate and (safe != weights).any():
            rows = least_effective_rows(weights[arms == arm])
            raise ObfuscationError(
                f"Party {party!r}: the propensity's weights of {'treated' if arm else 'untreated'} rows single some "
                f"out: with them a sum rests on {rows:.1f} rows, and {FEWEST_OF_ARM} are wanted. Nothing is to be "
                "sent. Have the analyst fit a smoother propensity, give truncate=True, which brings outermost weights "
                "in, or leave the balance to other parties."
            )
    return safe


def _kept(public: FloatArray, mapped: FloatArray) -> FloatArray:
    """Adjusted R² of each raw column on the mapped anchor, shape (n_features,); 0 where the anchor cannot tell."""
    return np.asarray(np.clip(np.nan_to_num(determination(mapped, public), nan=0.0), 0.0, 1.0))
