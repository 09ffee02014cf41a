"""Models of version 3, kept as they were written, are read for good: by this package, and by a reader of the page."""

import json
import math
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from datacollab import PartyModel
from datacollab.bundle import PublicKey, unpack
from datacollab.bundle._manifest import READABLE
from datacollab.errors import ExchangeError

FOLDER = Path(__file__).with_name("v3")
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
SIGNER = PublicKey.from_text(EXPECTED["signer"])
ROWS = np.array(EXPECTED["rows"])
TYPES = {"F64": "<f8", "I32": "<i4"}


@pytest.mark.parametrize("name", EXPECTED["models"])
def test_models(name):
    model = PartyModel.load(FOLDER / f"{name}.dcmodel", signed_by=SIGNER)
    expected = EXPECTED["models"][name]
    if expected["probabilities"] is None:
        np.testing.assert_allclose(model.predict(ROWS), expected["predicted"], rtol=1e-12)
    else:
        np.testing.assert_array_equal(model.predict(ROWS), expected["predicted"])
        np.testing.assert_allclose(model.predict_proba(ROWS), expected["probabilities"], rtol=1e-12)


def tables(data):
    """Arrays of a safetensors member, by the format's own definition."""
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], TYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }


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


def decided(head, arrays, x):
    scores = chain(head["steps"][: head["decides"]], arrays, x)
    if len(scores) == len(head["classes"]):
        return head["classes"][int(np.argmax(scores))]
    return head["classes"][int(scores[0] >= 0 if head["zero_is_second"] else scores[0] > 0)]


@pytest.mark.parametrize("name", EXPECTED["models"])
def test_a_reader_written_from_the_page_alone(name):
    with zipfile.ZipFile(FOLDER / f"{name}.dcmodel") as file:
        facts = json.loads(file.read("manifest.json"))["facts"]
        g, h = tables(file.read("g.safetensors")), tables(file.read("h.safetensors"))
    assert (facts["integration_function"]["kind"], facts["head"]["form"]) == ("linear", "steps")
    table = g["coefficients"].T if facts["integration_function"]["transposed"] else g["coefficients"]
    head, expected = facts["head"], EXPECTED["models"][name]
    said = [chain(head["steps"], h, row @ table) for row in ROWS]
    if head["classes"] is None:
        np.testing.assert_allclose(np.ravel(said), expected["predicted"], rtol=1e-9)
    else:
        np.testing.assert_allclose(said, expected["probabilities"], rtol=1e-9, atol=1e-12)
        assert [decided(head, h, row @ table) for row in ROWS] == expected["predicted"]


def test_every_kind_of_step_is_among_them():
    from datacollab.model.predictors._chain import _KINDS

    def kinds_of(steps):
        for facts in steps:
            yield facts["kind"]
            for inner in facts.get("chains", ()):
                yield from kinds_of(inner)

    seen = {kind for file in FOLDER.glob("*.dcmodel") for kind in kinds_of(unpack(file).facts["head"]["steps"])}
    assert seen | {"complement"} == set(_KINDS)


def test_they_are_small_and_of_version_3():
    for file in FOLDER.glob("*.dc*"):
        assert file.stat().st_size < 60_000
        assert unpack(file).version == 3


def test_a_reader_of_version_2_refuses_them_clearly(monkeypatch):
    monkeypatch.setitem(READABLE, "datacollab.model", (1, 2))
    with pytest.raises(ExchangeError, match="Upgrade datacollab") as caught:
        unpack(FOLDER / "forest.dcmodel")
    assert caught.value.code == "FORMAT_TOO_NEW"
