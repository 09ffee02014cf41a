"""
A first collaboration, role by role
===================================

Ten clinics hold 25 handwritten digits each and may not pool them.  Each clinic adds up statistics of its rows under
masks, an analyst learns the total alone and makes one model of it, and every clinic predicts with this model at home.
These are all steps of the method, each with the role that takes it.
"""

import secrets

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

import datacollab as dc

# %%
# The tables.  In life every clinic has its own; here one table is dealt out.  A hundred rows that nobody holds serve as
# public rows, and the others as new patients to test on.

X, y = dc.datasets.load("digits")
split = dc.datasets.split_parties(X, y, n_parties=10, n_per_party=25, random_state=0)
X_rest, y_rest = split.remaining()
X_public, y_public = X_rest[:100], y_rest[:100]
X_new, y_new = X_rest[100:], y_rest[100:]
forest = RandomForestClassifier(random_state=0)

# %%
# **Agree among clinics.**  The public rows are the anchor.  Together with a secret they give the common map, which
# takes a row into the unit ball.  The analyst gets neither.  A clinic makes sure that none of its rows is among them.

secret = secrets.token_bytes(32)
space = dc.CommonSpace(X_public, secret)
print("own rows in the anchor:", sum(len(dc.find_private_rows(X_public, own)) for own, _ in split.values()))

# %%
# **Agree with the analyst.**  Each clinic makes a mask key for this sum and sends its public half.  The plan names the
# clinics, the classes and the noise.  All of it goes into the masks, so that no message fits another plan.

keys = {name: dc.MaskKey.generate() for name in split}
plan = dc.SumsPlan(
    {name: key.public for name, key in keys.items()},
    n_components=space.n_components,
    classes=range(10),
    noise=space.recommended.noise,
    least_penalty=space.recommended.least_penalty,
    facts={"run": 1},
)

# %%
# **Send.**  A message is a list of numbers under masks, and a witness by which the analyst notices another map.
# Somebody has labelled the public rows, so the first clinic adds them to its own.  Its key is erased with the message.

messages = []
for name, (X_own, y_own) in split.items():
    public = (space.anchor, y_public) if name == "party-0" else None
    witness = space.witness(plan.agreed.context)
    messages.append(plan.message(name, space.transform(X_own), y_own, keys[name], witness=witness, public=public))
print("numbers in each message:", len(messages[0].words))

# %%
# **Add up.**  The analyst needs all ten messages; any nine of them are random numbers.  The total is that of all rows
# in one place, with noise, and ridge regression needs no more.

model = plan.solve(messages)
print(model)

# %%
# **Predict.**  Each clinic compares the model with what it has without the others: a forest of its own 25 rows, and one
# of these and the labelled public rows.  Central is a forest of all rows in one place, which nobody may have.

together = (model.predict(space.transform(X_new)) == y_new).mean()
results = {}
for name, (X_own, y_own) in split.items():
    with_public = np.vstack([X_own, X_public]), np.append(y_own, y_public)
    results[name] = {
        "Local": forest.fit(X_own, y_own).score(X_new, y_new),
        "Local+Public": forest.fit(*with_public).score(X_new, y_new),
        "sums under masks": together,
    }
X_all, y_all, _ = split.pooled()
central = forest.fit(np.vstack([X_all, X_public]), np.append(y_all, y_public)).score(X_new, y_new)
for way in ("Local", "Local+Public", "sums under masks"):
    print(way, " ".join(f"{found[way]:.3f}" for found in results.values()))
print(f"Central {central:.3f}")

# %%
# Every clinic gains, also against a forest of the public rows and its own.  A stronger model of these may do as well;
# the page "Does it pay?" compares with the best of four.  What the message reveals, and what the
# analyst could learn together with a clinic, is on the page about sums under masks.

figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
for k, (way, colour) in enumerate(zip(results["party-0"], ("0.75", "#E69F00", "#0072B2"), strict=True)):
    axes.bar(np.arange(10) + 0.27 * (k - 1), [found[way] for found in results.values()], 0.25, color=colour, label=way)
axes.axhline(central, color="0.2", linestyle="--", linewidth=1, label="Central")
axes.set_xticks(range(10), [name.removeprefix("party-") for name in results])
axes.set_xlabel("clinic")
axes.set_ylim(0, 1.05)
axes.set_ylabel("accuracy on new digits")
axes.spines[["top", "right"]].set_visible(False)
figure.legend(frameon=False, fontsize=9, loc="outside upper center", ncols=4)
figure.savefig("plot_010_first_collaboration.png")
