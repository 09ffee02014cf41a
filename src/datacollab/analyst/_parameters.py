"""What parameters may be that several integration methods have."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from .._validation import Interval, StrOptions
from ._graphs import NeighborGraph

__all__ = ["N_COMPONENTS", "SHARED_CONSTRAINTS"]

N_COMPONENTS: list[Any] = [Interval(Integral, 1, None, closed="left")]

SHARED_CONSTRAINTS: dict[str, Any] = {
    "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"median", "scale"}), callable, Mapping],
    "graph": [NeighborGraph, None],
    "penalty_graph": [NeighborGraph, None],
    "penalty_epsilon": [Interval(Real, 0, None, closed="left")],
    "center": ["boolean"],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
}
"""Of `KTI` and `KTICV`."""
