"""Two shares of one table: what a row that was added in between changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..._validation import FloatArray
from ...errors import AgreementError
from ...share import Share
from ._checks import check_rows

__all__ = ["added_row_scores"]


def added_row_scores(before: Sequence[Share], after: Sequence[Share], images: ArrayLike) -> FloatArray:
    r"""Score records by how well each would explain what is new in a share, had it been added to the table.

    Means of groups keep the sum over their rows, so the sum of a class grows by the image of the new row:
    :math:`\sum_i z_i' - \sum_i z_i = f(x)`.  Rows that are made of the anchor's count less those.  Of several shares
    of a table with noise drawn anew, the mean counts.

    Parameters
    ----------
    before : sequence of Share
        Of the table without the row, with the same f; several where it was shared several times.
    after : sequence of Share
        Of the table with the row.
    images : array-like of shape (n_records, n_intermediate)
        Records that may have been added, through the attacker's estimate of f.

    Returns
    -------
    ndarray of shape (n_records,)
        Minus the distance of each from what is new.

    Raises
    ------
    AgreementError
        When there are no shares.

    Notes
    -----
    The new row's class is the one with more rows than before.  Where none has more, or targets are numbers, the sum
    over all rows is taken.

    Examples
    --------
    >>> from datacollab.risk.attacks import added_row_scores
    >>> from datacollab.share import Share
    >>> before = Share(party="a", representation=[[1.0], [1.0]], anchor_representation=[[0.0]], target=[0, 0])
    >>> after = Share(party="a", representation=[[3.0]] * 3, anchor_representation=[[0.0]], target=[0, 0, 0])
    >>> added_row_scores([before], [after], [[7.0], [4.0]])
    array([-0., -3.])
    """
    if not before or not after:
        raise AgreementError("Shares from before and after the row was added are wanted; give one of each at least.")
    X = check_rows(images, "The images")
    grown = _grown(before[0], after[0])
    new = np.mean([_sum(share, grown) for share in after], axis=0)
    new -= np.mean([_sum(share, grown) for share in before], axis=0)
    return np.asarray(-np.linalg.norm(X - new, axis=1))


def _grown(before: Share, after: Share) -> object:
    """The class that has more rows than before; None where there is none."""
    if after.target.dtype.kind == "f":
        return None
    labels, counts = np.unique(after.target, return_counts=True)
    grown = [
        label for label, count in zip(labels, counts, strict=True) if count > np.count_nonzero(before.target == label)
    ]
    return grown[0] if grown else None


def _sum(share: Share, label: object) -> FloatArray:
    rows = share.representation
    if share.anchor_rows is not None:
        # The rest is noise and the class's shift; a class's own mean stands for the anchor's in it.
        origins = share.anchor_representation[share.anchor_rows]
        usual = np.zeros_like(rows)
        if share.anchor_target is not None:
            for each in np.unique(share.target):
                members = share.anchor_representation[share.anchor_target == each]
                if len(members):
                    usual[share.target == each] = members.mean(axis=0)
        rows = rows - origins + usual
    chosen = slice(None) if label is None else share.target == label
    return np.asarray(rows[chosen].sum(axis=0))
