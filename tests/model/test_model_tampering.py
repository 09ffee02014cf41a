"""A model whose maker is malicious is refused: never a crash, a hang, or a line of foreign code."""

import io
import json
import struct
import subprocess
import sys
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_examples import CLASSIFIERS, bundle_of_objects, fitted
from sklearn.base import clone
from tampering import MODELS, archive_of, nodes_of, outcome, with_archive

from datacollab.bundle import arrays_to_bytes, bytes_to_arrays
from datacollab.errors import ExchangeError
from datacollab.model import model_from
from datacollab.model._skops_archive import read_archive

JSON_NULL = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": "null", "is_json": True}


@cache
def bundle_of_(name):
    return bundle_of_objects(MODELS[name]())


def changed(name, change):
    """A bundle whose outline and arrays went through the hands of a malicious analyst."""
    outline, arrays = archive_of(bundle_of_(name))
    change(outline, arrays)
    return with_archive(bundle_of_(name), outline, arrays)


def set_in_trees(field, value):
    def change(outline, arrays):
        for array in arrays.values():
            if array.dtype.names and field in array.dtype.names:
                array[field][0] = value

    return change


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left_child", 10**9),
        ("left_child", 0),
        ("left_child", -1),
        ("right_child", -5),
        ("right_child", 1),
        ("feature", 2**40),
        ("feature", -3),
        ("feature", 4),
        ("threshold", np.nan),
    ],
)
@pytest.mark.parametrize("name", ["forest", "regression forest", "gradient boosting"])
def test_a_tampered_tree_is_refused(name, field, value):
    """Children beyond the end, cycles, columns that are not there."""
    assert outcome(changed(name, set_in_trees(field, value))) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left", 10**9),
        ("left", 0),
        ("right", 1),
        ("feature_idx", 2**40),
        ("is_categorical", 1),
        ("is_leaf", 7),
        ("value", np.inf),
    ],
)
def test_a_tampered_tree_of_histogram_boosting_is_refused(field, value):
    assert outcome(changed("histogram boosting", set_in_trees(field, value))) == "MODEL_MALFORMED"


@pytest.mark.parametrize("part", ["node_count", "max_depth"])
def test_a_tree_that_counts_its_nodes_wrongly_is_refused(part):
    def change(outline, arrays):
        for node in nodes_of(outline, "TreeNode"):
            node["content"]["content"][part]["content"] = "100000000"

    assert outcome(changed("forest", change)) == "MODEL_MALFORMED"


@pytest.mark.parametrize("position", [0, 2])
def test_a_tree_made_for_other_columns_or_targets_is_refused_before_it_is_made(position):
    def change(outline, arrays):
        for node in nodes_of(outline, "TreeNode"):
            node["__reduce__"]["args"]["content"][position]["content"] = "100000000"

    assert outcome(changed("forest", change)) == "MODEL_MALFORMED"


