"""
Explanations: what the common model does with a party's own columns
===================================================================

A model of the collaboration representation means nothing to a reader.  But a party has f_k, g_k and h, and can ask what
all three together make of its columns.  Four hospitals have patients of different ages, whose diabetes got worse by
some amount within a year; 200 rows are public.  Needs ``pip install 'datacollab[shap,plots]'``.
"""

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import shap
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

import datacollab as dc
from datacollab.party import explanation_discrepancy

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
order = np.random.default_rng(0).permutation(len(X))
public, rest = order[:200], order[200:]
own = dict(
    zip(["north", "east", "south", "west"], np.array_split(rest[np.argsort(X["age"].iloc[rest])], 4), strict=True)
)
anchor, patients = X.iloc[public], X.iloc[public[:30]]

# %%
# **Collaborate.**  PCA of all columns, affine LTI, and least squares.  Each hospital's predictor is a function of its
# raw columns, at home.

f = dc.obfuscator("pca", n_components=10, standardize=True)
parties = {name: dc.Party(name, f).fit(X.iloc[rows], y.iloc[rows]) for name, rows in own.items()}
analyst = dc.Analyst(dc.LTI(10, fit_intercept=True), LinearRegression())
collaboration = analyst.fit([party.share(anchor) for party in parties.values()])
together = {name: party.predictor(collaboration.party_model(name)) for name, party in parties.items()}

# %%
# **Beside it**, the same regression of a hospital's own rows, of these and the public ones, and of all rows in one
# place.


def of_raw_rows(rows: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Least squares of raw columns."""
    return LinearRegression().fit(X.iloc[rows].to_numpy(), y.iloc[rows]).predict


local = {name: of_raw_rows(rows) for name, rows in own.items()}
more = {name: of_raw_rows(np.append(rows, public)) for name, rows in own.items()}

# %%
# **Explain** thirty public rows at each hospital: Shapley values, each column masked by entries of the anchor, which is
# the same at all.  Discrepancy is 0 where explanations are the same, and 1 where they have nothing in common.


def explained(predictor: Callable[[np.ndarray], np.ndarray], background: pd.DataFrame) -> shap.Explanation:
    """Shapley values of ten columns, from one order of these and its reverse: exact for models that are sums."""
    masker = shap.maskers.Independent(background.to_numpy(), max_samples=len(background))
    explainer = shap.explainers.Permutation(predictor, masker, feature_names=list(X.columns), seed=0)
    return explainer(patients.to_numpy(), max_evals=2 * X.shape[1] + 1, silent=True)


whole = explained(of_raw_rows(rest), anchor)
for what, predictors in (
    ("Local", local),
    ("Local+Public, if those have targets", more),
    ("collaboration", together),
):
    found = {name: explained(predictor, anchor) for name, predictor in predictors.items()}
    between = explanation_discrepancy(found, dict.fromkeys(found, anchor))
    beside = np.mean(
        [
            explanation_discrepancy({name: each, "all": whole}, {name: anchor, "all": anchor})
            for name, each in found.items()
        ]
    )
    print(f"{what:38} between hospitals {between:.2f}, to Central {beside:.2f}")

# %%
# Alone, each hospital explains another model; the collaboration's is the same everywhere.  The background is one in any
# case: values that are measured from other rows answer another question, and are not compared.
#
# **Pictures** show private entries when private rows are explained.  These are public.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
shap.plots.beeswarm(found["north"], ax=left, show=False, plot_size=None)
left.set_title("all thirty rows, collaboration, as north sees it", fontsize=9, loc="left")
shap.plots.bar(found["north"][0], ax=right, show=False)
right.set_title("one of them", fontsize=9, loc="left")
figure.savefig("plot_090_explanations.png")
