"""The analyst's folder: shares that came in, the fitted collaboration, models that go out.  Never imports ``party``."""

from ._effect import EFFECT_FILES, effect_of
from ._folder import AnalystFolder
from ._integration import Integration, anchor_concordance
from ._methods import METHODS, MODEL_NAMES, MODELS, SURVIVAL_MODELS, make_integrator, make_model
from ._score import Score
from ._shares import PartyStatus, ReceivedShare, receive
from ._sums import ReceivedSum, SumsIntegration, receive_sum

__all__ = [
    "EFFECT_FILES",
    "METHODS",
    "MODELS",
    "MODEL_NAMES",
    "SURVIVAL_MODELS",
    "AnalystFolder",
    "Integration",
    "PartyStatus",
    "ReceivedShare",
    "ReceivedSum",
    "Score",
    "SumsIntegration",
    "anchor_concordance",
    "effect_of",
    "make_integrator",
    "make_model",
    "receive",
    "receive_sum",
]
