"""``docs/project-file.md`` and ``docs/tables.md`` against the program: the example, the tables, and the bytes."""

import base64
import hashlib
import hmac
import json
import re
import tomllib
from dataclasses import fields, replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from datacollab.agreement import Sharing, Task, load_project, make_anchor, project_content, seal_anchor
from datacollab.bundle import unpack, unseal
from datacollab.table import Column, encode_table

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "project-file.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def example_file(tmp_path_factory):
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path_factory.mktemp("example") / "project.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def example(example_file):
    return load_project(example_file)


def plain_json(value):
    """Sorted keys, no spaces, UTF-8, by the standard library alone."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def test_digest_and_signature_are_over_what_the_page_says(example, example_file):
    assert example.seal_shares
    content = tomllib.loads(example_file.read_text(encoding="utf-8"))
    signature = content.pop("signature")
    content["rules"]["deadline"] = content["rules"]["deadline"].isoformat()
    data = plain_json(content)
    assert example.digest == hashlib.sha256(data).hexdigest()
    signed = b"datacollab project file, format 1\n" + data
    example.owner.verify(base64.b64decode(signature["ed25519"]), signed)


def entry_names(value):
    if isinstance(value, dict):
        for name, entry in value.items():
            yield name
            yield from entry_names(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from entry_names(entry)


def test_every_entry_is_on_the_page_and_no_other(example, regression):
    # A first revision is left out of the content.
    content, other = project_content(replace(example, revision=2)), project_content(regression)
    names = {
        *(field.name for field in fields(Task)),
        *entry_names({**content, "members": {**content["members"], "parties": {}}, "sharing": {}}),
        *entry_names(other["task"]),
    }
    names = (names - {"project", "task", "anchor", "rules", "columns", "members", "sharing"}) | {"ed25519"}
    names |= {field.name for field in (*fields(Sharing), *fields(Column))}
    section = PAGE[PAGE.index("## Entry by entry") :]
    rows = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(.*?)`", row)} == names
    for name in ("project", "task", "anchor", "rules", "members", "sharing", "signature"):
        assert f"### `[{name}]`" in section


def test_the_matrix_on_the_page_is_the_programs(example):
    section = (DOCS / "tables.md").read_text(encoding="utf-8").split("the matrix has these columns:")[1]
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", section, re.M)[:5]
    ]
    assert [name.strip("`") for name in lines[0][1:]] == list(example.feature_names)
    table = pd.DataFrame(
        {"age": [64, 71, 112], "glucose": [6.1, np.nan, 41], "ward": ["neurology", None, "geriatrics"]}
    )
    X = encode_table(example, table, where="x", with_target=False).X
    assert [[float(cell) for cell in line[1:]] for line in lines[2:]] == X.tolist()


def test_the_sealed_anchor_is_what_the_page_says(project, table, keys):
    from safetensors.numpy import load

    anchor = make_anchor(project, table, where="public.csv")
    bundle = unpack(seal_anchor(anchor, project, keys["a"]), kind="datacollab.anchor", signed_by=project.owner)
    sealed_at = datetime.fromisoformat(bundle.facts["sealed_at"])
    assert sealed_at.utcoffset() == timedelta(0)
    told = {"sealed": True, "project": "heart", "project_digest": project.digest}
    assert bundle.facts == told | {"sealed_at": sealed_at.isoformat(timespec="microseconds")}
    assert list(bundle.members) == ["sealed.bin"]
    purpose = f"datacollab anchor of project {project.digest}"
    arrays = load(unseal(bundle.members["sealed.bin"], keys["b"], purpose=purpose))
    assert {name: (array.dtype, array.shape) for name, array in arrays.items()} == {
        "rows": (np.float64, (40, 8)),
        "secret": (np.int32, (8,)),
        "target_text": (np.int32, (40, 7)),
    }
    texts = ["".join(map(chr, row)).rstrip("\0") for row in arrays["target_text"]]
    assert texts == anchor.target.tolist()
    described = {"arrays": {"rows": ["<f8", [40, 8]], "target_text": ["<i4", [40, 7]]}, "project": project.digest}
    message = b"datacollab anchor commitment 1\n" + plain_json(described) + b"\n"
    message += arrays["rows"].tobytes() + arrays["target_text"].tobytes()
    expected = hmac.new(arrays["secret"].tobytes(), message, hashlib.sha256).hexdigest()
    assert anchor.commitment(project) == expected
