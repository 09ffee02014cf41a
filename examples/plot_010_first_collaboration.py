"""
A first collaboration, role by role
===================================

Three clinics hold 100 handwritten digits each and may not pool them.  Each clinic is a ``Party``, an ``Analyst`` aligns
what they share and trains one model, and every clinic gets a ``PartyModel`` back with which it predicts alone.  These
are all steps of the method, each with the role that takes it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

import datacollab as dc

# %%
# The tables.  In life every clinic has its own; here one table is dealt out.  Some rows that nobody holds serve as
# public rows, and the others as new patients to test on.

X, y = dc.datasets.load("digits")
split = dc.datasets.split_parties(X, y, n_parties=3, n_per_party=100, random_state=0)
X_rest, y_rest = split.remaining()
X_public, y_public = X_rest[:700], y_rest[:700]
X_new, y_new = X_rest[700:], y_rest[700:]
forest = RandomForestClassifier(random_state=0)

# %%
# **Agree.**  All parties take the same anchor: public rows, which the analyst never sees.  Each party makes sure that
# none of its own rows is among them.

anchor, anchor_target = dc.SampleAnchor(500, balanced=True).sample(X_public, y_public, random_state=0)
for name, (X_own, _) in split.items():
    print(name, "has", len(dc.find_private_rows(anchor, X_own)), "of its rows in the anchor")

# %%
# **Share.**  Each party fits an obfuscator of its own choice on its own rows, here a principal component
# analysis (PCA) with a different number of columns at each.  A share is all that leaves.  The order of its rows is
# secret and comes from the operating system, so that figures differ a little from run to run.

columns = {"party-0": 16, "party-1": 20, "party-2": 24}
parties = {
    name: dc.Party(name, dc.obfuscator("pca", n_components=columns[name])).fit(X_own, y_own)
    for name, (X_own, y_own) in split.items()
}
shares = [party.share(anchor, anchor_target) for party in parties.values()]
for share in shares:
    print(share)

# %%
# **Integrate and train.**  The analyst has the shares and nothing else.  The integration method is KTI, kernel-based
# target-normalised integration, which takes maps of any kind.

analyst = dc.Analyst(dc.KTI(n_components=16, center=True), forest)
collaboration = analyst.fit(shares)
print(collaboration)

# %%
# **Predict.**  Each party takes its model home, and compares it with what it has without the others: a forest of its
# own 100 rows, and one of these and the public rows in the anchor, if somebody has labelled them.  Central is a forest
# of all 300 rows in one place, which nobody may have.

results = {}
for name, party in parties.items():
    X_own, y_own = split[name]
    model = collaboration.party_model(name)
    results[name] = {
        "Local": forest.fit(X_own, y_own).score(X_new, y_new),
        "Local+Public": forest.fit(np.concatenate([X_own, anchor]), np.append(y_own, anchor_target)).score(
            X_new, y_new
        ),
        "collaboration": (party.predict(X_new, model) == y_new).mean(),
        "Central": forest.fit(*split.pooled()[:2]).score(X_new, y_new),
    }
    print(name, "  ".join(f"{way} {accuracy:.3f}" for way, accuracy in results[name].items()))

# %%
# Collaboration is far above each clinic alone.  But the anchor has 500 labelled rows here, and whoever may learn from
# these does without the others: when collaboration pays is the question of ``plot_035_when_it_pays.py``.

figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
for k, (way, colour) in enumerate(zip(results["party-0"], ("0.6", "#E69F00", "#0072B2", "0.2"), strict=True)):
    values = [found[way] for found in results.values()]
    bars = axes.bar(np.arange(3) + 0.2 * (k - 1.5), values, 0.18, color=colour, label=way)
    axes.bar_label(bars, fmt="%.2f", fontsize=8, padding=2)
axes.set_xticks(range(3), [f"{name}\n{columns[name]} columns shared" for name in results])
axes.set_ylim(0, 1.05)
axes.set_ylabel("accuracy on new digits")
axes.spines[["top", "right"]].set_visible(False)
figure.legend(frameon=False, fontsize=9, loc="outside right center")
figure.savefig("plot_010_first_collaboration.png")
