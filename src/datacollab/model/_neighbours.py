"""Nearest-neighbour models: their distances, and their search trees, which are made anew rather than sent.

Compiled code compares rows column by column without asking how many there are.  scikit-learn asks, but not where it
is told that distances are given instead of rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ExchangeError
from ._refusal import malformed

__all__ = ["check_neighbours", "rebuild_neighbour_tree"]

_MOST_LEAF_SIZE = 10**6
_DISTANCES = ("chebyshev", "cityblock", "cosine", "euclidean", "l1", "l2", "manhattan", "minkowski")
_BY_POWER = {1: "manhattan", 2: "euclidean", math.inf: "chebyshev"}


def rebuild_neighbour_tree(part: Any) -> None:
    """Give a nearest-neighbour model the search tree that fitting gave it; do nothing to other objects.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED.
    """
    attributes = vars(part)
    if "_fit_method" not in attributes or "_fit_X" not in attributes:
        return
    from sklearn.neighbors import BallTree, KDTree

    method, rows, leaf_size = attributes["_fit_method"], attributes["_fit_X"], attributes.get("leaf_size")
    is_table = isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype in (np.float32, np.float64) and rows.size
    if not is_table or not np.isfinite(rows).all() or attributes.get("_tree") is not None:
        raise _malformed("without finite rows")
    if method not in ("brute", "kd_tree", "ball_tree"):
        raise _malformed("in an unknown way")
    if type(leaf_size) is not int or not 1 <= leaf_size <= _MOST_LEAF_SIZE:
        raise _malformed("with leaves of an impossible size")
    metric, parameters = _distance(part)
    if method != "brute":
        part._tree = (KDTree if method == "kd_tree" else BallTree)(rows, leaf_size, metric=metric, **parameters)


def check_neighbours(part: Any) -> None:
    """Check a model that searches for nearest neighbours, or for those in a radius.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED.
    """
    rows, targets = part._fit_X, part._y
    _distance(part)
    if rows.shape != (part.n_samples_fit_, part.n_features_in_) or targets.shape != (len(rows),):
        raise _malformed("without one target for each of its rows")
    if vars(part).get("outputs_2d_", False) is not False or part.weights not in ("uniform", "distance"):
        raise _malformed("for several targets, or weighs them in an unusual way")
    if "KNeighbors" in type(part).__name__:
        if type(part.n_neighbors) is not int or not 1 <= part.n_neighbors <= len(rows):
            raise _malformed("and takes none, or more than it has rows")
    elif type(part.radius) not in (int, float) or not part.radius >= 0:
        raise _malformed("in a radius that is none")
    if hasattr(part, "classes_"):
        _check_classes(targets, len(part.classes_))
        far = vars(part).get("outlier_label_")
        if far is not None and (not isinstance(far, list) or len(far) != 1 or not np.isin(far, part.classes_).all()):
            raise _malformed("and gives rows without any a class of its own")


def _check_classes(targets: NDArray[Any], n_classes: int) -> None:
    if targets.dtype.kind not in "iu" or not 0 <= targets.min() <= targets.max() < n_classes:
        raise _malformed("whose classes are not there")


def _distance(part: Any) -> tuple[str, dict[str, Any]]:
    """Name and parameters of the distance, where the two places that say it agree as after fitting."""
    metric, given = part.metric, {} if part.metric_params is None else part.metric_params
    found, parameters = part.effective_metric_, part.effective_metric_params_
    named = isinstance(metric, str) and metric in _DISTANCES and isinstance(found, str)
    if not named or not isinstance(given, dict) or not isinstance(parameters, dict):
        raise _malformed("by a distance that is not one of the usual")
    if not given.keys() <= {"p"} or any(type(value) not in (int, float) for value in (*given.values(), part.p)):
        raise _malformed("by a distance of unusual parameters")
    power = given.get("p", part.p)
    if metric != "minkowski":
        wanted = (metric, given)
    else:
        wanted = (_BY_POWER[power], {}) if power in _BY_POWER else (metric, {"p": power, "w": None})
    if (found, parameters) != wanted or not power > 0:
        raise _malformed("by two different distances")
    return wanted


def _malformed(what: str) -> ExchangeError:
    return malformed(f"it searches for nearest neighbours {what}")
