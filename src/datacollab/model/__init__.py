"""The answer to a party: g_k and the model h, or h's predictions for the anchor; and their files.

* g_k and h together, and their file: `_party_model`; integration functions: `_maps`.
* Models that an analyst trains: `_models`; how they are written and read: `_heads`, `_refusals`.
* Any other model as a chain of steps from a closed vocabulary: `_steps`, `_predictors`, `_export`.
* Predictions for the anchor in place of a model: `_anchor_predictions`.
"""

from ._anchor_predictions import (
    PREDICTIONS_KIND,
    AnchorPredictions,
    anchor_predictions,
    predictions_contents,
    predictions_from,
)
from ._export import SENDABLE, unsendable_part
from ._heads import head_from, head_to
from ._maps import IntegrationFunction, KernelMap, LinearMap, map_from, map_to
from ._models import (
    ALPHAS,
    AveragedClassifier,
    AveragedRegressor,
    CalibratedForestClassifier,
    LandmarkRidgeClassifier,
    LandmarkRidgeRegressor,
    add_level,
    at_level,
    fit_left_out,
    fit_weighted,
    log_loss_of,
    probabilities_of,
)
from ._party_model import MODEL_KIND, PartyModel, model_contents, model_from, plain_facts, task_of
from ._predictors import (
    ReceivedClassifier,
    ReceivedRegressor,
    ReceivedSurvival,
    mixture_classes,
    mixture_novelty,
    nearest_centre,
)
from ._refusals import estimator_kind

__all__ = ["ALPHAS", "MODEL_KIND", "PREDICTIONS_KIND", "SENDABLE"]
__all__ += ["AnchorPredictions", "AveragedClassifier", "AveragedRegressor", "CalibratedForestClassifier"]
__all__ += ["IntegrationFunction", "KernelMap", "LandmarkRidgeClassifier", "LandmarkRidgeRegressor"]
__all__ += ["LinearMap", "PartyModel", "ReceivedClassifier", "ReceivedRegressor", "ReceivedSurvival"]
__all__ += ["add_level", "at_level"]
__all__ += ["anchor_predictions", "estimator_kind", "fit_left_out", "fit_weighted", "head_from", "head_to"]
__all__ += ["log_loss_of", "map_from", "map_to", "mixture_classes", "mixture_novelty", "model_contents"]
__all__ += ["model_from", "nearest_centre", "plain_facts", "predictions_contents", "predictions_from"]
__all__ += ["probabilities_of", "task_of", "unsendable_part"]
