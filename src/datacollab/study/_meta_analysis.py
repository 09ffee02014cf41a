r"""Random-effects meta-analysis of a validation: how much a model's figures differ between parties.

Each party tries the model on its own rows, as `ModelValidation` does, with noise of its own, as much as a total has.
From these counts follow its figures :math:`\theta_k` and their variances :math:`v_k`, noise included.  The model is

.. math:: \theta_k \sim N(\mu, \tau^2 + v_k),

of the area under the curve, the calibration slope and intercept, and the logarithm of observed over expected events
[1]_.  For agreed values of :math:`\tau` parties add up the weights :math:`w_k = 1 / (\tau^2 + v_k)`,
:math:`w_k \theta_k` and :math:`w_k \theta_k^2`.  So all that a meta-analysis computes is known on a grid:

- :math:`Q = \sum w_k \theta_k^2 - (\sum w_k \theta_k)^2 / \sum w_k`, which at :math:`\tau = 0` is Cochran's, and its
  :math:`I^2`;
- :math:`\tau`, at which Q is the number of parties less one (Paule and Mandel [2]_);
- :math:`\mu`, and a prediction interval for a party that took no part [3]_.

The sums need no noise, as those counts have it.  Who solves them may learn each party's figures, without its name.

References
----------
.. [1] Debray et al. (2019). A framework for meta-analysis of prediction model studies with binary and time-to-event
   outcomes. Statistical Methods in Medical Research 28(9), 2768-2786.
.. [2] Paule and Mandel (1982). Consensus values and weighting factors. Journal of Research of the National Bureau of
   Standards 87(5), 377-385.
.. [3] Higgins, Thompson and Spiegelhalter (2009). A re-evaluation of random-effects meta-analysis. Journal of the
   Royal Statistical Society A 172(1), 137-159.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import special

from .._typing import FloatArray
from ..errors import NumericalError, ShareError
from ..sums._statistic import ResultTable, Statistic, StatisticResult, StudyTable, new_secret, refuse_total
from ..sums._words import standard_normal
from ._columns import number_text
from ._model_validation import ModelValidation, ModelValidationResult

FIGURES = ("AUC", "calibration slope", "calibration intercept", "observed / expected")
# Values of τ. Differences below .002 show in no figure; slopes that differ by 4 would be no validation.
_TAUS = np.r_[0.0, np.geomspace(0.002, 4.0, 119)]
# Figures beyond it, on the scale on which they are added up, count as if they were there.
_FARTHEST = 4.0
# Variances below that of a standard error of .002 count as that: numbers of a total have an end.
_LEAST_VARIANCE = 4e-6
# A party with a larger one has no figure.
_MOST_VARIANCE = 25.0
# Error of a slope that comes of predictions in parts, as docs/validation.md says, whatever the rows.
_OF_PARTS = 0.02
# A party has figures if this many times the events that can be shown are expected, and as many of the others. Whether
# it has them must not depend on its outcomes, or the mean would be of parties that happened to have many.
_ENOUGH = 2.0
# A variance between parties needs two degrees of freedom at least; each of two would know the other's figures.
_FEWEST_PARTIES = 3
# With fewer, intervals have two or three degrees of freedom.
_FEWEST_CLEAR = 5
_ROUNDING = 1e-6
_Z = float(special.ndtri(0.975))
_HEADS = ("figure", "parties", "value", "low", "high", "predicted low", "predicted high", "tau", "I2", "Q", "p")


class AcrossParties(NamedTuple):
    """A figure across parties; NaN where fewer than three parties could give it."""

    n_parties: int
    """Parties whose rows were enough for the figure."""
    value: float
    low: float
    high: float
    """The mean of parties and its 95 % interval."""
    predicted_low: float
    predicted_high: float
    """The 95 % prediction interval of the figure at a party that took no part."""
    tau: float
    """Standard deviation between parties; of observed over expected that of its logarithm."""
    i_squared: float
    """The part of the variance of parties' figures that is not of their errors."""
    q: float
    p: float
    """Cochran's Q and its p-value: small if parties differ."""


