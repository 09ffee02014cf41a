"""Models h that are sent as plain numbers: the same predictions, and nothing else is taken."""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from model_examples import MAPS, ROWS, bundle_of, changed_arrays, fitted, refused, targets
from numpy.testing import assert_allclose, assert_array_equal
from predictor_examples import Average
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from datacollab.bundle import arrays_to_bytes, bytes_to_arrays
from datacollab.model import (
    AveragedClassifier,
    CalibratedForestClassifier,
    LandmarkRidgeClassifier,
    LandmarkRidgeRegressor,
    PartyModel,
    add_level,
    estimator_kind,
    head_from,
    head_to,
    model_contents,
    model_from,
)
from datacollab.survival import CoxRegression
from datacollab.targets import survival_target
from refusals import each, refused_with

LANDMARKS = MAPS["rbf"](ROWS[:15])
CLASSIFIERS = {
    "rbf": lambda: LandmarkRidgeClassifier(LANDMARKS, gamma=0.2),
    "linear": lambda: LandmarkRidgeClassifier(kernel="linear"),
    "forest": lambda: CalibratedForestClassifier(5, random_state=0),
    "average": lambda: Average(
        [
            LandmarkRidgeClassifier(LANDMARKS, gamma=0.2),
            LandmarkRidgeClassifier(LANDMARKS, gamma=0.5),
            LandmarkRidgeClassifier(LANDMARKS[:9], gamma=0.2),
            LandmarkRidgeClassifier(kernel="linear"),
        ],
        weights=[1, 2, 3, 4],
    ),
}
REGRESSORS = {
    "rbf": lambda: LandmarkRidgeRegressor(LANDMARKS, gamma=0.2),
    "linear": lambda: LandmarkRidgeRegressor(kernel="linear"),
    "average": lambda: Average(
        [LandmarkRidgeRegressor(LANDMARKS, gamma=0.2), LandmarkRidgeRegressor(kernel="linear")], weights=[1, 1]
    ),
}


@cache
def sent(name):
    """A fitted model of classes, or of numbers."""
    return fitted(REGRESSORS["rbf"](), y=targets(regression=True)) if name == "numbers" else fitted(CLASSIFIERS[name]())


ridge, numbers, forest, average = (partial(sent, name) for name in ("rbf", "numbers", "forest", "average"))


def changed_head(bundle, **changes):
    return replace(bundle, facts=bundle.facts | {"head": bundle.facts["head"] | changes})


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("dtype", ["U1", object, "int64", "uint8", "float64"])
def test_a_classifier_comes_back(name, dtype):
    model = fitted(CLASSIFIERS[name](), y=targets(dtype=dtype))
    read = model_from(bundle_of(model))
    assert estimator_kind(read.estimator) == type(model.estimator).__name__
    assert_array_equal(read.estimator.classes_, model.estimator.classes_)
    assert read.estimator.classes_.dtype.kind == np.dtype(dtype).kind
    assert_array_equal(read.predict(ROWS), model.predict(ROWS))
    assert_allclose(read.predict_proba(ROWS), model.predict_proba(ROWS), rtol=1e-12)


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_regressor_comes_back(name):
    model = fitted(REGRESSORS[name](), y=targets(regression=True))
    assert_allclose(model_from(bundle_of(model)).predict(ROWS), model.predict(ROWS), rtol=1e-12)


def test_the_numbers_in_the_file_are_the_documented_ones():
    """softmax(scale (k(x, landmarks) coefficients + intercept) + offsets), from the members alone."""
    bundle = bundle_of(ridge())
    assert set(bundle.members) == {"g.safetensors", "h.safetensors"}
    arrays = bytes_to_arrays(bundle.members["h.safetensors"], what="h")
    kernel = rbf_kernel(ridge().transform(ROWS), arrays["landmarks"], gamma=bundle.facts["head"]["gamma"])
    scores = kernel @ arrays["coefficients"] + arrays["intercept"]
    expected = softmax(arrays["scale"] * scores + arrays["offsets"], axis=1)
    assert_allclose(ridge().predict_proba(ROWS), expected, rtol=1e-9)


def test_numbers_are_read_whatever_scikit_learn_they_were_made_with():
    for model in (ridge(), average(), forest()):
        bundle = bundle_of(model)
        old = replace(bundle, facts=bundle.facts | {"versions": bundle.facts["versions"] | {"sklearn": "0.99.1"}})
        assert_array_equal(model_from(old).predict(ROWS), model.predict(ROWS))


