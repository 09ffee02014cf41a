"""
Explanations: what the common model does with a party's own columns
===================================================================

A model of the collaboration representation means nothing to a reader.  But a party has f_k, g_k and h, and can ask what
all three together make of its columns.  Four hospitals have patients of different ages, whose diabetes got worse by
some amount within a year; 200 rows are public.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import FunctionTransformer

import datacollab as dc
from datacollab.model import LeastSquaresInference, LinearMap, PartyModel
from datacollab.party import Explanation, explanation_agreement

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
order = np.random.default_rng(0).permutation(len(X))
public, rest = order[:200], order[200:]
own = dict(
    zip(["north", "east", "south", "west"], np.array_split(rest[np.argsort(X["age"].iloc[rest])], 4), strict=True)
)
anchor, patients = X.iloc[public], X.iloc[public[:30]]

# %%
# **Collaborate.**  PCA of all columns, affine LTI, and least squares that keep the covariance of their coefficients.

f = dc.obfuscator("pca", n_components=10, standardize=True)
parties = {name: dc.Party(name, f).fit(X.iloc[rows], y.iloc[rows]) for name, rows in own.items()}
analyst = dc.Analyst(dc.LTI(10, fit_intercept=True), LeastSquaresInference())
collaboration = analyst.fit([party.share(anchor) for party in parties.values()])
models = {name: collaboration.party_model(name) for name in parties}

# %%
# **Beside it**, the same regression of a party's own rows, and of all rows in one place.  Here f and g change nothing.


def of_raw_rows(name: str, rows: np.ndarray) -> tuple[dc.Party, PartyModel]:
    """A model on raw columns, in the form of a party's."""
    h = LeastSquaresInference().fit(X.iloc[rows].to_numpy(), y.iloc[rows])
    party = dc.Party(name, FunctionTransformer()).fit(X.iloc[rows], y.iloc[rows])
    return party, PartyModel(party=name, integration_function=LinearMap(name, np.eye(10)), estimator=h)


together = {name: (party, models[name]) for name, party in parties.items()}
local = {name: of_raw_rows(name, rows) for name, rows in own.items()}
more = {name: of_raw_rows(name, np.append(rows, public)) for name, rows in own.items()}
central = of_raw_rows("all", rest)

# %%
# **Explain** thirty public rows at each hospital: Shapley values, each column masked by entries of the anchor, which is
# the same at all.  Discrepancy is 0 where explanations are the same, and 1 where they have nothing in common.


def explained(party: dc.Party, model: PartyModel, background: pd.DataFrame) -> Explanation:
    """Shapley values of ten columns, from one order of these for each of twenty rows of the background."""
    return party.explain(patients, model, background=background, n_background=20, n_permutations=1, random_state=0)


whole = explained(*central, anchor)
for what, asked, background in (
    ("Local, own rows as background", local, None),
    ("Local, anchor as background", local, anchor),
    ("Local+Public, if those have targets", more, anchor),
    ("collaboration, own rows as background", together, None),
    ("collaboration, anchor as background", together, anchor),
):
    found = {
        name: explained(party, model, X.iloc[own[name]] if background is None else background)
        for name, (party, model) in asked.items()
    }
    between = explanation_agreement(list(found.values())).discrepancy
    beside = np.mean([explanation_agreement([each, whole]).discrepancy for each in found.values()])
    print(f"{what:38} between hospitals {between:.2f}, to Central {beside:.2f}")

# %%
# Of own rows each hospital explains another model, and from another base.  The anchor as background takes away the
# second of these, and the collaboration the first.
#
# **How sure?**  Effects of columns with intervals: the collaboration's are those of all rows in one place.

north = parties["north"].column_effects(anchor, models["north"])
alone, everything = (party.column_effects(anchor, model) for party, model in (local["north"], central))
print("points for a standard deviation:  north alone             collaboration           Central")
for k, name in enumerate(north.names):
    said = [
        f"{each.effect[k]:+6.1f} ({each.low[k]:+6.1f}, {each.high[k]:+6.1f})" for each in (alone, north, everything)
    ]
    print(f"{name:31}", *said)

# %%
# The collaboration's intervals are half as wide as those of sixty rows alone, or less.  s1 and s2 go together in nearly
# all patients, so that effects of both are large, of opposite sign, and uncertain: in one place, too.
#
# **Pictures** show private entries when private rows are explained.  These are public.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
found["north"].plot_beeswarm(ax=left)
left.set_title("all thirty rows, collaboration, as north sees it", fontsize=9, loc="left")
found["north"].plot_row(0, ax=right)
right.set_title("one of them", fontsize=9, loc="left")
figure.savefig("plot_090_explanations.png")
