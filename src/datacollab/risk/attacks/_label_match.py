"""Whether a classifier recognises what an attack reconstructed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ...errors import AgreementError
from ._checks import check_rows

__all__ = ["LabelMatch", "label_match"]


@dataclass(frozen=True, kw_only=True)
class LabelMatch:
    """What a judge made of reconstructions.

    Attributes
    ----------
    accuracy : float
        Share of the reconstructions that the judge puts into the class of the original row.
    most_common_share : float
        Share of the reconstructions in the judge's most frequent class.  At 1 the judge sees one class only, and
        `accuracy` is that class's share of the targets, whatever the representation contains.
    n_rows : int
        Reconstructions judged.
    """

    accuracy: float
    most_common_share: float
    n_rows: int


def label_match(judge: Any, reconstructions: ArrayLike, targets: ArrayLike) -> LabelMatch:
    """Rate at which reconstructions are classified as their originals would have to be.

    Parameters
    ----------
    judge : classifier
        Fitted on original rows that no attack has seen.
    reconstructions : array-like of shape (n_rows, n_features)
    targets : array-like of shape (n_rows,)
        Classes of the original rows.

    Returns
    -------
    LabelMatch

    Raises
    ------
    RepresentationError
        When the reconstructions are not a finite table.
    AgreementError
        When there is not one target per reconstruction, or the judge does not know all classes among the targets.

    Notes
    -----
    This is what the paper [1]_ calls reconstruction accuracy, and is here to compare with it.  **It is not a measure
    of risk**, for three reasons:

    * Data collaboration hands the targets to the analyst anyway, so to recover them is no leak.
    * It depends on how well the judge copes with blurred rows.  Even the true class's mean row, which has the right
      class by construction, need not be recognised.
    * It says nothing about re-identification.  A reconstruction that is assigned to a wrong class can still be closer
      to its own original than to any other, and a rate at chance level does not exclude that most rows can be
      linked to their originals.

    A rate at or below chance means that the attack was too weak, not that the representation is safe.

    References
    ----------
    .. [1] Suetake, Kawakami, Ikeda and Takano. Nonlinear data integration via kernel methods for data collaboration
       analysis.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from datacollab.risk.attacks import label_match
    >>> judge = KNeighborsClassifier(1).fit([[0.0], [1.0]], ["low", "high"])
    >>> label_match(judge, [[0.1], [0.2], [0.3], [0.9]], ["low", "low", "high", "high"])
    LabelMatch(accuracy=0.75, most_common_share=0.75, n_rows=4)
    """
    check_is_fitted(judge)
    X = check_rows(reconstructions, "The table of reconstructions")
    y = np.asarray(targets)
    if y.shape != (X.shape[0],):
        raise AgreementError(
            f"targets has shape {y.shape}, but there are {X.shape[0]} reconstructions; one target per row is wanted, "
            f"shape ({X.shape[0]},)."
        )
    # Classes of another type would never match, and the attack would look harmless.
    unknown = set(y.tolist()) - set(judge.classes_.tolist())
    if unknown:
        raise AgreementError(
            f"The judge does not know {len(unknown)} of the {len(set(y.tolist()))} classes in targets; fit it on all "
            "classes, with labels of the same type."
        )
    predicted = judge.predict(X)
    _, counts = np.unique(predicted, return_counts=True)
    return LabelMatch(
        accuracy=float(np.mean(predicted == y)),
        most_common_share=float(counts.max() / y.size),
        n_rows=y.size,
    )
