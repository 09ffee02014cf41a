"""
Tables with categories and gaps
===============================

Tables of hospitals have words in them, and entries that nobody has filled in.  For shared rows, the obfuscator encodes
both: a pipeline fills gaps, turns categories into columns, and only then maps.  What it learns for that stays at the
party.  With sums nothing is needed: ``DataCollaborationClassifier().fit(table, ...)`` takes such tables.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import datacollab as dc

# %%
# The table: 442 patients with diabetes, as a registry might have them.  Sex is a word, age a decade, and the body mass
# index a class of the World Health Organization.  One entry in twenty is missing.  Wanted is whether the disease gets
# worse within a year than in half of all patients.

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
table = pd.DataFrame(
    {
        "sex": np.where(X["sex"] == 1, "a", "b"),
        "age": (X["age"] // 10 * 10).astype(int).astype(str) + "s",
        "body mass": pd.cut(X["bmi"], [0, 18.5, 25, 30, 99], labels=["under", "normal", "over", "obese"]).astype(str),
        "pressure": X["bp"],
        **{f"serum {k}": X[f"s{k}"] for k in range(1, 7)},
    }
)
table = table.mask(np.random.default_rng(0).uniform(size=table.shape) < 0.05, other=None)
worse = (y > y.median()).to_numpy().astype(int)
print(table.head(4).to_string())

# %%
# **The obfuscator** of every hospital.  ``handle_unknown="ignore"`` lets a hospital meet a category that it has not
# seen, and a missing word is a category like any other.  The same pipeline without its last step is what a hospital
# would put before its own model.

words = ["sex", "age", "body mass"]
numbers = [name for name in table if name not in words]


def encoder() -> ColumnTransformer:
    """Rows of numbers without gaps."""
    filled = make_pipeline(SimpleImputer(), StandardScaler())
    return make_column_transformer(
        (filled, numbers), (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words)
    )


f = make_pipeline(encoder(), PCA(10))
h = make_pipeline(encoder(), LogisticRegression(C=0.1))
g = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))

# %%
# **Four ways**, each tried with five draws of who is where: six hospitals with 30 patients each, 100 public rows, and
# new patients.  The measure is the area under the curve (AUC): .5 is guessing.


def areas(seed: int) -> dict[str, float]:
    """Return scores of all ways, means over hospitals."""
    order = np.random.default_rng(seed).permutation(len(table))
    own, public, new = order[:180], order[180:280], order[280:]
    hospital = np.repeat([f"hospital {k}" for k in range(6)], 30)
    names = np.unique(hospital)
    together = dc.DataCollaborationClassifier(f, dc.LTI(10, fit_intercept=True), g, random_state=seed)
    together.fit(table.iloc[own], worse[own], groups=hospital, anchor=table.iloc[public])
    tables = [own[hospital == name] for name in names]

    def alone(rows: np.ndarray) -> float:
        return roc_auc_score(worse[new], h.fit(table.iloc[rows], worse[rows]).predict_proba(table.iloc[new])[:, 1])

    found = [together.predict_proba(table.iloc[new], groups=[name] * len(new))[:, 1] for name in names]
    return {
        "Local": np.mean([alone(rows) for rows in tables]),
        "Local+Public, if labelled": np.mean([alone(np.append(rows, public)) for rows in tables]),
        "collaboration": np.mean([roc_auc_score(worse[new], each) for each in found]),
        "Central": alone(own),
    }


draws = [areas(seed) for seed in range(5)]
results = {name: np.array([draw[name] for draw in draws]) for name in draws[0]}
for name, values in results.items():
    print(f"{name:26} {values.mean():.3f}   from {values.min():.3f} to {values.max():.3f}")

# %%
# Collaboration comes near to all rows in one place, and so does a hospital alone if the hundred public rows have
# labels: it pays where they have none.
#
# Fitted once, a hospital's f takes rows as they are, words and gaps included.  For organisations apart, the project
# file says which categories there are, so that all make the same columns of them.

figure, axes = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
colours = ("0.5", "#E69F00", "#0072B2", "black")
for place, (values, colour) in enumerate(zip(results.values(), colours, strict=True)):
    axes.plot(values, np.full(5, place), "o", color=colour, markerfacecolor="none", markersize=7)
    axes.plot(values.mean(), place, "|", color=colour, markersize=26, markeredgewidth=2.5)
axes.set_yticks(range(4), list(results))
axes.set_ylim(3.6, -0.6)
axes.set_xlabel("area under the curve on new patients: five draws, and their mean")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("plot_062_tables_with_categories.png")
