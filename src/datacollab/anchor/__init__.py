"""Making the anchor: rows that every party knows, the analyst never sees, and that are nobody's private rows."""

from ._checks import AnchorFit, EqualRows, anchor_fit, equal_rows, find_private_rows
from ._samplers import AnchorSampler, GaussianAnchor, SampleAnchor, UniformAnchor
from ._smote import SMOTEAnchor

__all__ = ["AnchorFit", "AnchorSampler", "EqualRows", "GaussianAnchor", "SMOTEAnchor", "SampleAnchor"]
__all__ += ["UniformAnchor", "anchor_fit", "equal_rows", "find_private_rows"]
