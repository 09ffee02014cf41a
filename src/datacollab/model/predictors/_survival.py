"""Survival models that came as arrays: a chain to the log risk, and how the hazard adds up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._typing import FloatArray
from ...survival import Baseline, SurvivalModel
from ._chain import Chain, read_chain
from ._received import Received, checked_name
from ._step import MOST_NUMBER, bad_predictor, large_predictor
from ._steps import Affine, Scale

__all__ = ["SURVIVAL_PART", "ReceivedSurvival", "read_survival", "write_survival"]

SURVIVAL_PART = "survival"
"""Key of the facts, and what names of arrays begin with, that only survival models have."""
_BASELINES = ("common", "own")
_MOST_STEPS = 100_000
_MOST_COLUMNS = 1_000
"""Of a covariance, whose eigenvalues are looked at."""
_ROUNDING = 1e-6


class ReceivedSurvival(SurvivalModel, Received):
    """A survival model made of steps; of a Cox regression, with its coefficients and their covariance.

    Parameters
    ----------
    chain : Chain
        Its last table has one column, the log risk.
    baseline : Baseline
    name : str
        Of the class that was trained.
    baseline_of : {"own", "common"}
        Whose hazard the baseline is: of the rows of the party that the model was made for, or of all parties' rows.
    covariance : ndarray of shape (n_features, n_features), optional
        Of a Cox regression, of which the chain is then (x - mean) β.

    Attributes
    ----------
    baselines_ : dict of None to Baseline
    coef_, mean_ : ndarray of shape (n_features,)
        Of a Cox regression only.
    covariance_ : ndarray of shape (n_features, n_features)
        Of a Cox regression only.
    n_features_in_ : int
    """

    def __init__(
        self, chain: Chain, baseline: Baseline, *, name: str, baseline_of: str, covariance: FloatArray | None = None
    ) -> None:
        self.chain = chain
        self.baseline = baseline
        self.name = name
        self.baseline_of = baseline_of
        self.covariance = covariance

    @property
    def baselines_(self) -> dict[Any, Baseline]:  # type: ignore[override]
        """The one that was sent."""
        return {None: self.baseline}

    @property
    def coef_(self) -> FloatArray:
        """β."""
        return np.asarray(self._cox()[1].coefficients[:, 0])

    @property
    def mean_(self) -> FloatArray:
        """The row of log risk 0."""
        return self._cox()[0].centre

    @property
    def covariance_(self) -> FloatArray:
        """Of `coef_`."""
        if self.covariance is None:
            raise AttributeError(f"A {self.name} has no coefficients.")
        return self.covariance

    def predict(self, X: ArrayLike) -> FloatArray:
        """The log risk of each row, shape (n_rows,)."""
        return np.concatenate([self.chain(rows)[:, 0] for rows in self._batches(X)])

    def _cox(self) -> tuple[Scale, Affine]:
        steps = self.chain.steps
        if self.covariance is None or not (isinstance(steps[0], Scale) and isinstance(steps[-1], Affine)):
            raise AttributeError(f"A {self.name} has no coefficients.")
        return steps[0], steps[-1]


def write_survival(estimator: ReceivedSurvival) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays of a survival model."""
    steps, arrays = estimator.chain.written()
    facts: dict[str, Any] = {"name": estimator.name, "steps": steps, "classes": None, "classes_dtype": None}
    facts[SURVIVAL_PART] = {"baseline": estimator.baseline_of}
    found = {"times": estimator.baseline.times, "cumulative_hazard": estimator.baseline.cumulative_hazard}
    if estimator.covariance is not None:
        found["covariance"] = estimator.covariance
    return facts, arrays | {f"{SURVIVAL_PART}.{name}": each for name, each in found.items()}


