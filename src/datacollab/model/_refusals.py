"""Refusals of models that were sent, names of classes, and estimators that cannot be trained."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from ..errors import ExchangeError

_BEFORE = "The model is inconsistent: "


def bad_model(what: str) -> ExchangeError:
    """Return the error for a model whose parts contradict one another."""
    return ExchangeError("MODEL_MALFORMED", f"{_BEFORE}{what}. Do not use it, and ask the analyst.")


def too_large(what: str) -> ExchangeError:
    """Return the error for a model that takes more memory or time than a model may."""
    return ExchangeError("TOO_LARGE", f"The model {what}. Ask the analyst for a smaller one.")


def bad_predictor(what: str) -> ExchangeError:
    """Return the error for a predictor whose parts contradict one another."""
    return bad_model(f"its estimator {what}")


def large_predictor(what: str) -> ExchangeError:
    """Return the error for a predictor that would take more memory or time than one may."""
    return too_large(f"has an estimator with {what}")


def reason_of(error: ExchangeError) -> str:
    """Return the fault that an error about a model names."""
    return str(error).removeprefix(_BEFORE).partition(". Do not use it")[0]


_TYPES = (
    *("bool", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("object", "str", "uint8", "uint16", "uint32"),
)
MOST_CLASSES = 10_000
"""A file of a few kilobytes must not ask for tables of gigabytes."""
_MOST_TEXT = 200


def class_names(classes: NDArray[Any]) -> tuple[list[Any], str]:
    """Return a list that JSON can hold, and the name of NumPy's type."""
    dtype = "str" if classes.dtype.kind == "U" else classes.dtype.name
    if dtype not in _TYPES or (dtype == "object" and not all(isinstance(name, str) for name in classes)):
        raise ExchangeError(
            "MODEL_UNSUPPORTED",
            f"Classes of type {classes.dtype} cannot be sent. Train on targets that are texts or plain numbers.",
        )
    return classes.tolist(), dtype


def check_classes(names: Any, dtype: Any) -> NDArray[Any] | None:
    """Return classes of shape (n_classes,) from the list and type of `class_names`; None if there are none."""
    if names is None:
        return None
    # Unlike Python, NumPy takes True for 1, and cuts texts off that are too long for their type.
    plain = isinstance(names, list) and names and all(isinstance(name, str | int | float) for name in names)
    if not plain or len(names) > MOST_CLASSES or dtype not in _TYPES or len(set(names)) != len(names):
        raise bad_predictor("does not list its classes")
    are_texts = dtype in ("object", "str")
    if any(isinstance(name, str) != are_texts or (are_texts and len(name) > _MOST_TEXT) for name in names):
        raise bad_predictor("has classes of another type than its manifest says, or of long names")
    if not are_texts and dtype != "bool" and any(isinstance(name, bool) for name in names):
        raise bad_predictor("has classes of another type than its manifest says")
    try:
        classes = np.array(names, dtype=dtype)
    except (OverflowError, ValueError, TypeError):
        raise bad_predictor("has classes beyond the range of their type") from None
    if classes.tolist() != names or (classes.dtype.kind == "f" and not np.isfinite(classes).all()):
        raise bad_predictor("has classes that are not of their type")
    if not np.array_equal(np.unique(classes), classes):
        raise bad_predictor("does not list its classes in order")
    return classes


class FittedAlready(BaseEstimator):
    """An estimator that predicts, and cannot be trained."""

    name: str

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Raise NotImplementedError: the estimator has no training."""
        raise NotImplementedError(f"{type(self).__name__} predicts as it is, and cannot be trained.")


def estimator_kind(estimator: Any) -> str:
    """Return the name of the class that was trained, also where only its steps are there."""
    if isinstance(estimator, FittedAlready):
        return estimator.name
    return type(estimator).__name__