def test_without_the_checks_such_a_tree_ends_the_process(tmp_path):
    """The control: this is what the refusals above are for."""
    bundle = changed("forest", set_in_trees("feature", 2**40))
    (tmp_path / "h.skops").write_bytes(bundle.members["h.skops"])
    code = (
        "import sys, skops.io, numpy; file = sys.argv[1];"
        "h = skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file)); h.predict(numpy.ones((3, 4)))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "h.skops")]
    assert subprocess.run(command, check=False, capture_output=True).returncode < 0


@pytest.mark.parametrize("name", ["svc", "k-nn", "k-nn by brute force", "bagging"])
def test_indices_beyond_the_end_are_refused(name):
    def change(outline, arrays):
        for array in arrays.values():
            if array.dtype.kind == "i" and array.size > 1:
                array[0] = 10**6

    assert outcome(changed(name, change)) == "MODEL_MALFORMED"


@pytest.mark.parametrize("number", ["0", "-1", "1000000", "null"])
@pytest.mark.parametrize("name", ["k-nn", "k-nn by brute force"])
def test_an_impossible_number_of_neighbours_is_refused(name, number):
    """A search for none would write beyond the end of an empty array."""

    def change(outline, arrays):
        outline["content"]["content"]["n_neighbors"]["content"] = number
        del outline["content"]["content"]["n_neighbors"]["__id__"]

    assert outcome(changed(name, change)) == "MODEL_MALFORMED"


def leaf(module, name, loader, **rest):
    return {"__class__": name, "__module__": module, "__loader__": loader, **rest}


def listed(*items, loader="TupleNode"):
    return leaf("builtins", "tuple" if loader == "TupleNode" else "list", loader, content=list(items))


def text(value):
    return JSON_NULL | {"content": json.dumps(value)}


SYSTEM = leaf("os", "system", "FunctionNode")
DANGEROUS = {
    "function": SYSTEM,
    "type that is a function": leaf("os", "system", "TypeNode"),
    "constructor": leaf("subprocess", "Popen", "ConstructorFromReduceNode", content=listed(text("true"))),
    "object": leaf("subprocess", "Popen", "ObjectNode", content=None),
    "partial": leaf(
        "functools",
        "partial",
        "PartialNode",
        content={"func": SYSTEM, "args": listed(text("true")), "kwds": JSON_NULL, "namespace": JSON_NULL},
    ),
    "operator": leaf("operator", "methodcaller", "OperatorFuncNode", attrs=listed(text("system"))),
    "method": leaf("builtins", "str", "MethodNode", content={"func": "format", "obj": text("x")}),
    "function transformer": leaf(
        "sklearn.preprocessing._function_transformer", "FunctionTransformer", "ObjectNode", content=None
    ),
    "NumPy function": leaf("numpy", "log1p", "FunctionNode"),
    "mapping of another type": leaf("os", "environ", "DictNode", content={}, key_types=listed(loader="ListNode")),
    "array of another type": leaf("numpy", "memmap", "NdArrayNode", type="json", content=[], shape=listed()),
    "random state": leaf("numpy.random.mtrand", "RandomState", "RandomStateNode", content=JSON_NULL),
}


@pytest.mark.parametrize("name", DANGEROUS)
def test_what_could_run_is_refused(name):
    def change(outline, arrays):
        outline["content"]["content"]["random_state"] = DANGEROUS[name]

    assert outcome(changed("logistic", change)) == "UNTRUSTED_TYPE"


def test_types_are_named():
    with pytest.raises(ExchangeError, match="subprocess.Popen"):
        model_from(
            changed("logistic", lambda outline, _: outline["content"]["content"].update(C=DANGEROUS["object"])),
            objects=True,
        )


def test_a_node_cannot_pass_for_another():
    """Skops takes a node with a known number for the first with it, whatever it says."""

    def change(outline, arrays):
        attributes = outline["content"]["content"]
        attributes["random_state"] = leaf(
            "builtins", "str", "JsonNode", content='"x"', __id__=attributes["C"]["__id__"]
        )

    assert outcome(changed("logistic", change)) == "MODEL_MALFORMED"


@pytest.mark.parametrize("attribute", ["predict", "predict_proba", "__class__", "_validate_params"])
def test_an_attribute_cannot_take_the_place_of_a_method(attribute):
    def change(outline, arrays):
        outline["content"]["content"][attribute] = text(1)
        outline["content"]["key_types"]["content"].append(leaf("builtins", "str", "TypeNode"))

    assert outcome(changed("logistic", change)) == "MODEL_MALFORMED"


def test_an_outline_that_nests_without_end_is_refused():
    def change(outline, arrays):
        node = JSON_NULL
        for _ in range(300):
            node = listed(node, loader="ListNode")
        outline["content"]["content"]["random_state"] = node

    assert outcome(changed("logistic", change)) == "MODEL_MALFORMED"
    bottomless = b'{"content": ' * 10**5
    assert outcome(with_member(zip_of({"schema.json": bottomless}))) == "MODEL_MALFORMED"


def zip_of(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return buffer.getvalue()


def with_member(data):
    bundle = bundle_of_("logistic")
    return replace(bundle, members=bundle.members | {"h.skops": data})


def test_an_archive_that_would_unpack_to_too_much_is_refused():
    data = bytearray(bundle_of_("logistic").members["h.skops"])
    start = data.rindex(b"PK\x01\x02")
    data[start + 24 : start + 28] = struct.pack("<I", 2**31)
    assert outcome(with_member(bytes(data))) == "TOO_LARGE"
    with pytest.raises(ExchangeError) as caught:
        read_archive(bundle_of_("logistic").members["h.skops"], most_bytes=1000)
    assert caught.value.code == "TOO_LARGE"


@pytest.mark.parametrize("name", ["../1.npy", "/etc/passwd", "1.npy/", "x.bin", "\u0661.npy", "1.npz"])
def test_files_of_other_names_are_refused(name):
    bundle = bundle_of_("logistic")
    archive = zipfile.ZipFile(io.BytesIO(bundle.members["h.skops"]))
    files = {each: archive.read(each) for each in archive.namelist()}
    assert outcome(with_member(zip_of(files | {name: files["1.npy"]}))) == "MODEL_MALFORMED"


def test_an_array_that_says_it_is_larger_is_refused():
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    bundle = bundle_of_("logistic")
    archive = zipfile.ZipFile(io.BytesIO(bundle.members["h.skops"]))
    files = {each: archive.read(each) for each in archive.namelist()}
    assert outcome(with_member(zip_of(files | {"1.npy": array.getvalue() + bytes(80)}))) == "MODEL_MALFORMED"


@given(data=st.binary(max_size=300))
@settings(max_examples=50, deadline=None)
def test_any_bytes_in_place_of_the_estimator_are_refused(data):
    assert outcome(with_member(data)) == "MODEL_MALFORMED"
    assert outcome(with_member(zip_of({"schema.json": data}))) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("n_components", 5),
        ("n_intermediate", None),
        ("task", "regression"),
        ("estimator", "RandomForestClassifier"),
        ("estimator", None),
        ("classes", ["x", "y"]),
        ("party", True),
        ("party", None),
        ("versions", {}),
        ("versions", {"sklearn": 3}),
        ("integration_function", None),
        ("integration_function", {"kind": "function"}),
        (
            "integration_function",
            {"kind": "kernel", "metric": "eval", "parameters": {}, "precision": "auto", "transposed": []},
        ),
    ],
)
def test_a_manifest_that_contradicts_the_model_is_refused(fact, value):
    bundle = bundle_of_("logistic")
    assert outcome(replace(bundle, facts=bundle.facts | {fact: value})) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "change",
    [
        {"gamma": -1.0},
        {"gamma": "x"},
        {"gamma": None, "X": 1},
        {"degree": 10**9},
        {"gamma": True, "metric": 3},
    ],
)
def test_impossible_parameters_of_a_kernel_are_refused(change):
    bundle = bundle_of_("logistic")
    about = bundle.facts["integration_function"] | {"parameters": change}
    assert outcome(replace(bundle, facts=bundle.facts | {"integration_function": about})) == "MODEL_MALFORMED"


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays["coefficients"].__setitem__((0, 0), np.nan),
        lambda arrays: arrays.update(coefficients=arrays["coefficients"][:-1]),
        lambda arrays: arrays.update(coefficients=arrays["coefficients"][:, :-1]),
        lambda arrays: arrays.update(coefficients=arrays["coefficients"].astype(np.float32)),
        lambda arrays: arrays.update(anchor_representation=arrays["anchor_representation"].ravel()),
        lambda arrays: arrays.pop("coefficients"),
        lambda arrays: arrays.update(more=np.zeros(1)),
    ],
    ids=["NaN", "rows", "columns", "precision", "dimensions", "missing", "more"],
)
def test_arrays_of_the_map_that_do_not_fit_are_refused(change):
    bundle = bundle_of_("logistic")
    arrays = bytes_to_arrays(bundle.members["g.safetensors"], what="g")
    change(arrays)
    members = bundle.members | {"g.safetensors": arrays_to_bytes(arrays)}
    assert outcome(replace(bundle, members=members)) == "MODEL_MALFORMED"


