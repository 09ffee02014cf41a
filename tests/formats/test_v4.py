"""Models of version 4, kept as they were written, are read for good: by this package, and by a reader of the page."""

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

FOLDER = Path(__file__).with_name("v4")
FILE = FOLDER / "affine.dcmodel"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
SIGNER = PublicKey.from_text(EXPECTED["signer"])
ROWS = np.array(EXPECTED["rows"])


def tables(data):
    """Arrays of double precision in a safetensors member, by the format's own definition."""
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], "<f8").reshape(entry["shape"])
        for name, entry in header.items()
    }


def test_a_model_with_an_intercept():
    model = PartyModel.load(FILE, signed_by=SIGNER)
    np.testing.assert_allclose(model.predict(ROWS), EXPECTED["predicted"], rtol=1e-12)


def test_a_reader_written_from_the_page_alone():
    with zipfile.ZipFile(FILE) as file:
        facts = json.loads(file.read("manifest.json"))["facts"]
        g, h = tables(file.read("g.safetensors")), tables(file.read("h.safetensors"))
    assert facts["integration_function"] == {"kind": "linear", "intercept": True, "transposed": []}
    ((step,), arrays) = facts["head"]["steps"], {name.partition(".")[2]: array for name, array in h.items()}
    assert step["kind"] == "affine"
    found = (ROWS @ g["coefficients"] + g["intercept"][0]) @ arrays["coefficients"] + arrays["intercept"]
    np.testing.assert_allclose(np.ravel(found), EXPECTED["predicted"], rtol=1e-9)


def test_it_is_small_and_of_version_4():
    assert FILE.stat().st_size < 10_000
    assert unpack(FILE).version == 4


def test_a_reader_of_version_3_refuses_it_clearly(monkeypatch):
    monkeypatch.setitem(READABLE, "datacollab.model", (1, 2, 3))
    with pytest.raises(ExchangeError, match="Upgrade datacollab") as caught:
        unpack(FILE)
    assert caught.value.code == "FORMAT_TOO_NEW"


@pytest.mark.parametrize("version", [2, 3])
def test_an_intercept_in_an_earlier_version_is_refused(version):
    with pytest.raises(ExchangeError) as caught:
        model_from(replace(unpack(FILE), version=version))
    assert caught.value.code == "MODEL_MALFORMED"
