"""Making the anchor: rows that every party knows, the analyst never sees, and that are nobody's private rows."""

from ._base import AnchorSampler
from ._crafted import AnchorFit, anchor_fit
from ._gaussian import GaussianAnchor
from ._private_rows import check_anchor, find_private_rows
from ._sample import SampleAnchor
from ._smote import SMOTEAnchor
from ._uniform import UniformAnchor

__all__ = [
    "AnchorFit",
    "AnchorSampler",
    "GaussianAnchor",
    "SMOTEAnchor",
    "SampleAnchor",
    "UniformAnchor",
    "anchor_fit",
    "check_anchor",
    "find_private_rows",
]
