"""The paper's reconstruction accuracy: whether a judge recognises reconstructions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from datacollab.errors import AgreementError
from datacollab.risk.attacks._attack import check_rows


@dataclass(frozen=True, kw_only=True)
class LabelMatch:
    """A judge's verdict on reconstructions.

    Attributes
    ----------
    accuracy : float
        Share of the reconstructions that the judge puts into the class of the original row.
    most_common_share : float
        Share of the reconstructions in the judge's most frequent class.  At 1 the judge sees one class only, and
        `accuracy` is that class's share of the targets, whatever the representation contains.
    """

    accuracy: float
    most_common_share: float
    n_rows: int


def label_match(judge: Any, reconstructions: ArrayLike, targets: ArrayLike) -> LabelMatch:
    """Count the reconstructions that a fitted classifier puts into the classes of their originals.

    **It is not a measure of risk**: the analyst knows the targets anyway; even the true class's mean row need not be
    recognised; and a reconstruction of a wrong class can still be nearest to its own original.  A rate at or below
    chance means that the attack was too weak, not that the representation is safe.

    Raises
    ------
    AgreementError
        If there is not one target per reconstruction, or the judge does not know all classes among the targets.
    """
    X = check_rows(reconstructions, "The table of reconstructions")
    y = np.asarray(targets)
    if y.shape != (X.shape[0],):
        raise AgreementError(
            f"targets has shape {y.shape}, but there are {X.shape[0]} reconstructions; give one target per row, shape "
            f"({X.shape[0]},)."
        )
    # Classes of another type would never match, and the attack would look harmless.
    unknown = set(y.tolist()) - set(judge.classes_.tolist())
    if unknown:
        raise AgreementError(
            f"The judge does not know {len(unknown)} of the {len(set(y.tolist()))} classes in targets; fit it on all "
            "classes, with labels of the same type."
        )
    predicted = judge.predict(X)
    # A judge that always says one class is right by that class's share alone.
    _, counts = np.unique(predicted, return_counts=True)
    return LabelMatch(
        accuracy=float(np.mean(predicted == y)), most_common_share=float(counts.max() / y.size), n_rows=y.size
    )
