"""
Many anchor rows
================

Parties' maps are aligned by what they make of the anchor.  How many rows that takes depends on the maps, and on how
different the rows are.  The exact solution takes time with the cube of their number; with landmarks, some hundred rows
that stand for the others, it is linear.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc

# %%
# **Beforehand**: which solver takes how much, before there are any data.

integrator = dc.KTI(12, memory_limit=8 * 2**30)
print("anchor rows  solver    memory in GB")
for n_anchors in (1_000, 5_000, 100_000):
    cost = integrator.estimate_cost(n_anchors, n_parties=10)
    print(f"{n_anchors:11}  {cost.solver:9} {cost.memory / 1e9:6.2f}")

# %%
# **How many?**  Ten parties have 25 handwritten digits each.  Their maps are kernel principal component analyses, bent
# against each other.  The anchor is more and more public rows, all different; two draws of who has what.  Beside it
# stand a party alone, the same with as many public rows, if somebody labels them, and all rows in one place.

X, y = dc.datasets.load("digits")
h = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
f = dc.obfuscator("kernel-pca", n_components=12)
numbers = [30, 60, 125, 250, 500, 1000]


def accuracies(seed: int) -> dict[str, list[float]]:
    """For each number of public rows; means over parties, but for ``Local+Public``, which is the first party's."""
    split = dc.datasets.split_parties(X, y, n_parties=10, n_per_party=25, random_state=seed)
    X_own, y_own, owner = split.pooled()
    X_rest, y_rest = split.remaining()
    X_new, y_new = X_rest[1000:], y_rest[1000:]
    tester = np.resize(list(split), len(X_new))
    exact = dc.DataCollaborationClassifier(f, dc.KTI(12, alpha=0.1), h, random_state=seed)
    found = {
        "Local": [dc.Local(h).fit(X_own, y_own, groups=owner).score(X_new, y_new, groups=tester)] * len(numbers),
        "Local+Public, if labelled": [],
        "collaboration": [],
        "Central": [h.fit(X_own, y_own).score(X_new, y_new)] * len(numbers),
    }
    for number in numbers:
        public, labels = X_rest[:number], y_rest[:number]
        own = split["party-0"]
        h.fit(np.concatenate([own.X, public]), np.append(own.y, labels))
        found["Local+Public, if labelled"].append(h.score(X_new, y_new))
        exact.fit(X_own, y_own, groups=owner, anchor=public)
        found["collaboration"].append(exact.score(X_new, y_new, groups=tester))
    return found


draws = [accuracies(seed) for seed in range(2)]
curves = {name: np.mean([draw[name] for draw in draws], axis=0) for name in draws[0]}
print("public rows               " + "".join(f"{number:7}" for number in numbers))
for name, curve in curves.items():
    print(f"{name:26}" + "".join(f"{value:7.3f}" for value in curve))

# %%
# From some hundred different rows on, more bring little here.  Other maps want more.
#
# **How long?**  Seconds of the integration alone, by kernel-based target-normalised integration (KTI), on this machine.
# The rows are interpolated by SMOTE, the synthetic minority oversampling technique.  ``objective_`` is what the
# functions miss of the target they have in common: less is better.

solvers = {
    "exact": (dc.KTI(12, solver="exact", alpha=0.1, random_state=0), [500, 1000, 2000]),
    "256 landmarks": (
        dc.KTI(12, solver="nystroem", n_landmarks=256, alpha=0.1, random_state=0),
        [500, 1000, 2000, 8000],
    ),
}
split = dc.datasets.split_parties(X, y, n_parties=10, n_per_party=25, random_state=0)
seconds: dict[str, list[float]] = {name: [] for name in solvers}
for name, (kti, sizes) in solvers.items():
    for size in sizes:
        anchor, _ = dc.SMOTEAnchor(size).sample(split.remaining()[0][:300], random_state=0)
        views = {party: clone(f).fit(own.X).transform(anchor) for party, own in split.items()}
        start = time.perf_counter()
        kti.fit(views)
        seconds[name].append(time.perf_counter() - start)
        print(f"{name:14} {size:5} anchor rows  {seconds[name][-1]:6.2f} s  objective {kti.objective_:.4f}")

# %%
# **Pictures**: accuracy by the number of different rows, and seconds.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 4.2), layout="constrained")
looks = (("0.5", ":", "s"), ("#E69F00", "--", "D"), ("#0072B2", "-", "o"), ("black", ":", "x"))
for (name, curve), (colour, style, marker) in zip(curves.items(), looks, strict=True):
    left.semilogx(numbers, curve, color=colour, linestyle=style, marker=marker, label=name)
left.minorticks_off()
left.set_ylim(bottom=0.5)
left.set_xticks(numbers, [str(number) for number in numbers])
left.set_xlabel("public rows, all different, as the anchor")
left.set_ylabel("accuracy on new digits")
for (name, (_, sizes)), colour, marker in zip(solvers.items(), ("#D55E00", "#0072B2"), "so", strict=True):
    right.plot(sizes, seconds[name], color=colour, marker=marker, label=name)
right.set_xlabel("anchor rows")
right.set_ylabel("seconds of the integration")
for axes in (left, right):
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("plot_160_many_anchors.png")
