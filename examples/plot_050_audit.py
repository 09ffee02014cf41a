"""
An audit before anything leaves, and its page
=============================================

A row behind a map is still a row.  Before a party shares, it attacks its own share as others could, and gets a page for
its data protection officer.  Here two ways of sharing the same 60 rows are audited: as they are behind f, and as means
of five rows with noise.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc

X, y = dc.datasets.load("digits")
split = dc.datasets.split_parties(X, y, n_parties=5, n_per_party=60, random_state=0)
X_own, y_own, owner = split.pooled()
X_rest, y_rest = split.remaining()
anchor, public = (X_rest[:300], y_rest[:300]), (X_rest[300:900], y_rest[300:900])
X_new, y_new = X_rest[900:], y_rest[900:]

# %%
# **Two ways of sharing.**  Undefended, every row of a party leaves behind its f.  In groups, means of five rows of a
# class leave, with noise of .3 standard deviations.

f = dc.obfuscator("pca", n_components=16)
h = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
groups = dc.party.Microaggregation(5, small_classes="group"), dc.party.GaussianNoise(0.3)
ways = {"undefended": (), "groups": groups}
made = {
    name: dc.DataCollaborationClassifier(f, dc.KTI(16), h, fit_on="anchor", defences=defences, random_state=0).fit(
        X_own, y_own, groups=owner, anchor=anchor[0]
    )
    for name, defences in ways.items()
}

# %%
# **Audit.**  The attacker holds the share and all of the anchor (threat level T2), has the originals of rows, and asks
# which shared row is which (*singling out*), which belong together (*linkability*), or whether a row is among them at
# all (*membership*).  Leave out ``levels`` and ``attacks`` to try all attackers, which takes a minute; the page says
# what was not tested.

attacks = ["linear regression", "nearest neighbours", "kernel ridge", "emulator", "membership", "shadow shares"]
first = next(iter(split))
known = {"public": public[0], "public_target": public[1]}
audits = {
    name: dc.audit(
        each.parties_[first],
        split[first].X,
        anchor[0],
        y=split[first].y,
        levels=["T2"],
        attacks=attacks,
        random_state=0,
        **known,
    )
    for name, each in made.items()
}
for name, result in audits.items():
    print(f"--- {name}: {result}")
    for sentence in result.sentences().values():
        print(sentence)

# %%
# **The page** needs nothing from outside, and its first part prints on one sheet.

audits["undefended"].to_html("audit.html")
print(f"\naudit.html: {Path('audit.html').stat().st_size / 1000:.0f} kB")

# %%
# **And accuracy?**  A defence costs some.  Beside both stand a party alone, the same with the anchor's rows, if
# somebody labels them, and all rows in one place.

tester = np.resize(list(split), len(X_new))
more = [(np.concatenate([own.X, anchor[0]]), np.append(own.y, anchor[1])) for own in split.values()]
accuracies = {
    "Local": dc.Local(h).fit(X_own, y_own, groups=owner).score(X_new, y_new, groups=tester),
    "Local+Public, if labelled": float(np.mean([h.fit(*rows).score(X_new, y_new) for rows in more])),
    **{name: each.score(X_new, y_new, groups=tester) for name, each in made.items()},
    "Central": h.fit(X_own, y_own).score(X_new, y_new),
}
for name, accuracy in accuracies.items():
    print(f"{name:26} {accuracy:.3f}")

# %%
# **The picture**: what the strongest attack reaches, with its 95 % interval, beside what the labels alone would reveal.
# An attack that does no better than that shows nothing; a stronger one may come.

figure, axes = plt.subplots(figsize=(8.4, 4.2), layout="constrained")
for (name, result), colour, aside in zip(audits.items(), ("#D55E00", "#0072B2"), (-0.19, 0.19), strict=True):
    areas = [each for each in result.findings if each.metric == "membership AUC"]
    strongest = max(areas, key=lambda each: each.value)
    found = [result.headline("singling out"), result.headline("linkability"), strongest]
    measured = {place + aside: finding for place, finding in enumerate(found)}
    axes.barh(list(measured), [each.value for each in measured.values()], 0.34, color=colour, label=name)
    for height, each in measured.items():
        axes.plot([each.low, each.high], [height, height], color="black", linewidth=1)
        nothing = each.chance if each.baseline is None else each.baseline
        axes.plot(nothing, height, "D", color="white", markeredgecolor="black", markersize=7)
axes.plot([], [], "D", color="white", markeredgecolor="black", markersize=7, label="labels alone, or guessing")
axes.set_yticks(
    range(3), ["singled out,\nshare of rows", "linked,\nshare of rows", "membership,\narea under the curve"]
)
axes.invert_yaxis()
axes.set_xlim(0, 1.02)
axes.set_xlabel("reached by the strongest attack, with its 95 % interval")
figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=3)
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("plot_050_audit.png")
