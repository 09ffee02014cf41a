"""
Labels that are skewed over parties
===================================

A children's hospital sees other illnesses than a geriatric one.  Where a party has only some of the labels, its own
model never predicts the others, however many rows it has.  A model of everybody's shares knows them all.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc

# %%
# Six clinics have 60 handwritten digits each.  ``concentration`` says how alike their mixes of labels are: near 0 a
# clinic has one label, at large values all have the shares of the whole table.  100 rows are public.

X, y = dc.datasets.load("digits")
h = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
f = dc.obfuscator("pca", n_components=24)


def dealt(concentration: float, seed: int) -> dc.datasets.PartySplit:
    """Rows of six clinics."""
    return dc.datasets.split_parties(X, y, 6, 60, scheme="label-skew", concentration=concentration, random_state=seed)


# %%
# **Accuracy** on new rows with all labels in equal shares, beside a clinic alone, the same with the public rows, if
# somebody has labelled them, and all rows of the six in one place.  Every f is fitted on public rows, so that a skewed
# table makes no skewed map.


def accuracies(concentration: float, seed: int) -> dict[str, float]:
    """Return accuracies of all ways, means over clinics."""
    split = dealt(concentration, seed)
    X_own, y_own, owner = split.pooled()
    X_rest, y_rest = split.remaining()
    # What clinics have left is skewed the other way, so new rows are taken label by label.
    public, new = np.arange(100), np.concatenate([np.flatnonzero(y_rest[100:] == k)[:30] + 100 for k in range(10)])
    anchor, _ = dc.SMOTEAnchor(400, include_sources=True).sample(X_rest[public], random_state=seed)
    together = dc.DataCollaborationClassifier(f, dc.KTI(24), h, fit_on="anchor", random_state=seed)
    together.fit(X_own, y_own, groups=owner, anchor=anchor)
    more = [(np.concatenate([own.X, X_rest[public]]), np.append(own.y, y_rest[public])) for own in split.values()]
    tester = np.repeat(list(split), len(new))
    rows, target = np.tile(X_rest[new], (len(split), 1)), np.tile(y_rest[new], len(split))
    return {
        "Local": dc.Local(h).fit(X_own, y_own, groups=owner).score(rows, target, groups=tester),
        "Local+Public, if labelled": float(np.mean([h.fit(*each).score(X_rest[new], y_rest[new]) for each in more])),
        "collaboration": together.score(rows, target, groups=tester),
        "Central": h.fit(X_own, y_own).score(X_rest[new], y_rest[new]),
    }


concentrations = [0.05, 0.2, 1.0, 5.0]
draws = [[accuracies(each, seed) for each in concentrations] for seed in range(2)]
curves = {name: np.mean([[each[name] for each in draw] for draw in draws], axis=0) for name in draws[0][0]}
print("concentration             " + "".join(f"{each:7g}" for each in concentrations))
for name, curve in curves.items():
    print(f"{name:26}" + "".join(f"{value:7.3f}" for value in curve))

# %%
# The more skewed, the more a clinic gains beside its own rows.  But nobody knows what nobody has: where each clinic has
# hardly more than one label, some labels are at none of the six, and all rows in one place do not help either.  There a
# hundred labelled public rows are better, since they have every label.  And labels leave with undefended shares:
# whoever gets them learns how many of each a clinic has.
#
# **Pictures**: who has which labels with a concentration of 0.2, and accuracies.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
counts = [np.bincount(own.y, minlength=10) for own in dealt(0.2, 0).values()]
shown = left.imshow(counts, cmap="Blues", aspect="auto")
for (row, column), count in np.ndenumerate(counts):
    if count:
        left.text(column, row, count, ha="center", va="center", fontsize=8, color="white" if count > 25 else "black")
left.set_xticks(range(10))
left.set_yticks(range(6), [f"clinic {k}" for k in range(6)])
left.set_xlabel("digit")
left.set_title("rows of each label, concentration 0.2", fontsize=10)
looks = (("0.5", ":", "s"), ("0.5", "--", "D"), ("#0072B2", "-", "o"), ("black", ":", "x"))
for (name, curve), (colour, style, marker) in zip(curves.items(), looks, strict=True):
    right.plot(concentrations, curve, color=colour, linestyle=style, marker=marker, label=name)
right.set_xscale("log")
right.set_xticks(concentrations, [f"{each:g}" for each in concentrations])
right.minorticks_off()
right.set_ylim(0, 1)
right.set_xlabel("concentration: left skewed, right alike")
right.set_ylabel("accuracy on new digits")
right.legend(frameon=False, fontsize=9)
right.spines[["top", "right"]].set_visible(False)
figure.savefig("plot_040_labels_skewed.png")
