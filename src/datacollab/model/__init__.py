"""What goes back to a party: its integration function g_k and the model h, or h's answers on the anchor; and files.

Files by what they are for:

* g_k and h together, and their file: `_party_model`; integration functions: `_maps`.
* Models that an analyst trains: `_landmark_ridge`, `_calibration`, `_averaged`, `_left_out`; how
  they are written and read: `_heads`, `_from_elsewhere`; any other model as a chain of steps: `predictors`.
* Answers on the anchor in place of a model: `_anchor_predictions`.
* Predicting in batches: `_batches`.
"""

from ._anchor_predictions import (
    PREDICTIONS_KIND,
    AnchorPredictions,
    anchor_predictions,
    predictions_contents,
    predictions_from,
)
from ._averaged import AveragedClassifier, AveragedRegressor, probabilities_of
from ._calibration import CalibratedForestClassifier, log_loss_of
from ._heads import estimator_kind, head_from, head_to
from ._landmark_ridge import ALPHAS, LandmarkRidgeClassifier, LandmarkRidgeRegressor
from ._left_out import fit_left_out, fit_weighted
from ._maps import IntegrationFunction, KernelMap, LinearMap, map_from, map_to
from ._party_model import MODEL_KIND, PartyModel, model_contents, model_from, plain_facts, task_of
from .predictors import (
    SENDABLE,
    ReceivedClassifier,
    ReceivedRegressor,
    ReceivedSurvival,
    mixture_classes,
    mixture_novelty,
    nearest_centre,
)

__all__ = [
    "ALPHAS",
    "MODEL_KIND",
    "PREDICTIONS_KIND",
    "SENDABLE",
    "AnchorPredictions",
    "AveragedClassifier",
    "AveragedRegressor",
    "CalibratedForestClassifier",
    "IntegrationFunction",
    "KernelMap",
    "LandmarkRidgeClassifier",
    "LandmarkRidgeRegressor",
    "LinearMap",
    "PartyModel",
    "ReceivedClassifier",
    "ReceivedRegressor",
    "ReceivedSurvival",
    "anchor_predictions",
    "estimator_kind",
    "fit_left_out",
    "fit_weighted",
    "head_from",
    "head_to",
    "log_loss_of",
    "map_from",
    "map_to",
    "mixture_classes",
    "mixture_novelty",
    "model_contents",
    "model_from",
    "nearest_centre",
    "plain_facts",
    "predictions_contents",
    "predictions_from",
    "probabilities_of",
    "task_of",
]
