"""A model that would take the party's memory, its time or its process is refused before it does."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from model_examples import CLASSIFIERS, bundle_of_objects, fitted
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from tampering import MODELS, archive_of, nodes_of, outcome, with_archive

from datacollab.errors import ExchangeError
from datacollab.model import model_from, plain_facts
from datacollab.model._skops_archive import MOST_OUTLINE_BYTES, read_archive
from datacollab.model._skops_file import estimator_to_bytes

N_COMPONENTS = 4
ROWS = np.random.default_rng(0).normal(size=(50, N_COMPONENTS))
LOADERS = ("DictNode", "JsonNode", "ListNode", "NdArrayNode", "ObjectNode", "TreeNode", "TupleNode", "TypeNode")
CLASSES = np.arange(50) % 2


def outcome_of(estimator, **facts):
    """Of a model that carries whatever was made of an estimator, with facts that fit it."""
    base = bundle_of_objects(fitted(clone(CLASSIFIERS["logistic"]), y=np.tile([0, 1, 0], 20)))
    classes = getattr(estimator, "classes_", None)
    facts = {
        "estimator": type(estimator).__name__,
        "task": "regression" if classes is None else "classification",
        "classes": None if classes is None else classes.tolist(),
    } | facts
    members = base.members | {"h.skops": estimator_to_bytes(estimator)}
    return outcome(replace(base, facts=base.facts | facts, members=members))


def narrow(kind, **attributes):
    """Neighbours among rows of one column, said to be given as distances."""
    found = kind(algorithm="brute", **({"n_neighbors": 1} if kind.__name__.startswith("K") else {"radius": 1e9}))
    found.fit(np.arange(50.0)[:, None], CLASSES if hasattr(found, "predict_proba") else CLASSES * 1.0)
    for name, value in ({"metric": "precomputed", "effective_metric_params_": {}} | attributes).items():
        setattr(found, name, value)
    return found


def widened(step, width=3000):
    sampler = RBFSampler(n_components=width, random_state=0).fit(ROWS)
    whole = make_pipeline(sampler, step)
    whole.steps[-1] = ("last", step)
    return whole


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize(
    "kind", [KNeighborsClassifier, KNeighborsRegressor, RadiusNeighborsClassifier, RadiusNeighborsRegressor]
)
def test_neighbours_of_distances_that_were_not_given_are_refused(kind, metric):
    assert outcome_of(widened(narrow(kind, effective_metric_=metric))) == "MODEL_MALFORMED"


def test_without_the_check_such_neighbours_read_beyond_their_rows():
    """The control, in a process of its own: a row of zeros is its own neighbour, at a distance made of other memory."""
    code = (
        "import numpy as np; from sklearn.neighbors import KNeighborsClassifier as K;"
        "k = K(1, algorithm='brute').fit(np.arange(1000.0)[:, None], np.arange(1000) % 2);"
        "k.metric, k.effective_metric_, k.effective_metric_params_ = 'precomputed', 'euclidean', {};"
        "raise SystemExit(int(k.kneighbors(np.zeros((2, 3000)))[0][0, 0] != 0))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode != 0


@pytest.mark.parametrize(
    "change",
    [
        {"metric": "manhattan"},
        {"effective_metric_": "manhattan"},
        {"metric": "haversine", "effective_metric_": "haversine"},
        {"metric": "seuclidean", "effective_metric_": "seuclidean"},
        {"metric_params": {"w": np.ones(1)}},
        {"metric_params": {"V": 1.0}},
        {"effective_metric_params_": {"p": 3}},
        {"p": -1.0},
        {"n_neighbors": 1.5},
        {"weights": "by itself"},
        {"outputs_2d_": True},
    ],
    ids=lambda change: "-".join(f"{name}" for name in change),
)
@pytest.mark.parametrize("algorithm", ["brute", "kd_tree"])
def test_neighbours_by_two_or_by_unusual_distances_are_refused(algorithm, change):
    neighbours = KNeighborsClassifier(3, algorithm=algorithm).fit(ROWS, CLASSES)
    assert outcome_of(neighbours) == "loaded"
    for name, value in change.items():
        setattr(neighbours, name, value)
    assert outcome_of(neighbours) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "options",
    [{"p": 1}, {"p": 3}, {"metric": "chebyshev"}, {"metric": "l1"}, {"metric": "cosine"}, {"weights": "distance"}],
    ids=str,
)
def test_the_usual_distances_are_taken(options):
    assert outcome_of(KNeighborsClassifier(3, **options).fit(ROWS, CLASSES)) == "loaded"


def test_rows_without_neighbours_get_a_class_of_the_model():
    neighbours = RadiusNeighborsClassifier(1e-9, outlier_label=0).fit(ROWS, CLASSES)
    assert outcome_of(neighbours) == "loaded"
    for label in (-5, [7]):
        neighbours.outlier_label_ = label
        assert outcome_of(neighbours) == "MODEL_MALFORMED"


@pytest.mark.parametrize("name", ["ada", "bagging", "calibrated", "one against rest", "stacking", "voting"])
def test_an_ensemble_whose_estimators_take_other_columns_is_refused(name):
    """The estimators would ask themselves, but some kinds do not."""
    whole = fitted(clone(CLASSIFIERS[name]), y=CLASSES[np.arange(60) % 50]).estimator
    other = LogisticRegression().fit(ROWS[:, :3], CLASSES)
    if name == "calibrated":
        whole.calibrated_classifiers_[0].estimator = other
    elif name == "stacking":
        whole.final_estimator_ = LogisticRegression().fit(np.tile(ROWS, 3), CLASSES)
    else:
        whole.estimators_[0] = other
    with pytest.raises(ExchangeError, match="columns that it is given"):
        model_from(_carrying(whole), objects=True)


def _carrying(estimator):
    base = bundle_of_objects(fitted(clone(CLASSIFIERS["logistic"]), y=np.tile([0, 1, 0], 20)))
    return replace(base, members=base.members | {"h.skops": estimator_to_bytes(estimator)})


def test_a_step_of_a_pipeline_that_takes_other_columns_is_refused():
    pipeline = make_pipeline(MinMaxScaler(), KNeighborsClassifier(1)).fit(ROWS, CLASSES)
    pipeline.steps[1] = ("last", KNeighborsClassifier(1).fit(ROWS[:, :2], CLASSES))
    with pytest.raises(ExchangeError, match="4 columns that it is given"):
        model_from(_carrying(pipeline), objects=True)


@pytest.mark.parametrize("name", ["predict", "score", "named_steps", "more"])
def test_nothing_takes_the_place_of_a_method_or_property(name):
    pipeline = make_pipeline(MinMaxScaler(), LogisticRegression()).fit(ROWS, CLASSES)
    vars(pipeline)[name] = MinMaxScaler()
    refused = name != "more"
    assert (outcome_of(pipeline) == "MODEL_MALFORMED") == refused


@pytest.mark.parametrize("name", ["logistic", "network", "pipeline"])
def test_a_part_that_does_not_say_how_many_columns_it_takes_is_refused(name):
    whole = fitted(clone(CLASSIFIERS[name]), y=np.tile([0, 1, 0], 20)).estimator
    # Not in the last step alone: a pipeline asks its first, and the others are asked by no one.
    del (whole[-1] if name == "pipeline" else whole).n_features_in_
    assert outcome_of(whole) == "MODEL_MALFORMED"


def repeated(n_times, *, numbered=None):
    """An outline that names one array again and again."""

    def change(outline, arrays):
        content = outline["content"]
        node = next(value for value in content["content"].values() if value["__loader__"] == "NdArrayNode")
        node = {key: value for key, value in node.items() if key != "__id__"} | (numbered or {})
        listed = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": [node] * n_times}
        content["content"]["more"] = listed
        kind = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"}
        content["key_types"]["content"].append(kind)
        arrays[node["file"]] = np.zeros(10**6)

    outline, arrays = archive_of(bundle_of_objects(MODELS["logistic"]()))
    change(outline, arrays)
    return outline, arrays


@pytest.mark.parametrize(
    ("n_times", "numbered", "wanted"),
    [
        (200, {}, "TOO_LARGE"),
        (200, {"__id__": 10**6}, "MODEL_MALFORMED"),
        (200, {"__id__": 0}, "MODEL_MALFORMED"),
        (2 * 10**4, {}, "TOO_LARGE"),
    ],
    ids=["each anew", "one of them", "zero is no number", "often"],
)
def test_a_small_file_that_would_take_much_memory_is_refused(n_times, numbered, wanted):
    """Skops makes an array anew for each of its names, unless they have one number."""
    outline, arrays = repeated(n_times, numbered=numbered)
    bundle = with_archive(bundle_of_objects(MODELS["logistic"]()), outline, arrays)
    assert len(bundle.members["h.skops"]) < 50_000
    assert outcome(bundle) == wanted


def test_an_outline_of_too_many_parts_is_refused():
    outline, arrays = archive_of(bundle_of_objects(MODELS["logistic"]()))
    kind = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"}
    outline["content"]["key_types"]["content"].append(kind)
    node = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": []}
    outline["content"]["content"]["more"] = node | {"content": [node] * (2 * 10**5 + 1)}
    assert outcome(with_archive(bundle_of_objects(MODELS["logistic"]()), outline, arrays)) == "TOO_LARGE"


def test_the_limits_leave_room_for_a_forest_of_a_thousand_trees():
    forest = RandomForestClassifier(50, max_leaf_nodes=51, random_state=0).fit(
        np.tile(ROWS, (20, 1)), CLASSES.repeat(20)
    )
    archive = read_archive(estimator_to_bytes(forest))
    assert 20 * len(json.dumps(archive.outline)) < MOST_OUTLINE_BYTES
    assert 20 * sum(1 for kind in LOADERS for _ in nodes_of(archive.outline, kind)) < 0.8 * 10**5


@pytest.mark.parametrize("name", ["\x1b[31mrun this", "call 555-0199 at once", "x" * 101, "", "a..b", "\u0430b"])
def test_text_that_is_no_name_is_not_repeated(name):
    outline, arrays = archive_of(bundle_of_objects(MODELS["logistic"]()))
    outline["content"]["content"]["C"] |= {"__class__": name, "__loader__": "ObjectNode", "__id__": 10**6}
    with pytest.raises(ExchangeError) as caught:
        model_from(with_archive(bundle_of_objects(MODELS["logistic"]()), outline, arrays), objects=True)
    assert caught.value.code == "UNTRUSTED_TYPE"
    assert "a name that is none" in str(caught.value)
    assert not name or name not in str(caught.value)


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("n_rows", True),
        ("n_rows", -1),
        ("n_rows", 10**30),
        ("n_rows", "300\x1b[2J"),
        ("n_parties", 2.0),
        ("method", ["KTIIntegrator"]),
        ("method", "x" * 201),
        ("method", "a\nb"),
        ("parameters", {"a": [1]}),
        ("parameters", {str(number): 1 for number in range(51)}),
        ("estimator", "RandomForestClassifier"),
        ("estimator", "a b"),
        ("created", "yesterday"),
        ("created", "2026-11-21T18:00:00"),
        ("row_lint", {"found": 1, "overridden_by": None}),
        ("row_lint", {"found": True, "overridden_by": "a\x1bb"}),
        ("task", "magic"),
        ("party", "x" * 201),
    ],
)
def test_facts_that_are_shown_are_of_their_types_and_short(fact, value):
    bundle = bundle_of_objects(MODELS["logistic"]())
    with pytest.raises(ExchangeError) as caught:
        model_from(replace(bundle, facts=bundle.facts | {fact: value}), objects=True)
    assert caught.value.code == "MODEL_MALFORMED"
    assert json.dumps(value).strip('"') not in str(caught.value)


def test_the_facts_of_a_project_are_taken():
    bundle = bundle_of_objects(MODELS["logistic"]())
    of_project = {
        "n_rows": 300,
        "n_parties": 2,
        "method": "KTIIntegrator",
        "parameters": {"n_components": 3, "gamma": None, "metric": "rbf", "ridge": 1e-9},
        "row_lint": {"found": True, "overridden_by": "Dr. Müller"},
    }
    bundle = replace(bundle, facts=bundle.facts | of_project)
    assert plain_facts(bundle) == bundle.facts
    model_from(bundle, objects=True)
