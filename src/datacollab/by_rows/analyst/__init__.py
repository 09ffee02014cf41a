"""Rows, at the analyst: shares that came in, their integration, and models that go out.  Never imports ``party``."""

from ..._by_name import MODEL_NAMES, MODELS, SURVIVAL_MODELS
from ._integration import Integration, Score, anchor_concordance
from ._named_methods import make_integrator, make_model
from ._row_files import receive_rows
from ._rows_at_analyst import RowsAtAnalyst

__all__ = ["MODELS", "MODEL_NAMES", "SURVIVAL_MODELS", "Integration", "RowsAtAnalyst", "Score"]
__all__ += ["anchor_concordance", "make_integrator", "make_model", "receive_rows"]
