"""Real tables that packages carry."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from causaldata import nhefs_complete
from numpy.typing import NDArray

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