def test_members_beyond_the_known_are_refused():
    bundle = bundle_of_("logistic")
    assert outcome(replace(bundle, members=bundle.members | {"more.bin": b""})) == "MODEL_MALFORMED"
    assert outcome(replace(bundle, members={"g.safetensors": b""})) == "MODEL_MALFORMED"


@given(data=st.binary(max_size=100))
@settings(max_examples=50, deadline=None)
def test_any_bytes_in_place_of_the_map_are_refused(data):
    bundle = bundle_of_("logistic")
    assert outcome(replace(bundle, members=bundle.members | {"g.safetensors": data})) == "MODEL_MALFORMED"


def test_a_version_is_not_repeated_unless_it_looks_like_one():
    bundle = bundle_of_("logistic")
    versions = bundle.facts["versions"] | {"sklearn": "1.0\x1b[31m run this"}
    assert outcome(replace(bundle, facts=bundle.facts | {"versions": versions})) == "MODEL_MALFORMED"


def test_a_network_whose_layers_do_not_chain_is_refused():
    bundle = bundle_of_objects(fitted(clone(CLASSIFIERS["network by lbfgs"])))
    outline, arrays = archive_of(bundle)
    name = next(name for name, array in arrays.items() if array.shape == (5, 4))
    arrays[name] = arrays[name][:, :3]
    assert outcome(with_archive(bundle, outline, arrays)) == "MODEL_MALFORMED"


def test_an_attribute_without_a_type_of_its_name_is_refused():
    def change(outline, arrays):
        outline["content"]["key_types"]["content"].pop()

    assert outcome(changed("logistic", change)) == "MODEL_MALFORMED"


def test_mutations_within_the_estimator_never_crash():
    """In a process of its own, so that a crash is seen and not suffered."""
    script = Path(__file__).with_name("tampering.py")
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(script), "30", "0", *MODELS],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    counts = json.loads(run.stdout)
    assert set(counts) <= {"loaded", "MODEL_MALFORMED", "UNTRUSTED_TYPE"}
    assert sum(counts.values()) == 30 * len(MODELS)
    assert min(counts["loaded"], counts["MODEL_MALFORMED"]) > 50
