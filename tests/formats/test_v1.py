"""Projects, shares and models of version 1, kept as they were written, are read for good."""

import json
from pathlib import Path

import numpy as np
import pytest
import sklearn

from datacollab import PartyModel, Share
from datacollab.bundle import PublicKey, unpack
from datacollab.errors import ExchangeError
from datacollab.exchange.project import load_project

FOLDER = Path(__file__).with_name("v1")
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
SIGNER = PublicKey.from_text(EXPECTED["signer"])
ROWS = np.array(EXPECTED["rows"])
UNSIGNED = ("kernel", "numbers")
SAME_VERSION = EXPECTED["sklearn"].split(".")[:2] == sklearn.__version__.split(".")[:2]


def signer_of(name):
    return None if name in UNSIGNED else SIGNER


@pytest.mark.parametrize("name", EXPECTED["shares"])
def test_shares(name):
    share = Share.load(FOLDER / f"{name}.dcshare", signed_by=signer_of(name))
    expected = EXPECTED["shares"][name]
    for field in ("representation", "anchor_representation", "target"):
        np.testing.assert_array_equal(getattr(share, field), expected[field])
    assert (None if share.anchor_target is None else share.anchor_target.tolist()) == expected["anchor_target"]


@pytest.mark.skipif(not SAME_VERSION, reason=f"the estimators are of scikit-learn {EXPECTED['sklearn']}")
@pytest.mark.parametrize("name", EXPECTED["models"])
def test_models(name):
    model = PartyModel.load(FOLDER / f"{name}.dcmodel", signed_by=signer_of(name), objects=True)
    expected = EXPECTED["models"][name]
    np.testing.assert_allclose(model.transform(ROWS), expected["transformed"], rtol=1e-12)
    if expected["probabilities"] is None:
        np.testing.assert_allclose(model.predict(ROWS), expected["predicted"], rtol=1e-12)
    else:
        np.testing.assert_array_equal(model.predict(ROWS), expected["predicted"])
        np.testing.assert_allclose(model.predict_proba(ROWS), expected["probabilities"], rtol=1e-12)


@pytest.mark.parametrize("name", EXPECTED["models"])
def test_models_are_objects_and_taken_only_by_who_asks(name):
    with pytest.raises(ExchangeError, match="--objects") as caught:
        PartyModel.load(FOLDER / f"{name}.dcmodel")
    assert caught.value.code == "OBJECTS_REFUSED"


@pytest.mark.parametrize("name", EXPECTED["models"])
def test_their_onnx_form_is_read_whatever_scikit_learn_is_there(name, monkeypatch):
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(sklearn, "__version__", "99.0")
    with pytest.raises(ExchangeError) as caught:
        PartyModel.load(FOLDER / f"{name}.dcmodel", objects=True)
    assert caught.value.code == "VERSION_MISMATCH"
    model = PartyModel.load(FOLDER / f"{name}.dcmodel", prefer_onnx=True)
    expected = EXPECTED["models"][name]
    if expected["probabilities"] is None:
        np.testing.assert_allclose(model.predict(ROWS), expected["predicted"], atol=1e-5)
    else:
        np.testing.assert_array_equal(model.predict(ROWS), expected["predicted"])
        np.testing.assert_allclose(model.predict_proba(ROWS), expected["probabilities"], atol=1e-5)


def test_they_are_small_and_of_version_1():
    for file in FOLDER.glob("*.dc*"):
        assert file.stat().st_size < 60_000
        assert unpack(file).version == 1


def test_a_project_from_before_there_were_rules_for_entries_outside():
    """Its digest is what it was, its signature is its owner's, and it refuses as it did."""
    project = load_project(FOLDER / "project.toml")
    assert project.digest == "fc80828db8d7c724145a2ce1d039947ff376c88c6728bf6c63cdc87594abec5a"
    assert project.n_features == 6
    assert {(column.outside, column.unknown) for column in project.columns} == {("refuse", "refuse")}
