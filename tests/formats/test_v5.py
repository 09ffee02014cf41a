"""Survival models of version 5, kept as they were written, are read for good, also by the page alone."""

import json
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datacollab import PartyModel
from datacollab.bundle import PublicKey, unpack
from datacollab.bundle._manifest import READABLE
from datacollab.errors import ExchangeError
from datacollab.model import model_from

FOLDER = Path(__file__).with_name("v5")
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
SIGNER = PublicKey.from_text(EXPECTED["signer"])
ROWS, TIMES = np.array(EXPECTED["rows"]), np.array(EXPECTED["times"])
FILES = {name: FOLDER / f"{name}.dcmodel" for name in ("cox", "forest")}
DTYPES = {"F64": "<f8", "I32": "<i4"}


def arrays_of(data):
    """Arrays in a safetensors member, by the format's own definition."""
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], DTYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }


@pytest.mark.parametrize("name", FILES)
def test_a_survival_model(name):
    model = PartyModel.load(FILES[name], signed_by=SIGNER)
    np.testing.assert_allclose(model.predict(ROWS), EXPECTED[name]["log_risk"], rtol=1e-12)
    np.testing.assert_allclose(model.predict_survival(ROWS, TIMES), EXPECTED[name]["survival"], rtol=1e-12)


def leaf_value(arrays, row):
    """Down the trees, which follow one another, each from its root down, left before right."""
    feature, threshold, value = (arrays[f"0.{name}"] for name in ("feature", "threshold", "value"))
    splits, leaves = np.cumsum(feature >= 0) - 1, np.cumsum(feature < 0) - 1

    def behind(node):
        return node + 1 if feature[node] < 0 else behind(behind(node + 1))

    found, root = [], 0
    while root < len(feature):
        node = root
        while feature[node] >= 0:
            goes_left = np.float32(row[feature[node]]) <= threshold[splits[node]]
            node = node + 1 if goes_left else behind(node + 1)
        found.append(value[leaves[node], 0])
        root = behind(root)
    return np.mean(found)


@pytest.mark.parametrize("name", FILES)
def test_a_reader_written_from_the_page_alone(name):
    with zipfile.ZipFile(FILES[name]) as file:
        facts = json.loads(file.read("manifest.json"))["facts"]
        g, h = arrays_of(file.read("g.safetensors")), arrays_of(file.read("h.safetensors"))
    assert (facts["task"], facts["head"]["survival"]["baseline"]) == ("survival", "own" if name == "cox" else "common")
    x = ROWS @ g["coefficients"] + g["intercept"][0]
    kinds = [step["kind"] for step in facts["head"]["steps"]]
    if name == "cox":
        assert kinds == ["scale", "affine"]
        log_risk = ((x - h["0.centre"]) / h["0.spread"]) @ h["1.coefficients"][:, 0] + h["1.intercept"][0]
        assert h["survival.covariance"].shape == (2, 2)
    else:
        assert kinds == ["trees", "log"]
        log_risk = np.log([leaf_value(h, row) for row in x])
    np.testing.assert_allclose(log_risk, EXPECTED[name]["log_risk"], rtol=1e-9, atol=1e-12)
    hazard = np.interp(TIMES, np.append(0, h["survival.times"]), np.append(0, h["survival.cumulative_hazard"]))
    np.testing.assert_allclose(np.exp(-np.outer(np.exp(log_risk), hazard)), EXPECTED[name]["survival"], rtol=1e-9)


def test_they_are_small_and_of_version_5():
    for file in FILES.values():
        assert file.stat().st_size < 10_000
        assert unpack(file).version == 5


def test_a_reader_of_version_4_refuses_them_clearly(monkeypatch):
    monkeypatch.setitem(READABLE, "datacollab.model", (1, 2, 3, 4))
    with pytest.raises(ExchangeError, match="Upgrade datacollab") as caught:
        unpack(FILES["cox"])
    assert caught.value.code == "FORMAT_TOO_NEW"


def test_a_survival_model_in_an_earlier_version_is_refused():
    with pytest.raises(ExchangeError, match="only version 5") as caught:
        model_from(replace(unpack(FILES["cox"]), version=4))
    assert caught.value.code == "MODEL_MALFORMED"
