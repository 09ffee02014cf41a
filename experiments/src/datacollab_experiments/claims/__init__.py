"""Numbers and conclusions of the paper, held against measured rows."""

from ._claim import QUOTAS, Claim, Verdict
from ._claims import CLAIMS, check_claims
from ._estimates import (
    Estimate,
    Interval,
    PublishedValue,
    anchor_series,
    by_axes,
    by_seed,
    estimate,
    find_published,
    in_order,
    interval,
    published_values,
    slope,
    standardise_difference,
)

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
