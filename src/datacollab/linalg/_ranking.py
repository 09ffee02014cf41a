"""Measures of ranking and calibration for probabilities of one of two classes, with 95 % intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score, brier_score_loss

from .._typing import FloatArray

LEVEL = 0.95
TOP = 0.1
"""Share of the rows, with the highest probabilities, whose calibration is reported."""


def ranking_figures(target: NDArray[np.bool_], probabilities: FloatArray, find: float) -> dict[str, Any]:
    """Return figures of a class's probabilities that stay informative if the class is rare.

    ``target`` says which rows have the class, ``find`` what share of them a threshold is to find.  Returned are
    "prevalence", "expected" (the mean probability), "brier" and "brier_baseline" (of answering the prevalence); "top",
    the tenth of the rows with the highest probabilities and their equals: "n_rows", "expected", "found"; "auc" with
    "auc_interval" (DeLong), "average_precision", and "threshold": from "least" on, "n_found" of "n_positive" are found,
    among "n_called" rows.  Figures that no rows, or rows of one class, give are None.
    """
    figures: dict[str, Any] = dict.fromkeys(
        ("prevalence", "expected", "brier", "brier_baseline", "top", "auc", "auc_interval", "average_precision")
    )
    figures |= {"threshold": None}
    if not len(target):
        return figures
    prevalence = float(target.mean())
    figures |= {"prevalence": prevalence, "expected": float(probabilities.mean())}
    figures["brier"] = float(brier_score_loss(target, np.clip(probabilities, 0, 1), pos_label=True))
    figures["brier_baseline"] = prevalence * (1 - prevalence)
    if target.all() or not target.any():
        return figures
    figures["top"] = _highest(target, probabilities)
    figures["auc"], figures["auc_interval"] = auc_with_interval(target, probabilities)
    figures["average_precision"] = float(average_precision_score(target, probabilities))
    return figures | {"threshold": _threshold(target, probabilities, find)}


def _highest(target: NDArray[np.bool_], probabilities: FloatArray) -> dict[str, Any]:
    # Rows that are equally likely are all in it: which of them came first says nothing.
    least = np.sort(probabilities)[-max(1, int(np.ceil(TOP * len(target))))]
    there = probabilities >= least
    return {
        "n_rows": int(there.sum()),
        "expected": float(probabilities[there].mean()),
        "found": float(target[there].mean()),
    }


def _threshold(target: NDArray[np.bool_], probabilities: FloatArray, find: float) -> dict[str, Any]:
    """Return the probability from which on so many are found, and how many rows are called."""
    wanted = max(1, int(np.ceil(find * target.sum())))
    least = np.sort(probabilities[target])[-wanted]
    called = probabilities >= least
    return {
        "find": find,
        "least": float(least),
        "n_found": int((called & target).sum()),
        "n_positive": int(target.sum()),
        "n_called": int(called.sum()),
    }


def auc_with_interval(target: NDArray[np.bool_], scores: FloatArray) -> tuple[float, list[float]]:
    """Return the area under the curve, and DeLong's interval by midranks (Sun and Xu 2014); both classes occur."""
    n_positive, n_negative = int(target.sum()), int((~target).sum())
    ranks = rankdata(scores)
    # For each row the share of the other class's rows that it is ranked rightly against.
    above = (ranks[target] - rankdata(scores[target])) / n_negative
    below = 1 - (ranks[~target] - rankdata(scores[~target])) / n_positive
    area = float(above.mean())
    variance = sum(np.var(part, ddof=1) / len(part) for part in (above, below) if len(part) > 1)
    half = float(special.ndtri((1 + LEVEL) / 2)) * float(np.sqrt(variance))
    return area, [max(area - half, 0.0), min(area + half, 1.0)]
