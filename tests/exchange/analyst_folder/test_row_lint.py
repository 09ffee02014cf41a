"""Training rows in a model are found, and nothing else is taken for them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, RadiusNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

from datacollab.exchange.analyst_folder._integration import training_rows_in

generator = np.random.default_rng(0)
X = generator.normal(size=(90, 5))
Y = (X[:, 0] + 0.3 * generator.normal(size=90) > 0).astype(int)
PARTS = [X[:30], X[30:70], X[70:]]


@pytest.mark.parametrize(
    ("estimator", "attribute"),
    [
        (KNeighborsClassifier(), "_fit_X"),
        (KNeighborsRegressor(algorithm="brute"), "_fit_X"),
        (RadiusNeighborsClassifier(radius=9.0), "_fit_X"),
        (SVC(), "support_vectors_"),
        (SVR(), "support_vectors_"),
        (NuSVC(nu=0.2), "support_vectors_"),
        (OneClassSVM(), "support_vectors_"),
        (KernelRidge(kernel="rbf"), "X_fit_"),
        (GaussianProcessRegressor(), "X_train_"),
        (GaussianProcessClassifier(), "X_train_"),
        (LabelSpreading(), "X_"),
        (Nystroem(n_components=10), "components_"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("before", [(), (StandardScaler(),), (PowerTransformer(),)], ids=["as is", "scaled", "bent"])
def test_models_that_keep_rows_are_found(estimator, attribute, before):
    model = make_pipeline(*map(clone, before), clone(estimator)).fit(X, Y)
    found = training_rows_in(model, PARTS)
    assert [finding.path.rpartition(".")[2] for finding in found] == [attribute]
    assert found[0].n_rows >= 10


def test_they_are_found_within_ensembles():
    voting = VotingClassifier([("a", LogisticRegression()), ("b", KNeighborsClassifier())]).fit(X, Y)
    assert [finding.n_rows for finding in training_rows_in(voting, PARTS)] == [90]
    bagging = BaggingClassifier(make_pipeline(PowerTransformer(), SVC()), n_estimators=3).fit(X, Y)
    assert len(training_rows_in(bagging, PARTS)) == 3


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
    assert found.n_rows == 4
    assert str(found).endswith("(4 rows)")


def test_of_many_rows_some_are_looked_for():
    many = generator.normal(size=(6000, 3))
    model = LogisticRegression().fit(many, many[:, 0] > 0)
    assert training_rows_in(model, [many]) == []
    model.kept_ = many
    (found,) = training_rows_in(model, [many])
    assert found.n_rows == 5000
