"""Gaussian noise that keeps a promise: how much of it, what the promise means, and its last bits.

* Gaussian noise on what is shared, without a guarantee.
* The analytic Gaussian mechanism on every row.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, Interval
from ..errors import ObfuscationError
from ..linalg import SMALLEST_DELTA, gaussian_sigma
from ..targets import TargetKind
from ._defence import Defence, Promise, Published

__all__ = [
    "GaussianMechanism",
    "GaussianNoise",
    "clipped",
    "grid_step",
    "noisy",
]


_FINENESS = 12
"""The grid on which noised numbers lie, in powers of two below the standard deviation."""


def grid_step(sigma: float) -> float:
    """Distance between the numbers that noise of this standard deviation may lead to: a power of two."""
    return 2.0 ** (math.floor(math.log2(sigma)) - _FINENESS)


def noisy(values: FloatArray, sigma: float, generator: np.random.RandomState) -> FloatArray:
    r"""Values with Gaussian noise, on a grid [1]_.

    .. math:: g \, \mathrm{round}((x + \sigma n) / g), \qquad g = 2^{\lfloor \log_2 \sigma \rfloor - 12}

    Without the rounding, the last bits of a sum would tell which numbers it can be the sum of, and with them the
    noise.  Rounding takes nothing from the promise, and changes a value by less than a thousandth of the noise.

    Parameters
    ----------
    values : ndarray
    sigma : float
        Standard deviation of the noise, above 0.
    generator : RandomState

    References
    ----------
    .. [1] Mironov (2012). On significance of the least significant bits for differential privacy. CCS, 650-661.
    """
    step = grid_step(sigma)
    return np.asarray(np.round((values + sigma * generator.standard_normal(values.shape)) / step) * step)


def clipped(X: FloatArray, center: FloatArray, radius: float) -> FloatArray:
    """Rows moved towards `center` until none is farther from it than `radius`, shape (n_rows, n_columns)."""
    centred = X - center
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(centred, axis=1)
    factors = np.minimum(1.0, radius / np.maximum(lengths, np.finfo(float).tiny))
    return np.asarray(center + centred * factors[:, None])


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

    kind: ClassVar[str] = "noise"
    target_kinds: ClassVar[frozenset[TargetKind]] = frozenset(TargetKind)
    _parameter_constraints: ClassVar[dict[str, Any]] = {"scale": [Interval(Real, 0, None, closed="neither")]}

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    @property
    def description(self) -> str:
        """What it does to the rows, for people."""
        return f"noise of {self.scale:g} standard deviations"

    @property
    def options(self) -> str:
        """The options of `datacollab party share` that choose it."""
        return f"--noise {self.scale:g}"

    def _defend(
        self,
        representation: FloatArray,
        target: NDArray[Any],
        anchor_representation: FloatArray | None,
        generator: np.random.RandomState,
    ) -> Published:
        n_rows = len(representation)
        if n_rows < 2:
            raise ObfuscationError("GaussianNoise: one row has no standard deviation, so it would leave without noise.")
        noise = generator.standard_normal(representation.shape) * (self.scale * representation.std(axis=0))
        return Published(rows=representation + noise, target=target, own_rows=np.arange(n_rows))


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

    kind: ClassVar[str] = "noise"
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

    @property
    def description(self) -> str:
        """What it does to the rows, for people."""
        return f"Gaussian mechanism, epsilon {self.epsilon:g}, delta {self.delta:g}"

    @property
    def options(self) -> str:
        """The options of `datacollab party share` that choose it."""
        return f"--epsilon {self.epsilon:g}"

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

    def promise(self, anchor_representation: FloatArray) -> Promise | None:
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
        generator: np.random.RandomState,
    ) -> Published:
        assert anchor_representation is not None  # release() refuses otherwise
        rows = clipped(representation, anchor_representation.mean(axis=0), self.clip(anchor_representation))
        rows = noisy(rows, self.noise(anchor_representation), generator)
        return Published(rows=rows, target=target, own_rows=np.arange(len(rows)))