def read_survival(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_columns: int) -> ReceivedSurvival:
    """The survival model that facts and arrays describe, after checks of every part.

    Parameters
    ----------
    facts : mapping
    arrays : mapping of str to ndarray
    n_columns : int
        That it has to take.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED or TOO_LARGE.
    """
    if not facts.keys() <= {"form", "name", "steps", "classes", "classes_dtype", SURVIVAL_PART}:
        raise bad_predictor("says more than a survival model has to say")
    if facts.get("classes") is not None or facts.get("classes_dtype") is not None:
        raise bad_predictor("has classes, and a survival model has none")
    about, left = facts[SURVIVAL_PART], dict(arrays)
    if not isinstance(about, Mapping) or about.keys() != {"baseline"} or about["baseline"] not in _BASELINES:
        raise bad_predictor("does not say whose hazard its baseline is")
    covariance = _covariance(left, n_columns)
    baseline = _baseline(left)
    chain = read_chain(facts.get("steps"), left, n_columns)
    if left:
        raise bad_predictor("has arrays of none of its steps")
    if chain.n_out != 1:
        raise bad_predictor(f"predicts {chain.n_out} numbers for a row; one is wanted")
    if covariance is not None:
        _check_cox(chain)
    name = checked_name(facts)
    return ReceivedSurvival(chain, baseline, name=name, baseline_of=about["baseline"], covariance=covariance)


def _baseline(arrays: dict[str, NDArray[Any]]) -> Baseline:
    times, hazard = (_taken(arrays, name, 1) for name in ("times", "cumulative_hazard"))
    if len(times) > _MOST_STEPS:
        raise large_predictor(f"{len(times)} steps in its baseline; {_MOST_STEPS} are allowed")
    if len(times) != len(hazard) or times[0] <= 0 or hazard[0] < 0:
        raise bad_predictor("has a baseline without one time above 0 for each hazard from 0 on")
    if not (np.diff(times) > 0).all() or not (np.diff(hazard) >= 0).all():
        raise bad_predictor("has a baseline that does not ascend")
    return Baseline(times, hazard)


def _covariance(arrays: dict[str, NDArray[Any]], n_columns: int) -> FloatArray | None:
    if f"{SURVIVAL_PART}.covariance" not in arrays:
        return None
    covariance = _taken(arrays, "covariance", 2)
    if n_columns > _MOST_COLUMNS:
        raise large_predictor(f"a covariance of {n_columns} columns; {_MOST_COLUMNS} are allowed")
    if covariance.shape != (n_columns, n_columns):
        raise bad_predictor("has a covariance of another shape than its columns want")
    variances = np.diagonal(covariance)
    if not (variances >= 0).all():
        raise bad_predictor("has negative variances")
    # Columns may be on very different scales, so it is looked at as correlations.
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    correlation = covariance / scale / scale[:, None]
    if not (np.abs(correlation - correlation.T) <= _ROUNDING).all() or not (np.abs(correlation) <= 1 + _ROUNDING).all():
        raise bad_predictor("has a covariance that is none")
    if np.linalg.eigvalsh(correlation)[0] < -_ROUNDING * n_columns:
        raise bad_predictor("has a covariance that is not positive")
    return covariance


def _check_cox(chain: Chain) -> None:
    steps = chain.steps
    if len(steps) != 2 or not isinstance(steps[0], Scale) or not isinstance(steps[1], Affine):
        raise bad_predictor("has a covariance of coefficients, and is no linear model")
    if (steps[0].spread != 1).any() or steps[1].intercept.any():
        raise bad_predictor("has a covariance of other coefficients than its own")


def _taken(arrays: dict[str, NDArray[Any]], name: str, ndim: int) -> FloatArray:
    array = arrays.pop(f"{SURVIVAL_PART}.{name}", None)
    if array is None or array.dtype != np.float64 or array.ndim != ndim or not array.size:
        raise bad_predictor(f"has no {name} of double precision")
    if not (np.abs(array) <= MOST_NUMBER).all():
        raise bad_predictor(f"has {name} that are not finite, or beyond {MOST_NUMBER:g}")
    return array
