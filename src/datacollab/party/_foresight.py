"""Whether collaboration can be expected to pay, before anything leaves.

* How an error falls with the number of rows: a power law through a few sizes, and what more rows would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validation import FloatArray
from ._paired_intervals import Estimate
from ._utility_plots import foresight_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Foresight", "PowerLaw", "power_law", "resampled_means"]


STEEPEST = 1.0
"""Largest exponent: no error falls faster than one over the number of rows for long."""


@dataclass(frozen=True, eq=False)
class PowerLaw:
    r"""Errors :math:`e(n) = a n^{-b}`, one law or many.

    Attributes
    ----------
    log_factor : ndarray of shape (...)
        log a.
    exponent : ndarray of shape (...)
        b, from 0 (more rows are of no use) to 1.
    """

    log_factor: FloatArray
    exponent: FloatArray

    def __call__(self, n_rows: float | FloatArray) -> FloatArray:
        """Errors with so many rows, shape (...); or one law's for several numbers of rows."""
        return np.asarray(np.exp(self.log_factor - self.exponent * np.log(n_rows)))


def power_law(sizes: FloatArray, errors: FloatArray) -> PowerLaw:
    r"""Fit :math:`\log e = \log a - b \log n` by least squares, with b between 0 and 1.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,)
        Rows; not all equal.
    errors : ndarray of shape (..., n_sizes)
        Above 0.

    Returns
    -------
    PowerLaw

    References
    ----------
    .. [1] Viering and Loog (2023). The shape of learning curves: a review. IEEE Transactions on Pattern Analysis and
       Machine Intelligence 45(6), 7799-7819.
    """
    x, z = np.log(sizes), np.log(errors)
    centred = x - x.mean()
    exponent = np.clip(-(z @ centred) / (centred @ centred), 0.0, STEEPEST)
    return PowerLaw(log_factor=z.mean(axis=-1) + exponent * x.mean(), exponent=exponent)


def resampled_means(values: FloatArray, n_draws: int, generator: np.random.RandomState) -> FloatArray:
    """Means over rows drawn with replacement: how figures of one sample of rows vary, together.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_figures)
    n_draws : int
    generator : RandomState

    Returns
    -------
    ndarray of shape (n_draws, n_figures)
    """
    n = len(values)
    counts = generator.multinomial(n, np.full(n, 1 / n), size=n_draws)
    return np.asarray(counts @ values / n)


_OPENINGS = {
    "yes": "Collaboration can be expected to pay",
    "no": "Collaboration cannot be expected to pay",
    "unclear": "It is unclear whether collaboration would pay",
}


@dataclass(frozen=True, kw_only=True)
class Foresight:
    """What more rows would bring to one party, and what sharing would cost it.

    Errors are shares of wrong predictions, or root mean squared errors; every figure has a 95 % interval.

    Attributes
    ----------
    pays : {"yes", "no", "unclear"}
        "yes" where the net gain is above 0 in nine of ten resamples of the own rows or more, "no" where it is not
        above 0 by itself, "unclear" between.
    metric : {"error rate", "RMSE"}
    n_rows, n_public, n_total_rows : int
        Own rows, labelled public ones, and rows of all parties.
    sizes : tuple of int
        Labelled rows, own and public, at which the best own model was measured.
    errors : tuple of Estimate
        At these.
    exponent : float
        b of the power law n⁻ᵇ through them.
    alone : Estimate
        With all rows that the party has now: the last of `errors`.
    gain : Estimate
        By how much the error would fall with the rows of all parties.
    obfuscator_cost : Estimate
        By how much it rises where f_k(X) stands for X.
    defence_cost : Estimate or None
        By how much more where the rows that are learnt from are defended; None without defences.
    net_gain : Estimate
        `gain` less the costs, and no more than the error that there is; a cost below 0 is a help.
    probability : float
        Share of resamples of the own rows in which the net gain is above 0.
    together : Estimate
        The error to be expected of collaboration: `alone` less `net_gain`.

    Notes
    -----
    Leaves the party: nothing, unless it shows this to somebody.

    It is a forecast: the others' rows are taken to be as useful as own ones, the power law to hold on, and the
    integration to lose nothing.  All three flatter collaboration; so "no" means more than "yes".
    """

    pays: str
    metric: str
    n_rows: int
    n_public: int
    n_total_rows: int
    sizes: tuple[int, ...]
    errors: tuple[Estimate, ...]
    exponent: float
    alone: Estimate
    gain: Estimate
    obfuscator_cost: Estimate
    defence_cost: Estimate | None
    net_gain: Estimate
    probability: float
    together: Estimate

    @property
    def sentence(self) -> str:
        """Whether it pays and why, in words."""
        costs = f"the representation costs {self._figure(self.obfuscator_cost)}"
        if self.defence_cost is not None:
            costs += f" and the defence {self._figure(self.defence_cost)}"
        public = f" and {self.n_public} labelled public ones" if self.n_public else ""
        unit = "points of error" if self.metric == "error rate" else "% of the error"
        low, high = self._size(self.net_gain.low), self._size(self.net_gain.high)
        return (
            f"{_OPENINGS[self.pays]}: of an error of {self._error(self.alone)} with {self.n_rows} own rows{public}, "
            f"the rows of all parties ({self.n_total_rows}) would take {self._figure(self.gain)} {unit}; {costs}. "
            f"That leaves {self._figure(self.net_gain)} (95 % interval {low} to {high})."
        )

    def _error(self, estimate: Estimate) -> str:
        return f"{100 * estimate.value:.1f} %" if self.metric == "error rate" else f"{estimate.value:.4g}"

    def _figure(self, estimate: Estimate) -> str:
        return self._size(estimate.value)

    def _size(self, value: float) -> str:
        """Points of error rate, or percent of the root mean squared error."""
        whole = 1.0 if self.metric == "error rate" else max(self.alone.value, 1e-300)
        return f"{100 * value / whole + 0.0:.1f}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it, the sentence included."""
        estimates = ("alone", "gain", "obfuscator_cost", "defence_cost", "net_gain", "together")
        figures: dict[str, Estimate | None] = {name: getattr(self, name) for name in estimates}
        return {
            "pays": self.pays,
            "metric": self.metric,
            "n_rows": self.n_rows,
            "n_public": self.n_public,
            "n_total_rows": self.n_total_rows,
            "sizes": list(self.sizes),
            "errors": [error.to_dict() for error in self.errors],
            "exponent": self.exponent,
            **{name: None if one is None else one.to_dict() for name, one in figures.items()},
            "probability": self.probability,
            "sentence": self.sentence,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the learning curve, what it promises, and what collaboration would come to.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None makes a figure.

        Raises
        ------
        MissingExtraError
            When matplotlib is not installed.
        """
        x = np.log(self.sizes)
        law = power_law(np.array(self.sizes, dtype=float), np.array([max(one.value, 1e-300) for one in self.errors]))
        reach = np.exp(np.linspace(x[0], np.log(self.n_total_rows + self.n_public), 50))
        rows = f"labelled rows, of them {self.n_public} public" if self.n_public else "rows"
        return foresight_axes(
            self.sizes, self.errors, law(reach), reach, self.together, rows, self.metric, _OPENINGS[self.pays], ax
        )
