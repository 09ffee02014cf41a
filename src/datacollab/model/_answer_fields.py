"""What the common model says of the anchor's rows, as checked fields that know of no file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray, PartyName

__all__ = ["AnswerFields"]

_TOLERANCE = 1e-6
_MOST_ENTRY = 1e30
"""As of shares: squares are finite in double precision."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AnswerFields:
    """The fields and their checks; `AnchorAnswers`, where they are described, is this with its file."""

    party: PartyName
    values: FloatArray
    classes: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        try:
            values = np.array(self.values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"Answers for party {self.party!r} must be numbers.") from None
        classes = None if self.classes is None else np.array(self.classes)
        wanted = values.shape[:1] if classes is None else (*values.shape[:1], *classes.shape)
        if values.ndim < 1 or not values.size or values.shape != wanted or (classes is not None and classes.ndim != 1):
            raise ValueError(
                f"Answers for party {self.party!r} must be one number for each anchor row, or one probability for each "
                f"row and class; got an array of shape {values.shape} and "
                f"{'no classes' if classes is None else f'classes of shape {classes.shape}'}."
            )
        # Written so that NaN, which compares to nothing, is refused as well.
        if not np.abs(values).max() <= _MOST_ENTRY:
            raise ValueError(
                f"Answers for party {self.party!r} must be finite, and none beyond {_MOST_ENTRY:g}; some are not."
            )
        if classes is not None and not _are_probabilities(values):
            raise ValueError(
                f"Answers for party {self.party!r} must be probabilities of {len(classes)} classes that add up to one "
                "in each row; some are not."
            )
        self._freeze("values", values)
        if classes is not None:
            if not np.array_equal(np.unique(classes), classes):
                raise ValueError(f"Answers for party {self.party!r} must name each class once, and in order.")
            self._freeze("classes", classes)

    def _freeze(self, name: str, array: NDArray[Any]) -> None:
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    @property
    def n_anchors(self) -> int:
        """Rows of the anchor that are answered."""
        return len(self.values)

    @property
    def predicted(self) -> NDArray[Any]:
        """The most probable class of each anchor row, or its number, of shape (n_anchors,)."""
        return self.values if self.classes is None else np.asarray(self.classes[self.values.argmax(axis=1)])

    def __repr__(self) -> str:
        kind = "numbers" if self.classes is None else f"probabilities of {len(self.classes)} classes"
        return f"{type(self).__name__}(party={self.party!r}, {self.n_anchors} rows, {kind})"


def _are_probabilities(values: FloatArray) -> bool:
    within = values.min() >= -_TOLERANCE and values.max() <= 1 + _TOLERANCE
    return bool(within and np.abs(values.sum(axis=1) - 1.0).max() <= _TOLERANCE)
