"""Effects of treatments, from the parties' shares.  Never imports ``party``."""

from .._frames import equal_rows
from ._estimate import ConditionalEffects, EffectEstimate, Overlap, conditional_effects, estimate_effect
from ._estimators import (
    Estimated,
    WhitenedLogisticRegression,
    doubly_robust,
    effect_folds,
    inverse_probability_weighting,
    partially_linear,
    propensity_scores,
    pseudo_values,
    survival_difference,
    with_parties,
)

__all__ = ["ConditionalEffects", "EffectEstimate", "Estimated", "Overlap", "WhitenedLogisticRegression"]
__all__ += ["conditional_effects", "doubly_robust", "effect_folds", "equal_rows", "estimate_effect"]
__all__ += ["inverse_probability_weighting", "partially_linear", "propensity_scores", "pseudo_values"]
__all__ += ["survival_difference", "with_parties"]
