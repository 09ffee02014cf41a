"""Shares and models of version 2, kept as they were written, are read for good."""

import json
from pathlib import Path

import numpy as np
import pytest
import sklearn

from datacollab import PartyModel, Share
from datacollab.bundle import PublicKey, unpack
from datacollab.bundle._manifest import READABLE
from datacollab.errors import ExchangeError

FOLDER = Path(__file__).with_name("v2")
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
SIGNER = PublicKey.from_text(EXPECTED["signer"])
ROWS = np.array(EXPECTED["rows"])
SAME_VERSION = EXPECTED["sklearn"].split(".")[:2] == sklearn.__version__.split(".")[:2]


def test_a_share_of_moved_anchor_rows():
    share = Share.load(FOLDER / "moved.dcshare", signed_by=SIGNER)
    assert not share.one_to_one
    for field, values in EXPECTED["share"].items():
        np.testing.assert_array_equal(getattr(share, field), values)


@pytest.mark.parametrize("name", EXPECTED["models"])
def test_models(name):
    if name == "forest" and not SAME_VERSION:
        pytest.skip(f"the forest is of scikit-learn {EXPECTED['sklearn']}")
    model = PartyModel.load(FOLDER / f"{name}.dcmodel", signed_by=SIGNER, objects=name == "forest")
    expected = EXPECTED["models"][name]
    if expected["probabilities"] is None:
        np.testing.assert_allclose(model.predict(ROWS), expected["predicted"], rtol=1e-12)
    else:
        np.testing.assert_array_equal(model.predict(ROWS), expected["predicted"])
        np.testing.assert_allclose(model.predict_proba(ROWS), expected["probabilities"], rtol=1e-12)
    if expected["left_out"] is not None:
        np.testing.assert_array_equal(model.left_out, expected["left_out"])
    if expected["without_party"] is not None:
        said = model.without_party.predict(model.transform(ROWS))
        np.testing.assert_array_equal(said, expected["without_party"])
    assert (model.left_out is None) == (expected["left_out"] is None)
    assert (model.without_party is None) == (expected["without_party"] is None)


def test_they_are_small_and_of_version_2():
    for file in FOLDER.glob("*.dc*"):
        assert file.stat().st_size < 60_000
        assert unpack(file).version == 2


@pytest.mark.parametrize("file", ["moved.dcshare", "ridge.dcmodel"])
def test_a_reader_of_version_1_refuses_them_clearly(file, monkeypatch):
    monkeypatch.setitem(READABLE, "datacollab.share", (1,))
    monkeypatch.setitem(READABLE, "datacollab.model", (1,))
    with pytest.raises(ExchangeError, match="Upgrade datacollab") as caught:
        unpack(FOLDER / file)
    assert caught.value.code == "FORMAT_TOO_NEW"
