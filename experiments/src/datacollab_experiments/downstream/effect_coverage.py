"""How often intervals for a known effect cover it, over many worlds of real covariates.

Each seed has 200 worlds, so that five make 1,000: a coverage of .95 is then known to within .014.  KTI is
warned of, and shown without anything wanted of it.

```console
$ python -m datacollab_experiments.downstream --section effect_coverage
```
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from datacollab.analyst import KTI
from datacollab.effects import estimate_effect
from datacollab.errors import EffectWarning

from .effect_worlds import AFFINE, AFFINE_KERNEL, TRUTH, Parties, shares_of, world
from .measuring import Measured, Wanted

__all__ = ["WANTED", "measured"]

SECTION = "coverage of effects"
N_WORLDS = 200
"""Per seed."""
N_PARTIES, N_ROWS = 8, 120
_OFFERED = {
    "DC PCA affine": (Parties("pca"), AFFINE),
    "DC kernel PCA affine": (Parties("kernel-pca"), AFFINE_KERNEL),
    "groups by treatment": (Parties("pca", grouped=5), AFFINE),
}
_WARNED_OF = {"DC kernel PCA, KTI (warned of)": (Parties("kernel-pca"), KTI(n_components=16, center=True))}
_METHODS = ("plr", "aipw")


def measured(seed: int) -> Iterator[Measured]:
    """Coverage of 95 % intervals, the estimates' bias, and their standard errors over the spread of estimates."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for number in range(N_WORLDS * seed, N_WORLDS * (seed + 1)):
        w = world(number, N_PARTIES, N_ROWS)
        for name, (how, integrator) in (_OFFERED | _WARNED_OF).items():
            shares = shares_of(w, how, number)
            for method in _METHODS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", EffectWarning)
                    effect = estimate_effect(shares, integrator, method=method, random_state=number)
                found[name, method].append((effect.estimate, effect.standard_error))
    for (name, method), each in found.items():
        values, errors = np.transpose(each)
        off = values - TRUTH
        for measure, value in (
            ("coverage", np.mean(np.abs(off) < 1.959964 * errors)),
            ("bias", off.mean()),
            ("standard error over spread", errors.mean() / values.std()),
        ):
            yield Measured(
                section=SECTION, data=_data(method), method=name, measure=measure, seed=seed, value=float(value)
            )


def _data(method: str) -> str:
    return f"nhefs {N_PARTIES}x{N_ROWS}, {method.upper()}"


WANTED = tuple(
    Wanted(section=SECTION, data=_data(method), method=name, measure="coverage", at_least=0.93, at_most=0.97)
    for name in _OFFERED
    for method in _METHODS
)
