"""Effects of a treatment: known ones on real covariates of smokers, and real ones on survival."""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import datacollab as dc
from datacollab.effects import (
    conditional_effects,
    doubly_robust,
    effect_folds,
    equal_rows,
    estimate_effect,
    partially_linear,
    with_parties,
)
from datacollab.errors import EffectError, EffectWarning, SinglePartyWarning
from datacollab.party import Microaggregation
from datacollab.targets import effect_target

from .report import Figure, read_wanted
from .tables import nhefs, survival_table

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


def world(seed: int, n_parties: int, n_per_party: int) -> EffectWorld:
    """Draw rows of the table without replacement, treatments by a logistic and outcomes by a linear function."""
    table = nhefs().drop(columns=["qsmk", "wt82_71"]).to_numpy()
    rng = np.random.default_rng(seed)
    n = n_parties * n_per_party
    rows = rng.permutation(len(table))[: n + _N_PUBLIC]
    z = ((table - table.mean(axis=0)) / table.std(axis=0))[rows]
    # Treatment follows the covariates by a logistic model, whose coefficients are fixed above.
    treatment = (rng.random(len(z)) < 1 / (1 + np.exp(0.4 - z @ _TREATED))).astype(np.int64)
    outcome = TRUTH * treatment + z @ _OUTCOME + 2.0 * rng.normal(size=len(z))
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


SECTION = "effects"
# Worlds of one seed: a root mean squared error is over these.
N_WORLDS = 6
# Parties of each world that also try their own rows and the public ones together.
_N_WITH_PUBLIC = 4
SIZES = ((8, 120), (24, 40))
METHODS = ("plr", "aipw")
SHARED = {
    "DC PCA affine": (Sharing("pca"), AFFINE),
    "DC kernel PCA affine": (Sharing("kernel-pca"), AFFINE_KERNEL),
    "DC groups by treatment": (Sharing("pca", grouped=5), AFFINE),
}
# The horizon of the restricted mean, in days.
_FIVE_YEARS = 5 * 365.25
_SURVIVAL_WIDTH = 32
_TENTHS = [slice(120 * k, 120 * (k + 1)) for k in range(10)]

# Estimates and standard errors, by who made them.
Found = dict[str, list[tuple[float, float]]]


def measure(seed: int) -> Iterator[Figure]:
    with warnings.catch_warnings():
        # Parties alone have nothing to align, and few rows of either arm: that is what is measured.
        warnings.simplefilter("ignore", SinglePartyWarning)
        warnings.simplefilter("ignore", EffectWarning)
        yield from list(_measure(seed))


def _measure(seed: int) -> Iterator[Figure]:
    for n_parties, n_rows in SIZES:
        data = f"nhefs {n_parties}x{n_rows}"
        by_method: dict[str, Found] = {method: {} for method in METHODS}
        refused = dict.fromkeys(METHODS, 0)
        for number in range(N_WORLDS):
            w = world(1000 * seed + number, n_parties, n_rows)
            shared = {who: shares_of(w, how, seed) for who, (how, _) in SHARED.items()}
            for method, found in by_method.items():
                refused[method] += _into(found, w, shared, method, seed)
        for method, found in by_method.items():
            for who, pairs in found.items():
                values, errors = np.transpose(pairs)
                off = values - TRUTH
                yield data, who, f"{method} RMSE", float(np.sqrt(np.mean(off**2)))
                yield data, who, f"{method} coverage", float(np.mean(np.abs(off) < 1.959964 * errors))
            yield data, "Local", f"{method} parties without an estimate", refused[method] / N_WORLDS
    yield from _conditional(seed)
    yield from _survival(seed)


def _into(found: Found, w: EffectWorld, shared: dict[str, list[dc.Share]], method: str, seed: int) -> int:
    """Add everybody's estimates of one world; how many parties have none."""
    central = estimate_raw(w.X, w.treatment, w.outcome, method, seed, party=w.party)
    assert central is not None
    found.setdefault("Central", []).append(central)
    local = []
    more = []
    for k in range(int(w.party.max()) + 1):
        own = w.party == k
        local.append(estimate_raw(w.X[own], w.treatment[own], w.outcome[own], method, seed))
        if k >= _N_WITH_PUBLIC:
            continue
        rows = np.vstack([w.X[own], w.public])
        t = np.concatenate([w.treatment[own], w.public_treatment])
        more.append(estimate_raw(rows, t, np.concatenate([w.outcome[own], w.public_outcome]), method, seed))
    known = [pair for pair in local if pair is not None]
    found.setdefault("Local", []).extend(known)
    found.setdefault("Local+Public", []).extend(pair for pair in more if pair is not None)
    found.setdefault("meta", []).append(_meta(known))
    for who, (_, integrator) in SHARED.items():
        effect = estimate_effect(shared[who], integrator, method=method, random_state=seed)
        found.setdefault(who, []).append((effect.estimate, effect.standard_error))
    found.setdefault("groups by treatment and outcome (refused)", []).append(_by_outcome(w, method, seed))
    return len(local) - len(known)


