"""
Adding an integration method of your own
========================================

An integration method is a class with one function: from every party's view of the anchor to a matrix for each.  Written
in ten lines, it goes through the same contract as the library's own, and works wherever these do: with ``Analyst``, in
a grid search, in the paper's experiments.
"""

from numbers import Real
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.analyst import LinearIntegrator
from datacollab.testing import check_integrator

# %%
# **The method**: ridge regression of every party's view onto that of the first.  ``_align`` gets the anchor's
# representations by party, centred where there is ``fit_intercept``, and returns a matrix for each.  The base class
# checks what comes in, and does the rest.


class OntoFirst(LinearIntegrator):
    """Every party onto the first, by ridge regression."""

    _parameter_constraints: ClassVar[dict] = {"alpha": [Real], "fit_intercept": [bool]}

    def __init__(self, alpha: float = 1.0, *, fit_intercept: bool = True) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def _align(self, anchors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        target = next(iter(anchors.values()))
        return {
            party: np.linalg.solve(A.T @ A + self.alpha * np.eye(A.shape[1]), A.T @ target)
            for party, A in anchors.items()
        }


# %%
# **The contract.**  ``check_integrator`` raises an ``AssertionError`` that says what is broken: rows that depend on one
# another, results that change from run to run, numbers of columns that do not agree, and more.

check_integrator(OntoFirst())
print("check_integrator: passed")


class Careless(OntoFirst):
    """The same with noise that nobody has seeded."""

    def _align(self, anchors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        noise = np.random.default_rng()
        return {party: G + 0.1 * noise.normal(size=G.shape) for party, G in super()._align(anchors).items()}


try:
    check_integrator(Careless())
except AssertionError as broken:
    print("check_integrator:", broken)

# %%
# **Is it any good?**  Beside orthogonal data collaboration (ODC) and linear and kernel-based target-normalised
# integration (LTI, KTI), over three draws of who is where; and beside what there is without any: a party alone, the
# same with the public rows, if somebody labels them, and all rows in one place.

X, y = dc.datasets.load("digits")
h = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
f = dc.obfuscator("pca", n_components=20)
methods = {
    "OntoFirst": OntoFirst(),
    "ODC": dc.ODC(),
    "LTI": dc.LTI(20, fit_intercept=True),
    "KTI": dc.KTI(20),
}


def accuracies(seed: int) -> dict[str, float]:
    """Means over five parties with 40 digits each."""
    split = dc.datasets.split_parties(X, y, n_parties=5, n_per_party=40, random_state=seed)
    X_own, y_own, owner = split.pooled()
    X_rest, y_rest = split.remaining()
    public, labels, X_new, y_new = X_rest[:300], y_rest[:300], X_rest[300:800], y_rest[300:800]
    tester = np.resize(list(split), len(X_new))
    more = [(np.concatenate([own.X, public]), np.append(own.y, labels)) for own in split.values()]
    found = {
        "Local": dc.Local(h).fit(X_own, y_own, groups=owner).score(X_new, y_new, groups=tester),
        "Local+Public, if labelled": float(np.mean([h.fit(*rows).score(X_new, y_new) for rows in more])),
    }
    for name, method in methods.items():
        together = dc.DataCollaborationClassifier(f, method, h, random_state=seed)
        found[name] = together.fit(X_own, y_own, groups=owner, anchor=public).score(X_new, y_new, groups=tester)
    return found | {"Central": h.fit(X_own, y_own).score(X_new, y_new)}


draws = [accuracies(seed) for seed in range(3)]
results = {name: np.array([draw[name] for draw in draws]) for name in draws[0]}
for name, values in results.items():
    print(f"{name:26} {values.mean():.3f}   from {values.min():.3f} to {values.max():.3f}")

# %%
# Before it leaves your hands: the first party gives its map's view of the anchor away to all others, as they
# learn maps onto it.  That is why the library's methods have a target that mixes all parties.

figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
for place, (name, values) in enumerate(results.items()):
    colour = "#D55E00" if name == "OntoFirst" else "#0072B2" if name in methods else "0.4"
    axes.plot(values, np.full(len(values), place), "o", color=colour, markerfacecolor="none", markersize=7)
    axes.plot(values.mean(), place, "|", color=colour, markersize=20, markeredgewidth=2.5)
axes.set_yticks(range(len(results)), list(results))
axes.invert_yaxis()
axes.set_xlabel("accuracy on new digits: three draws, and their mean")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("plot_200_own_method.png")