@pytest.mark.parametrize(
    "changes",
    [
        *each(
            form=["pickle", None, ["skops"], "skops", "calibrated-forest"],
            kernel=["poly", ["rbf"], "linear"],
            gamma=[0, True, 1e200],
            alpha=[-1.0, None],
            classes=[None, "xyz", ["x", "y"], ["y", "x", "z"], *(["x", "y", last] for last in ("y", 3, "z" * 201))],
            classes_dtype=["int64", ["str"]],
        ),
        {"classes": [1, 2, 2**70], "classes_dtype": "int64"},
        {"classes": [1, 2, 300], "classes_dtype": "uint8"},
    ],
    ids=str,
)
def test_impossible_facts_are_refused(changes):
    assert refused(changed_head(bundle_of(ridge()), **changes)) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("landmarks"),
        lambda arrays: arrays.pop("scale"),
        lambda arrays: arrays.update(more=np.zeros(2)),
        lambda arrays: arrays.update(landmarks=arrays["landmarks"][:, :2]),
        lambda arrays: arrays.update(landmarks=arrays["landmarks"][:3]),
        lambda arrays: arrays.update(landmarks=arrays["landmarks"].astype(np.float32)),
        lambda arrays: arrays.update(landmarks=np.zeros((0, 4))),
        lambda arrays: arrays["landmarks"].__setitem__((0, 0), np.nan),
        lambda arrays: arrays["coefficients"].__setitem__((0, 0), np.inf),
        lambda arrays: arrays["coefficients"].__setitem__((0, 0), 1e101),
        lambda arrays: arrays.update(coefficients=arrays["coefficients"][:, :2]),
        lambda arrays: arrays.update(intercept=np.zeros(2)),
        lambda arrays: arrays.update(intercept=np.asarray(0.0)),
        lambda arrays: arrays.update(offsets=np.zeros((3, 1))),
        lambda arrays: arrays.update(offsets=np.full(3, 1e7)),
        lambda arrays: arrays.update(scale=np.zeros(1)),
        lambda arrays: arrays.update(scale=np.asarray(-1.0)),
        lambda arrays: arrays.update(scale=np.asarray(np.nan)),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change):
    assert refused(changed_arrays(bundle_of(ridge()), change)) == "MODEL_MALFORMED"


def test_more_landmarks_than_memory_is_meant_for_are_refused():
    def grow(arrays):
        arrays["landmarks"], arrays["coefficients"] = np.zeros((10_001, 4)), np.zeros((10_001, 3))

    assert refused(changed_arrays(bundle_of(ridge()), grow)) == "TOO_LARGE"


@pytest.mark.slow
@given(
    scale=hnp.arrays(np.float64, st.sampled_from([(), (1,), (2, 2)])),
    offsets=hnp.arrays(np.float64, st.sampled_from([(3,), (2,), ()])),
    coefficients=hnp.arrays(np.float64, st.sampled_from([(15, 3), (15,), (4, 3), (0, 3)])),
    landmarks=hnp.arrays(np.float64, st.sampled_from([(15, 4), (4, 4), (15,), (15, 0)])),
)
def test_any_numbers_predict_or_are_refused(scale, offsets, coefficients, landmarks):
    bundle = bundle_of(ridge())
    changed = {"scale": scale, "offsets": offsets, "coefficients": coefficients, "landmarks": landmarks}
    changed_bundle = changed_arrays(bundle, lambda arrays: arrays.update(changed))
    fits = [scale.shape == (), offsets.shape == (3,), coefficients.shape == (15, 3), landmarks.shape == (15, 4)]
    if all(fits) and all((np.abs(values) < 1e3).all() for values in changed.values()) and scale >= 0:
        assert np.isfinite(model_from(changed_bundle).predict_proba(ROWS)).all()
    elif not all(fits):
        assert refused(changed_bundle) == "MODEL_MALFORMED"


@pytest.mark.slow
@given(data=st.binary(max_size=200))
def test_any_bytes_in_place_of_the_numbers_are_refused(data):
    bundle = bundle_of(ridge())
    for member in bundle.members:
        assert refused(replace(bundle, members=bundle.members | {member: data})) == "MODEL_MALFORMED"


def test_members_of_other_forms_are_refused():
    bundle = bundle_of(ridge())
    for more in ({"h.skops": b""}, {"h-without.safetensors": b""}, {"x.bin": b""}, {"model.onnx": b""}):
        assert refused(replace(bundle, members=bundle.members | more)) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), LandmarkRidgeClassifier(LANDMARKS, gamma=0.2)),
        Average([LogisticRegression(), LandmarkRidgeClassifier(kernel="linear")], weights=[1, 2]),
    ],
    ids=["pipeline", "average"],
)
def test_within_other_estimators_they_are_steps(estimator):
    model = fitted(estimator)
    bundle = bundle_of(model)
    assert bundle.facts["head"]["form"] == "steps"
    assert_allclose(model_from(bundle).predict_proba(ROWS), model.predict_proba(ROWS), rtol=1e-12)


