"""
Arrays of a graphics processor
==============================

Kernel-based target-normalised integration (KTI) computes where its input lies: given torch or CuPy arrays, the fit runs
on their device and returns such arrays.  Nothing is configured for it.  So an analyst with a graphics processor gets
the same functions, and parties without one can use them.

.. note:: Without a library of arrays this example computes with NumPy, and says so.  torch, CuPy or array-api-strict
   are taken where they are installed.
"""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc

# %%
# **Which arrays?**  The first library that is there.  ``array-api-strict`` has no device of its own, but nothing except
# the standard either: what runs with it runs with others.


def taken(values: np.ndarray) -> Any:
    """An array of the library, on its device."""
    if find_spec("torch"):
        import torch

        return torch.asarray(values, device="cuda" if torch.cuda.is_available() else "cpu")
    if find_spec("cupy"):
        import cupy

        return cupy.asarray(values)
    if find_spec("array_api_strict"):
        import array_api_strict

        return array_api_strict.asarray(values)
    return values


# %%
# **Six parties** share 40 handwritten digits each, through kernel principal component analyses.  Analysts have their
# representations of the anchor.

X, y = dc.datasets.load("digits")
split = dc.datasets.split_parties(X, y, n_parties=6, n_per_party=40, random_state=0)
X_own, y_own, owner = split.pooled()
X_rest, y_rest = split.remaining()
anchor, labels, X_new, y_new = X_rest[:400], y_rest[:400], X_rest[400:], y_rest[400:]
h = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
f, kti = dc.obfuscator("kernel-pca", n_components=16), dc.KTI(16, center=True, alpha=0.1)
together = dc.DataCollaborationClassifier(f, kti, h, random_state=0).fit(X_own, y_own, groups=owner, anchor=anchor)
views = {name: party.obfuscate(anchor) for name, party in together.parties_.items()}

# %%
# **Integrate** where the arrays are.  ``to_numpy`` makes of a function one for a party that has no such device.

with_numpy, on_device = kti.fit(views), clone(kti).fit({name: taken(view) for name, view in views.items()})
maps = {name: g.to_numpy() for name, g in on_device.integration_functions_.items()}
library = type(on_device.target_).__module__.split(".")[0]
print(f"computed with {library}, on {getattr(on_device.target_, 'device', 'cpu')}")

first = next(iter(split))
new = together.parties_[first].obfuscate(X_new)
expected, found = with_numpy.transform({first: new})[first], maps[first](new)
signs = np.sign((expected * found).sum(axis=0))
print(f"new rows, relative difference to NumPy   {np.abs(expected - signs * found).max() / np.abs(expected).max():.0e}")

# %%
# **One model** on what comes of either; beside a party alone, the same with the public rows, if somebody labels them,
# and all rows in one place.


def accuracy(functions: Mapping[str, Callable[[np.ndarray], np.ndarray]]) -> float:
    """Return the accuracy of a model of all parties' rows, mean over parties."""
    rows = {name: functions[name](party.obfuscate(split[name].X)) for name, party in together.parties_.items()}
    h.fit(np.concatenate(list(rows.values())), y_own)
    return float(
        np.mean([h.score(functions[name](each.obfuscate(X_new)), y_new) for name, each in together.parties_.items()])
    )


tester = np.resize(list(split), len(X_new))
more = [(np.concatenate([own.X, anchor]), np.append(own.y, labels)) for own in split.values()]
results = {
    "Local": dc.Local(h).fit(X_own, y_own, groups=owner).score(X_new, y_new, groups=tester),
    "Local+Public, if labelled": float(np.mean([h.fit(*rows).score(X_new, y_new) for rows in more])),
    "collaboration, numpy": accuracy(with_numpy.integration_functions_),
    f"collaboration, {library} arrays": accuracy(maps),
    "Central": h.fit(X_own, y_own).score(X_new, y_new),
}
for name, each in results.items():
    print(f"{name:40} {each:.3f}")

# %%
# Which device is faster depends on how many anchor rows there are: for some hundred, none is needed.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 3.8), layout="constrained", width_ratios=(1, 1.2))
left.plot(expected[:, 0], (signs * found)[:, 0], ".", color="#0072B2", markersize=4)
left.set_xlabel("new rows, first column, NumPy")
left.set_ylabel(f"the same, {library}")
bars = right.barh(list(results), list(results.values()), color=["0.6", "#E69F00", "#56B4E9", "#0072B2", "0.3"])
right.bar_label(bars, fmt="%.3f", padding=3)
right.invert_yaxis()
right.set_xlim(0, 1.15)
right.set_xlabel("accuracy on new digits")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("plot_180_gpu_arrays.png")
