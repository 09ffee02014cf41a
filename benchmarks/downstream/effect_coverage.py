"""How often intervals for a known effect cover it, over many worlds: ``python -m downstream.effect_coverage``."""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from datacollab.analyst import KTI
from datacollab.effects import estimate_effect
from datacollab.errors import EffectWarning

from .effect_worlds import AFFINE, AFFINE_KERNEL, TRUTH, Parties, shares_of, world

SETTINGS = {
    "PCA, affine": (Parties("pca"), AFFINE),
    "kernel PCA, affine": (Parties("kernel-pca"), AFFINE_KERNEL),
    "kernel PCA, KTI (warned of)": (Parties("kernel-pca"), KTI(n_components=16, center=True)),
    "private by treatment, k=5": (Parties("pca", grouped=5), AFFINE),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--parties", type=int, default=8)
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--curved", action="store_true", help="outcomes that are not linear in the columns")
    given = parser.parse_args()
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for seed in range(given.worlds):
        w = world(seed, given.parties, given.rows, is_linear=not given.curved)
        for name, (how, integrator) in SETTINGS.items():
            shares = shares_of(w, how, seed)
            for method in ("plr", "aipw"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", EffectWarning)
                    effect = estimate_effect(shares, integrator, method=method, random_state=seed)
                found.setdefault((name, method), []).append((effect.estimate, effect.standard_error))
    print(f"{given.worlds} worlds, {given.parties} parties of {given.rows} rows, effect {TRUTH}")
    for (name, method), each in found.items():
        values, errors = np.transpose(each)
        off = values - TRUTH
        covered = np.mean(np.abs(off) < 1.959964 * errors)
        print(
            f"{name:28s} {method:4s}  bias {off.mean():+.3f}  RMSE {np.sqrt((off**2).mean()):.3f}  "
            f"spread {values.std():.3f}  standard error {errors.mean():.3f}  coverage {covered:.3f}"
        )


if __name__ == "__main__":
    main()
