"""Worlds with a known effect: real covariates of smokers, made-up treatments and outcomes."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import datacollab as dc
from datacollab.effects import doubly_robust, effect_folds, equal_rows, partially_linear, with_parties
from datacollab.party import Microaggregation
from datacollab.targets import effect_target

from .tables import nhefs

TRUTH = 2.0
_WIDTH = 9
_KERNEL_WIDTH = 16
_N_PUBLIC = 300
_TREATED = np.array([0.3, -0.3, 0.4, 0.2, -0.3, 0.3, 0.2, 0.1, 0.3])
_OUTCOME = np.array([1.0, -0.5, 1.0, 0.5, -1.0, 1.0, 0.3, 0.3, 1.5])
# For representations of as many columns as the table has.
AFFINE = dc.LTI(_WIDTH, fit_intercept=True)
AFFINE_KERNEL = dc.LTI(_KERNEL_WIDTH, fit_intercept=True)


@dataclass(frozen=True, eq=False)
class EffectWorld:
    """Rows of the parties, in their order, and public ones.

    Attributes
    ----------
    X : ndarray of shape (n_rows, 9)
    treatment, outcome : ndarray of shape (n_rows,)
    public : ndarray of shape (300, 9)
        Other real rows: the anchor.
    public_treatment, public_outcome : ndarray of shape (300,)
        For those who have public rows with treatments and outcomes; nobody else looks at them.
    party : ndarray of shape (n_rows,)
    """

    X: NDArray[np.float64]
    treatment: NDArray[np.int64]
    outcome: NDArray[np.float64]
    public: NDArray[np.float64]
    public_treatment: NDArray[np.int64]
    public_outcome: NDArray[np.float64]
    party: NDArray[np.intp]


def world(seed: int, n_parties: int, n_per_party: int, *, is_linear: bool = True) -> EffectWorld:
    """Draw rows of the table without replacement, treatments by a logistic and outcomes by another function of them."""
    table = nhefs().drop(columns=["qsmk", "wt82_71"]).to_numpy()
    rng = np.random.default_rng(seed)
    n = n_parties * n_per_party
    rows = rng.permutation(len(table))[: n + _N_PUBLIC]
    z = ((table - table.mean(axis=0)) / table.std(axis=0))[rows]
    # Treatment follows the covariates by a logistic model, whose coefficients are fixed above.
    treatment = (rng.random(len(z)) < 1 / (1 + np.exp(0.4 - z @ _TREATED))).astype(np.int64)
    mean = z @ _OUTCOME
    # Squares, a product and an absolute value: no linear model of the covariates has them.
    if not is_linear:
        mean += 0.7 * (z[:, 2] ** 2 - 1) + 0.5 * z[:, 4] * z[:, 8] + np.abs(z[:, 5])
    outcome = TRUTH * treatment + mean + 2.0 * rng.normal(size=len(z))
    return EffectWorld(
        *(table[rows[:n]], treatment[:n], outcome[:n]),
        *(table[rows[n:]], treatment[n:], outcome[n:]),
        np.repeat(np.arange(n_parties), n_per_party),
    )


@dataclass(frozen=True, eq=False)
class Sharing:
    """How parties share."""

    kind: str = "pca"
    grouped: int | None = None


def parties(w: EffectWorld, how: Sharing, seed: int) -> Iterator[tuple[dc.Party, NDArray[np.intp]]]:
    """Parties fitted, and where their rows are."""
    target = effect_target(w.treatment, w.outcome)
    for k in range(int(w.party.max()) + 1):
        own = np.flatnonzero(w.party == k)
        if how.kind == "pca":
            f = dc.obfuscator("pca", n_components=_WIDTH, standardize=True)
        else:
            f = dc.obfuscator("kernel-pca", n_components=_KERNEL_WIDTH)
        defended: dict[str, Any] = (
            {} if how.grouped is None else {"fit_on": w.public, "defences": [Microaggregation(how.grouped)]}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dc.errors.RepeatableSecretWarning)
            # Arms of fewer rows than a group are not shared.
            warnings.simplefilter("ignore", dc.errors.SuppressedRowsWarning)
            yield dc.Party(k, f, random_state=100 * seed + k, **defended).fit(w.X[own], target[own]), own


def shares_of(w: EffectWorld, how: Sharing, seed: int) -> list[dc.Share]:
    return [party.share(w.public) for party, _ in parties(w, how, seed)]


def folds_for(treatment: NDArray[np.int64], groups: NDArray[np.intp]) -> int:
    """Five, or fewer where an arm has fewer rows; below two there is no estimate."""
    return min(5, *(len(np.unique(groups[treatment == arm])) for arm in (0, 1)))


def estimate_raw(
    X: NDArray[np.float64],
    treatment: NDArray[np.int64],
    outcome: NDArray[np.float64],
    method: str,
    seed: int,
    *,
    grouped: bool = False,
    party: NDArray[np.intp] | None = None,
) -> tuple[float, float] | None:
    """Estimate and standard error from raw rows, with a level of each party; None where an arm has fewer than two."""
    groups = equal_rows(X) if grouped else np.arange(len(X))
    n_folds = folds_for(treatment, groups)
    # Cross-fitting needs both arms in training and test folds.
    if n_folds < 2:
        return None
    folds = effect_folds(treatment, groups, n_folds, seed, party=party)
    found = (partially_linear if method == "plr" else doubly_robust)(with_parties(X, party), treatment, outcome, folds)
    return found.value, found.standard_error(groups)
