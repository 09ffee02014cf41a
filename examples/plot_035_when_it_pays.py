"""
When collaboration pays, and when not
=====================================

Collaboration costs agreements, work and some privacy.  It pays where a party has few rows, and not where it has many,
or enough labelled public ones.  Nobody knows beforehand for sure; here both are measured.  Undefended rows are shared
here, not sums.  Sums are less accurate; the page "Does it pay?" has figures.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc

X, y = dc.datasets.load("digits")
h = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
f = dc.obfuscator("pca", n_components=24)

# %%
# **Measured**: six parties with 10 to 160 handwritten digits each, and public ones from which the anchor is
# interpolated. ``Local`` is a party alone, and ``Local+Public`` the same with the public rows, if somebody has labelled
# them. ``Central`` is all rows of the six in one place.  The collaboration makes no use of public rows' labels here.


def accuracies(n_rows: int, n_public: int) -> dict[str, float]:
    """Return accuracies of all ways, means over parties, on rows that nobody has."""
    split = dc.datasets.split_parties(X, y, n_parties=6, n_per_party=n_rows, random_state=0)
    X_own, y_own, owner = split.pooled()
    X_rest, y_rest = split.remaining()
    X_new, y_new, public, labels = X_rest[:500], y_rest[:500], X_rest[500:][:n_public], y_rest[500:][:n_public]
    anchor, _ = dc.SMOTEAnchor(400).sample(public, random_state=0)
    together = dc.DataCollaborationClassifier(f, dc.KTI(24), h, fit_on="anchor", random_state=0)
    together.fit(X_own, y_own, groups=owner, anchor=anchor)
    tester = np.resize(list(split), len(X_new))
    more = [(np.concatenate([own.X, public]), np.append(own.y, labels)) for own in split.values()]
    return {
        "Local": dc.Local(h).fit(X_own, y_own, groups=owner).score(X_new, y_new, groups=tester),
        "Local+Public, if labelled": float(np.mean([h.fit(*rows).score(X_new, y_new) for rows in more])),
        "collaboration": together.score(X_new, y_new, groups=tester),
        "Central": h.fit(X_own, y_own).score(X_new, y_new),
    }


own_rows, public_rows = [10, 20, 40, 80, 160], [50, 100, 200, 400, 800]
by_own = [accuracies(n_rows, 100) for n_rows in own_rows]
by_public = [accuracies(40, n_public) for n_public in public_rows]
for what, numbers, found in (("own rows", own_rows, by_own), ("public rows", public_rows, by_public)):
    print(f"{what:26}" + "".join(f"{number:7}" for number in numbers))
    for name in found[0]:
        print(f"{name:26}" + "".join(f"{each[name]:7.3f}" for each in found))

# %%
# Collaboration comes near to all rows in one place throughout.  It pays beside own rows alone, most where these are
# few. Beside labelled public rows it pays only where these are fewer than all parties' own rows together: else they are
# as good, and nothing need leave.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
looks = (("0.5", ":", "s"), ("#E69F00", "--", "D"), ("#0072B2", "-", "o"), ("black", ":", "x"))
for axes, numbers, found in ((left, own_rows, by_own), (right, public_rows, by_public)):
    for name, (colour, style, marker) in zip(found[0], looks, strict=True):
        axes.plot(numbers, [each[name] for each in found], color=colour, linestyle=style, marker=marker, label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(numbers, [str(number) for number in numbers])
    axes.set_ylim(0.4, 1)
    axes.set_ylabel("accuracy on new digits", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
left.set_xlabel("own rows of each of six parties, 100 public rows", fontsize=9)
right.set_xlabel("public rows, 40 own rows of each party", fontsize=9)
left.legend(frameon=False, fontsize=9)
figure.savefig("plot_035_when_it_pays.png")
