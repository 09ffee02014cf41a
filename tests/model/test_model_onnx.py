"""The ONNX form says the same as the model, or is not sent; and a graph that is not one of ours is refused."""

from dataclasses import replace

import numpy as np
import pytest
from model_examples import (
    CLASSIFIERS,
    MAPS,
    N_INTERMEDIATE,
    REGRESSORS,
    ROW_CARRIERS,
    bundle_of,
    bundle_of_objects,
    fitted,
    targets,
)
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from datacollab.errors import ExchangeError, RepresentationError
from datacollab.model import PartyModel, model_contents, model_from

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:skl2onnx"),
]
NEW_ROWS = np.random.default_rng(1).normal(size=(200, N_INTERMEDIATE))


def assert_nearly_same_answers(loaded, saved):
    np.testing.assert_array_equal(loaded.transform(NEW_ROWS), saved.transform(NEW_ROWS))
    predicted, wanted = loaded.predict(NEW_ROWS), saved.predict(NEW_ROWS)
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(predicted, wanted, rtol=1e-4, atol=1e-4)
        return
    assert predicted.dtype == wanted.dtype
    assert (predicted == wanted).mean() >= 0.995
    assert hasattr(loaded.estimator, "predict_proba") == hasattr(saved.estimator, "predict_proba")
    if hasattr(saved.estimator, "predict_proba"):
        np.testing.assert_allclose(loaded.predict_proba(NEW_ROWS), saved.predict_proba(NEW_ROWS), atol=1e-4)


@pytest.mark.parametrize("name", ["linear", "affine", "rbf", "poly", "linear-kernel", "column by column"])
@pytest.mark.parametrize("estimator", [LogisticRegression(), RandomForestClassifier(3)], ids=lambda e: type(e).__name__)
def test_maps(name, estimator):
    model = fitted(clone(estimator), MAPS[name])
    assert_nearly_same_answers(model_from(bundle_of(model, onnx=True), prefer_onnx=True), model)


@pytest.mark.parametrize(
    "name",
    [
        "calibrated",
        "gaussian",
        "gradient boosting",
        "linear discriminant",
        "linear svc",
        "network",
        "pipeline",
        "tree",
    ],
)
def test_classifiers(name):
    model = fitted(clone(CLASSIFIERS[name]))
    assert_nearly_same_answers(model_from(bundle_of(model, onnx=True), prefer_onnx=True), model)


@pytest.mark.parametrize("name", ["k-nn", "svc"])
def test_what_no_steps_describe_may_have_a_graph(name):
    model = fitted(clone(ROW_CARRIERS[name]))
    assert_nearly_same_answers(model_from(bundle_of_objects(model, onnx=True), prefer_onnx=True), model)


@pytest.mark.parametrize("name", ["forest", "gradient boosting", "lasso", "poisson", "ridge", "tree"])
def test_regressors(name):
    model = fitted(clone(REGRESSORS[name]), y=targets(regression=True))
    assert_nearly_same_answers(model_from(bundle_of(model, onnx=True), prefer_onnx=True), model)


@pytest.mark.parametrize("dtype", ["U1", object, "int64", "int32", "bool"])
def test_classes_keep_their_type(dtype):
    y = targets(dtype=dtype, n_classes=2 if dtype == "bool" else 3)
    model = fitted(RandomForestClassifier(3), y=y)
    assert_nearly_same_answers(model_from(bundle_of(model, onnx=True), prefer_onnx=True), model)


def test_save_and_load(tmp_path):
    model = fitted(RandomForestClassifier(3))
    model.save(tmp_path / "north.dcmodel", onnx=True)
    assert_nearly_same_answers(PartyModel.load(tmp_path / "north.dcmodel", prefer_onnx=True), model)
    exact = PartyModel.load(tmp_path / "north.dcmodel")
    np.testing.assert_array_equal(exact.predict_proba(NEW_ROWS), model.predict_proba(NEW_ROWS))


def test_it_outlives_versions_of_scikit_learn():
    bundle = bundle_of_objects(fitted(LogisticRegression()), onnx=True)
    later = replace(bundle, facts=bundle.facts | {"versions": bundle.facts["versions"] | {"sklearn": "99.0.0"}})
    with pytest.raises(ExchangeError, match="ONNX") as caught:
        model_from(later, objects=True)
    assert caught.value.code == "VERSION_MISMATCH"
    assert model_from(later, prefer_onnx=True).predict(NEW_ROWS).shape == (200,)


