"""Sums by files, as both sides see them: the plan that a project and an anchor make, and the file of the model."""

from ._agreed import DELTA, FEWEST_OWN_ROWS, Told, fewest_rows, plan_of, told_by
from ._model_file import model_to_bytes, read_model
from ._withdrawal import Withdrawal, read_withdrawal, withdrawal_to_bytes

__all__ = [
    "DELTA",
    "FEWEST_OWN_ROWS",
    "Told",
    "Withdrawal",
    "fewest_rows",
    "model_to_bytes",
    "plan_of",
    "read_model",
    "read_withdrawal",
    "told_by",
    "withdrawal_to_bytes",
]
