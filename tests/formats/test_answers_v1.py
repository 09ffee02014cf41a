"""Answers of version 1, kept as they were written, are read for good: by this package, and by a reader of the page."""

import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from datacollab.bundle import PublicKey, unpack
from datacollab.bundle._manifest import READABLE
from datacollab.errors import ExchangeError
from datacollab.model import AnchorAnswers

FOLDER = Path(__file__).with_name("answers-v1")
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
SIGNER = PublicKey.from_text(EXPECTED["signer"])


def test_they_are_read():
    classes = AnchorAnswers.load(FOLDER / "classes.dcanswers", signed_by=SIGNER)
    assert (classes.party, classes.classes.tolist()) == ("north", ["a", "b", "c"])
    np.testing.assert_array_equal(classes.values, EXPECTED["probabilities"])
    numbers = AnchorAnswers.load(FOLDER / "numbers.dcanswers", signed_by=SIGNER)
    assert (numbers.party, numbers.classes) == (3, None)
    np.testing.assert_array_equal(numbers.values, EXPECTED["numbers"])


def test_a_reader_written_from_the_page_alone():
    with zipfile.ZipFile(FOLDER / "classes.dcanswers") as file:
        facts, data = json.loads(file.read("manifest.json"))["facts"], file.read("answers.safetensors")
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert header["values"]["dtype"] == "F64"
    values = np.frombuffer(data[8 + length :], "<f8").reshape(header["values"]["shape"])
    np.testing.assert_array_equal(values, EXPECTED["probabilities"])
    assert (facts["task"], facts["classes"], facts["n_anchors"]) == ("classification", ["a", "b", "c"], 8)


def test_they_are_of_version_1_and_a_reader_that_knows_none_refuses_them(monkeypatch):
    assert unpack(FOLDER / "numbers.dcanswers").version == 1
    monkeypatch.delitem(READABLE, "datacollab.answers")
    with pytest.raises(ExchangeError) as caught:
        unpack(FOLDER / "numbers.dcanswers")
    assert caught.value.code == "WRONG_KIND"
