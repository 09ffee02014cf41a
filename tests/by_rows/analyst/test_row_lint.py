"""Training rows in a model are found, and nothing else is taken for them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

from datacollab.by_rows.analyst._integration import training_rows_in
from datacollab.model import head_to
from party_world import refused

generator = np.random.default_rng(0)
X = generator.normal(size=(90, 5))
Y = (X[:, 0] + 0.3 * generator.normal(size=90) > 0).astype(int)
PARTS = [X[:30], X[30:70], X[70:]]


@pytest.mark.parametrize("estimator", [KNeighborsClassifier(), SVC(), KernelRidge(kernel="rbf")], ids=str)
@pytest.mark.parametrize("before", [(), (StandardScaler(),)], ids=["as is", "scaled"])
def test_models_that_keep_rows_are_found(estimator, before):
    model = make_pipeline(*map(clone, before), clone(estimator)).fit(X, Y)
    assert training_rows_in(model, PARTS)


@pytest.mark.parametrize(
    "estimator",
    [KNeighborsClassifier(), KernelRidge(), SVC(), SVR(), NuSVC(nu=0.2), GaussianProcessClassifier()],
    ids=str,
)
@pytest.mark.parametrize("before", [(), (PowerTransformer(),)], ids=["as is", "bent"])
def test_models_that_keep_rows_are_no_numbers_that_can_be_sent(estimator, before):
    model = make_pipeline(*map(clone, before), clone(estimator)).fit(X, Y)
    with refused("MODEL_UNSUPPORTED"):
        head_to(model, "h")


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(),
        GradientBoostingClassifier(n_estimators=10),
        HistGradientBoostingClassifier(max_iter=10),
        LinearSVC(),
        LogisticRegression(),
        MLPClassifier((90,), max_iter=5),
        RandomForestClassifier(20),
        Ridge(),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_that_keep_none_are_clean(estimator):
    assert training_rows_in(clone(estimator).fit(X, Y), PARTS) == []


def test_rows_in_an_estimator_that_nobody_knows_are_found():
    model = LogisticRegression().fit(X, Y)
    model.kept_ = {"rows": [X[5:9].copy()]}
    (found,) = training_rows_in(model, PARTS)
    assert found.endswith("(4 rows)")


def test_of_many_rows_some_are_looked_for():
    many = generator.normal(size=(6000, 3))
    model = LogisticRegression().fit(many, many[:, 0] > 0)
    assert training_rows_in(model, [many]) == []
    model.kept_ = many
    (found,) = training_rows_in(model, [many])
    assert found.endswith("(5000 rows)")
