"""Integration functions and models in files: what is saved is what is loaded; what a liar made is refused."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from model_examples import MAPS, N_COMPONENTS, N_INTERMEDIATE, ROWS, bundle_of, changed_arrays, fitted, refused, targets
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC

from datacollab.bundle import KeyPair, unpack
from datacollab.errors import ExchangeError, RepresentationError
from datacollab.linalg import Kernel
from datacollab.model import KernelMap, LinearMap, PartyModel, model_contents, model_from, plain_facts
from refusals import each, refused_with

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


def kernel_map(rng, n_anchors=1200, **options):
    A = rng.normal(size=(n_anchors, 3))
    kernel = Kernel(metric="rbf", parameters={"gamma": 0.2})
    return KernelMap("a", A, rng.uniform(size=(n_anchors, 2)), kernel, **options)


def test_kernel_map_is_the_expansion(rng):
    X = rng.normal(size=(50, 3))
    double, default = kernel_map(np.random.default_rng(1), precision="float64"), kernel_map(np.random.default_rng(1))
    wanted = double.kernel.between(X, double.anchor_representation) @ double.coefficients
    assert_allclose(double(X), wanted, rtol=1e-12)
    assert_allclose(default(X), wanted, rtol=2e-6)
    assert default(X).dtype == np.float64
    assert (default(X) != wanted).any()


@pytest.mark.parametrize(
    "g", [LinearMap("a", np.eye(3)), kernel_map(np.random.default_rng(0))], ids=["linear", "kernel"]
)
def test_wrong_columns_name_the_party(g):
    with pytest.raises(RepresentationError, match="Party 'a': the representation has 2 columns but 3 are expected"):
        g(np.zeros((4, 2)))


AFFINE = MAPS["affine"]


@cache
def plain_bundle():
    return bundle_of(fitted(LogisticRegression()))


@cache
def affine_bundle():
    return bundle_of(fitted(Ridge(), g=AFFINE, y=targets(regression=True)))


def with_facts(bundle, change):
    """The bundle with other facts of its map."""
    return replace(bundle, facts=bundle.facts | {"integration_function": change(bundle.facts["integration_function"])})


def test_an_affine_map_is_the_formula():
    assert_array_equal(AFFINE(ROWS), ROWS @ AFFINE.coefficients + AFFINE.intercept)
    assert_array_equal(LinearMap("north", AFFINE.coefficients)(ROWS), ROWS @ AFFINE.coefficients)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("intercept"),
        lambda arrays: arrays.update(intercept=np.zeros((1, N_COMPONENTS + 1))),
        lambda arrays: arrays.update(intercept=np.zeros((2, N_COMPONENTS))),
        lambda arrays: arrays.update(intercept=np.zeros(N_COMPONENTS)),
        lambda arrays: arrays.update(intercept=np.full((1, N_COMPONENTS), np.nan)),
        lambda arrays: arrays.update(intercept=np.full((1, N_COMPONENTS), 1e31)),
        lambda arrays: arrays.update(intercept=np.zeros((1, N_COMPONENTS), dtype=np.float32)),
        lambda arrays: arrays.pop("coefficients"),
        lambda arrays: arrays.update(more=np.zeros((1, 1))),
    ],
)
def test_arrays_of_an_affine_map_that_do_not_fit_are_refused(change):
    assert refused(changed_arrays(affine_bundle(), change, "g.safetensors")) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts | {"intercept": False},
        lambda facts: facts | {"intercept": 1.0},
        lambda facts: facts | {"transposed": ["intercept"]},
        lambda facts: {name: value for name, value in facts.items() if name != "intercept"},
    ],
)
def test_facts_of_an_affine_map_that_cannot_be_are_refused(change):
    assert refused(with_facts(affine_bundle(), change)) == "MODEL_MALFORMED"


KERNEL = {"kind": "kernel", "metric": "eval", "parameters": {}, "precision": "auto", "transposed": []}


@pytest.mark.parametrize(
    "change",
    each(
        n_components=[5],
        n_intermediate=[None],
        task=["regression"],
        estimator=["RandomForestClassifier", None],
        classes=[["x", "y"]],
        party=[True, None],
        versions=[[], {"sklearn": "1.0\x1b[31m run this"}],
        integration_function=[None, {"kind": "function"}, KERNEL],
    ),
)
def test_a_manifest_that_contradicts_the_model_is_refused(change):
    bundle = plain_bundle()
    assert refused(replace(bundle, facts=bundle.facts | change)) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "change",
    [{"gamma": -1.0}, {"gamma": "x"}, {"gamma": None, "X": 1}, {"degree": 10**9}, {"gamma": True, "metric": 3}],
)
def test_impossible_parameters_of_a_kernel_are_refused(change):
    assert refused(with_facts(plain_bundle(), lambda facts: facts | {"parameters": change})) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays["coefficients"].__setitem__((0, 0), np.nan),
        lambda arrays: arrays["coefficients"].__setitem__((0, 0), -1e31),
        lambda arrays: arrays.update(coefficients=arrays["coefficients"][:-1]),
        lambda arrays: arrays.update(coefficients=arrays["coefficients"][:, :-1]),
        lambda arrays: arrays.update(coefficients=arrays["coefficients"].astype(np.float32)),
        lambda arrays: arrays.update(anchor_representation=arrays["anchor_representation"].ravel()),
        lambda arrays: arrays.pop("coefficients"),
        lambda arrays: arrays.update(more=np.zeros(1)),
    ],
    ids=["NaN", "huge", "rows", "columns", "precision", "dimensions", "missing", "more"],
)
def test_arrays_of_the_map_that_do_not_fit_are_refused(change):
    assert refused(changed_arrays(plain_bundle(), change, "g.safetensors")) == "MODEL_MALFORMED"


def test_members_beyond_the_known_are_refused():
    bundle = plain_bundle()
    assert refused(replace(bundle, members=bundle.members | {"more.bin": b""})) == "MODEL_MALFORMED"
    assert refused(replace(bundle, members={"g.safetensors": b""})) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "change",
    each(
        n_rows=[True, -1, 10**30, "300\x1b[2J"],
        n_parties=[2.0],
        method=[["KTIIntegrator"], "x" * 201, "a\nb"],
        parameters=[{"a": [1]}, {str(number): 1 for number in range(51)}],
        estimator=["RandomForestClassifier", "a b"],
        created=["yesterday", "2026-11-21T18:00:00"],
        row_lint=[{"found": 1, "overridden_by": None}, {"found": True, "overridden_by": "a\x1bb"}],
        task=["magic"],
        party=["x" * 201],
    ),
)
def test_facts_that_are_shown_are_of_their_types_and_short(change):
    bundle = plain_bundle()
    with pytest.raises(ExchangeError) as caught:
        model_from(replace(bundle, facts=bundle.facts | change))
    assert caught.value.code == "MODEL_MALFORMED"
    (value,) = change.values()
    assert json.dumps(value).strip('"') not in str(caught.value)


def test_the_facts_of_a_project_are_taken():
    bundle = plain_bundle()
    of_project = {
        "n_rows": 300,
        "n_parties": 2,
        "method": "KTIIntegrator",
        "parameters": {"n_components": 3, "gamma": None, "metric": "rbf", "ridge": 1e-9},
        "row_lint": {"found": True, "overridden_by": "Dr. Müller"},
    }
    bundle = replace(bundle, facts=bundle.facts | of_project)
    assert plain_facts(bundle) == bundle.facts
    model_from(bundle)
