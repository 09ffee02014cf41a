"""Sums, at the analyst: files that came in, their total, and its model or tables.  Never imports ``party``."""

from ._messages import SumsFacts, read_sums_facts, receive_sums
from ._study_files import STUDY_FILES
from ._total import StudyAtAnalyst, SumsAtAnalyst, SumsIntegration, model_to_bytes

__all__ = ["STUDY_FILES", "StudyAtAnalyst", "SumsAtAnalyst", "SumsFacts", "SumsIntegration", "model_to_bytes"]
__all__ += ["read_sums_facts", "receive_sums"]
