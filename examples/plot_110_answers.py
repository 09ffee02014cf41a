"""
Anchor predictions in place of a model: a tree that can be read
===============================================================

Six clinics hold 60 handwritten digits each.  The analyst sends back no model, but what its model predicts for the
public rows.  Each clinic distils a model of its own from these anchor predictions, on the original columns, such as a
tree that people can read.  It may then forget its map f_k.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, export_text

import datacollab as dc

X, y = dc.datasets.load("digits")
order = np.random.default_rng(0).permutation(len(X))
own, public, new = np.split(order, [360, 760])
clinics = np.split(own, 6)
anchor, X_new, y_new = X[public], X[new], y[new]

# %%
# **Collaborate**, as ever.  The order in which rows leave is secret and comes from the operating system, so that
# figures differ a little from run to run.

f = dc.obfuscator("pca", n_components=16)
parties = [dc.Party(k, f).fit(X[rows], y[rows]) for k, rows in enumerate(clinics)]
analyst = dc.Analyst(dc.KTI(16, alpha=0.1), RandomForestClassifier(random_state=0))
collaboration = analyst.fit([party.share(anchor) for party in parties])
by_model = [(party.predict(X_new, collaboration.party_model(party.name)) == y_new).mean() for party in parties]

# %%
# **Answers, and forgetting.**  For what follows no clinic needs its map any more.

answers = [collaboration.anchor_predictions(party.name) for party in parties]
print(answers[0])
print(parties[0].forget())

# %%
# **Learn**: ridge regression on landmarks, if nothing is named, or a tree of the pixels themselves.


def tree(depth: int) -> DecisionTreeClassifier:
    """As deep as one likes to read."""
    return DecisionTreeClassifier(max_depth=depth, min_samples_leaf=3, random_state=0)


def mean_score(estimator: RandomForestClassifier | DecisionTreeClassifier, *, with_public: bool = False) -> float:
    """Accuracy of models of a clinic's own rows, and of the public ones if they are labelled; mean over clinics."""
    used = [np.append(rows, public) if with_public else rows for rows in clinics]
    return float(np.mean([estimator.fit(X[rows], y[rows]).score(X_new, y_new) for rows in used]))


def mean_learned(estimator: DecisionTreeClassifier | None = None) -> float:
    """The same of what clinics learn from the answers."""
    found = [
        party.distil(anchor, each, estimator, rows=X[rows])
        for party, each, rows in zip(parties, answers, clinics, strict=True)
    ]
    return float(np.mean([(each.predict(X_new) == y_new).mean() for each in found]))


forest = RandomForestClassifier(random_state=0)
print(f"Local, a forest of own rows                     {mean_score(forest):.3f}")
print(f"Local+Public, a forest, if public are labelled  {mean_score(forest, with_public=True):.3f}")
print(f"the collaboration's model                       {np.mean(by_model):.3f}")
print(f"distilled from anchor predictions                            {mean_learned():.3f}")
print(f"Central, a forest of all rows                   {forest.fit(X[own], y[own]).score(X_new, y_new):.3f}")

# %%
# Answers are learned as well as the model predicts, or better.  Where public rows have labels, these and one's own rows
# are better still, and nothing need leave.  **Trees** that one can read cost accuracy, in one place as well:

depths = [2, 4, 8]
curves = {
    "Central": [tree(depth).fit(X[own], y[own]).score(X_new, y_new) for depth in depths],
    "distilled from anchor predictions": [mean_learned(tree(depth)) for depth in depths],
    "Local": [mean_score(tree(depth)) for depth in depths],
    "Local+Public": [mean_score(tree(depth), with_public=True) for depth in depths],
}
print("tree of depth         " + "".join(f"{depth:7}" for depth in depths))
for name, values in curves.items():
    print(f"{name:22}" + "".join(f"{value:7.3f}" for value in values))

# %%
# A tree of answers is about as good as one of all rows in one place.  It learns from probabilities, of more rows.  This
# is one that clinic 1 can read, on columns of its own.

names = [f"pixel {k // 8}, {k % 8}" for k in range(64)]
print(export_text(parties[1].distil(anchor, answers[1], tree(3), rows=X[clinics[1]]).estimator, feature_names=names))

# %%
# **Pictures**: accuracy by depth, and which pixels a tree of depth 8 looks at.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
looks = (("black", ":", "x"), ("#0072B2", "-", "o"), ("0.5", ":", "s"), ("#E69F00", "--", "D"))
for (name, values), (colour, style, marker) in zip(curves.items(), looks, strict=True):
    left.plot(depths, values, color=colour, linestyle=style, marker=marker, label=name)
left.set_xticks(depths)
left.set_xlabel("depth of the tree", fontsize=9)
left.set_ylabel("accuracy on new digits", fontsize=9)
left.legend(frameon=False, fontsize=8)
left.spines[["top", "right"]].set_visible(False)

learned = parties[1].distil(anchor, answers[1], tree(8), rows=X[clinics[1]]).estimator
shown = right.imshow(learned.feature_importances_.reshape(8, 8), cmap="cividis")
right.set_xlabel("pixel of a row", fontsize=9)
right.set_ylabel("row", fontsize=9)
figure.colorbar(shown, ax=right, shrink=0.8).set_label("importance for clinic 1's tree", fontsize=9)
figure.savefig("plot_110_answers.png")
