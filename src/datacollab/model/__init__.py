"""What goes back to a party: its integration function g_k and the model h, or h's answers on the anchor; and files.

Files by what they are for:

* g_k and h together: `_party_model`, `_composed`, `_task`, `_from_elsewhere`, `_trial`.
* Integration functions: `_maps`, `_map_codec`.
* Models that an analyst trains: `_landmark_ridge`, `_ridge_heads`, `_calibrated_forest`, `_calibration`, `_averaged`,
  `_linear_inference`, `_inference_heads`, `_left_out`.
* Files: `_codec`, `_heads`, `_facts`, `_class_names`, `_left_out_codec`, `_refusal`.
* Answers on the anchor in place of a model: `_answers`, `_answer_fields`, `_answers_codec`.
"""

from ._answers import AnchorAnswers, anchor_answers, answers_from
from ._answers_codec import ANSWERS_KIND, answers_contents
from ._averaged import AveragedClassifier, AveragedRegressor, probabilities_of
from ._calibrated_forest import CalibratedForestClassifier
from ._calibration import log_loss_of
from ._codec import MODEL_KIND, model_contents
from ._facts import plain_facts
from ._heads import estimator_kind, head_from, head_to
from ._landmark_ridge import ALPHAS, LandmarkRidgeClassifier, LandmarkRidgeRegressor
from ._left_out import fit_left_out, fit_weighted
from ._linear_inference import LeastSquaresInference, LogisticInference
from ._map_codec import map_from, map_to
from ._maps import IntegrationFunction, KernelMap, LinearMap
from ._party_model import PartyModel, model_from
from ._task import task_of
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
    "ANSWERS_KIND",
    "MODEL_KIND",
    "SENDABLE",
    "AnchorAnswers",
    "AveragedClassifier",
    "AveragedRegressor",
    "CalibratedForestClassifier",
    "IntegrationFunction",
    "KernelMap",
    "LandmarkRidgeClassifier",
    "LandmarkRidgeRegressor",
    "LeastSquaresInference",
    "LinearMap",
    "LogisticInference",
    "PartyModel",
    "ReceivedClassifier",
    "ReceivedRegressor",
    "ReceivedSurvival",
    "anchor_answers",
    "answers_contents",
    "answers_from",
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
    "probabilities_of",
    "task_of",
]
