"""The analytic Gaussian mechanism on every row."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, Interval
from ..errors import ObfuscationError
from ..targets import TargetKind
from ._defence import Defence
from ._gaussian_noise import SMALLEST_DELTA, clipped, gaussian_sigma, noisy
from ._promise import Promise
from ._published import Published

__all__ = ["GaussianMechanism"]


class GaussianMechanism(Defence):
    r"""Clip every row and add Gaussian noise: (epsilon, delta)-differential privacy of each row's representation [1]_.

    Rows farther than C from the mean of the anchor's representation are moved towards it until they are at distance C,
    the median distance of the anchor's rows from that mean.  Neither is learnt from private rows.  Replacing a row
    moves its clipped representation by at most 2C, and the noise has the standard deviation ``gaussian_sigma(epsilon,
    delta) * 2C`` in every column.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float, default=1e-5
        From 1e-12 on, and below 1; well below one over the number of rows.

    Raises
    ------
    ObfuscationError
        When more than half of the anchor's rows have the same representation, so that C is zero.

    Notes
    -----
    Whether the promise holds depends on everything before it: `Party.guarantee` says so, or why not.  It holds for the
    representation; targets and the number of rows are shared as they are.  What is
    published lies on a grid, so that its last bits tell nothing.

    Measured on ten parties of 100 images each and 16 columns, an epsilon of 16 leaves too little to be of use (MNIST
    accuracy .35 of .89).  One of 64 leaves .85, but promises next to nothing: whoever knows the anchor and the
    candidates still links three rows of four to the right one.

    References
    ----------
    .. [1] Balle and Wang (2018). Improving the Gaussian mechanism for differential privacy: analytical calibration and
       optimal denoising. ICML, PMLR 80, 394-403.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.party import GaussianMechanism
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> mechanism = GaussianMechanism(epsilon=8.0)
    >>> published, _ = mechanism.apply(
    ...     rows[:200], np.zeros(200), anchor_representation=rows[200:], random_state=0
    ... )
    >>> published.shape
    (200, 2)
    >>> round(mechanism.noise(rows[200:]) / mechanism.clip(rows[200:]), 3)
    1.2
    """

    needs_anchor: ClassVar[bool] = True
    independent_rows: ClassVar[bool] = True
    target_kinds: ClassVar[frozenset[TargetKind]] = frozenset(TargetKind)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, SMALLEST_DELTA, 1, closed="left")],
    }

    def __init__(self, epsilon: float, delta: float = 1e-5) -> None:
        self.epsilon = epsilon
        self.delta = delta

    def clip(self, anchor_representation: FloatArray) -> float:
        """C, the largest distance from the anchor's mean that a row may have.

        Raises
        ------
        ObfuscationError
            When it is zero.
        """
        centred = anchor_representation - anchor_representation.mean(axis=0)
        clip = float(np.median(np.linalg.norm(centred, axis=1)))
        if not clip > 0:
            raise ObfuscationError(
                "GaussianMechanism: more than half of the anchor's rows have the same representation, so the bound on "
                "a row's length is zero. Take an anchor whose rows differ."
            )
        return clip

    def noise(self, anchor_representation: FloatArray) -> float:
        """Standard deviation of the noise in every column."""
        return gaussian_sigma(self.epsilon, self.delta) * 2 * self.clip(anchor_representation)

    @property
    def is_private(self) -> bool:
        """True."""
        return True

    def promise(self, anchor_representation: FloatArray, anchor_target: NDArray[Any] | None) -> Promise | None:
        """Of each row's representation."""
        return Promise(
            epsilon=self.epsilon,
            delta=self.delta,
            clip=self.clip(anchor_representation),
            noise=self.noise(anchor_representation),
        )

    def _defend(
        self,
        representation: FloatArray,
        target: NDArray[Any],
        anchor_representation: FloatArray | None,
        anchor_target: NDArray[Any] | None,
        generator: np.random.RandomState,
    ) -> Published:
        assert anchor_representation is not None  # release() refuses otherwise
        rows = clipped(representation, anchor_representation.mean(axis=0), self.clip(anchor_representation))
        rows = noisy(rows, self.noise(anchor_representation), generator)
        return Published(rows=rows, target=target, own_rows=np.arange(len(rows)))
