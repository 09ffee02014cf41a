"""
On a cluster, with Dask
=======================

Where parties are many or their anchor is long, one machine's memory does not hold what the integration takes.  Dask
leaves each party's matrices on the workers of a cluster, and moves blocks of a few columns only.  The result is that of
one process.

.. note:: Dask is an extra: ``pip install 'datacollab[dask,plots]'``.
"""

import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client, LocalCluster
from scipy.linalg import subspace_angles
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc

# %%
# Eight parties with 25 handwritten digits each, and 1500 anchor rows that SMOTE, the synthetic minority oversampling
# technique, interpolates between 200 public rows.

X, y = dc.datasets.load("digits")
split = dc.datasets.split_parties(X, y, n_parties=8, n_per_party=25, random_state=0)
X_own, y_own, owner = split.pooled()
X_rest, y_rest = split.remaining()
public, labels, X_new, y_new = X_rest[:200], y_rest[:200], X_rest[200:], y_rest[200:]
anchor, _ = dc.SMOTEAnchor(1500).sample(public, random_state=0)
h = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
f = dc.obfuscator("kernel-pca", n_components=12)

# %%
# **A cluster** of two workers, which here are threads of this process.  Between machines it is
# ``Client("tls://scheduler.analyst.example:8786")``, and nothing else changes.  All machines are the analyst's: workers
# hold representations of the anchor, and never a row of a party.

# No dashboard, and nothing that listens beyond this machine.
cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50)
client = Client(cluster)


def collaboration(engine: Client | None) -> dc.DataCollaborationClassifier:
    """With kernel-based target-normalised integration (KTI), here or on the cluster."""
    kti = dc.KTI(12, solver="exact", alpha=0.1, random_state=0, engine=engine)
    made = dc.DataCollaborationClassifier(f, kti, h, random_state=0)
    return made.fit(X_own, y_own, groups=owner, anchor=anchor)


here, there = collaboration(None), collaboration(client)
client.close()
cluster.close()

# %%
# **The same?**  The angle between both targets, and what both predict.

targets = [made.collaboration_.integrator_.target_ for made in (here, there)]
tester = np.resize(list(split), len(X_new))
predictions = [made.predict(X_new, groups=tester) for made in (here, there)]
print(f"largest angle between the targets      {subspace_angles(*targets).max():.0e}")
print(f"predictions that agree                 {(predictions[0] == predictions[1]).mean():.3f}")

# %%
# **Beside it**, as ever: a party alone, the same with the public rows, if somebody labels them, and all rows in one
# place.

more = [(np.concatenate([own.X, public]), np.append(own.y, labels)) for own in split.values()]
results = {
    "Local": dc.Local(h).fit(X_own, y_own, groups=owner).score(X_new, y_new, groups=tester),
    "Local+Public, if labelled": float(np.mean([h.fit(*rows).score(X_new, y_new) for rows in more])),
    "one process": float((predictions[0] == y_new).mean()),
    "two workers": float((predictions[1] == y_new).mean()),
    "Central": h.fit(X_own, y_own).score(X_new, y_new),
}
for name, accuracy in results.items():
    print(f"{name:38} {accuracy:.3f}")

# %%
# A cluster is for what does not fit on one machine.  This fits, and would be done sooner without.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained", width_ratios=(1, 1.25))
left.plot(targets[0][:, 0], targets[1][:, 0], ".", color="#0072B2", markersize=3)
left.set_xlabel("first column of the target, one process")
left.set_ylabel("the same, two workers")
bars = right.barh(list(results), list(results.values()), color=["0.6", "#E69F00", "#56B4E9", "#0072B2", "0.3"])
right.bar_label(bars, fmt="%.3f", padding=3)
right.invert_yaxis()
right.set_xlim(0, 1.12)
right.set_xlabel("accuracy on new digits")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("plot_170_dask.png")