@dataclass(frozen=True, eq=False)
class MetaAnalysisResult(StatisticResult):
    """How much figures of a validation differ between parties.

    Attributes
    ----------
    figures : dict of str to AcrossParties
        By the figure's name, as in `FIGURES`.
    n_parties : int
    """

    figures: dict[str, AcrossParties]
    n_parties: int

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return that parties have no figure, and that few tell little of differences between them, if so."""
        fewest = min(each.n_parties for each in self.figures.values())
        found = []
        if fewest < self.n_parties:
            found.append(
                f"A figure is of {fewest} of {self.n_parties} parties: the others have too few rows of an outcome for "
                "one of their own, or too few different predictions for a slope."
            )
        if fewest < _FEWEST_CLEAR:
            found.append(f"From {fewest} parties it is hardly known how much parties differ, and intervals are wide.")
        return tuple(found)

    def table(self) -> ResultTable:
        """Return a line for each figure."""
        rows = [(name, f"{each.n_parties}", *map(number_text, each[1:])) for name, each in self.figures.items()]
        note = (
            f"A random-effects meta-analysis of what {self.n_parties} parties found on their own rows, each with noise "
            "of its own, which the intervals include. Low and high are of the mean party, at 95 %; the predicted ones "
            "of a party that took no part. tau is the standard deviation between parties (of the logarithm of observed "
            "/ expected); I2 is the part of the variance that is not of their errors. As in the validation, pairs of "
            "rows in one part of the predictions are ties, and make the AUC smaller."
        )
        return ResultTable(_HEADS, rows, note)


@dataclass(frozen=True)
class MetaAnalysis(Statistic):
    """Sums by which figures of a validation are compared between parties.

    Parameters
    ----------
    validation : ModelValidation
        The trial of the model.  A party with fewer than about fifty expected events, or others, has no figures.

    Raises
    ------
    AgreementError
        As `ModelValidation` raises it.

    Notes
    -----
    A party's own counts have as much noise as those of a validation's total, by itself: no party and no analyst needs
    to be trusted for it.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.study import CategoryColumn, MetaAnalysis, ModelValidation, NumberColumn
    >>> model = {"intercept": -3.0, "age": 0.05}
    >>> validation = ModelValidation(CategoryColumn("ill", (0, 1)), [NumberColumn("age", 0, 100)], model)
    >>> across, generator, total = MetaAnalysis(validation), np.random.default_rng(0), 0.0
    >>> for party in range(5):
    ...     age = generator.uniform(0, 100, 3000)
    ...     risk = 1 / (1 + np.exp(3 - 0.05 * age))
    ...     total = total + across.part({"age": age, "ill": (generator.random(3000) < risk).astype(int)})
    >>> found = across.result(total, n_parties=5)
    >>> found.figures["calibration slope"].n_parties
    5
    """

    validation: ModelValidation

    title: ClassVar[str] = "meta-analysis"
    tells: ClassVar[str] = (
        "how much figures of the validation differ between parties, and each party's, as warned below"
    )

    @property
    def own_validation(self) -> ModelValidation:
        """Return the validation of one party's rows."""
        return replace(self.validation, copies=self.copies)

    @property
    def spread(self) -> FloatArray:
        """Return zeros, shape (n_numbers,): the noise is in the counts of each party."""
        return np.zeros(len(FIGURES) * (1 + 3 * len(_TAUS)))

    @property
    def loss(self) -> float:
        """Return how far replacing one row moves a party's own counts at most, in units of their noise."""
        return self.own_validation.loss

    def add_up(self, table: StudyTable, secret: bytes) -> FloatArray:
        """Return the counts of `ModelValidation` over some rows of a party."""
        return self.own_validation.add_up(table, secret)

    def finish(self, sums: FloatArray, noise: float = 1.0) -> FloatArray:
        """Return the party's figures as weights and products on the grid, shape (n_numbers,), from noisy counts."""
        own = self.own_validation
        noisy = sums + noise * own.spread * standard_normal(new_secret(), len(sums))
        n_rows = noisy[:-2].reshape(2, -1)[:, 0].sum()
        n_expected = noisy[-2]
        if min(n_expected, n_rows - n_expected) < _ENOUGH * own.fewest_shown(noise):
            return np.zeros(len(self.spread))
        try:
            found = own.result(noisy, n_parties=1, noise=noise)
        # Hardly any rows of an outcome, or noise that no rows explain: the party has no figures.
        except (NumericalError, ShareError):
            return np.zeros(len(self.spread))
        return np.concatenate([_on_grid(theta, variance) for theta, variance in _figures(found)])

    def result(self, total: FloatArray, *, n_parties: int, noise: float = 1.0) -> MetaAnalysisResult:
        """Return the meta-analysis of each figure.

        It raises NumericalError if fewer than three parties could give any, and ShareError if numbers of the total
        contradict each other.
        """
        figures = {}
        for name, numbers in zip(FIGURES, np.split(total, len(FIGURES)), strict=True):
            refuse_total(_fault(numbers, n_parties), self.title)
            figures[name] = _back(name, _combine(numbers))
        if max(each.n_parties for each in figures.values()) < _FEWEST_PARTIES:
            raise NumericalError(
                f"Meta-analysis: fewer than {_FEWEST_PARTIES} parties have enough rows of both outcomes for figures of "
                "their own. Take the validation's totals, or agree on parties with more rows."
            )
        return MetaAnalysisResult(figures, n_parties)


