"""Groups of parties, each with an analyst, and a centre: federated data collaboration, without an approximation."""

from ._analyst import GroupAnalyst
from ._centre import Centre
from ._messages import GroupMessage, GroupMoments, GroupTarget
from ._sums import from_triangle, sum_factor

__all__ = ["Centre", "GroupAnalyst", "GroupMessage", "GroupMoments", "GroupTarget", "from_triangle", "sum_factor"]
