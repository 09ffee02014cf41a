"""Effects of a treatment: known ones on real covariates, and real ones on survival beside the pooled table's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

import datacollab as dc
from datacollab.effects import conditional_effects, estimate_effect
from datacollab.errors import EffectError
from datacollab.party import Microaggregation
from datacollab.targets import effect_target

from .effect_worlds import AFFINE, AFFINE_KERNEL, TRUTH, Parties, World, estimated, parties, shares_of, world
from .measuring import Measured, Wanted
from .tables import survival_table

__all__ = ["SECTION", "WANTED", "measured"]

SECTION = "effects"
N_WORLDS = 12
"""Worlds of one seed: a root mean squared error is over these."""
SIZES = ((8, 120), (24, 40))
METHODS = ("plr", "aipw")
SHARED = {
    "DC PCA affine": (Parties("pca"), AFFINE),
    "DC kernel PCA affine": (Parties("kernel-pca"), AFFINE_KERNEL),
    "DC private by treatment": (Parties("pca", grouped=5), AFFINE),
}
_FIVE_YEARS = 5 * 365.25

Found = dict[str, list[tuple[float, float]]]
"""Estimates and standard errors, by who made them."""


def measured(seed: int) -> Iterator[Measured]:
    """All figures of one seed."""
    for n_parties, n_rows in SIZES:
        data = f"nhefs {n_parties}x{n_rows}"
        made = partial(Measured, section=SECTION, data=data, seed=seed)
        for method in METHODS:
            found: Found = {}
            refused = 0
            for number in range(N_WORLDS):
                w = world(1000 * seed + number, n_parties, n_rows)
                refused += _into(found, w, method, seed)
            for who, pairs in found.items():
                values, errors = np.transpose(pairs)
                off = values - TRUTH
                yield made(method=who, measure=f"{method} RMSE", value=float(np.sqrt(np.mean(off**2))))
                yield made(
                    method=who, measure=f"{method} coverage", value=float(np.mean(np.abs(off) < 1.959964 * errors))
                )
            yield made(method="Local", measure=f"{method} parties without an estimate", value=refused / N_WORLDS)
    yield from _conditional(seed)
    yield from _survival(seed)


def _into(found: Found, w: World, method: str, seed: int) -> int:
    """Add everybody's estimates of one world; how many parties have none."""
    central = estimated(w.X, w.treatment, w.outcome, method, seed)
    assert central is not None
    found.setdefault("Central", []).append(central)
    local, more = [], []
    for k in range(int(w.party.max()) + 1):
        own = w.party == k
        local.append(estimated(w.X[own], w.treatment[own], w.outcome[own], method, seed))
        rows = np.vstack([w.X[own], w.public])
        t = np.concatenate([w.treatment[own], w.public_treatment])
        more.append(estimated(rows, t, np.concatenate([w.outcome[own], w.public_outcome]), method, seed))
    known = [pair for pair in local if pair is not None]
    found.setdefault("Local", []).extend(known)
    found.setdefault("Local+Public", []).extend(pair for pair in more if pair is not None)
    found.setdefault("meta", []).append(_meta(known))
    for who, (how, integrator) in SHARED.items():
        effect = estimate_effect(shares_of(w, how, seed), integrator, method=method, random_state=seed)
        found.setdefault(who, []).append((effect.estimate, effect.standard_error))
    found.setdefault("private by treatment and outcome (refused)", []).append(_by_outcome(w, method, seed))
    return len(local) - len(known)


