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
from model_examples import bundle_of, bundle_of_objects
from tampering import MODELS, archive_of, outcome, with_archive

from datacollab.bundle import arrays_to_bytes, bytes_to_arrays
from datacollab.errors import ExchangeError
from datacollab.model import estimator_from_bytes
from datacollab.model._skops_archive import read_archive

JSON_NULL = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": "null", "is_json": True}


@cache
def bundle_of_(name):
    return bundle_of_objects(MODELS[name]())


@cache
def plain_bundle():
    return bundle_of(MODELS["logistic"]())


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


@pytest.mark.parametrize(("field", "value"), [("left_child", 10**9), ("feature", 2**40)])
@pytest.mark.parametrize("name", ["forest", "gradient boosting"])
def test_a_tampered_tree_is_refused(name, field, value):
    """Children beyond the end, columns that are not there."""
    assert outcome(changed(name, set_in_trees(field, value))) == "MODEL_MALFORMED"


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
    "mapping of another type": leaf("os", "environ", "DictNode", content={}, key_types=listed(loader="ListNode")),
}


def read_here(data):
    """Code of the refusal of an archive, or "loaded", in this process: what its reader looks at before skops does."""
    try:
        estimator_from_bytes(data)
    except ExchangeError as error:
        return error.code
    return "loaded"


@pytest.mark.parametrize("name", DANGEROUS)
def test_what_could_run_is_refused(name):
    def change(outline, arrays):
        outline["content"]["content"]["random_state"] = DANGEROUS[name]

    assert read_here(changed("logistic", change).members["h.skops"]) == "UNTRUSTED_TYPE"


def test_what_could_run_is_refused_of_a_model_too():
    def change(outline, arrays):
        outline["content"]["content"]["random_state"] = DANGEROUS["function"]

    assert outcome(changed("logistic", change)) == "UNTRUSTED_TYPE"


def test_a_node_that_passes_for_another_gets_no_further_than_its_process():
    """Skops takes a node with a known number for the first with it, whatever it says."""

    def change(outline, arrays):
        attributes = outline["content"]["content"]
        number = attributes["C"]["__id__"]
        attributes["random_state"] = DANGEROUS["constructor"] | {"__id__": number}

    assert outcome(changed("logistic", change)) in {"loaded", "MODEL_MALFORMED", "UNTRUSTED_TYPE"}


def test_an_attribute_in_the_place_of_a_method_is_no_answer():
    def change(outline, arrays):
        outline["content"]["content"]["predict"] = text(1)
        outline["content"]["key_types"]["content"].append(leaf("builtins", "str", "TypeNode"))

    assert outcome(changed("logistic", change)) == "MODEL_MALFORMED"


def test_an_outline_that_nests_without_end_is_refused():
    def change(outline, arrays):
        node = JSON_NULL
        for _ in range(300):
            node = listed(node, loader="ListNode")
        outline["content"]["content"]["random_state"] = node

    assert outcome(changed("logistic", change)) in {"loaded", "MODEL_MALFORMED"}
    bottomless = b'{"content": ' * 10**5
    assert read_here(zip_of({"schema.json": bottomless})) == "MODEL_MALFORMED"


def zip_of(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return buffer.getvalue()


def test_an_archive_that_would_unpack_to_too_much_is_refused():
    data = bytearray(bundle_of_("logistic").members["h.skops"])
    start = data.rindex(b"PK\x01\x02")
    data[start + 24 : start + 28] = struct.pack("<I", 2**31)
    assert read_here(bytes(data)) == "TOO_LARGE"
    with pytest.raises(ExchangeError) as caught:
        read_archive(bundle_of_("logistic").members["h.skops"], most_bytes=1000)
    assert caught.value.code == "TOO_LARGE"


@pytest.mark.parametrize("name", ["../1.npy", "/etc/passwd", "1.npy/", "x.bin", "\u0661.npy", "1.npz"])
def test_files_of_other_names_are_refused(name):
    bundle = bundle_of_("logistic")
    archive = zipfile.ZipFile(io.BytesIO(bundle.members["h.skops"]))
    files = {each: archive.read(each) for each in archive.namelist()}
    assert read_here(zip_of(files | {name: files["1.npy"]})) == "MODEL_MALFORMED"


def test_an_array_that_says_it_is_larger_is_refused():
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    bundle = bundle_of_("logistic")
    archive = zipfile.ZipFile(io.BytesIO(bundle.members["h.skops"]))
    files = {each: archive.read(each) for each in archive.namelist()}
    assert read_here(zip_of(files | {"1.npy": array.getvalue() + bytes(80)})) == "MODEL_MALFORMED"


@given(data=st.binary(max_size=300))
@settings(max_examples=50, deadline=None)
def test_any_bytes_in_place_of_the_estimator_are_refused(data):
    assert read_here(data) == "MODEL_MALFORMED"
    assert read_here(zip_of({"schema.json": data})) == "MODEL_MALFORMED"


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
    bundle = plain_bundle()
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
    bundle = plain_bundle()
    about = bundle.facts["integration_function"] | {"parameters": change}
    assert outcome(replace(bundle, facts=bundle.facts | {"integration_function": about})) == "MODEL_MALFORMED"


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
    bundle = plain_bundle()
    arrays = bytes_to_arrays(bundle.members["g.safetensors"], what="g")
    change(arrays)
    members = bundle.members | {"g.safetensors": arrays_to_bytes(arrays)}
    assert outcome(replace(bundle, members=members)) == "MODEL_MALFORMED"


def test_members_beyond_the_known_are_refused():
    bundle = plain_bundle()
    assert outcome(replace(bundle, members=bundle.members | {"more.bin": b""})) == "MODEL_MALFORMED"
    assert outcome(replace(bundle, members={"g.safetensors": b""})) == "MODEL_MALFORMED"


@given(data=st.binary(max_size=100))
@settings(max_examples=50, deadline=None)
def test_any_bytes_in_place_of_the_map_are_refused(data):
    bundle = plain_bundle()
    assert outcome(replace(bundle, members=bundle.members | {"g.safetensors": data})) == "MODEL_MALFORMED"


def test_a_version_is_not_repeated_unless_it_looks_like_one():
    bundle = plain_bundle()
    versions = bundle.facts["versions"] | {"sklearn": "1.0\x1b[31m run this"}
    assert outcome(replace(bundle, facts=bundle.facts | {"versions": versions})) == "MODEL_MALFORMED"


@pytest.mark.slow
def test_mutations_within_the_estimator_end_no_process_but_their_own():
    script = Path(__file__).with_name("tampering.py")
    names = ("forest", "histogram boosting", "k-nn", "svc")
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(script), "5", "0", *names],
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    counts = json.loads(run.stdout)
    assert set(counts) <= {"loaded", "MODEL_MALFORMED", "TOO_LARGE", "UNTRUSTED_TYPE"}
    assert sum(counts.values()) == 5 * len(names)
    assert min(counts["loaded"], counts["MODEL_MALFORMED"]) > 2
