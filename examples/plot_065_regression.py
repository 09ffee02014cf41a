"""
Numbers as targets: regression
==============================

Targets may be numbers too.  This example shares rows; with sums, use ``DataCollaborationRegressor()``.  Six clinics
want to foretell how much worse their patients' diabetes gets within a year.  They have 30 patients each, which is few
for a regression on ten columns.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc

X, y = load_diabetes(return_X_y=True, scaled=False)
h = make_pipeline(StandardScaler(), RidgeCV(np.geomspace(0.1, 100, 10)))

# %%
# **Collaborate.**  f is a principal component analysis of standardised columns, since these have units: its widest
# directions would otherwise be those of the smallest units.  Where each clinic centres by its own rows,
# ``fit_intercept=True`` of linear target-normalised integration (LTI) makes good for it.

f, g = dc.obfuscator("pca", n_components=10, standardize=True), dc.LTI(10, fit_intercept=True)


def predicted(seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """What comes, and what each way says of it; one row for each clinic."""
    order = np.random.default_rng(seed).permutation(len(X))
    own, public, new = np.split(order, [180, 280])
    clinics, owner = np.split(own, 6), np.repeat(np.arange(6), 30)
    together = dc.DataCollaborationRegressor(f, g, h, random_state=seed)
    together.fit(X[own], y[own], groups=owner, anchor=X[public])
    return y[new], {
        "Local": np.array([h.fit(X[rows], y[rows]).predict(X[new]) for rows in clinics]),
        "Local+Public, if labelled": np.array(
            [h.fit(X[rows], y[rows]).predict(X[new]) for rows in (np.append(rows, public) for rows in clinics)]
        ),
        "collaboration": np.array([together.predict(X[new], groups=np.full(len(new), k)) for k in range(6)]),
        "Central": h.fit(X[own], y[own]).predict(X[new])[None],
    }


# %%
# **How good?**  The coefficient of determination R² on new patients, 1 where all are foretold exactly and 0 for the
# mean; over five draws of who is where.

draws = [predicted(seed) for seed in range(5)]
scores = {
    name: np.array([np.mean([r2_score(truth, each) for each in found[name]]) for truth, found in draws])
    for name in draws[0][1]
}
for name, values in scores.items():
    print(f"{name:26} {values.mean():.3f}   from {values.min():.3f} to {values.max():.3f}")

# %%
# The collaboration keeps all ten directions and loses nothing against all rows in one place.  If the hundred public
# rows come with targets, a clinic is nearly as well off without it.
#
# **Pictures**: one clinic's new patients of the first draw, and all draws.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 4.2), layout="constrained", width_ratios=(1, 1.2))
truth, found = draws[0]
for name, colour, marker in (("Local", "#D55E00", "o"), ("collaboration", "#0072B2", "^")):
    left.plot(truth, found[name][0], marker, color=colour, markersize=5, alpha=0.7, label=name)
left.plot([25, 346], [25, 346], color="0.6", linewidth=0.8)
left.set_xlabel("how much worse it got")
left.set_ylabel("predicted at the first clinic")
left.legend(frameon=False)
colours = ("0.5", "#E69F00", "#0072B2", "black")
for place, (values, colour) in enumerate(zip(scores.values(), colours, strict=True)):
    right.plot(values, np.full(5, place), "o", color=colour, markerfacecolor="none", markersize=7)
    right.plot(values.mean(), place, "|", color=colour, markersize=26, markeredgewidth=2.5)
right.set_yticks(range(4), list(scores))
right.set_ylim(3.6, -0.6)
right.set_xlabel("R² on new patients: five draws, and their mean")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("plot_065_regression.png")
