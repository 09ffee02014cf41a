"""Sums by files, as both sides see them: the plan that a project and an anchor make, and the file of the model."""

from ._agreed import DELTA, FEWEST_OWN_ROWS, Told, fewest_rows, plan_of, told_by
from ._model_file import model_to_bytes, read_model

__all__ = ["DELTA", "FEWEST_OWN_ROWS", "Told", "fewest_rows", "model_to_bytes", "plan_of", "read_model", "told_by"]