def _meta(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Local estimates, weighted by one over their variances."""
    values, errors = np.transpose(pairs)
    # Fixed effects: precision is one over the squared standard error.
    weights = 1 / errors**2
    return float(weights @ values / weights.sum()), float(1 / np.sqrt(weights.sum()))


def _by_outcome(w: EffectWorld, method: str, seed: int) -> tuple[float, float]:
    """Estimate from means of rows grouped within arms by outcome, which the library refuses."""
    halves = (w.outcome > np.median(w.outcome)).astype(int)
    rows = []
    order = []
    for k in range(int(w.party.max()) + 1):
        own = np.flatnonzero(w.party == k)
        published = Microaggregation(5, small_classes="group").apply(
            w.X[own] / w.X.std(axis=0), 2 * w.treatment[own] + halves[own], random_state=seed
        )
        rows.append(published.rows)
        order.append(own[published.own_rows])
    own = np.concatenate(order)
    found = estimate_raw(
        np.vstack(rows), w.treatment[own], w.outcome[own], method, seed, grouped=True, party=w.party[own]
    )
    assert found is not None
    return found


def _conditional(seed: int) -> Iterator[Figure]:
    """Effects that depend on two columns: root mean squared error of each own row's effect."""
    squared: dict[str, list[float]] = {}
    for number in range(N_WORLDS):
        w = world(1000 * seed + number, 8, 120)
        z = (w.X - w.X.mean(axis=0)) / w.X.std(axis=0)
        # The effect grows with age and falls with weight.
        truth = TRUTH + 0.5 * z[:, 2] - 0.5 * z[:, 8]
        outcome = w.outcome + w.treatment * (truth - TRUTH)
        target = effect_target(w.treatment, outcome)
        central = conditional_effects(_as_shares(w.X, target, w.public, w.party), AFFINE, random_state=seed)
        squared.setdefault("Central", []).append(_mse(central.party_model(0).predict(w.X), truth))
        changed = EffectWorld(w.X, w.treatment, outcome, w.public, w.public_treatment, w.public_outcome, w.party)
        for who, (how, integrator) in SHARED.items():
            fitted = list(parties(changed, how, seed))
            found = conditional_effects([p.share(w.public) for p, _ in fitted], integrator, random_state=seed)
            said = [_mse(p.predict(w.X[own], found.party_model(p.name)), truth[own]) for p, own in fitted]
            squared.setdefault(who, []).append(float(np.mean(said)))
        for k in range(8):
            own = w.party == k
            alone = conditional_effects(
                [_as_share(w.X[own], target[own], w.public)], AFFINE, folds=2, random_state=seed
            )
            squared.setdefault("Local", []).append(_mse(alone.party_model(0).predict(w.X[own]), truth[own]))
    for who, values in squared.items():
        yield "nhefs 8x120", who, "conditional RMSE", float(np.sqrt(np.mean(values)))


def _as_share(X: NDArray[np.float64], target: NDArray[np.void], anchor: NDArray[np.float64]) -> dc.Share:
    """Raw rows as if they had been shared: one party and nothing obfuscated."""
    return dc.Share(party=0, representation=X, anchor_representation=anchor, target=target)


def _as_shares(
    X: NDArray[np.float64], target: NDArray[np.void], anchor: NDArray[np.float64], party: NDArray[np.intp]
) -> list[dc.Share]:
    """Raw rows of all parties in one place, which still says whose each is."""
    return [
        dc.Share(party=int(k), representation=X[party == k], anchor_representation=anchor, target=target[party == k])
        for k in np.unique(party)
    ]


def _mse(said: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    return float(np.mean((said - truth) ** 2))


def _survival(seed: int) -> Iterator[Figure]:
    """Chemotherapy and survival at five years: how far each is from the pooled table, in its standard errors."""
    table = survival_table("rotterdam")
    columns = table.X.drop(columns=["chemo"]).to_numpy()
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(columns))[:1500]
    X = columns[rows[:1200]]
    public = columns[rows[1200:]]
    # In months: what the parties share, and so what the pooled table has.
    months = np.ceil(table.time[rows] / 30.4375)
    treated = table.X["chemo"].to_numpy()[rows].astype(np.int64)
    y = effect_target(treated, event=table.event[rows], time=months)[:1200]
    horizon = float(np.ceil(_FIVE_YEARS / 30.4375))
    affine = dc.LTI(X.shape[1], fit_intercept=True)
    shared = {}
    for who, f, aligned in (
        ("DC PCA affine", dc.obfuscator("pca", n_components=X.shape[1], standardize=True), affine),
        ("DC kernel PCA affine", dc.obfuscator("kernel-pca", n_components=_SURVIVAL_WIDTH), AFFINE_KERNEL),
    ):
        # The order is kept, so that folds are those of the pooled table.
        fitted = [dc.Party(k, f, time_step=None, shuffle=False).fit(X[own], y[own]) for k, own in enumerate(_TENTHS)]
        shared[who] = ([party.share(public) for party in fitted], aligned)
    for method in ("ipw", "plr"):
        estimate = partial(estimate_effect, horizon=horizon, random_state=seed, method=method)
        central = estimate(_as_shares(X, y, public, np.repeat(np.arange(10), 120)), affine)
        found = {who: estimate(shares, aligned).estimate for who, (shares, aligned) in shared.items()}
        local = []
        for own in _TENTHS:
            # Where few were treated and watched until then, a party can say nothing.
            with suppress(EffectError):
                alone = estimate([_as_share(X[own], y[own], public)], affine, folds=2)
                local.append((alone.estimate, alone.standard_error))
        off = {who: abs(value - central.estimate) for who, value in found.items()}
        if local:
            off["Local"] = float(np.mean([abs(value - central.estimate) for value, _ in local]))
            off["meta"] = abs(_meta(local)[0] - central.estimate)
        for who, value in off.items():
            yield "rotterdam 10x120", who, f"survival off, {method}, in SE of Central", value / central.standard_error


WANTED = read_wanted(SECTION)
