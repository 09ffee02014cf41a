"""A trial prediction on made-up rows: what a loaded model answers has to be an answer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..errors import ExchangeError
from ..survival import SurvivalModel
from ._composed import ComposedModel
from ._maps import IntegrationFunction, KernelMap
from ._refusal import malformed

__all__ = ["try_prediction"]

_SCALES = (1.0, 1e-3, 0.0)
_TOLERANCE = 1e-3


def try_prediction(model: ComposedModel, *, n_rows: int = 8, seed: int = 0) -> FloatArray:
    """Predict for made-up rows.

    A linear map says nothing of the scale of its rows, and far from those that it was trained on an estimator may well
    fail; so smaller rows are tried too.

    Returns
    -------
    ndarray of shape (n_rows, n_intermediate)
        Rows for which the model has answers.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED, where an error comes of all, or what comes is neither finite numbers nor known classes.
    """
    rows = _made_up_rows(model.integration_function, n_rows, seed)
    scales = _SCALES[:1] if isinstance(model.integration_function, KernelMap) else _SCALES
    refusals = []
    for scale in scales:
        refusal = _refusal_of(model, scale * rows)
        if refusal is None:
            return scale * rows
        refusals.append(refusal)
    raise refusals[0]


def _made_up_rows(g: IntegrationFunction, n_rows: int, seed: int) -> FloatArray:
    """Between a kernel map's own anchor rows, for elsewhere it may give zero; standard normal for a linear map."""
    generator = np.random.default_rng(seed)
    if not isinstance(g, KernelMap):
        return generator.standard_normal((n_rows, g.n_intermediate))
    first, second = generator.integers(len(g.anchor_representation), size=(2, n_rows))
    weights, anchors = generator.random((n_rows, 1)), g.anchor_representation
    return np.asarray(weights * anchors[first] + (1 - weights) * anchors[second])


def _refusal_of(model: ComposedModel, rows: FloatArray) -> ExchangeError | None:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            _check_answers(model, rows)
    except ExchangeError as refusal:
        return refusal
    # An estimator with contradictory attributes may raise anything.
    except Exception as error:
        return _malformed(model, f"fails on made-up rows ({type(error).__name__})")
    return None


def _check_answers(model: ComposedModel, rows: FloatArray) -> None:
    predicted = model.predict(rows)
    if predicted.shape != (len(rows),):
        raise _malformed(model, f"predicts shape {predicted.shape} for {len(rows)} rows")
    classes = getattr(model.estimator, "classes_", None)
    if isinstance(model.estimator, SurvivalModel):
        _check_survival(model, rows)
    if classes is None:
        if predicted.dtype.kind not in "biuf" or not np.isfinite(predicted).all():
            raise _malformed(model, "predicts something other than finite numbers")
        return
    if not np.isin(predicted, classes).all():
        raise _malformed(model, "predicts classes that are none of its own")
    if hasattr(model.estimator, "predict_proba"):
        _check_probabilities(model, model.predict_proba(rows), len(rows), classes)


def _check_survival(model: ComposedModel, rows: FloatArray) -> None:
    for baseline in model.estimator.baselines_.values():
        times = np.append(0.0, baseline.times)
        survival = model.predict_survival(rows, times)
        if survival.shape != (len(rows), len(times)) or not ((survival >= 0) & (survival <= 1)).all():
            raise _malformed(model, "gives survival that is no probability")


def _check_probabilities(model: ComposedModel, found: FloatArray, n_rows: int, classes: NDArray[Any]) -> None:
    if found.shape != (n_rows, len(classes)) or found.dtype.kind != "f" or not np.isfinite(found).all():
        raise _malformed(model, "gives no probability for each class")
    off = np.abs(found.sum(axis=1) - 1.0).max()
    if found.min() < -_TOLERANCE or found.max() > 1 + _TOLERANCE or off > _TOLERANCE:
        raise _malformed(model, "gives probabilities that do not add up to one")


def _malformed(model: ComposedModel, what: str) -> ExchangeError:
    return malformed(f"its {type(model.estimator).__name__} {what}")
