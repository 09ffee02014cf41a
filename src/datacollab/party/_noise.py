"""Gaussian noise on what is shared, without a guarantee."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, Interval
from ..errors import ObfuscationError
from ..targets import TargetKind
from ._defence import Defence
from ._published import Published

__all__ = ["GaussianNoise"]


class GaussianNoise(Defence):
    """Add Gaussian noise, in units of each column's standard deviation over the party's rows.

    Parameters
    ----------
    scale : float, default=1.0
        Standard deviation of the noise over that of the column.

    Raises
    ------
    ObfuscationError
        When there is but one row, whose columns have no standard deviation.

    Notes
    -----
    No guarantee: the size of the noise depends on the private rows, and these are not clipped; for one there is
    `GaussianMechanism`.  At equal accuracy of the collaboration, `Microaggregation` leaves less to be recovered.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.party import GaussianNoise
    >>> rows = np.random.default_rng(0).normal(scale=100.0, size=(5000, 1))
    >>> published, _ = GaussianNoise(scale=0.5).apply(rows, np.zeros(5000), random_state=0)
    >>> round(float(np.std(published - rows)), -1)
    50.0
    """

    target_kinds: ClassVar[frozenset[TargetKind]] = frozenset(TargetKind)
    _parameter_constraints: ClassVar[dict[str, Any]] = {"scale": [Interval(Real, 0, None, closed="neither")]}

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def _defend(
        self,
        representation: FloatArray,
        target: NDArray[Any],
        anchor_representation: FloatArray | None,
        anchor_target: NDArray[Any] | None,
        generator: np.random.RandomState,
    ) -> Published:
        n_rows = len(representation)
        if n_rows < 2:
            raise ObfuscationError("GaussianNoise: one row has no standard deviation, so it would leave without noise.")
        noise = generator.standard_normal(representation.shape) * (self.scale * representation.std(axis=0))
        return Published(rows=representation + noise, target=target, own_rows=np.arange(n_rows))
