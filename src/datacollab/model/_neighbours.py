"""Search trees of nearest-neighbour models, which are made anew rather than sent."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ExchangeError
from ._refusal import malformed

__all__ = ["rebuild_neighbour_tree"]

_MOST_LEAF_SIZE = 10**6


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

    method, rows = attributes["_fit_method"], attributes["_fit_X"]
    metric, parameters = attributes.get("effective_metric_"), attributes.get("effective_metric_params_")
    leaf_size = attributes.get("leaf_size")
    is_table = isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.kind == "f" and rows.size
    if not is_table or not np.isfinite(rows).all() or attributes.get("_tree") is not None:
        raise _malformed("without finite rows")
    if (
        not isinstance(metric, str)
        or not isinstance(parameters, dict)
        or method not in ("brute", "kd_tree", "ball_tree")
    ):
        raise _malformed("without a named distance")
    if any(type(value) not in (int, float) for value in parameters.values()):
        raise _malformed("with a distance of unusual parameters")
    if type(leaf_size) is not int or not 1 <= leaf_size <= _MOST_LEAF_SIZE:
        raise _malformed("with leaves of an impossible size")
    if method != "brute":
        part._tree = (KDTree if method == "kd_tree" else BallTree)(rows, leaf_size, metric=metric, **parameters)


def _malformed(what: str) -> ExchangeError:
    return malformed(f"it searches for nearest neighbours {what}")
