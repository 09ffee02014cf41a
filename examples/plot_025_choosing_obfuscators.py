"""
Choosing an obfuscator
======================

Every party chooses its own map f and keeps it secret.  Which kind, and how many columns, decides what a model can learn
from the shares, and what an attacker can.  Here three kinds are tried with four numbers of columns each, for both.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc

# %%
# Four clinics with 50 handwritten digits each, 400 public rows as the anchor, and 500 new rows.

X, y = dc.datasets.load("digits")
split = dc.datasets.split_parties(X, y, n_parties=4, n_per_party=50, random_state=0)
X_own, y_own, owner = split.pooled()
X_rest, y_rest = split.remaining()
anchor, public, X_new, y_new = X_rest[:400], X_rest[400:1000], X_rest[1000:1500], y_rest[1000:1500]
tester = np.resize(list(split), len(X_new))
h = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))

# %%
# **Accuracy** of the collaboration on new rows; kernel-based target-normalised integration (KTI) takes maps of any
# kind.  **Risk**: the attacker holds the anchor and what a clinic shares, has the originals of all its rows, and says
# which is which.  The audit makes that attack at the clinic, before anything leaves, with a linear model and one with a
# kernel.

kinds = ["pca", "random-projection", "kernel-pca"]
columns = [2, 4, 8, 16]


def tried(kind: str, n_components: int) -> tuple[float, float]:
    """Accuracy, and the share of rows that the better attack links."""
    f = dc.obfuscator(kind, n_components=n_components)
    made = dc.DataCollaborationClassifier(f, dc.KTI(n_components), h, random_state=0)
    made.fit(X_own, y_own, groups=owner, anchor=anchor)
    first = next(iter(split))
    attacks = ["linear regression", "kernel ridge"]
    found = dc.audit(
        made.parties_[first], split[first].X, anchor, public=public, levels=["T2"], attacks=attacks, random_state=0
    )
    return made.score(X_new, y_new, groups=tester), found.headline("linkability").value


results = {kind: np.array([tried(kind, number) for number in columns]) for kind in kinds}
labelled = [(np.concatenate([own.X, anchor]), np.append(own.y, y_rest[:400])) for own in split.values()]
levels = {
    "Local": dc.Local(h).fit(X_own, y_own, groups=owner).score(X_new, y_new, groups=tester),
    "Local+Public, if labelled": np.mean([h.fit(*rows).score(X_new, y_new) for rows in labelled]),
    "Central": h.fit(X_own, y_own).score(X_new, y_new),
}
print("columns                     " + "".join(f"{number:7}" for number in columns))
for kind, found in results.items():
    print(f"{kind + ', accuracy':27} " + "".join(f"{value:7.3f}" for value in found[:, 0]))
    print(f"{kind + ', linked':27} " + "".join(f"{value:7.3f}" for value in found[:, 1]))
for name, level in levels.items():
    print(f"{name:27} {level:7.3f}")

# %%
# Few columns reveal less to both.  Where accuracy is good, nearly every row is linked, for each kind: **an obfuscator
# is no defence** against an attacker who holds the anchor.  Choose it for accuracy, and add a defence:
# ``plot_055_defences.py``.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
for (kind, found), colour, marker in zip(results.items(), ("#0072B2", "#E69F00", "#009E73"), "o^s", strict=True):
    left.plot(columns, found[:, 0], color=colour, marker=marker, label=kind)
    right.plot(columns, found[:, 1], color=colour, marker=marker, label=kind)
for (name, level), style in zip(levels.items(), (":", "--", "-"), strict=True):
    left.axhline(level, color="0.4", linewidth=0.9, linestyle=style, label=name, zorder=0)
left.set_ylabel("accuracy on new digits")
right.set_ylabel("own rows linked by an attacker")
left.legend(frameon=False, fontsize=8)
for axes in (left, right):
    axes.set_xscale("log", base=2)
    axes.set_xticks(columns, [str(number) for number in columns])
    axes.set_xlabel("columns of the intermediate representation")
    axes.set_ylim(0, 1.03)
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("plot_025_choosing_obfuscators.png")
