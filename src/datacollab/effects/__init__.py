"""Effects of treatments, from what parties share.  Never imports ``party``."""

from ._conditional import ConditionalEffects, conditional_effects
from ._effect import Effect
from ._estimate import estimate_effect
from ._estimators import (
    doubly_robust,
    inverse_probability_weighting,
    partially_linear,
    propensity_scores,
    survival_difference,
)
from ._folds import effect_folds, equal_rows
from ._learners import WhitenedLogisticRegression
from ._overlap import Overlap
from ._scores import Estimated
from ._survival_curves import pseudo_values

__all__ = [
    "ConditionalEffects",
    "Effect",
    "Estimated",
    "Overlap",
    "WhitenedLogisticRegression",
    "conditional_effects",
    "doubly_robust",
    "effect_folds",
    "equal_rows",
    "estimate_effect",
    "inverse_probability_weighting",
    "partially_linear",
    "propensity_scores",
    "pseudo_values",
    "survival_difference",
]
