"""DC-QE: a quasi-experiment on collaboration representations of tables split by rows and by columns.

Nine covariates of smokers (NHEFS), with made-up treatments and outcomes whose effect is 2. Four institutions hold 100
rows each; two parties of each hold half of the covariates. A logistic model of the treatment on the representations
gives propensities, and these the effect by inverse probability weights. Affine LTI integrates. "DC-QE" drops the last
principal component of each party; "DC-QE, all components" none, and is then the same as Central but for the penalty.
Local is the estimate of one party, from its own rows and covariates. A draw is ten worlds.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import datacollab as dc
from datacollab.analyst import integrate

from ..downstream.effects import TRUTH, world
from .dealing import Array, FamilyRow, Figure, at_most, block_shares, standardize

TABLE = "NHEFS 4x100x2"
RMSE = "RMSE of the effect"
PAPER = (
    "Y. Kawamata, R. Motai, Y. Okada, A. Imakura and T. Sakurai (2024). Collaborative causal inference on distributed "
    "data. Expert Systems with Applications 244, 123024; arXiv:2208.07898."
)
MEDICAL = (
    "T. Nakayama et al. (2025). Data collaboration for causal inference from limited medical testing and medication "
    "data. Scientific Reports 15, 9827; arXiv:2501.06511."
)
_BETTER = '"better estimation results than individual analyses" (abstract)'
_CLOSE = '"closely approximating the performance of centralized analysis" (abstract)'
ROWS = (
    FamilyRow(PAPER, "DC-QE", TABLE, RMSE, _BETTER, (at_most(0.0, "Local"),)),
    FamilyRow(MEDICAL, "DC-QE, all components", TABLE, RMSE, _CLOSE, (at_most(0.0, "Local"), at_most(0.02, "Central"))),
)


def weigh_effect(X: Array, treatment: NDArray[np.int64], outcome: Array) -> float:
    """Return the difference of means weighted by one over a logistic model's probability of the treatment received.

    Probabilities are kept within .02 and .98.
    """
    e = LogisticRegression(C=1e6, max_iter=5000).fit(standardize(X, X), treatment).predict_proba(standardize(X, X))
    # Weights above fifty would let single rows decide.
    weights = 1 / np.clip(e[np.arange(len(e)), treatment], 0.02, 0.98)
    return float(np.subtract(*(np.average(outcome[treatment == t], weights=weights[treatment == t]) for t in (1, 0))))


def measure(seed: int, *, small: bool) -> Iterator[Figure]:
    errors: dict[str, list[float]] = {}
    for number in range(2 if small else 10):
        w = world(1000 * seed + number, 4, 100)
        rng = np.random.default_rng([seed, number, 3])
        # Which half of the covariates a party holds is drawn in each world.
        blocks = np.array_split(rng.permutation(w.X.shape[1]), 2)
        found = {
            "Central": [weigh_effect(w.X, w.treatment, w.outcome)],
            "Local": [
                weigh_effect(w.X[own][:, block], w.treatment[own], w.outcome[own])
                for own in (w.party == k for k in range(4))
                for block in blocks
            ],
        }
        for method, n_dropped in (("DC-QE", 1), ("DC-QE, all components", 0)):
            shares = block_shares(w.X, w.treatment, w.party, blocks, w.public, n_dropped, rng)
            rows = integrate(shares, dc.LTI(w.X.shape[1] - 2 * n_dropped, fit_intercept=True)).combined
            found[method] = [weigh_effect(rows, w.treatment, w.outcome)]
        for method, estimates in found.items():
            errors.setdefault(method, []).extend((estimate - TRUTH) ** 2 for estimate in estimates)
    for method, squares in errors.items():
        yield TABLE, method, RMSE, float(np.sqrt(np.mean(squares)))