def test_an_average_is_numbers_with_common_landmarks_once():
    bundle = bundle_of(average())
    assert set(bundle.members) == {"g.safetensors", "h.safetensors"}
    arrays = bytes_to_arrays(bundle.members["h.safetensors"], what="h")
    shapes = {name: array.shape for name, array in arrays.items() if "landmarks" in name}
    assert shapes == {"landmarks.0": (15, 4), "landmarks.1": (9, 4)}
    assert [each.get("landmarks") for each in bundle.facts["head"]["averaged"]] == [0, 0, 1, None]
    assert_allclose(bundle.facts["head"]["weights"], [0.1, 0.2, 0.3, 0.4])


def one(change):
    """The facts of an average with those of its first model changed, once they are asked for."""

    def changed():
        first, *others = bundle_of(average()).facts["head"]["averaged"]
        return {"averaged": [change(first), *others]}

    return changed


@pytest.mark.parametrize(
    "changes",
    [
        *each(
            form=["landmark-ridge"],
            averaged=[[], {}, None],
            weights=[None, [1.0], [0.1, 0.2, 0.3, 0.5], [0.6, 0.6, -0.1, -0.1]]
            + [[first, 0, 0, 0] for first in (True, "1", float("inf"))],
        ),
        {"averaged": [], "weights": []},
        one(lambda facts: None),
        one(lambda facts: bundle_of(average()).facts["head"]),
        *(
            one(lambda facts, other=other: facts | other)
            for other in each(
                form=["skops"], landmarks=[1, 2, -1, "0", None], gamma=[0.0], classes=[None, ["x", "y", "unheard-of"]]
            )
        ),
    ],
    ids=lambda changes: str(changes) if isinstance(changes, dict) else None,
)
def test_impossible_facts_of_an_average_are_refused(changes):
    changes = changes() if callable(changes) else changes
    assert refused(changed_head(bundle_of(average()), **changes)) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("landmarks.0"),
        lambda arrays: arrays.pop("0.scale"),
        lambda arrays: arrays.update({"9.scale": np.asarray(1.0)}),
        lambda arrays: arrays.update({"0.landmarks": arrays["landmarks.0"]}),
        lambda arrays: arrays.update({"landmarks.2": arrays["landmarks.0"]}),
        lambda arrays: arrays.update({"landmarks.0": arrays["landmarks.0"][:, :2]}),
        lambda arrays: arrays["3.coefficients"].__setitem__((0, 0), np.nan),
    ],
)
def test_arrays_that_do_not_fit_an_average_are_refused(change):
    assert refused(changed_arrays(bundle_of(average()), change)) == "MODEL_MALFORMED"


def average_of_classes(*classes):
    """An average of linear models as it is written, of these classes each."""
    X = np.random.default_rng(0).normal(size=(max(map(len, classes)), 4))
    models = [LandmarkRidgeClassifier(kernel="linear", alphas=[1.0]).fit(X[: len(y)], y) for y in classes]
    return head_to(AveragedClassifier(models, np.ones(len(models))), "h")


def test_classes_of_one_type_and_not_too_many_together(monkeypatch):
    facts, members = average_of_classes(np.arange(3), np.arange(2, 6))
    assert_array_equal(head_from(facts, members, "h", 4).classes_, range(6))
    texts, _ = average_of_classes(np.array(["a", "b", "c"]))
    mixed = facts | {"averaged": [texts["averaged"][0], facts["averaged"][1]]}
    with refused_with("MODEL_MALFORMED", match="different types"):
        head_from(mixed, members, "h", 4)
    monkeypatch.setattr("datacollab.model._heads.MOST_CLASSES", 5)
    with refused_with("TOO_LARGE", match="6 classes"):
        head_from(facts, members, "h", 4)


def test_common_landmarks_are_in_memory_once():
    """Else a small file would take much more when it is read."""
    first, second, *_ = model_from(bundle_of(average())).estimator.estimators_
    assert first.landmarks is second.landmarks


def test_averages_of_more_models_than_anybody_needs_are_refused():
    head = bundle_of(average()).facts["head"]
    many = {"averaged": head["averaged"][3:] * 51, "weights": [1 / 51] * 51}
    assert refused(changed_head(bundle_of(average()), **many)) == "TOO_LARGE"


def probabilities():
    return ridge().predict_proba(ROWS)[:7]


def without():
    return ridge().estimator