def _meta(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Local estimates, weighted by one over their variances."""
    values, errors = np.transpose(pairs)
    weights = 1 / errors**2
    return float(weights @ values / weights.sum()), float(1 / np.sqrt(weights.sum()))


def _by_outcome(w: World, method: str, seed: int) -> tuple[float, float]:
    """What would be estimated from rows grouped within arms by outcome, which shares cannot say: straight from means."""
    halves = (w.outcome > np.median(w.outcome)).astype(int)
    rows, order = [], []
    for k in range(int(w.party.max()) + 1):
        own = np.flatnonzero(w.party == k)
        published = Microaggregation(5, small_classes="group").release(
            *(w.X[own] / w.X.std(axis=0), 2 * w.treatment[own] + halves[own]),
            *(None, None, np.random.RandomState(seed)),
        )
        rows.append(published.rows)
        order.append(own[published.own_rows])
    own = np.concatenate(order)
    found = estimated(np.vstack(rows), w.treatment[own], w.outcome[own], method, seed, grouped=True)
    assert found is not None
    return found


def _conditional(seed: int) -> Iterator[Measured]:
    """Effects that depend on two columns: root mean squared error of what is said of each own row."""
    made = partial(Measured, section=SECTION, data="nhefs 8x120", seed=seed, measure="conditional RMSE")
    squared: dict[str, list[float]] = {}
    for number in range(N_WORLDS):
        w = world(1000 * seed + number, 8, 120)
        z = (w.X - w.X.mean(axis=0)) / w.X.std(axis=0)
        truth = TRUTH + 0.5 * z[:, 2] - 0.5 * z[:, 8]
        outcome = w.outcome + w.treatment * (truth - TRUTH)
        target = effect_target(w.treatment, outcome)
        central = conditional_effects([_as_share(w.X, target, w.public)], AFFINE, random_state=seed)
        squared.setdefault("Central", []).append(_mse(central.party_model(0).predict(w.X), truth))
        changed = World(w.X, w.treatment, outcome, w.public, w.public_treatment, w.public_outcome, w.party)
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
        yield made(method=who, value=float(np.sqrt(np.mean(values))))


def _as_share(X: NDArray[np.float64], target: NDArray[np.void], anchor: NDArray[np.float64]) -> dc.Share:
    """Raw rows as if they had been shared: one party and nothing obfuscated."""
    return dc.Share(party=0, representation=X, anchor_representation=anchor, target=target)


def _mse(said: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    return float(np.mean((said - truth) ** 2))


def _survival(seed: int) -> Iterator[Measured]:
    """Chemotherapy and survival at five years: how far each is from the pooled table, in its standard errors."""
    table = survival_table("rotterdam")
    columns = table.X.drop(columns=["chemo"]).to_numpy()
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(columns))[:1500]
    X, public = columns[rows[:1200]], columns[rows[1200:]]
    # In months: what the parties share, and so what the pooled table has.
    months = np.ceil(table.time[rows] / 30.4375)
    treated = table.X["chemo"].to_numpy()[rows].astype(np.int64)
    y = effect_target(treated, event=table.event[rows], time=months)[:1200]
    made = partial(
        Measured, section=SECTION, data="rotterdam 10x120", seed=seed, measure="survival off by SE of Central"
    )
    horizon = np.ceil(_FIVE_YEARS / 30.4375)
    n_columns = X.shape[1]
    estimate = partial(estimate_effect, horizon=horizon, random_state=seed)
    integrator = dc.LTI(n_columns, fit_intercept=True)
    central = {method: estimate([_as_share(X, y, public)], integrator, method=method) for method in ("ipw", "plr")}
    for kind, who, method in (("pca", "DC PCA affine", "ipw"), ("kernel-pca", "DC kernel PCA affine", "ipw")):
        f = dc.obfuscator(kind, n_components=n_columns if kind == "pca" else 16, **_scaled(kind))
        fitted = [dc.Party(k, f, time_step=None).fit(X[k::10], y[k::10]) for k in range(10)]
        aligned = integrator if kind == "pca" else AFFINE_KERNEL
        found = estimate([party.share(public) for party in fitted], aligned, method=method)
        off = abs(found.estimate - central[method].estimate) / central[method].standard_error
        yield made(method=who, value=off)
    local = []
    for k in range(10):
        try:
            alone = estimate([_as_share(X[k::10], y[k::10], public)], integrator, method="ipw", folds=2)
        except EffectError:
            continue
        local.append((alone.estimate, alone.standard_error))
    reference = central["ipw"]
    if local:
        yield made(
            method="Local",
            value=float(np.mean([abs(v - reference.estimate) for v, _ in local]) / reference.standard_error),
        )
        yield made(method="meta", value=abs(_meta(local)[0] - reference.estimate) / reference.standard_error)


def _scaled(kind: str) -> dict[str, bool]:
    return {"standardize": True} if kind == "pca" else {}


WANTED: tuple[Wanted, ...] = ()