def test_without_an_onnx_form_the_other_is_taken():
    model = fitted(Ridge(), y=targets(regression=True))
    loaded = model_from(bundle_of(model), prefer_onnx=True)
    np.testing.assert_array_equal(loaded.predict(NEW_ROWS), model.predict(NEW_ROWS))


def test_rows_that_do_not_fit_are_refused_as_by_any_model():
    loaded = model_from(bundle_of(fitted(LogisticRegression()), onnx=True), prefer_onnx=True)
    with pytest.raises(RepresentationError, match="columns"):
        loaded.predict(NEW_ROWS[:, :2])
    with pytest.raises(RepresentationError, match="NaN"):
        loaded.predict_proba(np.full((1, N_INTERMEDIATE), np.nan))


@pytest.mark.parametrize(
    "model",
    [
        lambda: fitted(LogisticRegression(), MAPS["laplacian"]),
        lambda: fitted(clone(CLASSIFIERS["histogram boosting"])),
        lambda: fitted(clone(CLASSIFIERS["dummy"])),
    ],
    ids=["laplacian kernel", "histogram boosting", "dummy"],
)
def test_what_has_no_onnx_form_is_said(model):
    with pytest.raises(ExchangeError, match="Export without") as caught:
        model_contents(model(), onnx=True, objects=True)
    assert caught.value.code == "ONNX_UNSUPPORTED"


def outcome_of(change, estimator=None):
    """Code of the refusal of a changed graph, or "answered"."""
    bundle = bundle_of(fitted(estimator or RandomForestClassifier(2, max_depth=2, random_state=0)), onnx=True)
    graph = onnx.load_model_from_string(bundle.members["model.onnx"])
    change(graph)
    members = bundle.members | {"model.onnx": graph.SerializeToString()}
    try:
        model_from(replace(bundle, members=members), prefer_onnx=True).predict(NEW_ROWS)
    except ExchangeError as error:
        return error.code
    return "answered"


def trees_of(model):
    (node,) = [node for node in model.graph.node if node.op_type.startswith("TreeEnsemble")]
    return {attribute.name: attribute for attribute in node.attribute}


@pytest.mark.parametrize(
    ("name", "value"), [("nodes_featureids", 10**6), ("nodes_truenodeids", 0), ("class_ids", 2**40)]
)
def test_tampered_trees_break_their_own_process_at_most(name, value):
    def change(model):
        trees_of(model)[name].ints[0] = value

    assert outcome_of(change) in {"answered", "MODEL_MALFORMED", "TOO_LARGE"}


def chain(model, depth=20_000):
    """A tree that is a list: every node but the last has a leaf and another such node below it."""
    attributes = trees_of(model)
    n_nodes = 2 * depth + 1
    is_leaf = [number % 2 == 1 or number == n_nodes - 1 for number in range(n_nodes)]
    columns = {
        "nodes_treeids": [0] * n_nodes,
        "nodes_nodeids": list(range(n_nodes)),
        "nodes_featureids": [0] * n_nodes,
        "nodes_truenodeids": [0 if leaf else number + 1 for number, leaf in enumerate(is_leaf)],
        "nodes_falsenodeids": [0 if leaf else number + 2 for number, leaf in enumerate(is_leaf)],
        "nodes_missing_value_tracks_true": [0] * n_nodes,
        "class_treeids": [0],
        "class_nodeids": [1],
        "class_ids": [0],
    }
    for name, values in columns.items():
        del attributes[name].ints[:]
        attributes[name].ints.extend(values)
    for name, values in {
        "nodes_values": [0.0] * n_nodes,
        "nodes_hitrates": [1.0] * n_nodes,
        "class_weights": [1.0],
    }.items():
        if name in attributes:
            del attributes[name].floats[:]
            attributes[name].floats.extend(values)
    del attributes["nodes_modes"].strings[:]
    attributes["nodes_modes"].strings.extend([b"LEAF" if leaf else b"BRANCH_LEQ" for leaf in is_leaf])


