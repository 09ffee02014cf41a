"""Real tables that packages carry, and Brier scores of survival."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from causaldata import nhefs_complete
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import trapezoid

from datacollab.errors import NumericalError
from datacollab.survival import kaplan_meier

from ..harness import arff_table, r_table


@dataclass(frozen=True, eq=False)
class SurvivalTable:
    """Rows with times to an event.

    Attributes
    ----------
    X : DataFrame of shape (n_rows, n_columns)
        Numbers in their units; categories as 0 and 1.
    event : ndarray of shape (n_rows,), bool
    time : ndarray of shape (n_rows,)
        Days, above 0.
    """

    name: str
    X: pd.DataFrame
    event: NDArray[np.bool_]
    time: NDArray[np.float64]


@lru_cache
def survival_table(name: str) -> SurvivalTable:
    """One of `SURVIVAL_TABLES`; rows observed for less than a day are left out."""
    rows, event, time = SURVIVAL_TABLES[name]()
    # A time of zero is before the first risk set.
    kept = (time > 0) & rows.notna().all(axis=1).to_numpy()
    X = pd.get_dummies(rows[kept], drop_first=True).astype(np.float64).reset_index(drop=True)
    return SurvivalTable(name, X, event[kept], time[kept])


def nhefs() -> pd.DataFrame:
    """Smokers who stopped (qsmk) or not, and their change of weight (wt82_71), with the covariates of the textbook."""
    rows = nhefs_complete.load_pandas().data
    columns = ["sex", "race", "age", "education", "smokeintensity", "smokeyrs", "exercise", "active", "wt71"]
    return rows[["qsmk", "wt82_71", *columns]].astype(np.float64).reset_index(drop=True)


def penguins() -> tuple[pd.DataFrame, NDArray[np.str_]]:
    """Four measurements, and the species."""
    rows = r_table("palmerpenguins/penguins")
    columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    rows = rows.dropna(subset=columns)
    return rows[columns].astype(np.float64).reset_index(drop=True), rows["species"].to_numpy(str)


def _whas500() -> tuple[pd.DataFrame, NDArray[np.bool_], NDArray[np.float64]]:
    rows = arff_table("whas500")
    return rows.drop(columns=["fstat", "lenfol", "los"]), rows["fstat"].eq("1").to_numpy(), rows["lenfol"].to_numpy()


def _gbsg2() -> tuple[pd.DataFrame, NDArray[np.bool_], NDArray[np.float64]]:
    rows = arff_table("GBSG2")
    X = rows.drop(columns=["cens", "time"]).assign(
        # Counts and hormone levels span powers of ten.
        pnodes=np.log1p(rows["pnodes"]),
        progrec=np.log1p(rows["progrec"]),
        estrec=np.log1p(rows["estrec"]),
    )
    return X, rows["cens"].eq("1").to_numpy(), rows["time"].to_numpy()


def _rotterdam() -> tuple[pd.DataFrame, NDArray[np.bool_], NDArray[np.float64]]:
    rows = r_table("survival/rotterdam")
    X = rows[["year", "age", "meno", "size", "grade", "nodes", "pgr", "er", "hormon", "chemo"]].assign(
        nodes=np.log1p(rows["nodes"]), pgr=np.log1p(rows["pgr"]), er=np.log1p(rows["er"])
    )
    return X, rows["death"].eq(1).to_numpy(), rows["dtime"].to_numpy(np.float64)


def _flchain() -> tuple[pd.DataFrame, NDArray[np.bool_], NDArray[np.float64]]:
    rows = arff_table("flchain")
    X = rows[["age", "sex", "kappa", "lambda", "creatinine", "mgus"]].assign(
        kappa=np.log(rows["kappa"]), **{"lambda": np.log(rows["lambda"])}
    )
    # Creatinine is missing in a sixth of the rows: their median stands for it.
    X["creatinine"] = np.log(X["creatinine"].fillna(X["creatinine"].median()).clip(lower=0.1))
    return X, rows["death"].eq("dead").to_numpy(), rows["futime"].to_numpy()


SURVIVAL_TABLES = {"whas500": _whas500, "gbsg2": _gbsg2, "rotterdam": _rotterdam, "flchain": _flchain}


FloatArray = NDArray[np.float64]


def censoring_weights(y_train: NDArray[Any], times: FloatArray, *, beyond: bool = False) -> FloatArray:
    """Return 1 / G(t-), or with `beyond` 1 / G(t), from training targets by Kaplan and Meier in reverse.

    Raises
    ------
    NumericalError
        If G is 0 at a time, or its curve ends before.
    """
    # Events come before ends of observations: a row with its event at a time is not at risk of leaving then.  So
    # S(t) G(t) is the part of the rows with times after t.
    curve = kaplan_meier(y_train)
    known = curve.times
    exposed = curve.at_risk - curve.events
    ended = np.append(curve.at_risk[1:], 0.0)
    G = np.cumprod(np.divide(ended, exposed, out=np.ones(len(known)), where=exposed > 0))
    # Beyond the last observation the curve of censoring is unknown, not constant.
    if len(times) and times.max() > known[-1]:
        raise NumericalError(
            f"{int((times > known[-1]).sum())} of {len(times)} times are beyond the longest observation of training "
            "rows, and nothing is known of who would be observed then. Take earlier times, or a smaller tau."
        )
    probability = np.append(1.0, G)[np.searchsorted(known, times, side="right" if beyond else "left")]
    if (probability <= 0).any():
        raise NumericalError(
            "No training row is observed beyond some of the times, so these cannot be weighted. Take earlier times, or "
            "a smaller tau."
        )
    return 1.0 / probability


def brier_score(y_train: NDArray[Any], y: NDArray[Any], survival: ArrayLike, times: ArrayLike) -> FloatArray:
    r"""Return the mean squared error of survival probabilities at each time, weighted for censoring ([Graf1999]_).

    .. math:: BS(t) = \frac1n \sum_i \Big[ \frac{S(t \mid x_i)^2 \, 1(t_i \le t, \delta_i)}{G(t_i-)}
              + \frac{(1 - S(t \mid x_i))^2 \, 1(t_i > t)}{G(t)} \Big]

    G, the probability of being observed, is estimated from `y_train`; `survival` has shape (n_rows, n_times).  If
    events and ends of observations share times, as in months, scikit-survival has G(t) in place of G(t-), and other
    numbers.

    Raises
    ------
    NumericalError
        If no row of `y_train` was observed as long.
    """
    event = y["event"]
    time = y["time"]
    asked = np.asarray(times, dtype=np.float64)
    S = np.asarray(survival, dtype=np.float64)
    if S.shape != (len(time), len(asked)) or not ((S >= 0) & (S <= 1)).all():
        raise ValueError(
            f"survival must have probabilities of shape ({len(time)}, {len(asked)}), rows by times; got {S.shape}."
        )
    before = event[:, None] & (time[:, None] <= asked)
    weight = np.zeros(len(time))
    weight[before.any(axis=1)] = censoring_weights(y_train, time[before.any(axis=1)])
    after = time[:, None] > asked
    weight_after = np.zeros(len(asked))
    weight_after[after.any(axis=0)] = censoring_weights(y_train, asked[after.any(axis=0)], beyond=True)
    # A row with its event counts as dead, one observed beyond as alive; others say nothing but by the weights.
    errors = S**2 * before * weight[:, None] + (1 - S) ** 2 * after * weight_after
    return np.asarray(errors.mean(axis=0))


def mean_brier_score(y_train: NDArray[Any], y: NDArray[Any], survival: ArrayLike, times: ArrayLike) -> float:
    """Return the mean of `brier_score` over the time from the first to the last of `times`, by the trapezium rule.

    Parameters are those of `brier_score`; give two or more times, ascending.
    """
    asked = np.asarray(times, dtype=np.float64)
    if len(asked) < 2 or not (np.diff(asked) > 0).all():
        raise ValueError("times must be two or more, ascending.")
    return float(trapezoid(brier_score(y_train, y, survival, asked), asked) / (asked[-1] - asked[0]))
