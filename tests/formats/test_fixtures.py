"""Files that were kept: this package reads them and writes them again to the same bytes, and docs/formats.md suffices.

The readers below were written from that page alone, without the package.
"""

import json
import math
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from datacollab import PartyModel, Share
from datacollab.agreement import load_project
from datacollab.bundle import KeyPair, pack, unpack
from datacollab.model import AnchorPredictions, model_contents, model_from, predictions_contents, predictions_from
from datacollab.share import share_contents, share_from

FOLDER = Path(__file__).with_name("fixtures")
FILES = sorted(file.name for file in FOLDER.glob("*.dc*"))
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
KEY = KeyPair(b"\1" * 32, b"\2" * 32)
ROWS, TIMES = np.array(EXPECTED["rows"]), np.array(EXPECTED["times"])
TYPES = {"U8": "u1", "BOOL": "?", "F64": "<f8", "F32": "<f4", "I32": "<i4", "I64": "<i8"}
ROUND_TRIPS = {
    "datacollab.model": lambda bundle: model_contents(model_from(bundle)),
    "datacollab.share": lambda bundle: share_contents(share_from(bundle)),
    "datacollab.answers": lambda bundle: predictions_contents(predictions_from(bundle)),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_read_is_written_to_the_same_bytes(name):
    data = (FOLDER / name).read_bytes()
    assert len(data) < 10_000
    bundle = unpack(data, signed_by=KEY.public)
    facts, members = ROUND_TRIPS[bundle.kind](bundle)
    told = {fact: bundle.facts[fact] for fact in ("created", "versions")}
    assert pack(bundle.kind, facts | told, members, key=KEY) == data


@pytest.mark.parametrize("name", EXPECTED["models"])
def test_models_answer_as_they_did(name):
    model, expected = PartyModel.load(FOLDER / f"{name}.dcmodel", signed_by=KEY.public), EXPECTED["models"][name]
    found = {
        "predicted": lambda: model.predict(ROWS),
        "probabilities": lambda: model.predict_proba(ROWS),
        "survival": lambda: model.predict_survival(ROWS, TIMES),
        "left_out": lambda: model.left_out,
        "without_party": lambda: model.without_party.predict(model.transform(ROWS)),
    }
    for what, values in expected.items():
        if isinstance(np.ravel(values)[0], str):
            assert_array_equal(found[what](), values)
        else:
            assert_allclose(found[what](), values, rtol=1e-12)


def test_shares_and_answers_are_what_they_were():
    events = Share.load(FOLDER / "events.dcshare").target
    assert (events["event"].tolist(), events["time"].tolist()) == ([True, False, True, True, False], [1, 2, 3, 4, 5])
    texts = Share.load(FOLDER / "texts.dcshare")
    assert set(texts.target.tolist()) == {"high", "low"} == set(texts.anchor_target.tolist())
    assert Share.load(FOLDER / "single.dcshare").target.dtype == np.float32
    assert_array_equal(AnchorPredictions.load(FOLDER / "classes.dcanswers").values, EXPECTED["answers"])


def tables(data):
    """Arrays of a safetensors file, by the format's own definition."""
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], TYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def contents(name):
    """Facts and members of a kept file."""
    data = (FOLDER / name).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    manifest = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["manifest"])
    return manifest["facts"], {name: array.tobytes() for name, array in tables(data).items()}


def softmax(x):
    powers = [math.exp(each - max(x)) for each in x]
    return [each / sum(powers) for each in powers]


def normal(x, means, variances, log_priors):
    return [
        prior
        - 0.5 * sum(math.log(2 * math.pi * v) + (e - m) ** 2 / v for e, m, v in zip(x, mean, variance, strict=True))
        for mean, variance, prior in zip(means, variances, log_priors, strict=True)
    ]


def isotonic(x, lengths, knots, heights):
    ends = np.cumsum(lengths)
    return [
        np.interp(each, knots[end - length : end], heights[end - length : end])
        for each, length, end in zip(x, lengths, ends, strict=True)
    ]


def trees(x, arrays, precision):
    """Reads the list of nodes from its beginning; a subtree that x does not fall into is read over."""
    features, value, output = arrays["feature"], arrays["value"], arrays.get("output")
    place, splits, leaves = 0, 0, 0

    def subtree(inside):
        nonlocal place, splits, leaves
        feature = features[place]
        place += 1
        if feature == -1:
            leaves += 1
            return value[leaves - 1] if inside else None
        goes_left = np.dtype(precision).type(x[feature]) <= arrays["threshold"][splits]
        splits += 1
        left = subtree(inside and goes_left)
        right = subtree(inside and not goes_left)
        return left if goes_left else right

    said = []
    while place < len(features):
        said.append(subtree(True))
    if "base" not in arrays:
        return np.mean(said, axis=0)
    total = arrays["base"].copy()
    for number, each in enumerate(said):
        if output is None:
            total += each
        else:
            total[output[number]] += each[0]
    return total


FUNCTIONS = {
    "exp": math.exp,
    "logistic": lambda x: 1 / (1 + math.exp(-x)),
    "relu": lambda x: max(x, 0),
    "tanh": math.tanh,
}


