"""Effects of treatments, from what parties share.  Never imports ``party``."""

from ._conditional import ConditionalEffects, conditional_effects
from ._estimate import Effect, estimate_effect
from ._estimators import (
    Estimated,
    doubly_robust,
    inverse_probability_weighting,
    partially_linear,
    propensity_scores,
    pseudo_values,
    survival_difference,
)
from ._learners import WhitenedLogisticRegression, effect_folds, equal_rows
from ._overlap import Overlap

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
