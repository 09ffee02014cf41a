"""
Files that cross
================

Between organisations nothing crosses but files.  They are signed by their sender and sealed to their readers,
hold numbers and no code, and are checked before anything is made of them.  Here one share goes the whole way, and
so do an altered one and one that the wrong reader opens.

.. note:: Signatures are an extra: ``pip install 'datacollab[exchange,plots]'``.  The whole exchange by commands, in
   processes of their own, is ``play_030_files_that_cross.py``.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.bundle import KeyPair, seal, unseal
from datacollab.errors import ExchangeError

X, y = dc.datasets.load("digits")
split = dc.datasets.split_parties(X, y, n_parties=4, n_per_party=40, random_state=0)
X_rest, y_rest = split.remaining()
anchor, labels, X_new, y_new = X_rest[:300], y_rest[:300], X_rest[300:], y_rest[300:]

# %%
# **Keys.**  Everybody makes a pair, keeps one half, and gives the other to the rest, over a way that they trust.  What
# is secret here, keys and maps, comes from the operating system, so that figures differ a little from run to run.

keys = {name: KeyPair.generate() for name in [*split, "analyst"]}

# %%
# **Out.**  Each party writes its share, signed, and seals the file to the analyst.

folder = Path(tempfile.mkdtemp())
parties = {name: dc.Party(name, dc.obfuscator("pca", n_components=20)).fit(*own) for name, own in split.items()}
for name, party in parties.items():
    party.share(anchor).save(folder / f"{name}.dcshare", key=keys[name])
    written = (folder / f"{name}.dcshare").read_bytes()
    (folder / f"{name}.sealed").write_bytes(seal(written, [keys["analyst"].public], purpose="share"))

# %%
# **In.**  The analyst opens each seal, and reads what the right party has signed.

shares = []
for name in parties:
    opened = folder / f"{name}.opened"
    opened.write_bytes(unseal((folder / f"{name}.sealed").read_bytes(), keys["analyst"], purpose="share"))
    shares.append(dc.Share.load(opened, signed_by=keys[name].public))
    print(shares[-1])

# %%
# **What is refused**: the seal, for any other key; and a file with a single bit changed on its way.

first, second = list(parties)[:2]
sealed = (folder / f"{first}.sealed").read_bytes()
altered = folder / "altered.dcshare"
changed = bytearray((folder / f"{first}.dcshare").read_bytes())
changed[len(changed) // 2] ^= 1
altered.write_bytes(changed)
for what, attempt in {
    "opened by another party": lambda: unseal(sealed, keys[second], purpose="share"),
    "one bit changed": lambda: dc.Share.load(altered, signed_by=keys[first].public),
    "signed by somebody else": lambda: dc.Share.load(folder / f"{first}.dcshare", signed_by=keys[second].public),
}.items():
    try:
        attempt()
    except ExchangeError as error:
        print(f"{what:25} refused: {error.code}")

# %%
# **Back.**  A model goes home as a file too, and predicts there as it would have here.

h = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
collaboration = dc.Analyst(dc.ODC(reference="consensus"), h).fit(shares)
together = []
for name, party in parties.items():
    collaboration.party_model(name).save(folder / f"{name}.dcmodel")
    model = dc.PartyModel.load(folder / f"{name}.dcmodel")
    together.append((party.predict(X_new, model) == y_new).mean())
results = {
    "Local": np.mean([h.fit(*own).score(X_new, y_new) for own in split.values()]),
    "Local+Public, if labelled": np.mean(
        [h.fit(np.concatenate([own.X, anchor]), np.append(own.y, labels)).score(X_new, y_new) for own in split.values()]
    ),
    "by files": np.mean(together),
    "Central": h.fit(*split.pooled()[:2]).score(X_new, y_new),
}
for name, accuracy in results.items():
    print(f"{name:25} {accuracy:.3f}")

# %%
# **The picture**: one row at home, the first rows of the share as the analyst has them, and the first bytes of the file
# as all others see it.  A seal protects against others, not against the analyst: for that there are defences.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained", width_ratios=(1, 1, 1))
axes[0].imshow(split[first].X[0].reshape(8, 8), cmap="gray_r")
axes[0].set_title("at home: a digit", fontsize=10)
axes[1].imshow(shares[0].representation[:20], cmap="PuOr", aspect="auto")
axes[1].set_title("for the analyst: 20 numbers a row", fontsize=10)
axes[2].imshow(np.frombuffer(sealed, dtype=np.uint8)[-4096:].reshape(64, 64), cmap="gray")
axes[2].set_title("for all others: sealed bytes", fontsize=10)
for panel in axes:
    panel.set_xticks([])
    panel.set_yticks([])
figure.savefig("plot_190_files.png")
