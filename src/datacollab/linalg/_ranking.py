"""Measures of ranking and calibration for probabilities of one of two classes, and of shares, with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import special

from .._entries import positive_class
from .._frames import are_missing
from .._typing import FloatArray

LEVEL = 0.95
TOP = 0.1
"""Share of the rows, with the highest probabilities, whose calibration is reported."""


def wilson(share: float, n: float, z: float = float(special.ndtri((1 + LEVEL) / 2))) -> tuple[float, float]:
    """Return Wilson's score interval ([Wilson1927]_) of a share of n tries, at the quantile z."""
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half_width = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    low = centre - half_width
    high = centre + half_width
    # At the ends the interval touches 0 or 1 exactly, which rounding would miss.
    if share == 0:
        low = 0.0
    if share == 1:
        high = 1.0
    return low, high


def ranking_figures(target: NDArray[np.bool_], probabilities: FloatArray, find: float) -> dict[str, Any]:
    """Return figures of a class's probabilities that stay informative if the class is rare.

    ``target`` says which rows have the class, ``find`` which share of them a threshold is to find.  Returned are
    "prevalence", "expected" (the mean probability), "brier" and "brier_baseline" (of answering the prevalence); "top",
    the tenth of the rows with the highest probabilities and their equals: "n_rows", "expected", "found"; "auc" with
    "auc_interval" (None with fewer than three rows of a class), "average_precision", and "threshold": from "least" on,
    "n_found" of "n_positive" are found, among "n_called" rows; "reached" is the interval of the share of new rows of
    the class that are found.  Figures that no rows, or rows of one class, give are None.
    """
    # Scikit-learn takes a second to load, and most commands compute no figures.
    from sklearn.metrics import average_precision_score, brier_score_loss

    figures: dict[str, Any] = dict.fromkeys(
        ("prevalence", "expected", "brier", "brier_baseline", "top", "auc", "auc_interval", "average_precision")
    )
    figures |= {"threshold": None}
    if not len(target):
        return figures
    prevalence = float(target.mean())
    # A model that answers the prevalence has the Brier score p(1 - p).
    figures |= {"prevalence": prevalence, "expected": float(probabilities.mean())}
    figures["brier"] = float(brier_score_loss(target, np.clip(probabilities, 0, 1), pos_label=True))
    figures["brier_baseline"] = prevalence * (1 - prevalence)
    if target.all() or not target.any():
        return figures
    # Rows that are equally likely are all in it: which of them came first says nothing.
    there = probabilities >= np.sort(probabilities)[-max(1, int(np.ceil(TOP * len(target))))]
    figures["top"] = {
        "n_rows": int(there.sum()),
        "expected": float(probabilities[there].mean()),
        "found": float(target[there].mean()),
    }
    figures["auc"], figures["auc_interval"] = auc_with_interval(target, probabilities)
    figures["average_precision"] = float(average_precision_score(target, probabilities))
    return figures | {"threshold": _threshold(target, probabilities, find)}