def step(facts, arrays, x):
    kind = facts["kind"]
    if kind == "mean":
        said = [
            chain(steps, {name.partition(".")[2]: a for name, a in arrays.items() if name.startswith(f"{i}.")}, x)
            for i, steps in enumerate(facts["chains"])
        ]
        return arrays["weights"] @ np.array(said)
    return {
        "affine": lambda: x @ arrays["coefficients"] + arrays["intercept"],
        "scale": lambda: (x - arrays["centre"]) / arrays["spread"],
        "stretch": lambda: x * arrays["factor"] + arrays["offset"],
        "clip": lambda: [min(max(each, facts["low"]), facts["high"]) for each in x],
        "elementwise": lambda: [FUNCTIONS[facts["function"]](each) for each in x],
        "log": lambda: [math.log(max(each, facts["least"])) for each in x],
        "radial": lambda: [math.exp(-facts["gamma"] * np.sum((x - s) ** 2)) for s in arrays["landmarks"]],
        "normal": lambda: normal(x, **arrays),
        "trees": lambda: trees(x, arrays, facts["precision"]),
        "softmax": lambda: softmax(x),
        "normalise": lambda: x / sum(x) if sum(x) else np.full(len(x), 1 / len(x)),
        "complement": lambda: [1 - x[0], x[0]],
        "binary": lambda: [1 - 1 / (1 + math.exp(-x[0])), 1 / (1 + math.exp(-x[0]))],
        "isotonic": lambda: isotonic(x, **arrays),
    }[kind]()


def chain(steps, arrays, x):
    for number, facts in enumerate(steps):
        own = {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith(f"{number}.")}
        x = np.asarray(step(facts, own, np.asarray(x)), dtype=np.float64)
    return x


def mapped(facts, arrays, row):
    """g of a row."""
    tables = {name: array.T if name in facts["transposed"] else array for name, array in arrays.items()}
    if facts["kind"] == "linear":
        return row @ tables["coefficients"] + (arrays["intercept"][0] if facts.get("intercept") else 0)
    squares = ((tables["anchor_representation"] - row) ** 2).sum(axis=1)
    return np.exp(-facts["parameters"]["gamma"] * squares) @ tables["coefficients"]


def ridge(facts, arrays, x):
    """Scores, or probabilities where there are classes."""
    if facts["kernel"] == "rbf":
        x = np.exp(-facts["gamma"] * ((arrays["landmarks"] - x) ** 2).sum(axis=1))
    scores = x @ arrays["coefficients"] + arrays["intercept"]
    return scores if facts["classes"] is None else softmax(arrays["scale"] * scores + arrays["offsets"])


def within(arrays, prefix):
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def answered(head, h, x):
    """What h says of a row: a number, probabilities, or a log risk."""
    if head["form"] == "steps":
        return chain(head["steps"], h, x)
    if head["form"] == "landmark-ridge":
        return ridge(head, h, x)
    said = [
        ridge(each, within(h, f"{number}.") | {"landmarks": h[f"landmarks.{each['landmarks']}"]}, x)
        for number, each in enumerate(head["averaged"])
    ]
    return head["weights"] @ np.array(said)


def decided(head, arrays, x):
    scores = chain(head["steps"][: head["decides"]], arrays, x)
    if len(scores) == len(head["classes"]):
        return head["classes"][int(np.argmax(scores))]
    return head["classes"][int(scores[0] >= 0 if head["zero_is_second"] else scores[0] > 0)]


@pytest.mark.parametrize("name", EXPECTED["models"])
def test_a_reader_written_from_the_page_alone(name):
    facts, members = contents(f"{name}.dcmodel")
    g, h = tables(members["g.safetensors"]), tables(members["h.safetensors"])
    head, expected = facts["head"], EXPECTED["models"][name]
    at = [mapped(facts["integration_function"], g, row) for row in ROWS]
    said = [answered(head, h, x) for x in at]
    if "probabilities" in expected:
        assert_allclose(said, expected["probabilities"], rtol=1e-9, atol=1e-12)
    else:
        assert_allclose(np.ravel(said), expected["predicted"], rtol=1e-9, atol=1e-12)
    if head["form"] == "steps" and head["classes"]:
        assert [decided(head, h, x) for x in at] == expected["predicted"]
    if "survival" in expected:
        assert head["survival"]["baseline"] == ("own" if name == "cox" else "common")
        hazard = np.interp(TIMES, np.append(0, h["survival.times"]), np.append(0, h["survival.cumulative_hazard"]))
        assert_allclose(np.exp(-np.outer(np.exp(np.ravel(said)), hazard)), expected["survival"], rtol=1e-9)


def test_every_form_and_kind_of_step_is_among_them():
    def kinds_of(steps):
        for facts in steps:
            yield facts["kind"]
            for inner in facts.get("chains", ()):
                yield from kinds_of(inner)

    heads = [unpack(FOLDER / f"{name}.dcmodel").facts["head"] for name in EXPECTED["models"]]
    assert {head["form"] for head in heads} == {"average", "landmark-ridge", "steps"}
    seen = {kind for head in heads for kind in kinds_of(head.get("steps", ()))}
    page = (FOLDER.parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    table = page.split("| `kind` | Keys, arrays with their shapes | Gives |\n")[1].split("\n\n")[0]
    assert seen | {"complement"} == set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def test_answers_by_the_page():
    facts, members = contents("classes.dcanswers")
    arrays = tables(members["answers.safetensors"])
    assert_array_equal(arrays["values"], EXPECTED["answers"])
    assert (facts["task"], facts["classes"], facts["n_anchors"]) == ("classification", ["a", "b", "c"], 8)


def test_a_project():
    """Its digest is what it was, and its signature is its owner's."""
    project = load_project(FOLDER / "project.toml")
    assert project.digest == "02e472ef2c794a11469aff3eb49740615545d7dc92c6ca5c062c86bbdfb8c462"
    assert project.n_features == 6
    assert {(column.outside, column.unknown) for column in project.columns} == {("refuse", "refuse")}
