"""The analyst's steps in its folder: take files in, integrate, send models out.  Never imports ``party``."""

from typing import TYPE_CHECKING

from ..._by_name import MODEL_NAMES, MODELS, SURVIVAL_MODELS
from ..._require import load_on_first_use
from ...by_sums.analyst import STUDY_FILES, SumsFacts, SumsIntegration, model_to_bytes, read_sums_facts, receive_sums
from ...by_sums.rounds import ROUND_FILE
from ...folder.analyst import ReceivedFile
from ._analyst_folder import EFFECT_FILES, AnalystFolder, effect_of

if TYPE_CHECKING:
    from ...by_rows.analyst import (
        Integration,
        Score,
        anchor_concordance,
        make_integrator,
        make_model,
        receive_rows,
    )

# Rows bring scikit-learn, which sums, and the first steps, do without.
_OF_ROWS = ["Integration", "Score", "anchor_concordance", "make_integrator", "make_model", "receive_rows"]
__getattr__ = load_on_first_use(__name__, dict.fromkeys(_OF_ROWS, "datacollab.by_rows.analyst"))

__all__ = ["EFFECT_FILES", "MODELS", "MODEL_NAMES", "ROUND_FILE", "STUDY_FILES", "SURVIVAL_MODELS", "AnalystFolder"]
__all__ += ["Integration", "ReceivedFile", "Score", "SumsFacts", "SumsIntegration", "anchor_concordance"]
__all__ += ["effect_of", "make_integrator", "make_model", "model_to_bytes", "read_sums_facts", "receive_rows"]
__all__ += ["receive_sums"]


def __dir__() -> list[str]:
    return sorted(__all__)