def test_predictions_for_rows_left_out_and_the_model_without_a_party_come_back():
    model = replace(ridge(), left_out=probabilities(), without_party=without())
    bundle = bundle_of(model)
    read = model_from(bundle)
    assert_array_equal(read.left_out, probabilities())
    rows = model.transform(ROWS)
    assert_allclose(read.without_party.predict_proba(rows), without().predict_proba(rows), rtol=1e-12)
    regression = replace(numbers(), left_out=numbers().predict(ROWS), without_party=Ridge().fit(rows, rows[:, 0]))
    read = model_from(bundle_of(regression))
    assert_array_equal(read.left_out, regression.left_out)
    assert_allclose(read.without_party.predict(rows), regression.without_party.predict(rows))
    assert model_from(bundle_of(ridge())).left_out is None
    assert model_from(bundle_of(ridge())).without_party is None


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p[:, :2],
        lambda p: p[:, 0],
        lambda p: p * 2,
        lambda p: np.where(np.eye(7, 3) > 0, np.nan, p),
        lambda p: p[:0],
        lambda p: p[None],
        lambda p: np.asarray(0.5),
    ],
    ids=["classes", "numbers", "sum", "NaN", "empty", "shape", "single"],
)
def test_what_cannot_be_said_of_rows_left_out_is_refused(change):
    left_out = change(probabilities())
    bundle = bundle_of(replace(ridge(), left_out=probabilities()))
    member = {"left-out.safetensors": arrays_to_bytes({"left_out": left_out})}
    assert refused(replace(bundle, members=bundle.members | member)) == "MODEL_MALFORMED"
    with refused_with("MODEL_UNSUPPORTED"):
        model_contents(replace(ridge(), left_out=left_out))


@pytest.mark.parametrize(
    "data", [b"", arrays_to_bytes({"other": np.zeros(3)}), arrays_to_bytes({"left_out": np.zeros(3, "f4")})]
)
def test_what_are_no_predictions_is_refused(data):
    bundle = bundle_of(replace(ridge(), left_out=probabilities()))
    assert refused(replace(bundle, members=bundle.members | {"left-out.safetensors": data})) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "make",
    [
        lambda: fitted(LandmarkRidgeClassifier(kernel="linear"), y=np.array(["x", "y", "other"])[np.arange(60) % 3]),
        numbers,
        lambda: PartyModel(
            party="x",
            integration_function=MAPS["linear"],
            estimator=LandmarkRidgeClassifier(kernel="linear").fit(ROWS, targets()),
        ),
    ],
    ids=["another class", "another task", "other columns"],
)
def test_a_model_without_the_party_for_something_else_is_refused(make):
    head, members = head_to(make().estimator, "h-without")
    bundle = bundle_of(ridge())
    changed = replace(bundle, facts=bundle.facts | {"without_party": head}, members=bundle.members | members)
    assert refused(changed) == "MODEL_MALFORMED"


LEVELS = {"steps": LogisticRegression(), "landmark-ridge": LandmarkRidgeClassifier(kernel="linear")}


@pytest.mark.parametrize("form", LEVELS)
def test_a_level_is_read_again_and_moves_probabilities(form):
    plain = fitted(LEVELS[form])
    level = np.linspace(-0.5, 0.5, len(plain.estimator.classes_))
    read = model_from(bundle_of(replace(plain, estimator=add_level(plain.estimator, level))))
    odds = plain.predict_proba(ROWS) * np.exp(level)
    assert_allclose(read.predict_proba(ROWS), odds / odds.sum(axis=1, keepdims=True), rtol=1e-9)
    assert bundle_of(read).facts["estimator"] == type(plain.estimator).__name__


def test_of_a_search_the_best_model_gets_the_level():
    search = fitted(GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2))
    level = np.linspace(-0.5, 0.5, len(search.estimator.classes_))
    levelled = replace(search, estimator=add_level(search.estimator, level))
    assert bundle_of(levelled).facts["estimator"] == "LogisticRegression"


@pytest.mark.parametrize("level", [np.zeros(1), np.array(0.0), np.full(3, 101.0), np.full(3, np.nan)], ids=str)
def test_a_level_that_does_not_fit_is_refused(level):
    bundle = bundle_of(fitted(LogisticRegression()))
    assert refused(changed_arrays(bundle, lambda arrays: arrays.update(level=level))) == "MODEL_MALFORMED"


@pytest.mark.parametrize("estimator", [LinearSVC(), CoxRegression()], ids=lambda each: type(each).__name__)
def test_what_has_neither_probabilities_nor_numbers_has_no_level(estimator):
    y = survival_target(ROWS[:, 0] > 0, np.abs(ROWS[:, 1]) + 0.1) if isinstance(estimator, CoxRegression) else None
    bundle = bundle_of(fitted(estimator, y=y))
    assert refused(changed_arrays(bundle, lambda arrays: arrays.update(level=np.zeros(3)))) == "MODEL_MALFORMED"
