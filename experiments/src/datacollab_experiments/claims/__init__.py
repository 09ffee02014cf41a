"""What the paper prints and concludes, and what measured rows say to it."""

from ._claim import Claim, Verdict
from ._claim_tests import QUOTAS
from ._claims import CLAIMS, check_claims
from ._estimates import Estimate, anchor_series, by_axes, estimate, in_order, slope
from ._published import PublishedValue, find_published, published_values
from ._statistics import Interval, by_seed, interval, paired_interval, pooled_difference

__all__ = [
    "CLAIMS",
    "QUOTAS",
    "Claim",
    "Estimate",
    "Interval",
    "PublishedValue",
    "Verdict",
    "anchor_series",
    "by_axes",
    "by_seed",
    "check_claims",
    "estimate",
    "find_published",
    "in_order",
    "interval",
    "paired_interval",
    "pooled_difference",
    "published_values",
    "slope",
]
