"""Steps as a hostile sender could write them: a clean refusal, or a model that answers; never a crash or a hang."""

import copy
import json
import time
import tracemalloc
import warnings
from collections import Counter
from functools import cache, partial

import numpy as np
import pytest
from predictor_examples import CLASSIFIERS, N_COLUMNS, REGRESSORS, TWO_CLASSES_ONLY, fitted

from datacollab.bundle import arrays_to_bytes, bytes_to_arrays
from datacollab.errors import ExchangeError
from datacollab.model import head_from, head_to
from mutations import places
from suite import N_CHANGES

MOST_SECONDS, MOST_BYTES = 5, 2**30
NUMBERS = [0, 1, -1, 2, 1e-300, 1e308, -1e308, float("nan"), float("inf"), 2**31 - 1, -(2**31), 2**53, 0.5, True, None]
WORDS = ["", "trees", "affine", "mean", "radial", "exp", "float32", "no such word", "../../etc/passwd", [], {}, [[]]]
SHAPES = [(), (0,), (1,), (2,), (3,), (4,), (1, 1), (4, 1), (1, 4), (4, 4), (100_000,), (1, 1, 1)]
ROWS = np.random.default_rng(0).normal(size=(8, N_COLUMNS))


def written(model):
    facts, members = head_to(model, "h")
    return json.loads(json.dumps(facts)), bytes_to_arrays(members["h.safetensors"], what="h")


def read_head(facts, arrays, n_columns=N_COLUMNS):
    return head_from(facts, {"h.safetensors": arrays_to_bytes(arrays)}, "h", n_columns)


