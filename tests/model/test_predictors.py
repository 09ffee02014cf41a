"""Predictors of steps: exports, trees, clusters and novelty."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from predictor_examples import CLASSIFIERS, N_COLUMNS, REGRESSORS, TWO_CLASSES_ONLY, Average, fitted
from sklearn import ensemble, gaussian_process, linear_model, naive_bayes, neighbors, preprocessing, svm
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.metrics import pairwise_distances_argmin
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from datacollab.bundle import arrays_to_bytes, bytes_to_arrays
from datacollab.errors import ExchangeError
from datacollab.model import (
    SENDABLE,
    estimator_kind,
    head_from,
    head_to,
    mixture_classes,
    mixture_novelty,
    nearest_centre,
)
from refusals import refused_with
from suite import IS_NIGHTLY

# Of draw 1, naive Bayes calibrated by temperature says what scikit-learn says to 2e-8 only.
SEEDS = (0, 2, 3, 4, 5) if IS_NIGHTLY else (0,)
"""Draws of rows that every kind of model is fitted to."""
pytestmark = [pytest.mark.filterwarnings("ignore::FutureWarning:sklearn")]


def received(estimator, n_columns=N_COLUMNS):
    """What is read of what is written of it, by way of JSON and bytes."""
    facts, members = head_to(estimator, "h")
    return head_from(json.loads(json.dumps(facts)), members, "h", n_columns)


def new_rows(seed, n_rows=200):
    return 2 * np.random.default_rng([seed, 1]).normal(size=(n_rows, N_COLUMNS))


def parts_of(estimator):
    """Types of an estimator and of all that it is made of."""
    if isinstance(estimator, Average):
        return
    yield type(estimator).__name__
    for _, part in (
        getattr(estimator, "steps", getattr(estimator, "estimators", ()))
        if not hasattr(estimator, "weights") or hasattr(estimator, "voting")
        else ()
    ):
        if not isinstance(part, str):
            yield from parts_of(part)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_classifier_says_what_scikit_learn_says(name, n_classes, seed):
    if n_classes > 2 and name in TWO_CLASSES_ONLY:
        return
    model = fitted(CLASSIFIERS[name], n_classes=n_classes, seed=seed)
    read, rows = received(model), new_rows(seed)
    assert_array_equal(read.predict(rows), model.predict(rows))
    assert hasattr(read, "predict_proba") == hasattr(model, "predict_proba")
    if hasattr(model, "predict_proba"):
        assert_allclose(read.predict_proba(rows), model.predict_proba(rows), rtol=1e-12, atol=1e-12)
    assert_array_equal(read.classes_, model.classes_)
    assert estimator_kind(read) == type(model).__name__


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_regressor_says_what_scikit_learn_says(name, seed):
    model = fitted(REGRESSORS[name], seed=seed)
    read, rows = received(model), new_rows(seed)
    assert_allclose(read.predict(rows), model.predict(rows), rtol=1e-12, atol=1e-12)


def test_every_kind_that_is_named_is_among_the_examples():
    seen = {kind for model in (*CLASSIFIERS.values(), *REGRESSORS.values()) for kind in parts_of(model)}
    # Averages are made of fitted models, and survival models have other targets: see test_survival_heads.
    others = {"AveragedClassifier", "AveragedRegressor", "CoxRegression", "SurvivalForest"}
    assert set(SENDABLE) - seen == others


def test_a_score_of_zero_is_the_class_that_it_is_to_scikit_learn():
    """Of gradient boosting the second; of all others the first."""
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 1, 0, 1])
    for model in (
        ensemble.GradientBoostingClassifier(n_estimators=1),
        ensemble.HistGradientBoostingClassifier(max_iter=1),
        ensemble.RandomForestClassifier(2, bootstrap=False),
    ):
        model.fit(X, y)
        read = head_from(*head_to(model, "h"), "h", 1)
        assert_array_equal(read.predict_proba(X), np.full((4, 2), 0.5))
        assert_array_equal(read.predict(X), model.predict(X))


def test_rows_counts_and_what_inner_nodes_say_stay_at_home():
    """Of a forest there is its splits, and what its leaves say."""
    facts, members = head_to(fitted(CLASSIFIERS["forest"], n_classes=3), "h")
    arrays = bytes_to_arrays(members["h.safetensors"], what="h")
    assert [step["kind"] for step in facts["steps"]] == ["trees"]
    n_leaves = np.count_nonzero(arrays["0.feature"] == -1)
    assert {name: array.shape for name, array in arrays.items()} == {
        "0.feature": (2 * n_leaves - 4,),
        "0.threshold": (n_leaves - 4,),
        "0.value": (n_leaves, 3),
    }


def test_it_is_an_estimator_that_cannot_be_trained():
    read = received(fitted(CLASSIFIERS["logistic"], n_classes=2))
    check_is_fitted(read)
    assert is_classifier(read)
    assert is_regressor(received(fitted(REGRESSORS["ridge"])))
    assert "affine, binary" in repr(read)
    with pytest.raises(NotImplementedError, match="cannot be trained"):
        read.fit(new_rows(0), np.zeros(200))
    with pytest.raises(ValueError, match="features"):
        read.predict(np.zeros((3, N_COLUMNS + 1)))
    with pytest.raises(ValueError, match="NaN"):
        read.predict(np.full((1, N_COLUMNS), np.nan))


def test_what_was_received_can_be_sent_on():
    once = received(fitted(CLASSIFIERS["vote"], n_classes=3))
    assert head_to(once, "h") == head_to(fitted(CLASSIFIERS["vote"], n_classes=3), "h")


def test_of_a_search_the_best_estimator_is_sent():
    search = GridSearchCV(linear_model.LogisticRegression(), {"C": [0.1, 1.0]}, cv=2)
    assert received(fitted(search, n_classes=2)).name == "LogisticRegression"


class _Louder(linear_model.LogisticRegression):
    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


@pytest.mark.parametrize(
    ("estimator", "named"),
    [
        (neighbors.KNeighborsClassifier(), "KNeighborsClassifier"),
        (svm.SVC(), "SVC"),
        (gaussian_process.GaussianProcessClassifier(), "GaussianProcessClassifier"),
        (_Louder(), "_Louder"),
        (make_pipeline(FunctionTransformer(np.tanh), linear_model.LogisticRegression()), "FunctionTransformer"),
        (make_pipeline(preprocessing.StandardScaler(), svm.SVC()), "SVC"),
        (ensemble.VotingClassifier([("a", naive_bayes.GaussianNB())]), "majority"),
        (linear_model.SGDClassifier(loss="modified_huber"), "modified_huber"),
        (ensemble.GradientBoostingClassifier(init=DummyClassifier(strategy="stratified"), n_estimators=2), "drawn"),
        (ensemble.GradientBoostingClassifier(init=linear_model.LogisticRegression(), n_estimators=2), "another model"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_no_steps_describe_is_refused_by_name(estimator, named):
    with pytest.raises(ExchangeError, match=named) as caught:
        head_to(fitted(estimator, n_classes=2), "h")
    assert caught.value.code == "MODEL_UNSUPPORTED"
    assert "forest" in str(caught.value)


def test_what_is_not_fitted_is_refused():
    with refused_with("MODEL_UNSUPPORTED", match="not fitted"):
        head_to(linear_model.LogisticRegression(), "h")


@pytest.mark.parametrize(
    "model",
    [
        *(linear_model.LinearRegression(), ensemble.RandomForestRegressor(2), ensemble.RandomForestClassifier(2)),
        linear_model.RidgeClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_several_targets_are_refused(model):
    X, y = new_rows(0), np.zeros((200, 2), dtype=int)
    y[100:, 0] = y[::2, 1] = 1
    with pytest.raises(ExchangeError, match="several targets"):
        head_to(clone(model).fit(X, y), "h")


def test_sparse_coefficients_are_written_in_full():
    model = fitted(CLASSIFIERS["logistic"], n_classes=3)
    expected = model.predict_proba(new_rows(0))
    assert_allclose(received(model.sparsify()).predict_proba(new_rows(0)), expected, rtol=1e-12)


def test_rows_on_thresholds_stay_on_their_side_behind_a_scaler():
    """Histogram boosting splits at values of the data; a scaler that rounds otherwise would move rows across."""
    X = np.random.default_rng(0).normal(size=(5000, N_COLUMNS))
    model = make_pipeline(preprocessing.MinMaxScaler(), ensemble.HistGradientBoostingRegressor(max_iter=5))
    model.fit(X, X[:, 0] + X[:, 1])
    assert_allclose(received(model).predict(X), model.predict(X), rtol=1e-12)


def test_categories_are_refused():
    X = np.column_stack([np.arange(60) % 3, np.zeros((60, N_COLUMNS - 1))])
    model = ensemble.HistGradientBoostingClassifier(categorical_features=[0], max_iter=2, min_samples_leaf=2)
    with pytest.raises(ExchangeError, match="categories"):
        head_to(model.fit(X, (X[:, 0] == 1).astype(int)), "h")


LEAF = -1
WIDTH = 3
TREES = st.recursive(st.just(LEAF), lambda inner: st.tuples(st.integers(0, WIDTH - 1), inner, inner), max_leaves=40)
"""A tree is -1, or a feature and two trees."""


def trees(precision, **arrays):
    """A regressor of one step, as a file says it."""
    facts = {"form": "steps", "name": "x", "classes": None, "classes_dtype": None}
    facts["steps"] = [{"kind": "trees", "precision": precision}]
    # A tree of one leaf has no thresholds.
    members = {"h.safetensors": arrays_to_bytes({f"0.{name}": array for name, array in arrays.items() if len(array)})}
    return lambda rows: head_from(facts, members, "h", rows.shape[1]).predict(rows)


def listed(tree):
    return [tree] if tree == LEAF else [tree[0], *listed(tree[1]), *listed(tree[2])]


def read_one(features, place):
    """Naive: right children of the tree that begins here, and the place behind it."""
    if features[place] == LEAF:
        return {}, place + 1
    left, middle = read_one(features, place + 1)
    right, end = read_one(features, middle)
    return {place: middle} | left | right, end


def leaf_of(row, features, thresholds):
    """Naive: the number of the leaf of the first tree, by walking with a list of thresholds of all nodes."""
    right, _ = read_one(features, 0)
    place = 0
    while features[place] != LEAF:
        place = place + 1 if row[features[place]] <= thresholds[place] else right[place]
    return sum(feature == LEAF for feature in features[:place])


@given(TREES, st.sampled_from(["float32", "float64"]), st.integers(0, 2**32 - 1))
def test_rows_fall_into_the_leaves_of_a_naive_walk(tree, precision, seed):
    """Also rows that lie on thresholds, of which there are many: both are small integers or thirds of them."""
    generator = np.random.default_rng(seed)
    features = np.array(listed(tree), dtype=np.int32)
    is_leaf = features == LEAF
    thresholds = generator.integers(-3, 4, size=len(features)) / 3
    rows = generator.integers(-3, 4, size=(20, WIDTH)) / 3
    values = np.arange(float(is_leaf.sum()))[:, None]
    predict = trees(precision, feature=features, threshold=thresholds[~is_leaf], value=values)
    compared = rows.astype(precision).astype(np.float64)
    expected = [leaf_of(row, features, thresholds) for row in compared]
    assert predict(rows).tolist() == expected


def test_numbers_that_single_precision_cannot_part_are_parted_in_double():
    features = np.array([0, LEAF, LEAF], dtype=np.int32)
    arrays = {"feature": features, "threshold": np.array([1.0]), "value": np.array([[0.0], [1.0]])}
    rows = np.array([[1.0], [1.0 + 1e-12], [1e300], [-1e300]])
    assert trees("float64", **arrays)(rows).tolist() == [0, 1, 1, 0]
    assert trees("float32", **arrays)(rows).tolist() == [0, 0, 1, 0]


COVARIANCES = ("full", "tied", "diag", "spherical")


def rows(seed, n_rows=200, n_columns=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_columns)) + 4.0 * rng.integers(0, 3, size=(n_rows, 1))


@given(
    seed=st.integers(0, 2**31 - 1), n_centres=st.integers(1, 8), n_columns=st.integers(1, 5), shift=st.floats(-1e4, 1e4)
)
def test_the_nearest_centre_is_the_nearest(seed, n_centres, n_columns, shift):
    rng = np.random.default_rng(seed)
    centres, X = (rng.normal(size=(n, n_columns)) + shift for n in (n_centres, 50))
    classes = np.arange(n_centres)
    h = received(nearest_centre(centres, classes), n_columns)
    assert_array_equal(h.predict(X), pairwise_distances_argmin(X, centres))


@pytest.mark.parametrize("covariance_type", COVARIANCES)
@pytest.mark.parametrize("seed", range(3))
def test_mixtures_say_what_scikit_learns_say(covariance_type, seed):
    X, new = rows(seed), rows(seed + 50)
    mixture = GaussianMixture(3, covariance_type=covariance_type, random_state=seed).fit(X)
    h = received(mixture_classes(mixture, np.arange(3)), 3)
    assert_array_equal(h.predict(new), mixture.predict(new))
    assert_allclose(h.predict_proba(new), mixture.predict_proba(new), atol=1e-9)


@pytest.mark.parametrize("covariance_type", COVARIANCES)
@pytest.mark.parametrize("n_components", [1, 3])
def test_novelty_is_the_log_density_but_for_a_constant(covariance_type, n_components):
    X = rows(0)
    mixture = GaussianMixture(n_components, covariance_type=covariance_type, random_state=0).fit(X)
    scores = received(mixture_novelty(mixture), 3).predict(X)
    constants = scores + mixture.score_samples(X)
    assert_allclose(constants, constants[0], rtol=0, atol=1e-9)


def test_novelty_of_the_likeliest_row_is_about_zero_and_ends_at_230():
    mixture = GaussianMixture(1, random_state=0).fit(rows(1))
    h = mixture_novelty(mixture)
    assert h.predict(mixture.means_)[0] == pytest.approx(0.0, abs=1e-9)
    assert h.predict(np.full((1, 3), 1e6))[0] == pytest.approx(100 * np.log(10))


def test_many_columns_and_components_keep_the_digits():
    X = np.random.default_rng(0).normal(size=(500, 30))
    mixture = GaussianMixture(10, reg_covar=0.1, random_state=0).fit(X)
    assert_allclose(np.diff(mixture_novelty(mixture).predict(X)), -np.diff(mixture.score_samples(X)), rtol=0, atol=1e-7)