def _figures(found: ModelValidationResult) -> list[tuple[float, float]]:
    """Return a party's figures and their variances, in order of `FIGURES`, on the scales of the meta-analysis."""
    # The logarithm of a ratio is nearer to normal (Debray et al.). So is the logit of an AUC, but not where noise is
    # most of its error: then parties whose AUC happens to be small would have too much weight.
    scaled = (found.auc, found.slope, found.intercept, tuple(np.log(found.ratio).tolist()))
    of_parts = (0.0, _OF_PARTS**2, 0.0, 0.0)
    # An interval's width gives the error.
    return [
        (value, ((high - low) / (2 * _Z)) ** 2 + more)
        for (value, low, high), more in zip(scaled, of_parts, strict=True)
    ]


def _on_grid(theta: float, variance: float) -> FloatArray:
    """Return 1, and for each τ the weight, the weighted figure and its weighted square; zeros without a figure."""
    # A slope that noise could decide is NaN, as is a ratio to next to no expected events.
    if not math.isfinite(theta) or not variance <= _MOST_VARIANCE:
        return np.zeros(1 + 3 * len(_TAUS))
    weights = 1 / (max(variance, _LEAST_VARIANCE) + _TAUS**2)
    theta = min(max(theta, -_FARTHEST), _FARTHEST)
    return np.concatenate([[1.0], weights, weights * theta, weights * theta**2])


def _fault(numbers: FloatArray, n_parties: int) -> str | None:
    """Return how these numbers contradict each other, or the number of parties, if so."""
    count = float(numbers[0])
    if not np.isfinite(numbers).all() or abs(count - round(count)) > _ROUNDING or not 0 <= round(count) <= n_parties:
        return "the number of parties with a figure is none"
    weights, products, squares = np.split(numbers[1:], 3)
    slack = _ROUNDING * (1 + n_parties)
    if round(count) == 0:
        return None if np.abs(numbers).max() <= slack else "there are figures of no party"
    least = round(count) / (_MOST_VARIANCE + _TAUS**2)
    most = round(count) / (_LEAST_VARIANCE + _TAUS**2)
    if (weights < least - slack).any() or (weights > most * (1 + _ROUNDING) + slack).any():
        return "a weight is smaller, or larger, than its parties allow"
    reach = _FARTHEST * weights * (1 + _ROUNDING) + slack
    if (np.abs(products) > reach).any() or (squares > _FARTHEST * reach).any():
        return "a figure is beyond its range"
    if (products**2 > (squares + slack) * (weights + slack) * (1 + _ROUNDING)).any():
        return "figures vary less than not at all"
    return None


def _combine(numbers: FloatArray) -> AcrossParties:
    """Return the meta-analysis of one figure from its sums on the grid, on the scale on which they were added up."""
    n_parties = round(float(numbers[0]))
    if n_parties < _FEWEST_PARTIES:
        return AcrossParties(n_parties, *[math.nan] * 9)
    weights, products, squares = np.split(numbers[1:], 3)
    means = products / weights
    q = np.maximum(squares - products * means, 0.0)
    freedom = n_parties - 1
    tau = _find_tau(q, freedom)
    # Between values of the grid both are smooth in τ.
    mean = float(np.interp(tau, _TAUS, means))
    error = math.sqrt(1 / float(np.exp(np.interp(tau, _TAUS, np.log(weights)))))
    # At Paule and Mandel's τ the variance of Hartung and Knapp is the usual one; where τ is 0 it would be smaller.
    reach = float(special.stdtrit(freedom, 0.975)) * error
    # One degree of freedom is less, as τ is estimated, too.
    predicted = float(special.stdtrit(freedom - 1, 0.975)) * math.hypot(tau, error)
    cochran = float(q[0])
    return AcrossParties(
        n_parties,
        mean,
        mean - reach,
        mean + reach,
        mean - predicted,
        mean + predicted,
        tau,
        max(0.0, 1 - freedom / cochran) if cochran > 0 else 0.0,
        cochran,
        float(special.chdtrc(freedom, cochran)),
    )


def _find_tau(q: FloatArray, freedom: int) -> float:
    """Return the τ at which Q, which falls with τ, is its expectation; 0 if it is smaller from the start."""
    if q[0] <= freedom:
        return 0.0
    later = np.flatnonzero(q <= freedom)
    # Parties that differ more than the grid reaches have its end.
    if not len(later):
        return float(_TAUS[-1])
    after = int(later[0])
    return float(np.interp(-freedom, -q[after - 1 : after + 1], _TAUS[after - 1 : after + 1]))


def _back(name: str, found: AcrossParties) -> AcrossParties:
    """Return the mean and its intervals on the figure's own scale."""
    own = np.array(found[1:6])
    if name == "AUC":
        own = np.clip(own, 0.0, 1.0)
    if name == "observed / expected":
        own = np.exp(own)
    value, low, high, predicted_low, predicted_high = own.tolist()
    return found._replace(value=value, low=low, high=high, predicted_low=predicted_low, predicted_high=predicted_high)