MODELS = {
    f"{name} {n_classes}": (model, n_classes)
    for name, model in CLASSIFIERS.items()
    for n_classes in ((2,) if name in TWO_CLASSES_ONLY else (2, 3))
} | {name: (model, 0) for name, model in REGRESSORS.items()}
N_MUTANTS = -(-N_CHANGES // len(MODELS))


@cache
def example(name):
    """Facts and arrays of a fitted model, which nobody changes in place."""
    model, n_classes = MODELS[name]
    return written(fitted(model, n_classes=n_classes))


NUMBER = {"form": "steps", "name": "x", "classes": None, "classes_dtype": None}
FOREST, VOTE, BOOSTING = (partial(example, name) for name in ("forest 3", "vote 3", "boosting 3"))


def outcome(facts, arrays):
    """ "answers", or the code of the refusal.  Everything else is let through."""
    try:
        model = read_head(facts, arrays)
    except ExchangeError as error:
        return error.code
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = model.predict(ROWS)
        if hasattr(model, "predict_proba"):
            assert model.predict_proba(ROWS).shape == (len(ROWS), len(model.classes_))
    assert said.shape == (len(ROWS),)
    return "answers"


def mutant(facts, arrays, generator):
    """One change of the structure: of a fact, a step, a shape, a type, a name or an entry."""
    facts, arrays = copy.deepcopy(facts), dict(arrays)
    name = str(generator.choice(sorted(arrays)))
    kind = generator.integers(10)
    if kind < 3:
        path = [way for way in places(facts) if way][generator.integers(len(list(places(facts))) - 1)]
        holder = facts
        for key in path[:-1]:
            holder = holder[key]
        change = generator.integers(4)
        if change == 0:
            del holder[path[-1]]
        elif change == 1 and isinstance(holder, list):
            holder.insert(path[-1], copy.deepcopy(holder[generator.integers(len(holder))]))
        else:
            pool = NUMBERS if generator.random() < 0.5 else WORDS
            holder[path[-1]] = copy.deepcopy(pool[generator.integers(len(pool))])
    elif kind == 3:
        arrays.pop(name)
    elif kind == 4:
        arrays[str(generator.choice(["x", "0.x", "9.feature", "0.0.0.value"]))] = arrays.pop(name)
    elif kind == 5:
        arrays[name] = np.zeros(SHAPES[generator.integers(len(SHAPES))], dtype=arrays[name].dtype)
    elif kind == 6:
        arrays[name] = arrays[name].astype(generator.choice(["float32", "float64", "int32", "int64", "bool"]))
    elif kind == 7:
        shape = np.atleast_1d(arrays[name]).shape
        arrays[name] = np.resize(arrays[name], (*shape, 2))[..., 0][: generator.integers(1, 5)]
    elif kind == 8:
        arrays[name] = generator.permutation(np.atleast_1d(arrays[name]))
    else:
        changed = arrays[name].copy()
        value = NUMBERS[generator.integers(len(NUMBERS) - 2)]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            changed.flat[generator.integers(changed.size)] = np.asarray(value, dtype=np.float64).astype(changed.dtype)
        arrays[name] = changed
    return facts, arrays


@pytest.mark.parametrize("name", MODELS)
def test_structural_changes(name):
    generator = np.random.default_rng(sum(map(ord, name)))
    seen = set()
    # Fitted before memory is traced, which makes a fit several times as slow.
    model = example(name)
    tracemalloc.start()
    for _ in range(N_MUTANTS):
        start = time.process_time()
        seen.add(outcome(*mutant(*model, generator)))
        assert time.process_time() - start < MOST_SECONDS
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST_BYTES
    assert seen <= {"answers", "MODEL_MALFORMED", "TOO_LARGE"}


def test_most_structural_changes_are_refused():
    generator = np.random.default_rng(0)
    counts = Counter(outcome(*mutant(*VOTE(), generator)) for _ in range(100))
    assert counts["MODEL_MALFORMED"] > 50


def changed(model, **changes):
    """Arrays by name, with double underscores for dots; None takes one away."""
    facts, arrays = model()
    arrays = dict(arrays)
    for name, value in changes.items():
        name = name.removeprefix("a").replace("__", ".")
        if value is None:
            arrays.pop(name)
        else:
            arrays[name] = value
    return facts, arrays


def with_steps(steps, **more):
    facts, arrays = FOREST()
    return facts | {"steps": steps} | more, arrays


def said_otherwise(**more):
    """The forest, of which the facts say something else."""
    return with_steps(FOREST()[0]["steps"], **more)


def moved(change):
    """The forest with other features."""
    return changed(FOREST, a0__feature=change(FOREST()[1]["0.feature"]))


def number_forest(**more):
    facts, arrays = example("forest")
    return facts | more, arrays


@pytest.mark.parametrize(
    "make",
    [
        lambda: moved(lambda features: features[:-1]),
        lambda: moved(lambda features: np.where(features == 0, N_COLUMNS, features).astype(np.int32)),
        lambda: moved(lambda features: np.where(features == 0, -2, features).astype(np.int32)),
        lambda: moved(lambda features: features.astype(np.int64)),
        lambda: moved(lambda features: np.append(features, np.int32(-1))),
        lambda: changed(FOREST, a0__threshold=np.full_like(FOREST()[1]["0.threshold"], np.nan)),
        lambda: changed(FOREST, a0__threshold=None),
        lambda: changed(FOREST, a0__value=FOREST()[1]["0.value"][:-1]),
        lambda: changed(FOREST, a0__value=FOREST()[1]["0.value"][:, :2]),
        lambda: changed(FOREST, a0__base=np.zeros(4)),
        lambda: changed(FOREST, a0__output=np.zeros(4, dtype=np.int32)),
        lambda: changed(BOOSTING, a0__output=np.full(12, 3, dtype=np.int32)),
        lambda: changed(BOOSTING, a0__output=np.full(12, -1, dtype=np.int32)),
        lambda: changed(BOOSTING, a0__output=np.zeros(11, dtype=np.int32)),
        lambda: changed(VOTE, a0__weights=np.array([0.5, 0.5, 0.5])),
        lambda: changed(VOTE, a0__weights=np.array([-1.0, 1.0, 1.0])),
        lambda: changed(VOTE, a0__weights=np.ones(1)),
        lambda: changed(FOREST, extra=np.zeros(1)),
        lambda: with_steps([]),
        lambda: with_steps(None),
        lambda: with_steps([{"kind": "no such kind"}]),
        lambda: with_steps([{"kind": ["trees"]}]),
        lambda: with_steps(["trees"]),
        lambda: with_steps([{"kind": "trees", "precision": "float16"}]),
        lambda: with_steps([{"kind": "trees", "precision": "float32", "more": 1}]),
        lambda: with_steps([*FOREST()[0]["steps"], {"kind": "binary"}]),
        lambda: said_otherwise(decides=0),
        lambda: said_otherwise(decides=2),
        lambda: said_otherwise(decides=True),
        lambda: said_otherwise(probabilities=1),
        lambda: said_otherwise(zero_is_second=None),
        lambda: said_otherwise(name="os.system"),
        lambda: said_otherwise(name="x" * 300),
        lambda: said_otherwise(classes=["a", "b"]),
        lambda: said_otherwise(classes=None, classes_dtype=None),
        lambda: said_otherwise(more=1),
        lambda: number_forest(decides=1),
        lambda: number_forest(classes_dtype="str"),
    ],
)
def test_what_does_not_fit_is_refused(make):
    assert outcome(*make()) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    ("steps", "arrays"),
    [
        ([{"kind": "clip", "low": 1.0, "high": 0.0}], {}),
        ([{"kind": "clip", "low": float("nan"), "high": 0.0}], {}),
        ([{"kind": "log", "least": 0}], {}),
        ([{"kind": "elementwise", "function": "eval"}], {}),
        ([{"kind": "scale"}], {"0.centre": np.zeros(4), "0.spread": np.zeros(4)}),
        ([{"kind": "radial", "gamma": -1}], {"0.landmarks": np.zeros((2, 4))}),
        ([{"kind": "affine"}], {"0.coefficients": np.full((4, 1), 1e101), "0.intercept": np.zeros(1)}),
        ([{"kind": "affine"}], {"0.coefficients": np.zeros((3, 1)), "0.intercept": np.zeros(1)}),
        (
            [{"kind": "normal"}],
            {"0.means": np.zeros((2, 4)), "0.variances": np.zeros((2, 4)), "0.log_priors": np.zeros(2)},
        ),
        (
            [{"kind": "isotonic"}],
            {
                "0.lengths": np.array([1, 1, 1, 2], dtype=np.int32),
                "0.knots": np.array([0.0, 0, 0, 1, 0]),
                "0.heights": np.zeros(5),
            },
        ),
        (
            [{"kind": "isotonic"}],
            {"0.lengths": np.ones(3, dtype=np.int32), "0.knots": np.zeros(3), "0.heights": np.zeros(3)},
        ),
        ([{"kind": "complement"}], {}),
        ([{"kind": "mean", "chains": []}], {"0.weights": np.ones(1)}),
        (
            [{"kind": "mean", "chains": [[{"kind": "softmax"}], [{"kind": "softmax"}, 3]]}],
            {"0.weights": np.full(2, 0.5)},
        ),
    ],
)
def test_steps_out_of_their_bounds_are_refused(steps, arrays):
    assert outcome(NUMBER | {"steps": steps}, arrays) == "MODEL_MALFORMED"


