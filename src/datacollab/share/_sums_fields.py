"""What a party sends of whose rows nothing leaves but noisy sums, as checked fields that know of no file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, PartyName, check_representation, check_single_targets, count_missing
from ..errors import RepresentationError, ShareError

__all__ = ["SumsFields"]

_MOST_ENTRY = 1e30
"""As of shares."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SumsFields:
    """The fields and their checks; `ClassSums`, where they are described, is this with its file."""

    party: PartyName
    classes: NDArray[Any]
    sums: FloatArray
    counts: FloatArray
    anchor_representation: FloatArray
    clip: float
    noise: float
    anchor_target: NDArray[Any] | None = None
    epsilon: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        classes = self._checked_labels(self.classes, "classes")
        if len(classes) < 2 or len(np.unique(classes)) < len(classes):
            raise self._error(f"classes must be at least two, each once; got {len(classes)} entries")
        try:
            A = check_representation(self.anchor_representation, self.party, what="anchor representation")
            sums = check_representation(self.sums, self.party, what="table of sums", n_features=A.shape[1])
        except RepresentationError as error:
            raise ShareError(str(error)) from None
        counts = np.asarray(self.counts)
        if counts.dtype.kind not in "fiu" or len(sums) != len(classes) or counts.shape != (len(classes),):
            raise self._error(
                f"sums and counts must be numbers, one row and one entry for each of the {len(classes)} classes; got "
                f"shapes {sums.shape} and {counts.shape}"
            )
        counts = counts.astype(np.float64)
        for what, table in (("sums", sums), ("counts", counts), ("anchor_representation", A)):
            if not (np.abs(table) <= _MOST_ENTRY).all():
                raise self._error(f"{what} must be finite, and no entry beyond {_MOST_ENTRY:g}")
        self._check_numbers()
        for name, array in (("classes", classes), ("sums", sums), ("counts", counts), ("anchor_representation", A)):
            self._freeze(name, array)
        if self.anchor_target is not None:
            anchor_target = self._checked_labels(self.anchor_target, "anchor_target")
            if anchor_target.shape != (len(A),):
                raise self._error(
                    f"anchor_target must have one entry per anchor row, shape ({len(A)},); got {anchor_target.shape}"
                )
            self._freeze("anchor_target", anchor_target)

    def _check_numbers(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            raise self._error("epsilon and delta must both be stated, or neither")
        bounds = {"clip": _MOST_ENTRY, "noise": _MOST_ENTRY}
        if self.epsilon is not None:
            bounds |= {"epsilon": math.inf, "delta": 1.0}
        for name, below in bounds.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, float | int) or not 0 < value < below:
                raise self._error(f"{name} must be a number above 0 and below {below:g}; got {value!r}")

    def _checked_labels(self, values: ArrayLike, name: str) -> NDArray[Any]:
        labels = np.asarray(values)
        check_single_targets(labels, f"Party {self.party!r}: {name}", ShareError)
        if labels.ndim != 1 or count_missing(labels) or (labels.dtype.kind == "f" and not np.isfinite(labels).all()):
            raise self._error(f"{name} must be a list without NaN, None or infinity; got shape {labels.shape}")
        return labels

    def _freeze(self, name: str, array: NDArray[Any]) -> None:
        copy = array.copy()
        copy.setflags(write=False)
        object.__setattr__(self, name, copy)

    def _error(self, what: str) -> ShareError:
        return ShareError(f"Party {self.party!r}: {what}. Have the sums made again by Party.class_sums.")

    @property
    def count_noise(self) -> float:
        """Standard deviation of the noise in each count."""
        return self.noise / self.clip

    @property
    def nbytes(self) -> int:
        """Size of the arrays, in bytes."""
        arrays = (self.classes, self.sums, self.counts, self.anchor_representation, self.anchor_target)
        return sum(array.nbytes for array in arrays if array is not None)
