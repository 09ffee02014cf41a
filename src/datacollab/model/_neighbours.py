"""Search trees of nearest-neighbour models, which are made anew rather than sent."""

from __future__ import annotations

from typing import Any

__all__ = ["rebuild_neighbour_tree"]


def rebuild_neighbour_tree(part: Any) -> None:
    """Give a nearest-neighbour model the search tree that fitting gave it; do nothing to other objects."""
    from sklearn.neighbors import BallTree, KDTree

    attributes = vars(part)
    kind = {"ball_tree": BallTree, "kd_tree": KDTree}.get(attributes.get("_fit_method"))
    if kind is not None and attributes.get("_tree") is None:
        part._tree = kind(part._fit_X, part.leaf_size, metric=part.effective_metric_, **part.effective_metric_params_)
