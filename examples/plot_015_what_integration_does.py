"""
What integration does
=====================

Three hospitals share their rows, each through a secret and bent map of its own, so that nothing fits together any more.
The analyst turns all of them into one space again, without seeing a row or a map.  These are the same rows four times:
as shared, and by three of the paper's methods.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc

# %%
# The tables: the handwritten digits 1, 4 and 7, 60 at each of three hospitals.  150 are public and labelled: the
# *anchor*, rows that everybody may see.  The rest are new ones, to test on.

X, y = dc.datasets.load("digits")
X, y = X[np.isin(y, (1, 4, 7))], y[np.isin(y, (1, 4, 7))]
h = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))

# %%
# **Three methods.**  A hospital's map is UMAP, fitted on its own rows, to two columns, which can be drawn.  ``LTI`` is
# linear target-normalised integration.  ``KTI`` is the same with a kernel, so it can bend.  The *graph* draws anchor
# rows of one class together, and *centring* has all columns sum to zero.

graph = dc.TargetSimilarityGraph()
methods = {"LTI": dc.LTI(2), "KTI": dc.KTI(2), "KTI + graph + centring": dc.KTI(2, graph=graph, center=True)}
SHARED = "as shared"


def disagreement(maps: dict[str, np.ndarray]) -> float:
    """Share of the variance of the same rows that lies between hospitals: 0 if all map each row to one place."""
    stacked = np.stack(list(maps.values()))
    return float(((stacked - stacked.mean(axis=0)) ** 2).sum() / ((stacked - stacked.mean(axis=(0, 1))) ** 2).sum())


def play(seed: int) -> tuple[dict[str, dict], dict[str, float], dict[str, float], dc.datasets.PartySplit]:
    """One draw: each way's rows by hospital, how far hospitals disagree, and accuracies."""
    split = dc.datasets.split_parties(X, y, n_parties=3, n_per_party=60, random_state=seed)
    X_own, y_own, owner = split.pooled()
    X_rest, y_rest = split.remaining()
    anchor, anchor_target, X_new, y_new = X_rest[:150], y_rest[:150], X_rest[150:], y_rest[150:]
    tester = np.resize(list(split), len(X_new))
    more = [(np.concatenate([own.X, anchor]), np.append(own.y, anchor_target)) for own in split.values()]
    rows, apart = {}, {}
    accuracy = {
        "Local": dc.Local(h).fit(X_own, y_own, groups=owner).score(X_new, y_new, groups=tester),
        "Local+Public, if labelled": float(np.mean([h.fit(*each).score(X_new, y_new) for each in more])),
        "Central": dc.Central(h).fit(X_own, y_own).score(X_new, y_new),
    }
    for name, g in methods.items():
        # The same seed gives the same secret maps.
        together = dc.DataCollaborationClassifier(dc.obfuscator("umap", n_components=2), g, h, random_state=seed)
        together.fit(X_own, y_own, groups=owner, anchor=anchor, anchor_target=anchor_target)
        own = {party: f.obfuscate(split[party].X) for party, f in together.parties_.items()}
        new = {party: f.obfuscate(X_new) for party, f in together.parties_.items()}
        if SHARED not in rows:
            rows[SHARED], apart[SHARED] = own, disagreement(new)
            h.fit(np.concatenate([own[party] for party in split]), np.concatenate([each.y for each in split.values()]))
            accuracy[SHARED] = float(np.mean([h.score(each, y_new) for each in new.values()]))
        integrator = together.collaboration_.integrator_
        rows[name], apart[name] = integrator.transform(own), disagreement(integrator.transform(new))
        accuracy[name] = together.score(X_new, y_new, groups=tester)
    return rows, apart, accuracy, split


# %%
# **Do hospitals agree, and what is it good for?**  All three map the same new rows.  Of the variance of what comes out,
# a share lies between hospitals: two thirds where their maps have nothing to do with each other.  One model then learns
# from all rows.  Beside it: a hospital's own 60 rows, these and the public ones, and all rows in one place.

draws = [play(seed) for seed in range(5)]
for name in (SHARED, *methods):
    print(f"hospitals disagree, {name:24} {np.mean([apart[name] for _, apart, _, _ in draws]):.3f}")
for name in draws[0][2]:
    print(f"accuracy, {name:26} {np.mean([accuracy[name] for _, _, accuracy, _ in draws]):.3f}")

# %%
# Two columns can be drawn and hold little.  **Here each hospital is better off alone**, as its own raw rows have 64.
# See ``plot_020_compare_methods.py`` for more columns, and ``plot_035_when_it_pays.py`` for when collaborating pays.
#
# **The picture** is of the first draw.  Colours are digits, and markers are hospitals.

rows, apart, accuracy, split = draws[0]
titles = {
    SHARED: "shared: each by its own map",
    "LTI": "integrated by LTI: linear",
    "KTI": "by KTI: it bends",
    "KTI + graph + centring": "by KTI + graph + centring",
}
colours = {1: "#0072B2", 4: "#D55E00", 7: "#009E73"}
figure, axes = plt.subplots(1, 4, figsize=(10, 3.4), layout="constrained")
for panel, (name, title) in zip(axes, titles.items(), strict=True):
    for marker, (party, own) in zip("o^s", split.items(), strict=True):
        for digit, colour in colours.items():
            drawn = rows[name][party][own.y == digit]
            panel.scatter(*drawn.T, color=colour, marker=marker, s=24, edgecolors="white", linewidths=0.4)
    panel.set_title(f"{title}\ndisagreement {apart[name]:.2f}, accuracy {accuracy[name]:.2f}", fontsize=9.5)
    panel.set_xticks([])
    panel.set_yticks([])
handles = [Line2D([], [], marker=m, linestyle="", color="0.3", label=n) for m, n in zip("o^s", split, strict=True)]
handles += [Line2D([], [], marker="o", linestyle="", color=c, label=f"digit {d}") for d, c in colours.items()]
figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
figure.savefig("plot_015_what_integration_does.png")
