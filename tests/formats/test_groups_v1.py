"""Files between groups, kept as they were written, are read for good: by this package, and by a reader of the page."""

import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from datacollab.bundle import PublicKey, unpack
from datacollab.share import GroupMessage, GroupMoments, GroupTarget

FOLDER = Path(__file__).with_name("groups_v1")
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
SIGNER = PublicKey.from_text(EXPECTED["signer"])
ANCHORS = {party: np.array(rows) for party, rows in EXPECTED["anchors"].items()}
DTYPES = {"F64": "<f8", "I64": "<i8"}


def read(name):
    """Facts and arrays, by the definitions of the page and of safetensors."""
    with zipfile.ZipFile(FOLDER / f"{name}.dcgroup") as file:
        facts = json.loads(file.read("manifest.json"))["facts"]
        data = file.read("group.safetensors")
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    arrays = {
        key: np.frombuffer(body[slice(*entry["data_offsets"])], DTYPES[entry["dtype"]]).reshape(entry["shape"])
        for key, entry in header.items()
    }
    return facts, arrays


def test_a_factor_by_the_page():
    facts, arrays = read("linear")
    assert facts["settings"] == {"method": "LTI", "n_components": 2, "fit_intercept": True}
    wanted = 0
    for A in ANCHORS.values():
        centred = A - A.mean(axis=0)
        wanted = wanted + centred @ np.linalg.pinv(centred)
    assert_allclose(arrays["factor"] @ arrays["factor"].T, wanted, atol=1e-12)


def test_a_triangle_and_a_graph_by_the_page():
    facts, arrays = read("kernel")
    n = facts["n_anchors"]
    M = np.zeros((n, n))
    M.T[np.triu_indices(n)] = arrays["triangle"]  # the lower triangle, column by column
    wanted = 0
    for party, A in ANCHORS.items():
        squares = ((A[:, None] - A[None]) ** 2).sum(axis=2)
        kernel = np.exp(-EXPECTED["gammas"][party] * squares)
        wanted = wanted + facts["settings"]["alpha"] * np.linalg.inv(kernel + facts["settings"]["alpha"] * np.eye(n))
    assert_allclose(M, np.tril(wanted), atol=1e-12)

    weights = np.zeros((n, n))
    for A in ANCHORS.values():
        squares = ((A[:, None] - A[None]) ** 2).sum(axis=2) + 1e9 * np.eye(n)
        near = np.argsort(squares, axis=1)[:, : facts["settings"]["graph"]["n_neighbors"]]
        own = np.zeros((n, n))
        np.put_along_axis(own, near, 1.0, axis=1)
        weights += (own + own.T) / 2
    found = np.zeros((n, n))
    found[tuple(arrays["edges"].T)] = arrays["edge_weights"]
    assert_allclose(found, np.tril(weights))


def test_a_target_and_moments_by_the_page():
    facts, arrays = read("target")
    assert facts["groups"] == ["north"]
    assert_allclose(arrays["target"], EXPECTED["target"], atol=1e-9)
    facts, arrays = read("moments")
    assert [facts["classes"]["classes"][code] for code in arrays["classes"]] == EXPECTED["classes"]
    assert_array_equal(arrays["gram"][:2, :2], 12 * np.eye(2))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("linear", GroupMessage), ("kernel", GroupMessage), ("target", GroupTarget), ("moments", GroupMoments)],
)
def test_this_package_reads_them(name, kind):
    file = FOLDER / f"{name}.dcgroup"
    assert unpack(file).version == 1
    loaded, (_, arrays) = kind.load(file, signed_by=SIGNER), read(name)
    held = loaded.arrays if kind is GroupMessage else vars(loaded)
    for key in arrays.keys() - {"classes"}:
        assert_array_equal(held[key], arrays[key])
