"""How often intervals for effects cover, where parties differ in treatment and outcome, or effects differ.

Six hospitals of 100 rows and three columns, 500 studies.  "levels": hospitals that treat more have better outcomes
anyway, and the effect is 2.  "rows": the effect is 2 + 1.5 (x² - 1), of which all rows, the treated ones and the
overlap have different averages.  "parties": the effect at a hospital is 2 and half a standard normal number, so that
errors count hospitals.

```console
$ python -m datacollab_experiments.downstream --section effect_parties
```
"""

import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import datacollab as dc
from datacollab.effects import estimate_effect
from datacollab.errors import EffectWarning
from datacollab.targets import effect_target

from .report import Figure, read_wanted

SECTION = "effects and parties"
# Per seed.
N_STUDIES = 100
_HOSPITALS = 6
_N_ROWS = 100
_BY_PARTY = "AIPW, errors by party"
_BY_ROW = "AIPW, errors by row"
_METHODS: dict[str, dict[str, dict[str, Any]]] = {
    "levels": {"AIPW": {}, "PLR": {"method": "plr"}, "IPW": {"method": "ipw"}, "AIPW, party unknown": {}},
    "rows": {
        "AIPW, ATE": {},
        "AIPW, ATT": {"target": "ATT"},
        "PLR, overlap": {"target": "overlap"},
        "PLR as ATE": {"method": "plr"},
    },
    "parties": {_BY_PARTY: {"errors": "parties"}, _BY_ROW: {}},
}
_World = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def world(seed: int, kind: str, n_rows: int = _N_ROWS) -> _World:
    """Return columns, treatments and outcomes of all hospitals, one after the other, propensities and effects."""
    rng = np.random.default_rng(seed)
    party = np.repeat(np.arange(_HOSPITALS), n_rows)
    X = rng.normal(size=(len(party), 3))
    level = np.linspace(-1.5, 1.5, _HOSPITALS)
    odds = 0.5 * X[:, 0]
    effect = np.full(len(party), 2.0)
    if kind == "rows":
        level = np.zeros(_HOSPITALS)
        odds = 0.8 * X[:, 0]
        effect = 2 + 1.5 * (X[:, 0] ** 2 - 1)
    if kind == "parties":
        level = rng.normal(size=_HOSPITALS)
        effect = 2 + 0.5 * rng.normal(size=_HOSPITALS)[party]
    # A hospital's level moves treatment and outcome, which makes it a confounder.
    propensity = 1 / (1 + np.exp(-odds - 0.7 * level[party]))
    treatment = (rng.random(len(party)) < propensity).astype(np.int64)
    outcome = effect * treatment + X @ [1.0, -1.0, 0.5] + level[party] + rng.normal(size=len(party))
    return X, treatment, outcome, propensity, effect


@cache
def truth(kind: str, name: str) -> float:
    """Return the true value for a method: the average of effects by the weights that its name says."""
    if kind != "rows":
        return 2.0
    *_, e, effect = world(0, kind, 200_000)
    # All rows count alike, by their chance to be treated, or by their overlap.
    weights = {"ATT": e, "overlap": e * (1 - e)}.get(name.rpartition(", ")[2], np.ones_like(e))
    return float(np.average(effect, weights=weights))


def _shares(X: NDArray[np.float64], target: NDArray[np.void], seed: int, *, dealt: bool) -> list[dc.Share]:
    """Rows turned by each hospital in its own way; or dealt anew, so that nobody knows whose they are."""
    rng = np.random.default_rng(seed)
    anchor = rng.normal(size=(40, 3))
    order = rng.permutation(len(X)) if dealt else np.arange(len(X))
    shares = []
    for k, own in enumerate(np.split(order, _HOSPITALS)):
        # A secret rotation at each hospital, which an affine map undoes.
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        parts = {"representation": X[own] @ Q, "anchor_representation": anchor @ Q, "target": target[own]}
        shares.append(dc.Share(party=k, **parts))
    return shares


def measure(seed: int) -> Iterator[Figure]:
    """Coverage of 95 % intervals, and bias."""
    for kind, methods in _METHODS.items():
        found: dict[str, list[tuple[float, bool]]] = defaultdict(list)
        for number in range(N_STUDIES * seed, N_STUDIES * (seed + 1)):
            X, treatment, outcome, *_ = world(number, kind)
            for name, options in methods.items():
                shares = _shares(X, effect_target(treatment, outcome), number, dealt="unknown" in name)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", EffectWarning)
                    effect = estimate_effect(shares, dc.LTI(3, fit_intercept=True), random_state=number, **options)
                low, high = effect.interval
                found[name].append((effect.estimate - truth(kind, name), low <= truth(kind, name) <= high))
        for name, pairs in found.items():
            off, covered = np.transpose(pairs)
            for measure, value in (("coverage", covered.mean()), ("bias", off.mean())):
                yield f"{kind} {_HOSPITALS}x{_N_ROWS}", name, measure, float(value)


WANTED = read_wanted(SECTION)
