"""Checked rows, times, strata and weights of survival models."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight, validate_data

from .._typing import FloatArray
from ..errors import AgreementError
from ..targets import TargetKind, target_kind


@dataclass(frozen=True, eq=False)
class SurvivalRows:
    """The training data of a survival model; rows of weight 0 are left out."""

    X: FloatArray
    event: NDArray[np.bool_]
    time: FloatArray
    weight: FloatArray
    stratum: NDArray[np.intp]  # position of each row's stratum among the strata
    strata: tuple[Hashable, ...]  # their names; (None,) if there are none

    def of(self, number: int) -> Self:
        """Return the rows of one stratum."""
        kept = self.stratum == number
        names = ("X", "event", "time", "weight", "stratum")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})


def check_survival(y: ArrayLike) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return events and times of survival targets, or raise an AgreementError."""
    target = np.asarray(y)
    if target_kind(target) is not TargetKind.SURVIVAL or target.ndim != 1:
        raise AgreementError(
            "y must be survival targets, shape (n_samples,), as datacollab.targets.survival_target makes them; got "
            f"{target.dtype} of shape {target.shape}."
        )
    time = np.asarray(target["time"], dtype=np.float64)
    if not (np.isfinite(time) & (time > 0)).all():
        raise AgreementError("y has times that are missing, infinite or not above 0. Leave such rows out.")
    return np.asarray(target["event"], dtype=np.bool_), time


def check_times(times: ArrayLike) -> FloatArray:
    """Return finite times from 0 on, shape (n_times,), or raise a ValueError."""
    checked = np.atleast_1d(np.asarray(times, dtype=np.float64))
    if checked.ndim != 1 or not (np.isfinite(checked) & (checked >= 0)).all():
        raise ValueError("times must be finite numbers from 0 on: one, or an array of shape (n_times,).")
    return checked


def check_rows(
    estimator: Any, X: ArrayLike, y: ArrayLike, strata: ArrayLike | None, sample_weight: ArrayLike | None
) -> SurvivalRows:
    """Return the checked arguments of `fit`; an AgreementError where targets or strata do not fit the rows."""
    rows = validate_data(estimator, X, dtype=np.float64, ensure_min_samples=2)
    event, time = check_survival(y)
    weight = _check_sample_weight(sample_weight, rows, dtype=np.float64)
    if (weight < 0).any():
        raise ValueError(f"sample_weight must be 0 or more; {int((weight < 0).sum())} of {len(weight)} are not.")
    names, stratum = _strata(strata, len(time))
    if len(time) != len(rows):
        raise AgreementError(f"Expected one target per row, got {len(time)} for {len(rows)} rows.")
    # Rows of weight 0 are no part of any risk set, but their times would be in the baseline.
    kept = weight > 0
    if not event[kept].any():
        raise AgreementError(
            f"No event was seen among {int(kept.sum())} rows, so nothing can be learnt of what brings it about. "
            "Observe for longer, or take more rows."
        )
    return SurvivalRows(rows[kept], event[kept], time[kept], weight[kept], stratum[kept], names)


def _strata(strata: ArrayLike | None, n_rows: int) -> tuple[tuple[Hashable, ...], NDArray[np.intp]]:
    if strata is None:
        return (None,), np.zeros(n_rows, dtype=np.intp)
    labels = np.asarray(strata)
    if labels.shape != (n_rows,):
        raise AgreementError(f"Expected one stratum per row, shape ({n_rows},), got shape {labels.shape}.")
    # Not sorted: names may be numbers and texts beside each other.
    places: dict[Hashable, int] = {}
    stratum = np.array([places.setdefault(label, len(places)) for label in labels.tolist()], dtype=np.intp)
    return tuple(places), stratum
