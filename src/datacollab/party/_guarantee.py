"""What differential privacy promises about a share, and when nothing can be promised."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from .._validation import FloatArray, PartyName
from ..linalg import gaussian_epsilon, gaussian_sigma
from ._defence import Defence, Promise

__all__ = ["PrivacyGuarantee", "guarantee_of", "mu_of", "obstacle_before", "obstacle_in"]

LONE_ROWS = 10
"""Rows that are transformed one by one, to see whether the obfuscator maps each row by itself."""
MOST_NUMBERS = 8
"""Entries of a list that still is a setting rather than data."""
_TEXTS = "OUS"
SAME_ROW = 1e-6
"""Largest difference, relative to the largest entry, between a row alone and among others."""


@dataclass(frozen=True, kw_only=True)
class PrivacyGuarantee:
    """Differential privacy of what a party publishes.

    Attributes
    ----------
    party : str or int
    epsilon, delta : float
    n_rows : int
        Rows of the party.
    mu : float
        Telling two neighbouring tables apart by the share is as hard as telling two normal distributions apart whose
        means are mu standard deviations from one another, or harder [1]_.
    change : str
        Which change of the table cannot be told by more than that.
    not_covered : str
        What is released as it is.
    clip : float or None
        Largest distance of a row from the mean of the anchor's representation, before noise.
    noise : float or None
        Standard deviation of the noise in every column.
    n_shares : int
        Shares of the same rows that it covers together.

    References
    ----------
    .. [1] Dong, Roth and Su (2022). Gaussian differential privacy. Journal of the Royal Statistical Society B 84(1),
       3-37.
    """

    party: PartyName
    epsilon: float
    delta: float
    n_rows: int
    mu: float
    change: str
    not_covered: str
    clip: float | None = None
    noise: float | None = None
    n_shares: int = 1

    @property
    def auc_at_most(self) -> float:
        r"""Area under the curve that no membership attack on the share exceeds: :math:`\Phi(\mu/\sqrt 2)`."""
        return float(ndtr(self.mu / math.sqrt(2)))

    def tpr_at_most(self, fpr: float) -> float:
        r"""Share of members that no attack finds which takes a part `fpr` of others for members.

        It is :math:`\Phi(\mu + \Phi^{-1}(\mathrm{fpr}))`, the power of the best test of two normal distributions.

        Parameters
        ----------
        fpr : float
            From 0 to 1.
        """
        if not 0 <= fpr <= 1:
            raise ValueError(f"fpr must be from 0 to 1; got {fpr!r}.")
        return float(ndtr(self.mu + ndtri(fpr)))

    @property
    def statement(self) -> str:
        """What is promised, what is not, and what it rests on."""
        shares = "one share" if self.n_shares == 1 else f"{self.n_shares} shares of these rows together"
        return (
            f"Party {self.party!r}: what is published is ({self.epsilon:g}, {self.delta:g})-differentially private for "
            f"each of its {self.n_rows} rows: {self.change}, the probability of whatever is published would change at "
            f"most by the factor exp({self.epsilon:g}), up to {self.delta:g}. So no attack on the share, whatever else "
            "it knows, tells whether a row is in it with an area under the curve above "
            f"{_rounded_up(self.auc_at_most)}, nor finds more than {_rounded_up(self.tpr_at_most(0.01))} of the rows "
            f"while taking one in a hundred others for one. {self.not_covered} Someone with m rows in the table is "
            f"covered less, for about m times epsilon. This holds for {shares}. It presumes that the rows in fit_on "
            "and the anchor are not private nor made from private rows, and that no parameter was chosen by looking at "
            "private rows."
        )

    def __str__(self) -> str:
        return self.statement


def guarantee_of(promise: Promise, party: PartyName, n_rows: int, earlier_mu: Sequence[float] = ()) -> PrivacyGuarantee:
    """What a promise comes to, together with earlier ones for the same rows: their mu add up in squares.

    Parameters
    ----------
    promise : Promise
    party : str or int
    n_rows : int
    earlier_mu : sequence of float, default=()
    """
    mu = mu_of(promise)
    together = math.hypot(mu, *earlier_mu)
    return PrivacyGuarantee(
        party=party,
        epsilon=gaussian_epsilon(1 / together, promise.delta) if len(earlier_mu) else promise.epsilon,
        delta=promise.delta,
        n_rows=n_rows,
        mu=together,
        change=promise.change,
        not_covered=promise.not_covered,
        clip=promise.clip,
        noise=promise.noise,
        n_shares=1 + len(earlier_mu),
    )


def mu_of(promise: Promise) -> float:
    """Sensitivity over the standard deviation of the noise."""
    return 1 / gaussian_sigma(promise.epsilon, promise.delta)


def _rounded_up(share: float) -> str:
    return f"{math.ceil(share * 100) / 100:.2f}"


def obstacle_in(defences: Sequence[Defence]) -> tuple[Defence | None, str | None]:
    """The defence that covers what a party shares, or why none does.

    What comes after it works on what it published, which takes nothing from the promise.  What comes before must change
    each row by itself: where replacing one row changes others, noise made for one row does not cover them.
    """
    mechanism = next((defence for defence in defences if defence.has_promise), None)
    if mechanism is None:
        return None, "there is no GaussianMechanism among its defences"
    before = next(defence for defence in defences if defence is mechanism or not defence.independent_rows)
    if before is mechanism:
        return mechanism, None
    name = type(mechanism).__name__
    return None, (
        f"{type(before).__name__} comes before {name} and makes rows depend on one another, so replacing one row may "
        f"change many of those published; put {name} first"
    )


def obstacle_before(
    obfuscator: Any,
    *,
    on_public_rows: bool,
    n_own_rows: int,
    random_state: Any,
    transform: Callable[[Any], FloatArray],
    X: Any,
) -> str | None:
    """Why what comes before the defences is not independent of private rows; None where nothing is found.

    Parameters
    ----------
    obfuscator : transformer
    on_public_rows : bool
        Whether it was fitted on public rows.
    n_own_rows : int
        How many of these are own rows.
    random_state : int, RandomState or None
        Of the party.
    transform : callable
        Of the obfuscator.
    X : array-like or dataframe of shape (n_samples, n_features)
    """
    if not on_public_rows:
        return (
            "its obfuscator, with every scaler and bandwidth in it, was fitted on its private rows; give public rows "
            "as fit_on"
        )
    if n_own_rows:
        return f"{n_own_rows} rows of fit_on are also among its private rows; take them out"
    if random_state is not None:
        return "its noise comes from a random_state, and whoever knows that can subtract it; leave it None"
    kept = _kept_from_elsewhere(obfuscator)
    if kept is not None:
        return (
            f"its obfuscator holds a {kept}, which keeps what it was fitted on before or was given; let fit_on teach it"
        )
    if not _maps_rows_alone(transform, X):
        return "its obfuscator maps a row differently when others are beside it, so each row depends on all"
    return None


def _kept_from_elsewhere(obfuscator: Any) -> str | None:
    """A parameter that brings something along: a step that a clone leaves fitted, or numbers, or a closure."""
    if kept := _what_is_kept(obfuscator):
        return kept
    parameters = obfuscator.get_params(deep=True)
    return next((kept for value in parameters.values() if (kept := _what_is_kept(value))), None)


def _what_is_kept(value: Any) -> str | None:
    name = type(value).__name__
    own_way = getattr(type(value), "__sklearn_clone__", None)
    if own_way is not None and own_way is not BaseEstimator.__sklearn_clone__:
        return name
    if isinstance(value, functools.partial) or getattr(value, "__closure__", None):
        return f"{name} with values of its own"
    if isinstance(value, Mapping):
        return next((kept for each in value.values() if (kept := _what_is_kept(each))), None)
    if isinstance(value, list | tuple):
        numbers = [each for each in value if isinstance(each, Real)]
        if len(numbers) > MOST_NUMBERS:
            return f"{name} of {len(numbers)} numbers"
        return next((kept for each in value if (kept := _what_is_kept(each))), None)
    shape = np.shape(value) if sparse.issparse(value) or hasattr(value, "__array__") else ()
    # Names of columns and of categories are texts.
    return (
        None
        if shape == () or getattr(getattr(value, "dtype", None), "kind", "f") in _TEXTS
        else f"{name} of shape {shape}"
    )


def _maps_rows_alone(transform: Callable[[Any], FloatArray], X: Any) -> bool:
    together = transform(X)
    allowed = SAME_ROW * np.abs(together).max()
    chosen = np.unique(np.linspace(0, len(together) - 1, LONE_ROWS, dtype=int))
    return all(np.abs(transform(_safe_indexing(X, [i])) - together[i]).max() <= allowed for i in chosen)
