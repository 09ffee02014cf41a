"""What differential privacy promises about a share, and when nothing can be promised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from .._validation import FloatArray, PartyName
from ._defence import Defence
from ._gaussian_mechanism import GaussianMechanism

__all__ = ["PrivacyGuarantee", "obstacle_before", "obstacle_in"]

LONE_ROWS = 10
"""Rows that are transformed one by one, to see whether the obfuscator maps each row by itself."""
SAME_ROW = 1e-6
"""Largest difference, relative to the largest entry, between a row alone and among others."""


@dataclass(frozen=True, kw_only=True)
class PrivacyGuarantee:
    """Differential privacy of each row's published representation.

    Attributes
    ----------
    party : str or int
    epsilon, delta : float
    n_rows : int
        Rows of the party.
    clip : float
        Largest distance of a row from the mean of the anchor's representation, before noise.
    noise : float
        Standard deviation of the noise in every column.
    """

    party: PartyName
    epsilon: float
    delta: float
    n_rows: int
    clip: float
    noise: float

    @property
    def statement(self) -> str:
        """What is promised, what is not, and what it rests on."""
        return (
            f"Party {self.party!r}: the published representation is ({self.epsilon:g}, {self.delta:g})-differentially "
            f"private for each of its {self.n_rows} rows: if the features of one row were replaced by any others, with "
            "all other rows, all targets and the number of rows unchanged, the probability of whatever is published "
            f"would change at most by the factor exp({self.epsilon:g}), up to {self.delta:g}. Labels (targets) and row "
            "counts are released exactly and are not covered. Someone with m rows in the table is covered less, for "
            "about m times epsilon. This holds for one share. It presumes that the rows in fit_on and the anchor are "
            "not private nor made from private rows, and that no parameter was chosen by looking at private rows."
        )

    def __str__(self) -> str:
        return self.statement


def obstacle_in(defences: Sequence[Defence]) -> tuple[GaussianMechanism | None, str | None]:
    """The Gaussian mechanism that covers what a party shares, or why none does.

    What comes after it works on what it published, which takes nothing from the promise.  What comes before must change
    each row by itself: where replacing one row changes others, noise made for one row does not cover them.
    """
    mechanism = next((defence for defence in defences if isinstance(defence, GaussianMechanism)), None)
    if mechanism is None:
        return None, "there is no GaussianMechanism among its defences"
    before = next(defence for defence in defences if defence is mechanism or not defence.independent_rows)
    if before is mechanism:
        return mechanism, None
    return None, (
        f"{type(before).__name__} comes before the GaussianMechanism and makes rows depend on one another, so "
        "replacing one row may change many of those published; put the mechanism first"
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
        return f"its obfuscator holds a {kept}, which keeps what it was fitted on before; let fit_on teach it"
    if not _maps_rows_alone(transform, X):
        return "its obfuscator maps a row differently when others are beside it, so each row depends on all"
    return None


def _kept_from_elsewhere(obfuscator: Any) -> str | None:
    """A step that a clone leaves fitted, such as a FrozenEstimator."""
    for part in (obfuscator, *obfuscator.get_params(deep=True).values()):
        own_way = getattr(type(part), "__sklearn_clone__", None)
        if own_way is not None and own_way is not BaseEstimator.__sklearn_clone__:
            return type(part).__name__
    return None


def _maps_rows_alone(transform: Callable[[Any], FloatArray], X: Any) -> bool:
    together = transform(X)
    allowed = SAME_ROW * np.abs(together).max()
    chosen = np.unique(np.linspace(0, len(together) - 1, LONE_ROWS, dtype=int))
    return all(np.abs(transform(_safe_indexing(X, [i])) - together[i]).max() <= allowed for i in chosen)
