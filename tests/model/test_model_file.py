"""Models in files: what is saved is what is loaded, or it is not saved."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from model_examples import (
    CLASSIFIERS,
    MAPS,
    N_INTERMEDIATE,
    REGRESSORS,
    ROW_CARRIERS,
    ROW_CARRYING_REGRESSORS,
    ROWS,
    bundle_of,
    bundle_of_objects,
    fitted,
    targets,
)
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from datacollab.bundle import KeyPair, unpack
from datacollab.errors import ExchangeError
from datacollab.linalg import Kernel
from datacollab.model import (
    KernelMap,
    LinearMap,
    PartyModel,
    estimator_from_bytes,
    estimator_to_bytes,
    model_contents,
    model_from,
)

NEW_ROWS = np.random.default_rng(1).normal(size=(40, N_INTERMEDIATE))


def assert_same_answers(loaded, saved):
    assert loaded.party == saved.party
    np.testing.assert_array_equal(loaded.transform(NEW_ROWS), saved.transform(NEW_ROWS))
    predicted = saved.predict(NEW_ROWS)
    assert loaded.predict(NEW_ROWS).dtype == predicted.dtype
    np.testing.assert_array_equal(loaded.predict(NEW_ROWS), predicted)
    if hasattr(saved.estimator, "predict_proba"):
        np.testing.assert_array_equal(loaded.predict_proba(NEW_ROWS), saved.predict_proba(NEW_ROWS))


def written_and_read(model):
    """With the object that whoever wrote it gets back."""
    return replace(model, estimator=estimator_from_bytes(estimator_to_bytes(model.estimator)))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_kept_as_an_object_predicts_bit_for_bit(name):
    model = fitted(clone(CLASSIFIERS[name]))
    assert_same_answers(written_and_read(model), model)


@pytest.mark.parametrize("name", ["gradient boosting", "histogram boosting", "network", "logistic", "linear svc"])
def test_two_classes_are_another_shape_of_objects(name):
    model = fitted(clone(CLASSIFIERS[name]), y=targets(n_classes=2))
    assert_same_answers(written_and_read(model), model)


@pytest.mark.parametrize("name", ROW_CARRIERS)
def test_a_classifier_that_carries_rows_predicts_bit_for_bit(name):
    model = fitted(clone(ROW_CARRIERS[name]))
    assert_same_answers(written_and_read(model), model)


@pytest.mark.parametrize("name", REGRESSORS | ROW_CARRYING_REGRESSORS)
def test_a_regressor_kept_as_an_object_predicts_bit_for_bit(name):
    model = fitted(clone((REGRESSORS | ROW_CARRYING_REGRESSORS)[name]), y=targets(regression=True))
    assert_same_answers(written_and_read(model), model)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("bagging", "calibrated isotonic", "histogram boosting", "passed to bins", "pipeline to trees", "stacking"),
        *("gp", "k-nn", "k-nn by balls", "nystroem", "svc"),
    ],
)
def test_a_classifier_sent_as_an_object_predicts_bit_for_bit(name):
    model = fitted(clone((CLASSIFIERS | ROW_CARRIERS)[name]))
    assert_same_answers(model_from(bundle_of_objects(model), objects=True), model)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gp", "kernel ridge", "pls", "transformed target", "voting"])
def test_a_regressor_sent_as_an_object_predicts_bit_for_bit(name):
    model = fitted(clone((REGRESSORS | ROW_CARRYING_REGRESSORS)[name]), y=targets(regression=True))
    assert_same_answers(model_from(bundle_of_objects(model), objects=True), model)


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
    with pytest.raises(ExchangeError) as caught:
        PartyModel.load(file, signed_by=KeyPair.generate().public)
    assert caught.value.code == "SIGNATURE_INVALID"
    facts = unpack(file).facts
    assert (facts["party"], facts["n_intermediate"], facts["n_components"]) == ("north", 3, 4)
    assert (facts["estimator"], facts["task"], facts["classes"]) == (
        "RandomForestClassifier",
        "classification",
        ["x", "y", "z"],
    )


def test_equal_models_give_equal_members():
    """Nothing of the machine, such as an address in memory, gets into a file."""
    estimator = ("stacking", "forest", "calibrated")
    for name in estimator:
        first, second = (fitted(clone(CLASSIFIERS[name]).set_params(**_seeds(CLASSIFIERS[name]))) for _ in range(2))
        assert bundle_of_objects(first).members == bundle_of_objects(second).members, name
        if name != "stacking":
            assert model_contents(first)[1] == model_contents(second)[1], name


def _seeds(estimator):
    return {name: 0 for name in estimator.get_params() if name.endswith("random_state")}


def test_no_state_of_a_random_generator_leaves():
    model = fitted(RandomForestClassifier(2, random_state=np.random.RandomState(0)))
    assert written_and_read(model).estimator.random_state is None


def test_of_a_search_the_best_estimator_is_sent():
    model = fitted(clone(CLASSIFIERS["search"]))
    assert model_from(bundle_of(model)).estimator.name == "LogisticRegression"
    assert model_from(bundle_of_objects(model), objects=True).estimator.name == "LogisticRegression"


def test_whoever_loads_decides_on_the_number_of_jobs():
    model = fitted(RandomForestClassifier(2, n_jobs=2, verbose=0))
    assert written_and_read(model).estimator.n_jobs is None


class _HomeMade(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


def _home_made(X):
    return X


@pytest.mark.parametrize("function", [np.tanh, None])
def test_a_function_of_numpy_is_sent_as_an_object_alone(function):
    model = fitted(make_pipeline(FunctionTransformer(function), LogisticRegression()))
    with pytest.raises(ExchangeError, match="Train") as caught:
        model_contents(model)
    assert caught.value.code == "MODEL_UNSUPPORTED"
    assert_same_answers(model_from(bundle_of_objects(model), objects=True), model)


@pytest.mark.parametrize(
    "estimator",
    [_HomeMade(), make_pipeline(FunctionTransformer(_home_made), LogisticRegression())],
    ids=["class", "function"],
)
@pytest.mark.parametrize("objects", [False, True])
def test_what_is_no_library_s_is_not_sent(estimator, objects):
    with pytest.raises(ExchangeError, match="Train") as caught:
        model_contents(fitted(estimator), objects=objects)
    assert caught.value.code == "MODEL_UNSUPPORTED"


def test_what_no_numbers_describe_is_sent_and_taken_only_where_both_ask_for_it(tmp_path):
    model, file = fitted(SVC()), tmp_path / "north.dcmodel"
    with pytest.raises(ExchangeError, match="SVC cannot be sent") as caught:
        model.save(file)
    assert caught.value.code == "MODEL_UNSUPPORTED"
    model.save(file, objects=True)
    with pytest.raises(ExchangeError, match="objects of scikit-learn") as caught:
        PartyModel.load(file)
    assert caught.value.code == "OBJECTS_REFUSED"
    assert_same_answers(PartyModel.load(file, objects=True), model)


def test_numbers_are_sent_also_where_objects_would_be_taken():
    facts, members = model_contents(fitted(RandomForestClassifier(2)), objects=True)
    assert facts["head"]["form"] == "steps"
    assert "h.skops" not in members


def test_objects_of_a_model_without_the_party_are_refused_as_well():
    model = fitted(LogisticRegression())
    bundle = bundle_of(replace(model, without_party=model.estimator))
    members = {name: data for name, data in bundle.members.items() if not name.startswith("h-without")}
    members["h-without.skops"] = bundle_of_objects(model).members["h.skops"]
    mixed = replace(bundle, members=members, facts=bundle.facts | {"without_party": {"form": "skops"}})
    with pytest.raises(ExchangeError) as caught:
        model_from(mixed)
    assert caught.value.code == "OBJECTS_REFUSED"
    assert model_from(mixed, objects=True).without_party is not None


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
    with pytest.raises(ExchangeError) as caught:
        model_contents(PartyModel(party="north", integration_function=g, estimator=model.estimator))
    assert caught.value.code == "MODEL_UNSUPPORTED"


def test_a_map_that_does_not_fit_the_estimator_is_not_sent():
    model = fitted(LogisticRegression())
    g = KernelMap("north", ROWS[:5], np.ones((5, 3)), Kernel(metric="linear"))
    with pytest.raises(ExchangeError) as caught:
        model_contents(PartyModel(party="north", integration_function=g, estimator=model.estimator))
    assert caught.value.code == "MODEL_UNSUPPORTED"


def test_another_minor_version_of_scikit_learn_is_refused():
    bundle = bundle_of_objects(fitted(LogisticRegression()))
    major, minor, *_ = sklearn.__version__.split(".")
    other = bundle.facts["versions"] | {"sklearn": f"{major}.{int(minor) + 1}.0"}
    with pytest.raises(ExchangeError, match=sklearn.__version__) as caught:
        model_from(replace(bundle, facts=bundle.facts | {"versions": other}), objects=True)
    assert caught.value.code == "VERSION_MISMATCH"
    same = bundle.facts["versions"] | {"sklearn": f"{major}.{minor}.99"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model_from(replace(bundle, facts=bundle.facts | {"versions": same}), objects=True)


def test_made_up_rows_far_from_the_training_rows_are_no_reason_to_refuse():
    """Where a linear map takes small rows, an exponential of made-up ones overflows."""
    g = LinearMap("north", 1e5 * np.eye(N_INTERMEDIATE))
    model = PartyModel(
        party="north",
        integration_function=g,
        estimator=PoissonRegressor(alpha=0).fit(g(1e-5 * ROWS), targets(regression=True)),
    )
    loaded = model_from(bundle_of(model))
    np.testing.assert_array_equal(loaded.predict(1e-5 * NEW_ROWS), model.predict(1e-5 * NEW_ROWS))


def test_files_are_their_owners_alone(tmp_path):
    fitted(LogisticRegression()).save(tmp_path / "north.dcmodel")
    assert (tmp_path / "north.dcmodel").stat().st_mode & 0o777 == 0o600


def test_a_share_is_no_model():
    with pytest.raises(ExchangeError) as caught:
        model_from(replace(bundle_of(fitted(Ridge(), y=targets(regression=True))), kind="datacollab.share"))
    assert caught.value.code == "WRONG_KIND"
