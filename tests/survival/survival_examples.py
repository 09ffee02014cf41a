"""Made-up and real rows for the tests of survival models, and naive formulas."""

import numpy as np
from sksurv.datasets import load_whas500

from datacollab.targets import survival_target


def made_up(n=120, p=3, seed=0, step=0.0):
    """Rows with their survival targets, times rounded up to multiples of a step where there is one."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, p))
    beta = np.linspace(1.0, -0.5, p)
    time, end = generator.exponential(np.exp(-X @ beta)), generator.exponential(2.0, size=n)
    observed = np.minimum(time, end)
    if step:
        observed = np.ceil(observed / step) * step
    return X, survival_target(time <= end, observed)


def whas500():
    """Standardised columns and targets of real rows, days as they are."""
    rows, y = load_whas500()
    X = rows.to_numpy(dtype=float)
    return (X - X.mean(axis=0)) / X.std(axis=0), survival_target(y["fstat"], y["lenfol"])


def naive_log_likelihood(beta, X, y, *, ties, strata=None, weight=None):
    """Straight from the formula, one event after the other."""
    strata = np.zeros(len(y)) if strata is None else np.asarray(strata)
    weight = np.ones(len(y)) if weight is None else weight
    eta, total = X @ beta, 0.0
    for stratum in np.unique(strata):
        own = strata == stratum
        for time in np.unique(y["time"][own & y["event"]]):
            D = own & y["event"] & (y["time"] == time)
            R = own & (y["time"] >= time)
            d = int(D.sum())
            total += float(weight[D] @ eta[D])
            for taken in range(d):
                out = taken / d * (weight[D] @ np.exp(eta[D])) if ties == "efron" else 0.0
                total -= weight[D].mean() * np.log(weight[R] @ np.exp(eta[R]) - out)
    return total
