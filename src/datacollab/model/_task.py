"""What a model is for."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from ..survival import SurvivalModel
from ..targets import TargetKind

__all__ = ["task_of"]


def task_of(estimator: Any) -> str:
    """Of "classification", "regression" and "survival", what an estimator is for."""
    if isinstance(estimator, SurvivalModel):
        return TargetKind.SURVIVAL.value
    return "classification" if is_classifier(estimator) else "regression"
