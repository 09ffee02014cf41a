"""What the private preset does: it depends on whether the anchor has targets."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, Interval
from ._class_shift import ClassShift
from ._defence import Defence
from ._gaussian_noise import SMALLEST_DELTA
from ._labelled_anchors import LabelledAnchors
from ._promise import Promise
from ._published import Published

__all__ = ["ShiftOrLabels"]


class ShiftOrLabels(Defence):
    """`ClassShift` where the anchor has targets, `LabelledAnchors` where it has none.

    Parameters
    ----------
    epsilon : float, default=4.0
        Of the class shift.  Labelling promises nothing.
    delta : float, default=1e-5
    n_rows : int, default=300
        Anchor rows that are labelled.
    """

    needs_anchor: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, SMALLEST_DELTA, 1, closed="left")],
        "n_rows": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, epsilon: float = 4.0, delta: float = 1e-5, *, n_rows: int = 300) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_rows = n_rows

    @property
    def is_private(self) -> bool:
        """True: with an anchor that has targets."""
        return True

    def promise(self, anchor_representation: FloatArray, anchor_target: NDArray[Any] | None) -> Promise | None:
        """That of the class shift; None where the anchor has no targets."""
        return self._chosen(anchor_target).promise(anchor_representation, anchor_target)

    def _chosen(self, anchor_target: NDArray[Any] | None) -> Defence:
        return LabelledAnchors(self.n_rows) if anchor_target is None else ClassShift(self.epsilon, self.delta)

    def _defend(
        self,
        representation: FloatArray,
        target: NDArray[Any],
        anchor_representation: FloatArray | None,
        anchor_target: NDArray[Any] | None,
        generator: np.random.RandomState,
    ) -> Published:
        chosen = self._chosen(anchor_target)
        return chosen.release(representation, target, anchor_representation, anchor_target, generator)
