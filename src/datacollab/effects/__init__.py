"""Effects of treatments, from what parties share.  Never imports ``party``."""

from ._estimators import (
    doubly_robust,
    inverse_probability_weighting,
    partially_linear,
    propensity_scores,
    survival_difference,
)
from ._folds import effect_folds, equal_rows
from ._learners import WhitenedLogisticRegression
from ._matching import matching
from ._scores import Estimated

__all__ = [
    "Estimated",
    "WhitenedLogisticRegression",
    "doubly_robust",
    "effect_folds",
    "equal_rows",
    "inverse_probability_weighting",
    "matching",
    "partially_linear",
    "propensity_scores",
    "survival_difference",
]
