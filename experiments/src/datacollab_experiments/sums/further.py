"""Three tables that the rule was not chosen on, and scores of parties on them without sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..harness import r_table
from ..pays.columns import Array, Column
from ..pays.draws import Draw, Rows
from ..pays.library import pooled
from ..pays.scoring import score, spread
from ..pays.settings import Setting
from ..pays.tables import Table

N_TREES = 200


def _number(name: str, low: float, high: float, *, log: bool = False, missing: bool = False) -> Column:
    return Column(name=name, low=low, high=high, log=log, missing=missing)


def _binary(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name=name, levels=("0", "1")) for name in names)


class Declared(NamedTuple):
    """Everybody's knowledge of a table beforehand."""

    file: str
    sha256: str
    target: str
    positive: str
    columns: tuple[Column, ...]
    parties: int
    rows: int


_SERVICES = (
    "online_security",
    "online_backup",
    "device_protection",
    "tech_support",
    "streaming_tv",
    "streaming_movies",
)
_DECLARED = {
    "credit": Declared(
        "modeldata/credit_data",
        "0969270e63458b23e922b40338ea85b889aa2b5d7ab97d5139e27c0f25352f23",
        "Status",
        "bad",
        (
            _number("Seniority", 0, 50),
            Column(name="Home", levels=("ignore", "other", "owner", "parents", "priv", "rent"), missing=True),
            _number("Time", 6, 72),
            _number("Age", 18, 70),
            Column(name="Marital", levels=("divorced", "married", "separated", "single", "widow"), missing=True),
            Column(name="Records", levels=("no", "yes")),
            Column(name="Job", levels=("fixed", "freelance", "others", "partime"), missing=True),
            _number("Expenses", 30, 200),
            _number("Income", 0, 1000, log=True, missing=True),
            _number("Assets", 0, 300_000, log=True, missing=True),
            _number("Debt", 0, 30_000, log=True, missing=True),
            _number("Amount", 100, 5000),
            _number("Price", 100, 12_000),
        ),
        10,
        50,
    ),
    "telco": Declared(
        "modeldata/wa_churn",
        "95d0478a84ee4e289f1f3d2dd3ec72293f4e64cc5a2425a8044f4bcc8eba47d7",
        "churn",
        "Yes",
        (
            *_binary("female", "senior_citizen", "partner", "dependents", "phone_service", "paperless_billing"),
            _number("tenure", 0, 72),
            Column(name="multiple_lines", levels=("No", "No phone service", "Yes")),
            Column(name="internet_service", levels=("DSL", "Fiber optic", "No")),
            *(Column(name=name, levels=("No", "No internet service", "Yes")) for name in _SERVICES),
            Column(name="contract", levels=("Month-to-month", "One year", "Two year")),
            Column(
                name="payment_method",
                levels=("Bank transfer (automatic)", "Credit card (automatic)", "Electronic check", "Mailed check"),
            ),
            _number("monthly_charges", 15, 120),
            _number("total_charges", 0, 9000, missing=True),
        ),
        10,
        50,
    ),
    "email": Declared(
        "openintro/email",
        "982da21eda00e2a392c51333e16145f14253713adcec3573d9e53eda23cc62c1",
        "spam",
        "1",
        (
            *_binary("to_multiple", "from", "sent_email", "format", "re_subj", "exclaim_subj", "urgent_subj"),
            *(_number(name, 0, 100, log=True) for name in ("cc", "image", "attach", "dollar", "inherit", "password")),
            Column(name="winner", levels=("no", "yes")),
            _number("num_char", 0, 200, log=True),
            _number("line_breaks", 0, 5000, log=True),
            _number("exclaim_mess", 0, 1500, log=True),
            Column(name="number", levels=("big", "none", "small")),
        ),
        10,
        100,
    ),
}


def further_table(name: str) -> Table:
    """Return a table of an R package."""
    declared = _DECLARED[name]
    rows = r_table(declared.file, declared.sha256)
    kept = rows[[column.name for column in declared.columns]]
    y = rows[declared.target].astype(str).eq(declared.positive).to_numpy(np.int64)
    return Table(name, "classification", kept, y, declared.columns)


def further_setting(name: str, *, labelled: bool) -> Setting:
    """Parties and rows as in `pays`, 100 public rows."""
    declared = _DECLARED[name]
    return Setting(
        dataset=name, n_parties=declared.parties, n_per_party=declared.rows, labelled=labelled, defence="sums"
    )


def without_sums(drawn: Draw) -> Mapping[str, float]:
    """Score a forest and a linear model on the rows that each has, for the caller to take the better of both.

    Returns
    -------
    dict of str to float
        "kind of model|who", where who is "own" (means over the parties), "own and public", "average of locals",
        "average of locals with public" or "all in one place".
    """
    parties = list(drawn.parties.values())
    test = drawn.test
    everything = pooled(drawn.parties)
    scores = {}
    for kind in ("forest", "linear"):

        def predictions(rows: Rows, kind: str = kind) -> Array:
            return _predictions(kind, rows, drawn)

        def score_of(predicted: Array) -> float:
            return score(drawn.metric, test.y, predicted)

        # Parties alone, and the mean of their predictions.
        locals_ = [predictions(own) for own in parties]
        scores[f"{kind}|own"] = float(np.mean([score_of(each) for each in locals_]))
        scores[f"{kind}|average of locals"] = score_of(np.mean(locals_, axis=0))
        # Public rows with targets are everybody's, and so part of each alternative.
        if drawn.labelled is not None:
            both = [predictions(pooled({"own": own, "public": drawn.labelled})) for own in parties]
            scores[f"{kind}|own and public"] = float(np.mean([score_of(each) for each in both]))
            scores[f"{kind}|average of locals with public"] = score_of(np.mean(both, axis=0))
            everything = pooled({"all": pooled(drawn.parties), "public": drawn.labelled})
        scores[f"{kind}|all in one place"] = score_of(predictions(everything))
    return scores


def _predictions(kind: str, rows: Rows, drawn: Draw) -> Array:
    """Return probabilities of both classes for the test rows; of one class alone a model says that class."""
    rarest = int(np.bincount(rows.y, minlength=2).min())
    # A party may have one class alone.
    if rarest == 0:
        return spread(np.ones((len(drawn.test), 1)), np.unique(rows.y), drawn.n_classes)
    model: Any
    if kind == "forest":
        model = RandomForestClassifier(N_TREES, min_samples_leaf=3, random_state=drawn.seed)
    else:
        # Logistic regression chooses its penalty by folds, which need three rows of each class.
        linear = RidgeCV(np.geomspace(0.1, 1e3, 13)) if rarest < 3 else _logistic(min(rarest, 5))
        model = make_pipeline(StandardScaler(), linear)
    model.fit(rows.X, rows.y)
    # Ridge regression of zeros and ones is the second class's probability.
    if not hasattr(model, "predict_proba"):
        outputs = model.predict(drawn.test.X)
        return np.column_stack([1 - outputs, outputs])
    return spread(model.predict_proba(drawn.test.X), model.classes_, drawn.n_classes)


def _logistic(folds: int) -> LogisticRegressionCV:
    return LogisticRegressionCV(
        Cs=np.geomspace(1e-3, 10, 7), cv=folds, scoring="neg_log_loss", l1_ratios=(0.0,), use_legacy_attributes=False
    )
