"""Three hospitals' mixed tables with a rare outcome, forty codes and gaps, by sums under masks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import datacollab as dc

N, N_PUBLIC, N_NEW = 900, 300, 2000
GROUPS = np.repeat(["a", "b", "c"], N // 3)
OWN, PUBLIC, NEW = np.split(np.arange(N + N_PUBLIC + N_NEW), [N, N + N_PUBLIC])


def patients(seed):
    rng, n = np.random.default_rng(seed), N + N_PUBLIC + N_NEW
    shares = 1 / (np.arange(40) + 3)
    age, crp = rng.normal(65, 12, n).round(), rng.lognormal(2, 0.8, n).round(1)
    code = rng.choice(40, n, p=shares / shares.sum())
    logit = -2.1 + 0.7 * (age - 65) / 12 + 0.5 * (np.log(crp + 0.1) - 2) + rng.normal(0, 0.7, 40)[code]
    table = pd.DataFrame({"age": age, "crp": crp, "code": [f"C{each:02}" for each in code]})
    table.loc[rng.random(n) < 0.08, "crp"] = np.nan
    return table, np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "yes", "no")


def scores(model, table, y):
    said = model.predict_proba(table)[:, list(model.classes_).index("yes")]
    return roc_auc_score(y == "yes", said), brier_score_loss(y == "yes", said), said.mean()


@pytest.mark.parametrize("recorded", ["everywhere", "not at c"])
@pytest.mark.slow
def test_it_is_ranked_and_its_probability_kept_as_by_all_rows_in_one_place(recorded):
    found, central, rates = [], [], []
    for seed in range(4):
        table, y = patients(seed)
        own = OWN if recorded == "everywhere" else OWN[(GROUPS != "c") | (y[OWN] == "no")]
        model = dc.DataCollaborationClassifier(random_state=0)
        model.fit(table.iloc[own], y[own], groups=GROUPS[own], anchor=table.iloc[PUBLIC])
        encode = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "crp"]),
            (OneHotEncoder(handle_unknown="ignore"), ["code"]),
        )
        pooled = make_pipeline(encode, LogisticRegression()).fit(table.iloc[own], y[own])
        for into, each in ((found, model), (central, pooled)):
            into.append(scores(each, table.iloc[NEW], y[NEW]))
        rates.append(np.mean(y[NEW] == "yes"))
    rate = np.mean(rates)
    assert 0.12 < rate < 0.17
    (auc, brier, mean), (best, _, mean_of_all) = np.mean(found, axis=0), np.mean(central, axis=0)
    assert auc > best - 0.015
    assert abs(mean - mean_of_all) < 0.02
    if recorded == "everywhere":
        assert brier < 0.95 * rate * (1 - rate)
        assert abs(mean - rate) < 0.02