def test_what_would_take_too_much_is_refused():
    wide = {"0.coefficients": np.zeros((N_COLUMNS, 20_001)), "0.intercept": np.zeros(20_001)}
    assert outcome(NUMBER | {"steps": [{"kind": "affine"}]}, wide) == "TOO_LARGE"
    assert outcome(NUMBER | {"steps": [{"kind": "softmax"}] * 101}, {}) == "TOO_LARGE"
    nested = [{"kind": "softmax"}]
    arrays = {}
    for level in range(6):
        nested = [{"kind": "mean", "chains": [nested]}]
        arrays |= {"0." * (2 * level + 1) + "weights": np.ones(1)}
    assert outcome(NUMBER | {"steps": nested}, arrays) == "TOO_LARGE"
    chain = np.array([0] * 20_000 + [-1] * 20_001, dtype=np.int32)
    trees = {"0.feature": chain, "0.threshold": np.zeros(20_000), "0.value": np.zeros((20_001, 1))}
    deep = [{"kind": "trees", "precision": "float32"}]
    assert outcome(NUMBER | {"steps": deep}, trees) == "TOO_LARGE"


STUMPS = {"kind": "trees", "precision": "float64"}


def mapped_to(n_columns):
    """An affine step to many columns."""
    return {"0.coefficients": np.zeros((N_COLUMNS, n_columns)), "0.intercept": np.zeros(n_columns)}


