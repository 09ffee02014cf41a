"""
What integration does
=====================

Three hospitals share their rows, each through a secret map of its own, so that nothing fits together any more.  The
analyst turns all of them into one space again, without seeing a row or a map.  These are the same rows three times:
before, as shared, and after.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc

# %%
# The tables: 60 handwritten digits at each of three hospitals, 300 public ones as the *anchor*, rows that everybody may
# see, and 1317 new ones to test on.

X, y = dc.datasets.load("digits")
split = dc.datasets.split_parties(X, y, n_parties=3, n_per_party=60, random_state=0)
X_own, y_own, owner = split.pooled()
X_rest, y_rest = split.remaining()
anchor, anchor_target, X_new, y_new = X_rest[:300], y_rest[:300], X_rest[300:], y_rest[300:]

# %%
# **Share and integrate.**  A hospital's map f is a principal component analysis (PCA) of a secret half of the public
# rows, turned by a secret rotation.  The method is orthogonal data collaboration (ODC): each hospital's view of the
# anchor is turned until all agree.

h = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
f, g = dc.obfuscator("pca", n_components=20), dc.ODC(reference="consensus")
together = dc.DataCollaborationClassifier(f, g, h, fit_on="anchor", random_state=0)
together.fit(X_own, y_own, groups=owner, anchor=anchor)
integrator = together.collaboration_.integrator_

# %%
# **Do hospitals agree?**  All three map the same new rows.  Of the variance of what comes out, this share lies between
# hospitals: 0 where all map a row to one place, and two thirds where their maps have nothing to do with each other.


def disagreement(maps: dict[str, np.ndarray]) -> float:
    """Share of the variance between hospitals."""
    stacked = np.stack(list(maps.values()))
    return float(((stacked - stacked.mean(axis=0)) ** 2).sum() / ((stacked - stacked.mean(axis=(0, 1))) ** 2).sum())


shared = {name: party.obfuscate(X_new) for name, party in together.parties_.items()}
print(f"hospitals disagree, as shared   {disagreement(shared):.3f}")
print(f"hospitals disagree, integrated  {disagreement(integrator.transform(shared)):.3f}")

# %%
# **What is it good for?**  One model can learn from all rows.  Beside it stand a hospital's own 60 rows, these and the
# public ones, if somebody has labelled them, and all rows of the three in one place.

tester = np.resize(list(split), len(X_new))
public = [(np.concatenate([own.X, anchor]), np.append(own.y, anchor_target)) for own in split.values()]
accuracies = {
    "Local": dc.Local(h).fit(X_own, y_own, groups=owner).score(X_new, y_new, groups=tester),
    "Local+Public, if labelled": np.mean([h.fit(*rows).score(X_new, y_new) for rows in public]),
    "collaboration": together.score(X_new, y_new, groups=tester),
    "Central": dc.Central(h).fit(X_own, y_own).score(X_new, y_new),
}
for name, accuracy in accuracies.items():
    print(f"{name:31} {accuracy:.3f}")

# %%
# Collaboration comes near to all rows in one place, and nobody gave one away.  But 300 *labelled* public
# rows would do more than both: see ``plot_035_when_it_pays.py``.
#
# **The picture** has three digits in colours, and hospitals as markers.  All panels are drawn by a projection that the
# anchor gives: of raw rows, of the first hospital's map, and of the common space.

names = list(split)
anchors = {name: party.obfuscate(anchor) for name, party in together.parties_.items()}
own = {name: party.obfuscate(split[name].X) for name, party in together.parties_.items()}
panels = {
    "Before: what nobody may see": ({name: split[name].X for name in names}, anchor),
    "Shared: each through its secret map": (own, anchors[names[0]]),
    "Integrated: a class is in one place": (
        integrator.transform(own),
        np.mean(list(integrator.transform(anchors).values()), axis=0),
    ),
}
colours = {0: "#0072B2", 1: "#D55E00", 4: "#009E73"}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.9), layout="constrained")
known = np.isin(anchor_target, list(colours))
for panel, (title, (rows, seen)) in zip(axes, panels.items(), strict=True):
    flat = LinearDiscriminantAnalysis(n_components=2).fit(seen[known], anchor_target[known])
    for marker, name in zip("o^s", names, strict=True):
        for digit, colour in colours.items():
            drawn = flat.transform(rows[name][split[name].y == digit])
            panel.scatter(*drawn.T, color=colour, marker=marker, s=30, edgecolors="white", linewidths=0.4)
    panel.set_title(title, fontsize=10)
    panel.set_xticks([])
    panel.set_yticks([])
handles = [Line2D([], [], marker=m, linestyle="", color="0.3", label=n) for m, n in zip("o^s", names, strict=True)]
handles += [Line2D([], [], marker="o", linestyle="", color=c, label=f"digit {d}") for d, c in colours.items()]
figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
figure.savefig("plot_015_what_integration_does.png")
