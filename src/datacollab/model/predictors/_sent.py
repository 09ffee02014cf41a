"""What is taken out of a fitted estimator: steps to its scores, and on to its probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._typing import FloatArray
from ._columns import Affine, Stretch
from ._step import Step

__all__ = ["NotSendableError", "Sent", "floats", "picked", "stretch"]


class NotSendableError(Exception):
    """An estimator, or a setting of one, that no steps describe; the message says what it is."""


@dataclass(frozen=True)
class Sent:
    """A model as steps.

    Attributes
    ----------
    scores : tuple of Step
        To what `predict` decides by; of a regressor, to its prediction.
    link : tuple of Step or None
        From there to probabilities; None where the model has none.
    zero_is_second : bool
        Whether a single score of 0 means the second class.
    response : bool
        Whether the scores are what `decision_function` gives.
    """

    scores: tuple[Step, ...]
    link: tuple[Step, ...] | None = None
    zero_is_second: bool = False
    response: bool = False

    def after(self, *before: Step) -> Sent:
        """The same behind other steps."""
        return Sent((*before, *self.scores), self.link, self.zero_is_second, self.response)

    @property
    def probabilities(self) -> tuple[Step, ...]:
        """All steps to the probabilities."""
        if self.link is None:
            raise NotSendableError("a model without probabilities where they are needed")
        return (*self.scores, *self.link)


def floats(values: Any) -> FloatArray:
    """A table of double precision, row by row."""
    return np.ascontiguousarray(values, dtype=np.float64)


def stretch(factors: Any, offsets: Any) -> Stretch:
    """X a + b, column by column."""
    return Stretch(floats(factors), floats(offsets))


def picked(n_columns: int, columns: Any) -> Affine:
    """Some of the columns."""
    return Affine(np.eye(n_columns)[:, columns], np.zeros(len(np.arange(n_columns)[columns])))
