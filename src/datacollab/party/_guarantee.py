"""Differential privacy of a share: what is promised, and whether the promise has a basis."""

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
from ..errors import NoGuaranteeError
from ..linalg import gaussian_epsilon, gaussian_sigma
from ._defence import Defence, Promise
from ._release import FittedTable, RowDigests

__all__ = ["Basis", "PrivacyGuarantee", "guarantee_of", "mu_of", "obstacle_before", "obstacle_in"]

LONE_ROWS = 10
"""Rows that are transformed one by one, to see whether the obfuscator maps each row by itself."""
MOST_NUMBERS = 8
"""Entries of a list that still is a setting rather than data."""
_TEXTS = "OUS"
SAME_ROW = 1e-6
"""Largest difference, relative to the largest entry, between a row alone and among others."""


@dataclass(frozen=True, kw_only=True)
class PrivacyGuarantee:
    """Differential privacy of a party's share.

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
        The change of the table that cannot be noticed by more than that.
    not_covered : str
        A sentence on what is released as it is.
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
        r"""Return the share of members that no attack exceeds which takes a part `fpr` of others for members.

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
        """The promise, its limits, and its conditions."""
        shares = "one share" if self.n_shares == 1 else f"{self.n_shares} shares of these rows together"
        return (
            f"Party {self.party!r}: what is published is ({self.epsilon:g}, {self.delta:g})-differentially private for "
            f"each of its {self.n_rows} rows: {self.change}, the probability of any publication would change at "
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
    """Return the guarantee of a promise and earlier ones for the same rows: their mu add up in squares."""
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
    """Return sensitivity over the standard deviation of the noise."""
    return 1 / gaussian_sigma(promise.epsilon, promise.delta)


def _rounded_up(share: float) -> str:
    return f"{math.ceil(share * 100) / 100:.2f}"


def obstacle_in(defences: Sequence[Defence]) -> tuple[Defence | None, str | None]:
    """Return the defence that covers a share, or why none does.

    Defences after it take nothing from the promise.  Those before must change each row by itself: if replacing one row
    changes others, noise made for one row does not cover them.
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
    """Return why the map before the defences depends on private rows, or None.

    `n_own_rows` of the public rows that it was fitted on are own rows; `transform` is the fitted obfuscator's.
    """
    if not on_public_rows:
        return (
            "its obfuscator, with every scaler and bandwidth in it, was fitted on its private rows; give public rows "
            "as fit_on"
        )
    if n_own_rows:
        return f"{n_own_rows} rows of fit_on are also among its private rows; take them out"
    if random_state is not None:
        return "its noise comes from a random_state, and anyone who knows that can subtract it; leave it None"
    kept = _kept_from_elsewhere(obfuscator)
    if kept is not None:
        return (
            f"its obfuscator holds a {kept}, which keeps what it was fitted on before or was given; let fit_on teach it"
        )
    if not _maps_rows_alone(transform, X):
        return "its obfuscator maps a row differently when others are beside it, so each row depends on all"
    return None


def _kept_from_elsewhere(obfuscator: Any) -> str | None:
    """Return a parameter that keeps something: a step that a clone leaves fitted, or numbers, or a closure."""
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


@dataclass(frozen=True, eq=False)
class Basis:
    """The conditions of a guarantee: the defence that promises, or an obstacle; own rows, sought in an anchor."""

    party: PartyName
    n_rows: int
    mechanism: Defence | None
    obstacle: str | None
    own_rows: RowDigests | None

    def guarantee(self, anchor: Any, representation: FloatArray, table: FittedTable | None) -> PrivacyGuarantee:
        """Return the guarantee with this anchor and earlier shares of the same rows, or raise NoGuaranteeError."""
        promise = self._promise(anchor, representation)
        earlier = [] if table is None else table.shared_before
        spent = [each.mu for each in earlier if each.mu is not None]
        if len(spent) < len(earlier):
            raise self._refusal("some of its rows were shared before, and nothing was promised then")
        return guarantee_of(promise, self.party, self.n_rows, spent)

    def mu(self, anchor: Any, representation: FloatArray) -> float | None:
        """Return what a share with this anchor spends; None without a promise."""
        try:
            return mu_of(self._promise(anchor, representation))
        except NoGuaranteeError:
            return None

    def _promise(self, anchor: Any, representation: FloatArray) -> Promise:
        if self.mechanism is None or self.obstacle is not None:
            raise self._refusal(str(self.obstacle))
        if self.own_rows is not None and (n_own := self.own_rows.count_in(anchor)):
            raise self._refusal(f"{n_own} rows of the anchor are also among its private rows; take them out")
        promise = self.mechanism.promise(representation)
        if promise is None:
            raise self._refusal(f"{type(self.mechanism).__name__} promises nothing with this anchor")
        if promise.delta * self.n_rows >= 1:
            raise self._refusal(
                f"delta={promise.delta:g} is not below one over its {self.n_rows} rows; publishing one of them as it "
                "is would satisfy that"
            )
        return promise

    def _refusal(self, reason: str) -> NoGuaranteeError:
        return NoGuaranteeError(f"Party {self.party!r}: no epsilon can be stated, for {reason}.")
