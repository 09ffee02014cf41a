"""
Defences: accuracy against risk
===============================

Undefended shares are the most accurate, and an attacker who holds the anchor links their rows.  A defence changes what
is published, and costs accuracy.  Here five ways of sharing the same rows stand side by side, by both measures.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.party import GaussianMechanism, GaussianNoise, Microaggregation

# %%
# Five laboratories with 60 handwritten digits each.  300 rows are public and have labels, which make ``Local+Public``
# strong.  Attackers hold 600 rows more of the same kind.

X, y = dc.datasets.load("digits")
split = dc.datasets.split_parties(X, y, n_parties=5, n_per_party=60, random_state=0)
X_own, y_own, owner = split.pooled()
X_rest, y_rest = split.remaining()
anchor, labels, X_new, y_new = X_rest[:300], y_rest[:300], X_rest[900:], y_rest[900:]
tester = np.resize(list(split), len(X_new))
h = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))

# %%
# **Ways of sharing.**  Of ``GaussianMechanism`` differential privacy of each row's features is proven.  Of the others
# nothing is: what stands here is what the attacks that were tried reach.

ways = {
    "undefended": (),
    "noise, 1 standard deviation": (GaussianNoise(1.0),),
    "means of 5 rows": (Microaggregation(5, small_classes="group"),),
    "means of 5 rows, with noise": (Microaggregation(5, small_classes="group"), GaussianNoise(0.3)),
    "noise on every row, ε = 8": (GaussianMechanism(8.0),),
}
attacks = ["linear regression", "nearest neighbours", "kernel ridge", "demixing", "membership", "shadow shares"]
f, first = dc.obfuscator("pca", n_components=16), next(iter(split))


def tried(defences: tuple[dc.party.Defence, ...]) -> tuple[float, float, float]:
    """Return accuracy, the share of a laboratory's rows that attackers link, and how well they recognise members."""
    made = dc.DataCollaborationClassifier(f, dc.KTI(16), h, fit_on="anchor", defences=defences, random_state=0)
    made.fit(X_own, y_own, groups=owner, anchor=anchor, anchor_target=labels)
    found = dc.audit(
        made.parties_[first],
        split[first].X,
        anchor,
        y=split[first].y,
        anchor_target=labels,
        public=X_rest[300:900],
        public_target=y_rest[300:900],
        levels=["T2"],
        attacks=attacks,
        random_state=0,
    )
    member = max(each.value for each in found.findings if each.metric == "membership AUC")
    return made.score(X_new, y_new, groups=tester), found.headline("linkability").value, member


results = {name: tried(defences) for name, defences in ways.items()}
more = [(np.concatenate([own.X, anchor]), np.append(own.y, labels)) for own in split.values()]
levels = {
    "Local": dc.Local(h).fit(X_own, y_own, groups=owner).score(X_new, y_new, groups=tester),
    "Local+Public": float(np.mean([h.fit(*rows).score(X_new, y_new) for rows in more])),
    "Central": h.fit(X_own, y_own).score(X_new, y_new),
}
print("                            accuracy  rows linked  membership, area under the curve")
for name, (accuracy, linked, member) in results.items():
    print(f"{name:27} {accuracy:9.3f} {linked:12.2f} {member:9.2f}")
for name, level in levels.items():
    print(f"{name:27} {level:9.3f}")

# %%
# No way is best by both.  Where public rows have labels, ``Local+Public`` is better than every defended share, and
# nothing leaves: a defence is for those who have no such labels.  Sums under masks send no row at all.
# ``dc.choose`` makes this comparison on a party's own data, within limits that the party sets.

figure, axes = plt.subplots(figsize=(9, 4.6), layout="constrained")
colours = ("#D55E00", "#E69F00", "#CC79A7", "#0072B2", "#009E73")
for (name, (accuracy, linked, _)), colour, marker in zip(results.items(), colours, "osD^P", strict=True):
    axes.plot(linked, accuracy, marker, color=colour, markersize=10, label=name, linestyle="")
for (name, level), style in zip(levels.items(), (":", "--", "-"), strict=True):
    axes.axhline(level, color="0.4", linewidth=0.9, linestyle=style, label=name, zorder=0)
axes.set_xlabel("own rows linked by the attack that decides")
axes.set_ylabel("accuracy on new digits")
axes.set_xlim(-0.03, 1.03)
axes.set_ylim(top=1)
axes.spines[["top", "right"]].set_visible(False)
figure.legend(frameon=False, fontsize=9, loc="outside right center")
figure.savefig("plot_055_defences.png")
