"""
Effect of a treatment: how giving up smoking changes weight
===========================================================

Of 1566 smokers about a quarter had given up by 1982.  Their tables lie with eight clinics, whose rows nobody may pool.
Clinics share f_k(X), treatment and outcome once.  Beside the collaboration stand each clinic alone, the average of all
their estimates, and the pooled table.

.. note:: The table is that of Hernán and Robins' textbook, from a package: ``pip install
   'datacollab[oracles,plots]'``.
"""

import sys
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

import datacollab as dc
from datacollab.effects import effect_folds, estimate_effect, partially_linear, with_parties
from datacollab.targets import effect_target

if find_spec("causaldata") is None:
    print("The table is in the package causaldata: pip install 'datacollab[oracles,plots]'")
    sys.exit()

# %%
# The table, with the covariates of the textbook: ages and such with their squares, and of what has kinds, a column for
# each but one.  366 rows are public, without treatments or outcomes, and 1200 belong to clinics.

import pandas as pd
from causaldata import nhefs_complete

table = nhefs_complete.load_pandas().data
numbers = table[["age", "smokeintensity", "smokeyrs", "wt71"]].astype(float)
kinds = pd.get_dummies(table[["education", "exercise", "active"]].astype(int).astype(str), drop_first=True)
X = pd.concat([table[["sex", "race"]].astype(float), numbers, (numbers**2).add_suffix(" squared"), kinds], axis=1)
X = X.astype(float)
y = effect_target(table["qsmk"].astype(int), table["wt82_71"])

order = np.random.default_rng(0).permutation(len(X))
X_public = X.iloc[order[1200:]]
own = {f"clinic-{k}": order[150 * k : 150 * (k + 1)] for k in range(8)}
everybody = order[:1200]

# %%
# **Share, and estimate.**  With PCA of all columns and affine LTI nothing of the columns is lost.  Each clinic has a
# level of its own in all models.  A clinic alone has some 40 treated rows, too few for the average over all rows, so
# all estimate the average weighted by overlap.

f, integrator = dc.obfuscator("pca", n_components=X.shape[1], standardize=True), dc.LTI(X.shape[1], fit_intercept=True)
parties = {name: dc.Party(name, f).fit(X.iloc[rows], y[rows]) for name, rows in own.items()}
shares = [party.share(X_public) for party in parties.values()]
effect = estimate_effect(shares, integrator, target="overlap", folds=20, random_state=0)
print(effect)

# %%
# **Beside it**, the same estimator on raw rows: of each clinic alone, and of all in one place.  Clinics' estimates,
# weighted by one over their variances, are a meta-analysis, for which nothing but two numbers leaves a clinic.


def of_raw_rows(rows: np.ndarray) -> tuple[float, float]:
    """Estimate and standard error."""
    treatment, outcome = y["treatment"][rows].astype(int), y["outcome"][rows]
    clinic = np.arange(len(rows)) // 150
    folds = effect_folds(treatment, np.arange(len(rows)), 20, 0, party=clinic)
    found = partially_linear(with_parties(X.iloc[rows].to_numpy(), clinic), treatment, outcome, folds)
    return found.value, found.standard_error(np.arange(len(rows)))


local = np.array([of_raw_rows(rows) for rows in own.values()])
weights = 1 / local[:, 1] ** 2
found = {f"Local, {name}": tuple(each) for name, each in zip(own, local, strict=True)} | {
    "meta-analysis": (weights @ local[:, 0] / weights.sum(), weights.sum() ** -0.5),
    "data collaboration": (effect.estimate, effect.standard_error),
    "Central": of_raw_rows(everybody),
}
treated = y["treatment"][everybody] == 1
outcomes = y["outcome"][everybody]
print(f"kg gained, without adjustment: {outcomes[treated].mean() - outcomes[~treated].mean():.2f}")
for name, (estimate, error) in found.items():
    print(f"{name:18}  {estimate:5.2f} kg, {estimate - 1.96 * error:5.2f} to {estimate + 1.96 * error:5.2f}")

# %%
# Collaboration and Central differ by who is in which fold, as shares come in a secret order, and by nothing else.  No
# clinic alone can say much.  The average of all their estimates can, and where outcomes are about linear in the
# columns and each clinic has rows enough, it is nearly as good as collaboration, and reveals less.

# %%
# **Pictures**: how scores overlap, and the estimates.  ``effect.plot_balance()`` shows how alike the arms are, by
# component and clinic.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.3), layout="constrained")
effect.plot_overlap(left)
places = np.arange(len(found))
for place, (name, (estimate, error)) in zip(places, found.items(), strict=True):
    colour = "0.6" if name.startswith("Local") else "#0072B2" if name == "data collaboration" else "black"
    right.errorbar(estimate, place, xerr=1.96 * error, fmt="o", color=colour, capsize=3)
right.set_yticks(places, list(found))
right.invert_yaxis()
right.axvline(0.0, color="0.7", linewidth=0.8, linestyle=":")
right.set_xlabel("effect on weight in kg, 95 % interval", fontsize=9)
right.spines[["top", "right"]].set_visible(False)
figure.savefig("plot_080_effect_of_a_treatment.png")
