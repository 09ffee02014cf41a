"""What a model may cost the party that reads it: its work is counted before it is done, and its memory is bounded."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from model_examples import ROWS, bundle_of, changed_arrays, fitted, refused, targets
from numpy.testing import assert_allclose, assert_array_equal
from predictor_examples import CLASSIFIERS, N_COLUMNS, REGRESSORS, Average
from predictor_examples import fitted as example
from sklearn.linear_model import LogisticRegression, Ridge

from datacollab.bundle import arrays_to_bytes
from datacollab.linalg import Kernel
from datacollab.model import (
    AveragedClassifier,
    AveragedRegressor,
    KernelMap,
    LandmarkRidgeClassifier,
    LandmarkRidgeRegressor,
    LinearMap,
    PartyModel,
    head_from,
    head_to,
    model_from,
)
from datacollab.survival import CoxRegression, SurvivalForest
from datacollab.targets import survival_target
from refusals import refused_with

MANY = np.random.default_rng(3).normal(size=(30_000, N_COLUMNS))
LANDMARKS = MANY[:1_000]
MIB = 2**20


def average_of(n_models, n_landmarks):
    """As a small file says it: many models, all with the same landmarks."""
    ridge = LandmarkRidgeClassifier(ROWS[:15] @ np.ones((3, 4)), gamma=0.2)
    bundle = bundle_of(fitted(Average([ridge] * 2, [1, 1])))

    def change(arrays):
        first = {name: array for name, array in arrays.items() if name.startswith("0.")}
        first["0.coefficients"] = np.zeros((n_landmarks, 3))
        for number in range(n_models):
            arrays |= {f"{number}.{name.removeprefix('0.')}": array for name, array in first.items()}
        arrays["landmarks.0"] = np.zeros((n_landmarks, 4))

    averaged = [bundle.facts["head"]["averaged"][0]] * n_models
    head = bundle.facts["head"] | {"averaged": averaged, "weights": [1 / n_models] * n_models}
    return replace(changed_arrays(bundle, change), facts=bundle.facts | {"head": head})


def test_an_average_that_takes_too_long_for_a_row_is_refused():
    assert refused(average_of(50, 10_000)) == "TOO_LARGE"
    assert len(model_from(average_of(20, 10_000)).estimator.estimators_) == 20
    assert len(model_from(average_of(50, 2_000)).estimator.estimators_) == 50


def test_a_landmark_model_that_takes_too_long_for_a_row_is_refused():
    """Ten thousand classes of many landmarks: a product of twenty million numbers for each row."""
    facts = {"form": "landmark-ridge", "kernel": "rbf", "gamma": 1.0, "alpha": 1.0}
    facts |= {"classes": [f"{number:05}" for number in range(10_000)], "classes_dtype": "str"}
    arrays = {"coefficients": np.zeros((2_000, 10_000)), "intercept": np.zeros(10_000), "offsets": np.zeros(10_000)}
    arrays |= {"scale": np.asarray(1.0), "landmarks": np.zeros((2_000, 1))}
    with refused_with("TOO_LARGE"):
        head_from(facts, {"h.safetensors": arrays_to_bytes(arrays)}, "h", 1)


@pytest.mark.parametrize("n_models", [1, 2])
@pytest.mark.parametrize("kind", ["numbers", "classes"])
@pytest.mark.slow
def test_memory_does_not_grow_with_rows(kind, n_models):
    """Ten thousand landmarks and 2,500 rows: 200 MiB for each table of all kernel values at once."""
    classes = kind == "classes"
    model = (LandmarkRidgeClassifier if classes else LandmarkRidgeRegressor)(LANDMARKS[:3], gamma=0.1)
    model.fit(MANY[:50], MANY[:50, 0] > 0 if classes else MANY[:50, 0])
    model.landmarks = MANY[:10_000]
    model.coefficients_ = np.zeros((10_000, 2) if classes else 10_000)
    if n_models > 1:
        model = (AveragedClassifier if classes else AveragedRegressor)([model] * n_models, [1.0] * n_models)
    tracemalloc.start()
    model.predict(MANY[:2_500])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 128 * MIB


def test_memory_does_not_grow_with_rows_for_a_model_of_steps():
    model = LandmarkRidgeRegressor(MANY[:5_000], gamma=0.1)
    model.coefficients_, model.intercept_, model.n_features_in_ = np.zeros(5_000), 0.0, N_COLUMNS
    shifted = AveragedRegressor([model, Ridge().fit(MANY[:9], MANY[:9, 0])], [1.0, 1.0])
    facts, members = head_to(shifted, "h")
    assert facts["form"] == "steps"
    read = head_from(facts, members, "h", N_COLUMNS)
    tracemalloc.start()
    read.predict(MANY[:3_000])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * MIB


def own(kind):
    """Fitted models that are no steps."""
    y, numbers = MANY[:300, 0] > 0, MANY[:300, 0]
    rbf, linear = LandmarkRidgeClassifier(LANDMARKS, gamma=0.1), LandmarkRidgeClassifier(kernel="linear")
    narrow = LandmarkRidgeClassifier(LANDMARKS[:30], gamma=0.1)
    noise = np.random.default_rng(4)
    events = survival_target(noise.random(300) < 0.7, noise.exponential(np.exp(-numbers)))
    return {
        "ridge": lambda: rbf.fit(MANY[:300], y),
        "numbers of a ridge": lambda: LandmarkRidgeRegressor(LANDMARKS, gamma=0.1).fit(MANY[:300], numbers),
        "average": lambda: Average([rbf, linear], [1, 1]).fit(MANY[:300], y),
        "average of others": lambda: Average([narrow, LogisticRegression()], [1, 1]).fit(MANY[:300], y),
        "average of numbers": lambda: Average([Ridge()], [1]).fit(MANY[:300], numbers),
        "cox": lambda: CoxRegression().fit(MANY[:300], events),
        "survival forest": lambda: SurvivalForest(2, random_state=0).fit(MANY[:300], events),
    }[kind]()


STEPS = ("forest", "boosting", "naive bayes", "network", "averaged", "calibrated bayes isotonic", "pipeline of svd")
OWN = ("ridge", "numbers of a ridge", "average", "average of others", "average of numbers", "cox", "survival forest")


@pytest.mark.parametrize("kind", [*STEPS, *(f"number {name}" for name in ("forest", "network", "averaged")), *OWN])
@pytest.mark.slow
def test_rows_in_batches_are_answered_as_at_once(kind):
    if kind in OWN:
        model = own(kind)
    elif kind in STEPS:
        model = example(CLASSIFIERS[kind], n_classes=3)
    else:
        model = example(REGRESSORS[kind.removeprefix("number ")])
    read = head_from(*head_to(model, "h"), "h", N_COLUMNS)
    many = MANY[:10_000] if kind in OWN else MANY
    at_once, parts = read.predict(many), np.concatenate([read.predict(rows) for rows in np.array_split(many, 11)])
    assert len(at_once) == len(many)
    if at_once.dtype.kind == "f":
        assert_allclose(parts, at_once, rtol=1e-12, atol=1e-14)
    else:
        assert_array_equal(parts, at_once)
    if hasattr(read, "predict_proba"):
        parts = np.concatenate([read.predict_proba(rows) for rows in np.array_split(many, 11)])
        assert_allclose(parts, read.predict_proba(many), rtol=1e-12, atol=1e-14)


def test_a_map_in_batches_is_the_map_at_once():
    generator = np.random.default_rng(0)
    kernels = [Kernel(metric="rbf", parameters={"gamma": 0.1}), Kernel(metric="laplacian", parameters={"gamma": 0.1})]
    maps = [KernelMap("a", LANDMARKS[:50], generator.normal(size=(50, 3)), kernel) for kernel in kernels]
    for g in (*maps, LinearMap("a", generator.normal(size=(N_COLUMNS, 3)))):
        h = LogisticRegression().fit(g(MANY[:300]), targets(n_classes=2).repeat(5))
        model = PartyModel(party="a", integration_function=g, estimator=h)
        parts = np.concatenate([model.transform(rows) for rows in np.array_split(MANY[:5_000], 7)])
        assert_allclose(parts, model.transform(MANY[:5_000]), rtol=1e-9, atol=1e-12)
