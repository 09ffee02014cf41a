"""
Two regions, each with an analyst of its own
============================================

Three clinics in the north and three in the south hold 50 handwritten digits each.  Shares may not leave their region.
A centre that sees no share finds the target that one analyst with all six shares would have found, and each region maps
its clinics onto it.
"""

import tempfile
from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import subspace_angles
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.analyst import Centre, Collaboration, GroupAnalyst
from datacollab.bundle import KeyPair
from datacollab.share import GroupMessage, GroupTarget

X, y = dc.datasets.load("digits")
split = dc.datasets.split_parties(X, y, n_parties=6, n_per_party=50, random_state=0)
X_rest, y_rest = split.remaining()
anchor, labels, X_new, y_new = X_rest[:400], y_rest[:400], X_rest[400:], y_rest[400:]

# %%
# **Share**, once, as ever: each clinic with its own regional analyst.

parties = {name: dc.Party(name, dc.obfuscator("pca", n_components=24)).fit(*own) for name, own in split.items()}
shares = {name: party.share(anchor) for name, party in parties.items()}
names = list(shares)
regions = {"north": names[:3], "south": names[3:]}

# %%
# **Agree on the method**, since groups choose nothing afterwards.  Each analyst sends the centre a sum over its clinics
# of what they made of the anchor, in a signed file.

integrator = dc.KTI(30, center=True, alpha=0.01)
model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=3000))
analysts = {region: GroupAnalyst(region, integrator, model) for region in regions}
keys = {role: KeyPair.generate() for role in [*regions, "centre"]}
folder = Path(tempfile.mkdtemp())
for region, members in regions.items():
    message = analysts[region].message([shares[name] for name in members])
    message.save(folder / f"{region}.dcgroup", key=keys[region])
    print(message)

# %%
# **The centre** adds up, and sends one target to both.

centre = Centre(list(regions))
messages = [GroupMessage.load(folder / f"{region}.dcgroup", signed_by=keys[region].public) for region in regions]
centre.target(messages).save(folder / "target.dcgroup", key=keys["centre"])
target = GroupTarget.load(folder / "target.dcgroup", signed_by=keys["centre"].public)
print(target)

# %%
# It is the target of one analyst with all shares.

everybody = dc.Analyst(integrator, model).fit(shares.values())
angle = subspace_angles(everybody.integrator_.target_, target.target).max()
print(f"largest angle to the target of all six shares in one place: {angle:.0e}")

# %%
# **Train.**  Each region has its own model first; a vote makes one of both.

finished = {region: analyst.finish(target) for region, analyst in analysts.items()}
vote = centre.vote([analysts[region].head(each) for region, each in finished.items()], messages)
together = {region: analysts[region].adopt(each, vote[region]) for region, each in finished.items()}

# %%
# **Predict**, at each clinic alone.  Beside it stand a clinic's own 50 rows, the same with the public rows, if somebody
# labels them, and all rows of the six in one place.


def accuracy(collaborations: Iterable[Collaboration]) -> float:
    """Mean over clinics."""
    models = {name: each.party_model(name) for each in collaborations for name in each.parties}
    return float(np.mean([(parties[name].predict(X_new, own) == y_new).mean() for name, own in models.items()]))


alone = [dc.Analyst(integrator, model).fit([shares[name] for name in members]) for members in regions.values()]
more = [(np.concatenate([own.X, anchor]), np.append(own.y, labels)) for own in split.values()]
results = {
    "Local": float(np.mean([model.fit(*own).score(X_new, y_new) for own in split.values()])),
    "Local+Public, if labelled": float(np.mean([model.fit(*rows).score(X_new, y_new) for rows in more])),
    "each region for itself": accuracy(alone),
    "two regions and a vote": accuracy(together.values()),
    "all shares with one analyst": accuracy([everybody]),
    "Central": model.fit(*split.pooled()[:2]).score(X_new, y_new),
}
for name, each in results.items():
    print(f"{name:28}{each:.3f}")

# %%
# With the vote a region is as well off as with one analyst who has all shares, and better than for itself: the common
# target is the same.  But four hundred labelled public rows would do as much, without the others.

figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
colours = ["0.6", "#E69F00", "#56B4E9", "#0072B2", "#009E73", "0.2"]
bars = axes.barh(list(results), list(results.values()), color=colours)
axes.bar_label(bars, fmt="%.3f", padding=3)
axes.invert_yaxis()
axes.set_xlim(0, 1.08)
axes.set_xlabel("accuracy on new digits, mean over six clinics")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("plot_060_two_regional_centres.png")
