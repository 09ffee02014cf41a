"""Numbers and conclusions of the paper, held against measured rows."""

from ._claim import Claim, Verdict
from ._claim_tests import QUOTAS
from ._claims import CLAIMS, check_claims
from ._estimates import Estimate, anchor_series, by_axes, estimate, in_order, slope
from ._published import PublishedValue, find_published, published_values
from ._statistics import Interval, by_seed, interval, standardise_difference

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
    "published_values",
    "slope",
    "standardise_difference",
]
