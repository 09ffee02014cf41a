"""Models in files: what is saved is what is loaded, or it is not saved."""

from dataclasses import replace

import numpy as np
import pytest
from model_examples import MAPS, N_INTERMEDIATE, ROWS, bundle_of, fitted, targets
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC

from datacollab.bundle import KeyPair, unpack
from datacollab.linalg import Kernel
from datacollab.model import KernelMap, LinearMap, PartyModel, model_contents, model_from
from refusals import refused_with

NEW_ROWS = np.random.default_rng(1).normal(size=(40, N_INTERMEDIATE))


def assert_same_answers(loaded, saved):
    assert loaded.party == saved.party
    assert_array_equal(loaded.transform(NEW_ROWS), saved.transform(NEW_ROWS))
    predicted = saved.predict(NEW_ROWS)
    assert loaded.predict(NEW_ROWS).dtype == predicted.dtype
    assert_array_equal(loaded.predict(NEW_ROWS), predicted)
    if hasattr(saved.estimator, "predict_proba"):
        assert_array_equal(loaded.predict_proba(NEW_ROWS), saved.predict_proba(NEW_ROWS))


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("estimator", [LogisticRegression(), RandomForestClassifier(2)], ids=lambda e: type(e).__name__)
def test_every_map_comes_back_bit_for_bit(name, estimator):
    model = fitted(clone(estimator), MAPS[name])
    assert_same_answers(model_from(bundle_of(model)), model)


def test_a_map_of_many_anchors_in_single_precision_comes_back_bit_for_bit():
    generator = np.random.default_rng(2)
    anchors, coefficients = generator.normal(size=(1100, N_INTERMEDIATE)), generator.normal(size=(1100, 4))
    g = KernelMap("north", anchors, coefficients, Kernel(metric="rbf", parameters={"gamma": np.float64(0.1)}))
    model = fitted(LogisticRegression(), g)
    assert_same_answers(model_from(bundle_of(model)), model)


@pytest.mark.parametrize("dtype", ["U1", object, "int64", "int32", "float64", "bool"])
def test_classes_keep_their_type(dtype):
    y = targets(dtype=dtype, n_classes=2 if dtype == "bool" else 3)
    model = fitted(RandomForestClassifier(2), y=y)
    assert_same_answers(model_from(bundle_of(model)), model)


def test_save_and_load(tmp_path):
    key, file = KeyPair.generate(), tmp_path / "north.dcmodel"
    model = fitted(RandomForestClassifier(2))
    model.save(file, key=key)
    assert_same_answers(PartyModel.load(file, signed_by=key.public), model)
    assert_same_answers(PartyModel.load(str(file)), model)
    with refused_with("SIGNATURE_INVALID"):
        PartyModel.load(file, signed_by=KeyPair.generate().public)
    facts = unpack(file).facts
    assert (facts["party"], facts["n_intermediate"], facts["n_components"]) == ("north", 3, 4)
    told = (facts["estimator"], facts["task"], facts["classes"])
    assert told == ("RandomForestClassifier", "classification", ["x", "y", "z"])


@pytest.mark.parametrize(
    "estimator",
    [RandomForestClassifier(2, random_state=0), CalibratedClassifierCV(LinearSVC(random_state=0), cv=2)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_equal_models_give_equal_members(estimator):
    """Nothing of the machine, such as an address in memory, gets into a file."""
    first, second = (fitted(clone(estimator)) for _ in range(2))
    assert model_contents(first)[1] == model_contents(second)[1]


class _HomeMade(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


def _home_made(X):
    return X


@pytest.mark.parametrize(
    "estimator",
    [
        _HomeMade(),
        make_pipeline(FunctionTransformer(_home_made), LogisticRegression()),
        make_pipeline(FunctionTransformer(np.tanh), LogisticRegression()),
        SVC(),
    ],
    ids=["class", "function", "function of NumPy", "rows"],
)
def test_what_no_numbers_describe_is_not_sent(estimator, tmp_path):
    model = fitted(estimator)
    with refused_with("MODEL_UNSUPPORTED", match="Train"):
        model.save(tmp_path / "north.dcmodel")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "kernel",
    [
        Kernel(metric=lambda x, y: float(x @ y)),
        Kernel(metric="rbf", parameters={"gamma": "scale"}),
        Kernel(metric="no such kernel"),
    ],
    ids=["function", "text as parameter", "unknown name"],
)
def test_a_kernel_that_is_no_name_and_numbers_is_not_sent(kernel):
    model = fitted(LogisticRegression())
    g = KernelMap("north", ROWS[:5], np.ones((5, 4)), kernel)
    with refused_with("MODEL_UNSUPPORTED"):
        model_contents(PartyModel(party="north", integration_function=g, estimator=model.estimator))


def test_a_map_that_does_not_fit_the_estimator_is_not_sent():
    model = fitted(LogisticRegression())
    g = KernelMap("north", ROWS[:5], np.ones((5, 3)), Kernel(metric="linear"))
    with refused_with("MODEL_UNSUPPORTED"):
        model_contents(PartyModel(party="north", integration_function=g, estimator=model.estimator))


def test_made_up_rows_far_from_the_training_rows_are_no_reason_to_refuse():
    """Where a linear map takes small rows, an exponential of made-up ones overflows."""
    g = LinearMap("north", 1e5 * np.eye(N_INTERMEDIATE))
    model = PartyModel(
        party="north",
        integration_function=g,
        estimator=PoissonRegressor(alpha=0).fit(g(1e-5 * ROWS), targets(regression=True)),
    )
    loaded = model_from(bundle_of(model))
    assert_array_equal(loaded.predict(1e-5 * NEW_ROWS), model.predict(1e-5 * NEW_ROWS))


def test_files_are_their_owners_alone(tmp_path):
    fitted(LogisticRegression()).save(tmp_path / "north.dcmodel")
    assert (tmp_path / "north.dcmodel").stat().st_mode & 0o777 == 0o600


def test_a_share_is_no_model():
    with refused_with("WRONG_KIND"):
        model_from(replace(bundle_of(fitted(Ridge(), y=targets(regression=True))), kind="datacollab.share"))