def divide_the_least_number(model):
    for name, value in (("least", -(2**63)), ("less", -1)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.full(1, value), name=name))
    # Of a number computed from rows, for what is constant would be divided when the graph is prepared.
    whole = onnx.helper.make_node("Shape", ["representation"], ["shape"])
    least = onnx.helper.make_node("Min", ["shape", "least"], ["least_of_both"])
    model.graph.node.extend([whole, least, onnx.helper.make_node("Div", ["least_of_both", "less"], ["beside"])])
    value = onnx.helper.make_tensor_value_info("beside", onnx.TensorProto.INT64, [2])
    model.graph.output.append(value)


def gather_one_long_text(model):
    text = onnx.helper.make_tensor("text", onnx.TensorProto.STRING, [1], [b"x" * 10**6])
    model.graph.initializer.extend([text, onnx.numpy_helper.from_array(np.zeros(10_000, np.int64), name="often")])
    model.graph.node.append(onnx.helper.make_node("Gather", ["text", "often"], ["texts"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("texts", onnx.TensorProto.STRING, [10_000]))


def double_again_and_again(model):
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.full(1024, 1e-9), name="x0"))
    for number in range(24):
        model.graph.node.append(onnx.helper.make_node("Concat", [f"x{number}"] * 2, [f"x{number + 1}"], axis=0))
    model.graph.output.append(onnx.helper.make_tensor_value_info("x24", onnx.TensorProto.DOUBLE, [None]))


def read_a_file(model):
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "/etc/passwd"


@pytest.mark.parametrize(
    "change", [chain, divide_the_least_number, gather_one_long_text, double_again_and_again, read_a_file]
)
def test_graphs_that_ended_the_process_or_took_its_memory_do_neither(change):
    assert outcome_of(change) in {"answered", "MODEL_MALFORMED", "TOO_LARGE"}


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.graph.output.pop() and model.graph.output.pop(),
        lambda model: model.graph.node.pop(0),
        read_a_file,
        double_again_and_again,
    ],
    ids=["outputs", "missing node", "external", "memory"],
)
def test_graphs_that_cannot_be_run_are_refused(change):
    assert outcome_of(change) in {"MODEL_MALFORMED", "TOO_LARGE"}


def test_many_rows_are_predicted_in_parts():
    model = fitted(RandomForestClassifier(3))
    loaded = model_from(bundle_of(model, onnx=True), prefer_onnx=True)
    rows = np.tile(NEW_ROWS, (16, 1))[:2500]
    np.testing.assert_array_equal(loaded.predict(rows), np.tile(loaded.predict(NEW_ROWS), 16)[:2500])
    assert loaded.predict_proba(rows).shape == (2500, 3)


@pytest.mark.parametrize(
    ("fact", "value"),
    [("estimator", "LogisticRegression"), ("task", "regression"), ("n_components", 5), ("n_rows", "many")],
)
def test_a_manifest_that_contradicts_the_model_is_refused_of_a_graph_too(fact, value):
    bundle = bundle_of(fitted(RandomForestClassifier(2)), onnx=True)
    with pytest.raises(ExchangeError) as caught:
        model_from(replace(bundle, facts=bundle.facts | {fact: value}), prefer_onnx=True)
    assert caught.value.code == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "about", [None, {}, {"opset": 18, "classes_dtype": "int64"}, {"classes_dtype": "datetime64[D]"}]
)
def test_a_manifest_that_does_not_describe_the_graph_is_refused(about):
    bundle = bundle_of(fitted(LogisticRegression()), onnx=True)
    with pytest.raises(ExchangeError) as caught:
        model_from(replace(bundle, facts=bundle.facts | {"onnx": about}), prefer_onnx=True)
    assert caught.value.code == "MODEL_MALFORMED"


@pytest.mark.slow
def test_random_changes_of_a_graph_are_refused_or_run():
    bundle = bundle_of(fitted(RandomForestClassifier(2, max_depth=2, random_state=0)), onnx=True)
    generator, outcomes = np.random.default_rng(0), set()
    for _ in range(12):
        data = bytearray(bundle.members["model.onnx"])
        data[generator.integers(len(data))] ^= 1 << int(generator.integers(8))
        try:
            model = model_from(replace(bundle, members=bundle.members | {"model.onnx": bytes(data)}), prefer_onnx=True)
            outcomes.add(model.predict(NEW_ROWS).shape)
        except ExchangeError as error:
            outcomes.add(error.code)
    assert outcomes <= {"MODEL_MALFORMED", "TOO_LARGE", (200,)}
    assert "MODEL_MALFORMED" in outcomes