def costly(name):
    """Files of up to some megabytes that would take minutes or gigabytes."""
    to_one = {"2.coefficients": np.zeros((20_000, 1)), "2.intercept": np.zeros(1)}
    affine, tanh = {"kind": "affine"}, {"kind": "elementwise", "function": "tanh"}
    if name == "many trees":
        return [STUMPS], {"0.feature": np.full(300_000, -1, dtype=np.int32), "0.value": np.zeros((300_000, 1))}
    if name == "many nodes":
        feature = np.array([0] * 3 * 10**6 + [-1] * (3 * 10**6 + 1), dtype=np.int32)
        return [STUMPS], {"0.feature": feature}
    if name == "deep trees":
        feature = np.tile(np.array([0] * 1000 + [-1] * 1001, dtype=np.int32), 600)
        arrays = {"0.feature": feature, "0.threshold": np.zeros(600_000), "0.value": np.zeros((600_600, 1))}
        return [STUMPS], arrays
    if name == "wide and long":
        last = {name.replace("2.", "99."): array for name, array in to_one.items()}
        return [affine, *[tanh] * 98, affine], mapped_to(20_000) | last
    if name == "a mean of many":
        mean = {"kind": "mean", "chains": [[tanh] * 100] * 230}
        return [affine, mean, affine], mapped_to(20_000) | {"1.weights": np.full(230, 1 / 230)} | to_one
    one = np.ones(20_000, dtype=np.int32)
    lines = {f"1.{i}.0.lengths": one for i in range(20)}
    lines |= {f"1.{i}.0.{what}": np.zeros(20_000) for i in range(20) for what in ("knots", "heights")}
    mean = {"kind": "mean", "chains": [[{"kind": "isotonic"}]] * 20}
    return [affine, mean, affine], mapped_to(20_000) | lines | {"1.weights": np.full(20, 0.05)} | to_one


@pytest.mark.parametrize(
    "name", ["many trees", "many nodes", "deep trees", "wide and long", "a mean of many", "lines in many columns"]
)
def test_what_is_short_and_takes_long_is_refused(name):
    steps, arrays = costly(name)
    start = time.process_time()
    assert outcome(NUMBER | {"steps": steps}, arrays) == "TOO_LARGE"
    assert time.process_time() - start < MOST_SECONDS


def test_what_is_within_the_budget_is_soon_done():
    """As deep as may be, and in columns by which few trees split."""
    chain = np.tile(np.array([0] * 1000 + [-1] * 1001, dtype=np.int32), 400)
    trees = {"1.feature": chain, "1.threshold": np.full(400_000, 1e9), "1.value": np.zeros((400_400, 1))}
    start = time.process_time()
    assert outcome(NUMBER | {"steps": [{"kind": "affine"}, STUMPS]}, mapped_to(10_000) | trees) == "answers"
    assert time.process_time() - start < 2 * MOST_SECONDS


def test_rows_beyond_all_bounds_are_answered():
    arrays = {"1.landmarks": np.zeros((2, N_COLUMNS)), "2.coefficients": np.ones((2, 1)), "2.intercept": np.zeros(1)}
    steps = [{"kind": "elementwise", "function": "exp"}, {"kind": "radial", "gamma": 1.0}, {"kind": "affine"}]
    with np.errstate(all="ignore"):
        assert read_head(NUMBER | {"steps": steps}, arrays).predict(1e4 * np.abs(ROWS)).shape == (8,)
