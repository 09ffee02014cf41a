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


@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "linear-kernel", "column by column"])
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
        lambda: fitted(clone(ROW_CARRIERS["k-nn"])),
        lambda: fitted(clone(ROW_CARRIERS["svc"])),
    ],
    ids=["laplacian kernel", "histogram boosting", "dummy", "k-nn", "svc"],
)
def test_what_has_no_onnx_form_is_said(model):
    with pytest.raises(ExchangeError, match="Export without") as caught:
        model_contents(model(), onnx=True, objects=True)
    assert caught.value.code == "ONNX_UNSUPPORTED"


def refusal_of(change, estimator=None):
    bundle = bundle_of(fitted(estimator or RandomForestClassifier(2, max_depth=2, random_state=0)), onnx=True)
    graph = onnx.load_model_from_string(bundle.members["model.onnx"])
    change(graph)
    data = graph.SerializeToString()
    with pytest.raises(ExchangeError) as caught:
        model_from(replace(bundle, members=bundle.members | {"model.onnx": data}), prefer_onnx=True)
    return caught.value.code


def set_in_trees(name, position, value):
    def change(model):
        (node,) = [node for node in model.graph.node if node.op_type.startswith("TreeEnsemble")]
        (attribute,) = [attribute for attribute in node.attribute if attribute.name == name]
        attribute.ints[position] = value

    return change


@pytest.mark.parametrize(
    ("name", "position", "value"),
    [
        ("nodes_featureids", 0, 10**6),
        ("nodes_featureids", 0, -1),
        ("nodes_truenodeids", 0, 0),
        ("nodes_truenodeids", 0, 10**6),
        ("nodes_falsenodeids", 0, 1),
        ("nodes_nodeids", 0, 5),
        ("nodes_treeids", 0, 1),
        ("class_ids", 0, 3),
        ("class_ids", 0, -1),
        ("class_nodeids", 0, 10**6),
        ("class_treeids", 0, 10**6),
    ],
)
def test_tampered_trees_are_refused(name, position, value):
    assert refusal_of(set_in_trees(name, position, value)) == "MODEL_MALFORMED"


def add_operator(domain, operator, **attributes):
    def change(model):
        node = onnx.helper.make_node(operator, ["representation"], ["beside"], domain=domain, **attributes)
        model.graph.node.append(node)

    return change


def set_external(model):
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "/etc/passwd"


def widen_input(model):
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 5


@pytest.mark.parametrize(
    "change",
    [
        add_operator("", "Scan"),
        add_operator("", "Loop"),
        add_operator("com.microsoft", "Gelu"),
        add_operator("ai.onnx.ml", "SVMClassifier"),
        set_external,
        widen_input,
        lambda model: model.opset_import.add(domain="com.microsoft", version=1),
        lambda model: model.graph.output.pop() and model.graph.output.pop(),
        lambda model: model.functions.add(name="f", domain="d"),
        lambda model: model.graph.node.pop(0),
    ],
    ids=["scan", "loop", "domain", "svm", "external", "columns", "library", "outputs", "functions", "missing node"],
)
def test_graphs_beyond_the_list_are_refused(change):
    assert refusal_of(change) == "MODEL_MALFORMED"


def test_what_a_graph_says_of_its_own_shapes_is_not_believed():
    """Trees that split by four columns are given one, of a shape that cannot be inferred."""

    def change(model):
        (trees,) = [node for node in model.graph.node if node.op_type == "TreeEnsembleClassifier"]
        position = list(model.graph.node).index(trees)
        names = ["starts", "ends", "axes"]
        picked = onnx.helper.make_node("Slice", [trees.input[0], *(f"computed_{name}" for name in names)], ["picked"])
        model.graph.node.insert(position, picked)
        for name, value in zip(names, [0, 1, 1], strict=True):
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([value]), name=name))
            model.graph.node.insert(position, onnx.helper.make_node("Abs", [name], [f"computed_{name}"]))
        model.graph.value_info.append(onnx.helper.make_tensor_value_info("picked", onnx.TensorProto.FLOAT, [None, 4]))
        trees.input[0] = "picked"

    assert refusal_of(change) == "MODEL_MALFORMED"


def test_a_linear_classifier_for_other_columns_is_refused():
    def change(model):
        (node,) = [node for node in model.graph.node if node.op_type == "LinearClassifier"]
        (attribute,) = [attribute for attribute in node.attribute if attribute.name == "coefficients"]
        del attribute.floats[5:]

    assert refusal_of(change, LogisticRegression()) == "MODEL_MALFORMED"


def test_a_small_graph_that_computes_much_is_refused():
    def change(model):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.full(1024, 1e-9), name="x0"))
        for number in range(24):
            node = onnx.helper.make_node("Concat", [f"x{number}"] * 2, [f"x{number + 1}"], axis=0)
            model.graph.node.append(node)

    assert refusal_of(change) == "TOO_LARGE"


def test_a_graph_whose_sizes_do_not_follow_from_its_input_is_refused():
    def change(model):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), name="zero"))
        model.graph.node.append(onnx.helper.make_node("Abs", ["zero"], ["start"]))
        model.graph.node.append(onnx.helper.make_node("Slice", ["representation", "start", "start"], ["cut"]))

    assert refusal_of(change) == "MODEL_MALFORMED"


def test_many_rows_are_predicted_in_parts():
    model = fitted(RandomForestClassifier(3))
    loaded = model_from(bundle_of(model, onnx=True), prefer_onnx=True)
    rows = np.tile(NEW_ROWS, (16, 1))[:2500]
    np.testing.assert_array_equal(loaded.predict(rows), np.tile(loaded.predict(NEW_ROWS), 16)[:2500])
    assert loaded.predict_proba(rows).shape == (2500, 3)


@pytest.mark.parametrize("estimator", [LogisticRegression(), None], ids=["linear", "trees"])
def test_a_classifier_with_labels_of_two_kinds_is_refused(estimator):
    def change(model):
        (node,) = [node for node in model.graph.node if node.op_type in ("LinearClassifier", "TreeEnsembleClassifier")]
        name = "classlabels_ints" if node.op_type == "LinearClassifier" else "classlabels_int64s"
        present = {attribute.name: attribute for attribute in node.attribute}
        if name in present:
            node.attribute.remove(present[name])
        node.attribute.append(onnx.helper.make_attribute(name, list(range(50))))

    assert refusal_of(change, estimator) == "MODEL_MALFORMED"


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


def test_random_changes_of_a_graph_are_refused_or_run():
    bundle = bundle_of(fitted(RandomForestClassifier(2, max_depth=2, random_state=0)), onnx=True)
    generator, outcomes = np.random.default_rng(0), set()
    for _ in range(150):
        data = bytearray(bundle.members["model.onnx"])
        data[generator.integers(len(data))] ^= 1 << int(generator.integers(8))
        try:
            model = model_from(replace(bundle, members=bundle.members | {"model.onnx": bytes(data)}), prefer_onnx=True)
            outcomes.add(model.predict(NEW_ROWS).shape)
        except ExchangeError as error:
            outcomes.add(error.code)
    assert outcomes == {"MODEL_MALFORMED", (200,)}
