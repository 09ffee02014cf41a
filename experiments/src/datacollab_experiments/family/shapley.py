"""DC-SHAP: parties explain the common model's predictions on one background that all have.

Four parties hold 60 patients each, dealt by body mass, so that each has a biased view of the others' rows. PCA with
eight of ten columns, affine LTI, a boosted tree model. Every party explains the same five rows, by Shapley values over
all subsets of columns: once with its own 60 rows as background, once with the anchor's 100. The discrepancy is the root
mean square difference between two parties' values, averaged over pairs. "Local" explains each party's own model,
and Central the model of all rows, both with each party's own rows as background. The ratio is the common model's
discrepancy with own rows over that with the anchor. The mean ratio hangs on one draw, of 31, and the median does not.
The paper's factor is the least of its open tables; ours is on another table.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
import shap
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import datacollab as dc

from .dealing import Array, FamilyRow, Figure, at_least, at_most

TABLE = "diabetes 4x60"
DISCREPANCY = "discrepancy"
FACTOR = "ratio of discrepancies"
N_COLUMNS = 8
PAPER = (
    "A. Bogdanova, A. Imakura and T. Sakurai (2023). DC-SHAP method for consistent explainability in "
    "privacy-preserving distributed machine learning. Human-Centric Intelligent Systems 3(3), 197-210."
)
ROWS = (
    FamilyRow(PAPER, "DC-SHAP", TABLE, FACTOR, '"at least a factor of 1.75" (abstract)', (at_least(1.75),)),
    FamilyRow(PAPER, "DC-SHAP", TABLE, DISCREPANCY, "smaller (abstract)", (at_most(0.0, "Local"),)),
)
Predictor = Callable[[Array], Array]


def measure(seed: int, *, small: bool) -> Iterator[Figure]:
    X, y = load_diabetes(return_X_y=True)
    rng = np.random.default_rng([seed, 5])
    order = rng.permutation(len(X))
    # Rows 0 to 239 are the parties', the next hundred the anchor, and the last are explained.
    anchor = X[order[240:340]]
    explained = X[order[340 : 341 if small else 345]]
    # Sorted by body mass with some noise: each party sees a biased part of the patients.
    own = order[:240][np.argsort(X[order[:240], 2] + 0.03 * rng.normal(size=240))]
    tables = [(X[rows], y[rows]) for rows in np.split(own, 4)]
    f = dc.obfuscator("pca", N_COLUMNS)
    parties = [dc.Party(k, f, random_state=100 * seed + k).fit(*table) for k, table in enumerate(tables)]
    analyst = dc.Analyst(dc.LTI(N_COLUMNS, fit_intercept=True), _model())
    common = analyst.fit([party.share(anchor) for party in parties])
    predictors: list[Predictor] = [party.predictor(common.party_model(party.name)) for party in parties]
    central = _model().fit(X[own], y[own]).predict
    backgrounds = [rows for rows, _ in tables]
    found = {
        "DC-SHAP": discrepancy(predictors, [anchor] * 4, explained),
        "DC, own rows": discrepancy(predictors, backgrounds, explained),
        "Local": discrepancy([_model().fit(*table).predict for table in tables], backgrounds, explained),
        "Central": discrepancy([central] * 4, backgrounds, explained),
    }
    for method, value in found.items():
        yield TABLE, method, DISCREPANCY, value
    yield TABLE, "DC-SHAP", FACTOR, found["DC, own rows"] / found["DC-SHAP"]


def discrepancy(predictors: Sequence[Predictor], backgrounds: Sequence[Array], rows: Array) -> float:
    """Return the root mean square difference between two parties' Shapley values of rows, averaged over pairs.

    A party's values are of its predictor, beside all rows of its background, 100 at most.
    """
    values = [
        shap.explainers.Exact(f, background)(rows, silent=True).values
        for f, background in zip(predictors, backgrounds, strict=True)
    ]
    return float(np.mean([np.sqrt(np.mean((a - b) ** 2)) for a, b in combinations(values, 2)]))


def _model() -> GradientBoostingRegressor:
    return GradientBoostingRegressor(n_estimators=50, max_depth=3, subsample=0.7, random_state=0)
