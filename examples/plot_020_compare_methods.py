"""
Integration methods side by side
================================

All roles in one process: ``DataCollaborationClassifier`` with several integration methods, between what a party has
alone and all raw rows in one place.  Which method is best depends on the maps.  Here they are kernel principal
component analyses, which are not linear, so that a linear method has something to lose.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

import datacollab as dc

# %%
# The anchor is generated from 100 public rows by SMOTE, the synthetic minority oversampling technique.  The methods are
# the minimum perturbation problem (MPP), a generalised eigenvalue problem (GEP), orthogonal data collaboration (ODC),
# and linear and kernel-based target-normalised integration (LTI, KTI).  Similar targets in the anchor guide "KTI +
# graph".

X, y = dc.datasets.load("digits")
obfuscator = dc.obfuscator("kernel-pca", n_components=16)
model = RandomForestClassifier(30)
graph = dc.TargetSimilarityGraph(n_neighbors=10)
methods = {
    "MPP": dc.MPP(16),
    "GEP": dc.GEP(16),
    "ODC": dc.ODC(),
    "LTI": dc.LTI(16),
    "KTI": dc.KTI(16),
    "KTI + graph": dc.KTI(16, graph=graph, center=True, gamma_factor=0.3, alpha=0.001),
}

# %%
# Five parties hold 50 rows each.  Every party tests on the same 300 new rows, each time through its own map, and the
# mean over parties counts.  Another seed means other parties, another anchor and other test rows.


def accuracies(seed: int) -> dict[str, float]:
    """Accuracy of each method in one random draw."""
    split = dc.datasets.split_parties(X, y, n_parties=5, n_per_party=50, random_state=seed)
    X_own, y_own, owner = split.pooled()
    X_rest, y_rest = split.remaining()
    anchor, anchor_target = dc.SMOTEAnchor(400, include_sources=True).sample(X_rest[:100], y_rest[:100], seed)
    X_test, y_test = np.tile(X_rest[100:400], (5, 1)), np.tile(y_rest[100:400], 5)
    tester = np.repeat(list(split), 300)

    h = clone(model).set_params(random_state=seed)
    fitted = {"Local": dc.Local(h).fit(X_own, y_own, groups=owner)}
    public = [(np.concatenate([own.X, X_rest[:100]]), np.append(own.y, y_rest[:100])) for own in split.values()]
    more = np.concatenate([rows for rows, _ in public]), np.concatenate([target for _, target in public])
    fitted["Local+Public"] = dc.Local(h).fit(*more, groups=np.repeat(list(split), 150))
    for name, integrator in methods.items():
        together = dc.DataCollaborationClassifier(obfuscator, integrator, h, random_state=seed)
        fitted[name] = together.fit(X_own, y_own, groups=owner, anchor=anchor, anchor_target=anchor_target)
    fitted["Central"] = dc.Central(h).fit(X_own, y_own)
    return {name: each.score(X_test, y_test, groups=tester) for name, each in fitted.items()}


# %%
# Three seeds show the order of magnitude of the differences, and of chance.  ``datacollab compare`` reports intervals.

draws = [accuracies(seed) for seed in range(3)]
results = {name: np.array([draw[name] for draw in draws]) for name in draws[0]}
for name, values in results.items():
    print(f"{name:12}", "  ".join(f"{value:.3f}" for value in values), f"  mean {values.mean():.3f}")

# %%
# Methods of kernels lose less than linear ones, and the graph helps, as it has the anchor's targets.  So has
# ``Local+Public``: a party with a hundred *labelled* public rows hardly needs the others.

figure, axes = plt.subplots(figsize=(8, 4.4), layout="constrained")
for place, (name, values) in enumerate(results.items()):
    colour = "#0072B2" if name.startswith("KTI") else "#D55E00" if name in methods else "0.4"
    axes.plot(values, np.full(3, place), "o", color=colour, markerfacecolor="none", markersize=7)
    axes.plot(values.mean(), place, "|", color=colour, markersize=20, markeredgewidth=2.5)
axes.set_yticks(range(len(results)), list(results))
axes.invert_yaxis()
axes.set_xlabel("accuracy on new digits: three draws, and their mean")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("plot_020_compare_methods.png")
