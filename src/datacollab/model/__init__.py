"""What goes back to a party: its integration function g_k and the model h, how to apply them, and their files."""

from ._averaged import AveragedClassifier, AveragedRegressor, probabilities_of
from ._calibrated_forest import CalibratedForestClassifier
from ._calibration import log_loss_of
from ._codec import MODEL_KIND, ONNX_MEMBER, model_contents
from ._facts import plain_facts
from ._heads import estimator_kind, head_from, head_to
from ._landmark_ridge import ALPHAS, LandmarkRidgeClassifier, LandmarkRidgeRegressor
from ._left_out import fit_left_out, fit_weighted
from ._map_codec import map_from, map_to
from ._maps import IntegrationFunction, KernelMap, LinearMap
from ._party_model import OnnxPartyModel, PartyModel, model_from
from ._skops_file import estimator_from_bytes, estimator_to_bytes
from ._task import task_of
from .predictors import SENDABLE, ReceivedClassifier, ReceivedRegressor, ReceivedSurvival

__all__ = [
    "ALPHAS",
    "MODEL_KIND",
    "ONNX_MEMBER",
    "SENDABLE",
    "AveragedClassifier",
    "AveragedRegressor",
    "CalibratedForestClassifier",
    "IntegrationFunction",
    "KernelMap",
    "LandmarkRidgeClassifier",
    "LandmarkRidgeRegressor",
    "LinearMap",
    "OnnxPartyModel",
    "PartyModel",
    "ReceivedClassifier",
    "ReceivedRegressor",
    "ReceivedSurvival",
    "estimator_from_bytes",
    "estimator_kind",
    "estimator_to_bytes",
    "fit_left_out",
    "fit_weighted",
    "head_from",
    "head_to",
    "log_loss_of",
    "map_from",
    "map_to",
    "model_contents",
    "model_from",
    "plain_facts",
    "probabilities_of",
    "task_of",
]