def find_threshold(
    y_true: ArrayLike, y_proba: ArrayLike, *, find: float = 0.8, pos_label: Any = None
) -> dict[str, Any]:
    """Choose, on rows that the model has not seen, the probability of a class from which on rows are flagged.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,) or (n_rows, 1)
        Classes of these rows; every class occurs.
    y_proba : array-like of shape (n_rows, n_classes)
        Their probabilities, as ``predict_proba`` gives them: a column for each class, in sorted order.
    find : float, default=0.8
        Share of the class's new rows that the threshold finds on average (sensitivity); above 0, at most 1.  With n
        rows of the class n / (n + 1) is the most that a threshold reaches.
    pos_label : object, optional
        The class; by default the one that means yes, of 0 and 1, false and true, or no and yes.

    Returns
    -------
    dict of str to object
        "positive" is the class, and "least" the threshold.  From it on, "n_called" of these rows are flagged, and
        "n_found" of "n_positive" rows of the class are among them.  "reached" is the 95 % interval of the share of new
        rows of the class that the threshold finds ([Wilks1941]_), and "find" the share asked for.

    Raises
    ------
    ValueError
        If ``y_true`` has several columns or missing entries, ``y_proba`` has not one finite column for each class that
        occurs, ``pos_label`` is none of them or is needed, or ``find`` is out of range.

    Examples
    --------
    >>> of_yes = np.array([0.0, 0.1, 0.1, 0.2, 0.6, 0.3, 0.5, 0.8, 0.9])
    >>> found = find_threshold(["no"] * 5 + ["yes"] * 4, np.column_stack([1 - of_yes, of_yes]), find=0.6)
    >>> found["least"], found["n_called"], found["n_found"]
    (0.5, 4, 3)
    """
    true = np.asarray(y_true)
    probabilities = np.asarray(y_proba, dtype=np.float64)
    if not 0 < find <= 1:
        raise ValueError(f"find must be above 0 and at most 1; got {find}.")
    if true.ndim == 2 and true.shape[1] == 1:
        true = true[:, 0]
    if true.ndim != 1:
        raise ValueError(f"y_true must have one class per row: expected shape (n_rows,), got {true.shape}.")
    if n_missing := int(are_missing(true).sum()):
        raise ValueError(f"y_true has no class for {n_missing} of {true.size} rows; leave these rows out of both.")
    classes = np.unique(true).tolist()
    expected = (true.size, len(classes))
    # A column in the wrong place would be taken for another class.
    if probabilities.shape != expected or len(classes) < 2 or not np.isfinite(probabilities).all():
        raise ValueError(
            f"y_proba must have a finite column for each of the {len(classes)} classes in y_true, two or more: "
            f"expected shape {expected}, got {probabilities.shape}. Give what predict_proba returns, for rows of every "
            "class."
        )
    if pos_label is None:
        pos_label = positive_class(classes)
    if pos_label not in classes:
        raise ValueError(
            f"pos_label must be one of the {len(classes)} classes in y_true, the sought one; got {pos_label!r}. It may "
            "be left out for 0 and 1, false and true, or no and yes alone."
        )
    place = classes.index(pos_label)
    found = _threshold(np.asarray(true == classes[place], dtype=bool), probabilities[:, place], find)
    return {"positive": classes[place], **found}


