"""The analyst's folder: shares that came in, the fitted collaboration, models that go out.  Never imports ``party``."""

from ._analyst_folder import EFFECT_FILES, AnalystFolder, effect_of
from ._integration import Integration, Score, SumsIntegration, anchor_concordance
from ._methods import MODEL_NAMES, MODELS, SURVIVAL_MODELS, make_integrator, make_model
from ._received import ReceivedFile, receive
from ._study import STUDY_FILES

__all__ = ["EFFECT_FILES", "MODELS", "MODEL_NAMES", "STUDY_FILES", "SURVIVAL_MODELS", "AnalystFolder", "Integration"]
__all__ += ["ReceivedFile", "Score", "SumsIntegration", "anchor_concordance", "effect_of", "make_integrator"]
__all__ += ["make_model", "receive"]
