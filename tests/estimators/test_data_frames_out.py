"""Collaboration representations as the container that set_output asks for."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline

from datacollab import LTI, DataCollaborationClassifier, DataCollaborationRegressor

CLASSIFIER = DataCollaborationClassifier(PCA(8), LTI(5), LogisticRegression(max_iter=2000), random_state=0)
REGRESSOR = DataCollaborationRegressor(PCA(8), LTI(5), Ridge(), random_state=0)


@pytest.fixture(scope="module")
def given():
    X, y = load_digits(return_X_y=True)
    return {"X": X[:150] / 16, "y": y[:150], "groups": np.arange(150) % 3, "anchor": X[200:400] / 16}


@pytest.mark.parametrize(("container", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
@pytest.mark.parametrize("estimator", [CLASSIFIER, REGRESSOR])
def test_set_output(given, estimator, container, kind):
    model = clone(estimator).set_output(transform=container).fit(**given)
    told = model.transform(given["X"], groups=given["groups"])
    assert isinstance(told, kind)
    prefix = type(estimator).__name__.lower()
    assert list(told.columns) == [f"{prefix}{place}" for place in range(5)] == list(model.get_feature_names_out())
    assert_allclose(told.to_numpy(), model.represent(given["X"], groups=given["groups"]))
    assert isinstance(clone(model).fit_transform(**given), kind)


def test_rows_keep_their_names(given):
    table = pd.DataFrame(given["X"], index=[f"patient {n}" for n in range(150)]).rename(columns=str)
    anchor = pd.DataFrame(given["anchor"]).rename(columns=str)
    with sklearn.config_context(transform_output="pandas"):
        model = clone(CLASSIFIER).fit(**given | {"X": table, "anchor": anchor})
        told = model.transform(table.iloc[::-1], groups=given["groups"][::-1])
    assert list(told.index) == list(table.index[::-1])
    assert_allclose(told.to_numpy(), clone(CLASSIFIER).fit(**given).represent(given["X"], groups=given["groups"])[::-1])


def test_as_a_step_of_a_pipeline_owners_travel_by_routing(given):
    rest = {name: given[name] for name in ("groups", "anchor")}
    with sklearn.config_context(enable_metadata_routing=True):
        steps = [("collaborate", clone(CLASSIFIER)), ("model", LogisticRegression(max_iter=2000))]
        pipeline = Pipeline(steps).fit(given["X"], given["y"], **rest)
        told = pipeline.predict(given["X"], groups=given["groups"])
    assert np.mean(told == given["y"]) > 0.6