def _threshold(target: NDArray[np.bool_], probabilities: FloatArray, find: float) -> dict[str, Any]:
    """Return the probability from which on so many new rows of the class are found on average.

    With the k-th largest of n exchangeable numbers as the threshold, the share of new ones at or above it has the
    distribution Beta(k, n + 1 - k), or a larger one if some are equal ([Wilks1941]_).
    """
    n = int(target.sum())
    # The mean of Beta(k, n + 1 - k) is k / (n + 1).
    k = min(n, int(np.ceil(find * (n + 1) - _ROUNDING)))
    least = np.sort(probabilities[target])[-k]
    called = probabilities >= least
    return {
        "find": find,
        "least": float(least),
        "reached": special.betaincinv(k, n + 1 - k, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist(),
        "n_found": int((called & target).sum()),
        "n_positive": int(target.sum()),
        "n_called": int(called.sum()),
    }


FEWEST_OF_A_CLASS = 3
"""Rows of either class below which no interval of the area is given: its width would be a matter of one row."""
_HALVINGS = 50
_ROUNDING = 1e-9
_LEAST = 1e-3
"""Probability of a true class, at least, in log losses: one certain error must not decide over all rows."""


def auc_with_interval(target: NDArray[np.bool_], scores: FloatArray) -> tuple[float, list[float] | None]:
    r"""Return the area under the curve and an interval that holds for rare classes; both classes occur.

    The interval has all areas θ with :math:`(A - \theta)^2 \le V(\theta)`, as Wilson's for a proportion.  V is the
    larger of two: Hanley and McNeil's variance at θ ([Hanley1982]_), which is not 0 where a ranking is perfect, and
    DeLong's ([DeLong1988]_), moved to θ by :math:`\theta(1 - \theta) / A(1 - A)`.  The latter has a quantile of
    Student's t with Welch's degrees of freedom, and no more than Birnbaum and Klose's bound ([Birnbaum1957]_),
    :math:`\theta(1 - \theta) / \min(m, n)`.  With fewer than three rows of a class there is none.
    """
    n_positive = int(target.sum())
    n_negative = int((~target).sum())
    above, below = _placements(target, scores)
    area = float(above.mean())
    if min(n_positive, n_negative) < FEWEST_OF_A_CLASS:
        return area, None
    z = float(special.ndtri((1 + LEVEL) / 2))
    variance, t = _welch(above, below)
    # Of a perfect ranking, or its reverse, DeLong's variance is 0 and says nothing.
    delong = 0.0
    if variance > 0 and 0 < area < 1:
        delong = t**2 * min(variance / (area * (1 - area)), 1 / min(n_positive, n_negative))

    def covers(theta: float) -> bool:
        lone = theta * (1 - theta)
        pairs = (n_positive - 1) * lone * (1 - theta) / (2 - theta) + (n_negative - 1) * lone * theta / (1 + theta)
        return (area - theta) ** 2 <= max(z**2 * (lone + pairs) / (n_positive * n_negative), delong * lone)

    return area, [_last(covers, area, 0.0), _last(covers, area, 1.0)]


def auc_difference(
    target: NDArray[np.bool_], scores: FloatArray, before: FloatArray
) -> tuple[float, list[float] | None]:
    """Return how much larger the area of one ranking is than another's of the same rows, and DeLong's interval.

    It has a quantile of Student's t with Welch's degrees of freedom ([DeLong1988]_).  If the two agree on all pairs, it
    is as wide as the limits for no event in as many tries as the smaller class has rows.  With fewer than three rows of
    a class there is none.
    """
    parts = zip(_placements(target, scores), _placements(target, before), strict=True)
    above, below = (now - then for now, then in parts)
    difference = float(above.mean())
    smaller = min(len(above), len(below))
    if smaller < FEWEST_OF_A_CLASS:
        return difference, None
    variance, t = _welch(above, below)
    half = t * math.sqrt(variance)
    if variance == 0:
        # Clopper and Pearson's limit for no event in so many tries.
        half = 1 - ((1 - LEVEL) / 2) ** (1 / smaller)
    return difference, [difference - half, difference + half]


def _placements(target: NDArray[np.bool_], scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return for each row of either class the share of the other's rows that it is ranked rightly against."""
    ranks = scipy.stats.rankdata(scores)
    above = (ranks[target] - scipy.stats.rankdata(scores[target])) / (~target).sum()
    return above, 1 - (ranks[~target] - scipy.stats.rankdata(scores[~target])) / target.sum()


def _welch(*groups: FloatArray) -> tuple[float, float]:
    """Return the variance of a sum of the groups' means, and the quantile of Student's t for it."""
    parts = np.array([np.var(each, ddof=1) / len(each) for each in groups])
    variance = float(parts.sum())
    if variance == 0:
        return 0.0, 0.0
    degrees = variance**2 / float((parts**2 / [len(each) - 1 for each in groups]).sum())
    return variance, float(special.stdtrit(degrees, (1 + LEVEL) / 2))


def log_losses(of_true: FloatArray) -> FloatArray:
    """Return log losses of probabilities of the true classes; none is taken to be below one in a thousand."""
    return np.asarray(-np.log(np.maximum(of_true, _LEAST)))


def mean_with_interval(values: FloatArray) -> tuple[float, list[float] | None]:
    """Return the mean and Student's interval; none for a single value."""
    n = len(values)
    mean = float(values.mean())
    if n < 2:
        return mean, None
    half = float(special.stdtrit(n - 1, (1 + LEVEL) / 2) * values.std(ddof=1) / math.sqrt(n))
    return mean, [mean - half, mean + half]


def entropy(counts: NDArray[Any]) -> float:
    """Return the mean log loss of answering the classes' shares among the rows, from the number of rows of each."""
    return float(special.entr(counts / counts.sum()).sum())


def _last(covers: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return, by halving, the last number that is covered on the way to one that is not."""
    if inside == outside:
        return outside
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if covers(middle):
            inside = middle
        else:
            outside = middle
    return inside
