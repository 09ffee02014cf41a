"""
Public rows that nobody has labelled
====================================

Public rows are often easy to come by, and their labels are not.  For aligning what parties share no labels are needed,
so this is where collaboration brings most.  The fair comparison is a party that makes of unlabelled public rows what it
can alone.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

import datacollab as dc

# %%
# Eight laboratories with 25 handwritten digits each; 50 to 400 public rows, and 500 new ones.

X, y = dc.datasets.load("digits")
split = dc.datasets.split_parties(X, y, n_parties=8, n_per_party=25, random_state=0)
X_own, y_own, owner = split.pooled()
X_rest, y_rest = split.remaining()
X_new, y_new = X_rest[-500:], y_rest[-500:]
tester = np.resize(list(split), len(X_new))
h = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))

# %%
# **Alone**: a model of the 25 own rows, or labels spread from these to the public rows and on to the new ones.  Which
# of both is better a laboratory would have to find out; here it is given.  **If somebody labels** all public rows, a
# model learns from them and the own rows.


def spread(rows: np.ndarray, labels: np.ndarray, public: np.ndarray) -> float:
    """Accuracy of label spreading, which learns from rows without labels too."""
    model = LabelSpreading(gamma=1.0)
    return model.fit(np.concatenate([rows, public]), np.append(labels, np.full(len(public), -1))).score(X_new, y_new)


def accuracies(n_public: int) -> dict[str, float]:
    """Return accuracies of all ways, means over laboratories."""
    public, labels = X_rest[:n_public], y_rest[:n_public]
    anchor, _ = dc.SMOTEAnchor(500, include_sources=True).sample(public, random_state=0)
    f, g = dc.obfuscator("pca", n_components=24), dc.KTI(24)
    together = dc.DataCollaborationClassifier(f, g, h, fit_on="anchor", random_state=0)
    together.fit(X_own, y_own, groups=owner, anchor=anchor)
    more = [(np.concatenate([own.X, public]), np.append(own.y, labels)) for own in split.values()]
    return {
        "Local": dc.Local(h).fit(X_own, y_own, groups=owner).score(X_new, y_new, groups=tester),
        "Local+Public, unlabelled": float(np.mean([spread(own.X, own.y, public) for own in split.values()])),
        "collaboration, unlabelled": together.score(X_new, y_new, groups=tester),
        "Local+Public, if labelled": float(np.mean([h.fit(*rows).score(X_new, y_new) for rows in more])),
        "Central": h.fit(X_own, y_own).score(X_new, y_new),
    }


numbers = [50, 100, 200, 400]
found = [accuracies(n_public) for n_public in numbers]
curves = {name: np.array([each[name] for each in found]) for name in found[0]}
print("public rows               " + "".join(f"{n_public:7}" for n_public in numbers))
for name, curve in curves.items():
    print(f"{name:26}" + "".join(f"{value:7.3f}" for value in curve))

# %%
# Without labels, collaboration is far above the better of both that a laboratory has alone, from few public rows on.
# A few hundred labels overtake it: who can buy labels need not collaborate.

figure, axes = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
looks = (("0.5", ":", "s"), ("#E69F00", "-", "^"), ("#0072B2", "-", "o"), ("0.5", "--", "D"), ("black", ":", "x"))
for (name, curve), (colour, style, marker) in zip(curves.items(), looks, strict=True):
    axes.plot(numbers, curve, color=colour, linestyle=style, marker=marker, label=name)
axes.set_xscale("log", base=2)
axes.set_xticks(numbers, [str(n_public) for n_public in numbers])
axes.set_xlabel("public rows")
axes.set_ylabel("accuracy on new digits")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
figure.savefig("plot_045_unlabelled_public_rows.png")
