"""Three tables that the rule was not chosen on, and scores of parties on them without sums."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..pays.draws import Draw, Rows, score, spread
from ..pays.library import pooled
from ..pays.settings import Setting
from ..pays.tables import Array

N_TREES = 200


# Parties, and rows of each.
_SIZES = {"credit": (10, 50), "telco": (10, 50), "email": (10, 100)}


def further_setting(name: str, *, labelled: bool) -> Setting:
    """Parties and rows as in `pays`, 100 public rows."""
    n_parties, n_rows = _SIZES[name]
    return Setting(dataset=name, n_parties=n_parties, n_per_party=n_rows, labelled=labelled, defence="sums")


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
