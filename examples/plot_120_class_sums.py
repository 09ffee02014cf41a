"""
Sums over classes: differential privacy of features and labels
==============================================================

Ten clinics hold 100 handwritten digits each.  No row leaves, and no label: each sends for every class the sum of its
rows' representations and how many there are, with noise for which ε = 4 is proven.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.analyst import Collaboration, fit_class_sums
from datacollab.party import GaussianMechanism, NoisyClassSums

X, y = dc.datasets.load("digits")
generator = np.random.default_rng(0)
public, new, rest = np.split(generator.permutation(len(X)), [300, 697])
anchor, X_new, y_new = X[public], X[new], y[new]


def dealt(n_kinds: int) -> list[np.ndarray]:
    """A hundred rows for each of ten clinics, of so many kinds of digits."""
    left, clinics = rest, []
    for k in range(10):
        kinds = (n_kinds * k + np.arange(n_kinds)) % 10
        clinics.append(left[np.isin(y[left], kinds)][:100])
        left = np.setdiff1d(left, clinics[-1], assume_unique=True)
    return clinics


# %%
# **One message**, and what is promised of it.  Maps, bounds and classes are learnt from public rows, or agreed on.

f = dc.obfuscator("pca", n_components=16)


def fitted(clinics: list[np.ndarray], epsilon: float, *, rows: bool = False) -> list[dc.Party]:
    """Parties behind class sums, or behind rows with noise."""
    defence = GaussianMechanism(epsilon) if rows else NoisyClassSums(epsilon, classes=range(10))
    return [dc.Party(k, f, fit_on=anchor, defences=[defence]).fit(X[own], y[own]) for k, own in enumerate(clinics)]


first = fitted(dealt(10), 4.0)[0]
print(first.class_sums(anchor))
print(first.guarantee(anchor).statement)

# %%
# **Beside it**: each clinic alone, with the public rows if somebody labels them, and all rows in one place; and rows
# with noise for the same ε, whose labels leave uncovered.  Everything is tried again with other noise, since that alone
# makes a difference.  In life a clinic sends once: promises of the same rows add up.


def h() -> Pipeline:
    """What a clinic would train."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))


def baselines(clinics: list[np.ndarray]) -> dict[str, float]:
    """Accuracy on new rows, means over clinics."""
    used = {
        "Local": clinics,
        "Local+Public": [np.append(own, public) for own in clinics],
        "Central": [np.concatenate(clinics)],
    }
    return {
        name: float(np.mean([h().fit(X[rows], y[rows]).score(X_new, y_new) for rows in each]))
        for name, each in used.items()
    }


def accuracy(parties: list[dc.Party], collaboration: Collaboration) -> float:
    """Mean over clinics."""
    return float(
        np.mean([(party.predict(X_new, collaboration.party_model(party.name)) == y_new).mean() for party in parties])
    )


def of_sums(clinics: list[np.ndarray], epsilon: float) -> float:
    """What comes of one exchange of class sums."""
    parties = fitted(clinics, epsilon)
    return accuracy(parties, fit_class_sums([party.class_sums(anchor) for party in parties]))


def of_rows(clinics: list[np.ndarray], epsilon: float) -> float:
    """What comes of one exchange of rows with noise."""
    parties = fitted(clinics, epsilon, rows=True)
    return accuracy(parties, dc.Analyst(dc.LTI(16, fit_intercept=True), h()).fit([p.share(anchor) for p in parties]))


epsilons = [1.0, 2.0, 4.0, 8.0]
figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for axes, n_kinds in zip(panels, (10, 2), strict=True):
    clinics = dealt(n_kinds)
    title = f"ten clinics of 100 rows, {'all' if n_kinds == 10 else 'two'} digits each"
    print(f"\n{title}")
    levels = baselines(clinics)
    sums = np.array([[of_sums(clinics, epsilon) for epsilon in epsilons] for _ in range(2)])
    noisy = of_rows(clinics, 4.0)
    for name in ("Local", "Local+Public"):
        print(f"{name:28} {levels[name]:.3f}")
    for epsilon, each in zip(epsilons, sums.T, strict=True):
        print(f"class sums, epsilon {epsilon:g}        {each[0]:.3f}, and again {each[1]:.3f}")
    print(f"rows with noise, epsilon 4   {noisy:.3f}")
    print(f"Central                      {levels['Central']:.3f}")
    axes.semilogx(np.tile(epsilons, 2), sums.ravel(), "o", color="#0072B2", label="class sums, twice")
    axes.plot(4.0, noisy, "x", color="#D55E00", label="rows with noise, labels not covered")
    for (name, level), style in zip(levels.items(), ("--", "-.", "-"), strict=True):
        axes.axhline(level, color="0.4", linewidth=0.9, linestyle=style, label=name, zorder=0)
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set_ylim(0, 1)
    axes.set_xlabel("ε; smaller promises more", fontsize=9)
    axes.set_title(title, fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("accuracy on new digits", fontsize=9)
panels[0].legend(frameon=False, fontsize=8, loc="lower right")
figure.savefig("plot_120_class_sums.png")

# %%
# Where clinics have all digits, sums bring nothing beside a hundred rows of one's own.  Where each lacks most, they are
# what makes a model.  If public rows are labelled, Local+Public is better in both cases, and nothing leaves.
