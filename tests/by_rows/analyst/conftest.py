"""A project of three parties, their keys, and shares of digits."""

from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits

import datacollab as dc
from datacollab.agreement import Anchor, AnchorRecipe, Project, Task, project_text
from datacollab.bundle import KeyPair, pack, seal
from datacollab.share import share_contents
from datacollab.table import Column

PARTIES = ("north", "south", "west")
FOURTH = "east"
"""Of projects that need one more."""


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order] / 16, y[order]


@pytest.fixture(scope="session")
def keys():
    return {name: KeyPair.generate() for name in ("owner", "analyst", *PARTIES, FOURTH)}


def make_project(keys, **changes):
    given = {
        "name": "digits",
        "purpose": "Tests.",
        "columns": tuple(
            Column(name=f"pixel_{i}", kind="number", minimum=0.0, maximum=1.0, missing="refuse") for i in range(64)
        ),
        "task": Task(kind="classification", target="digit", classes=tuple(range(10))),
        "anchor": AnchorRecipe(method="sample", n_rows=150, source="public digits"),
        "max_components": 10,
        "min_rows": 20,
        "min_class_rows": 1,
        "quorum": 2,
        "deadline": None,
        "seal_shares": False,
        "owner": keys["owner"].public,
        "analyst": keys["analyst"].public,
        "parties": {name: keys[name].public for name in PARTIES},
    }
    return Project(**given | changes)


def make_share(
    project,
    keys,
    digits,
    name,
    *,
    anchor=None,
    n_components=8,
    signer=None,
    n_rows=80,
    sealed=None,
    said=None,
    defences=(),
    target=None,
    stray=None,
):
    """Bytes of a share, as the party's program writes them."""
    X, y = digits[0], digits[1] if target is None else target
    start = 200 + 100 * (*PARTIES, FOURTH).index(name)
    anchor = Anchor(rows=X[:150], target=y[:150], secret=b"s" * 32) if anchor is None else anchor
    rows = slice(start, start + n_rows)
    party = dc.Party(name, dc.obfuscator("pca", n_components=n_components), defences=defences).fit(X[rows], y[rows])
    share = party.share(anchor.rows, anchor.target)
    inner, members = share_contents(share)
    told = {
        "party": name,
        "project": project.name,
        "project_digest": project.digest,
        "anchor_commitment": anchor.commitment(project),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "n_rows": len(share.target),
        "n_components": n_components,
        "n_anchors": len(anchor.rows),
        "one_to_one": share.one_to_one,
        "task": project.task.kind,
        "row_order": "shuffled",
        "supersedes": None,
        "approved_by": "somebody",
        "log_head": "0" * 64,
    }
    if project.seal_shares if sealed is None else sealed:
        plain = pack("datacollab.share", inner, members)
        purpose = f"share of {name} in {project.digest}"
        members, inner = {"sealed.bin": seal(plain, [project.analyst], purpose=purpose)}, {}
    return pack("datacollab.share", inner | told | (said or {}), members | (stray or {}), key=signer or keys[name])


@pytest.fixture
def place(tmp_path, keys, digits):
    """A folder set up for the analyst, and what writes shares for it."""

    def build(**changes):
        from datacollab.steps.analyst import AnalystFolder

        project = make_project(keys, **changes)
        folder = tmp_path / "analyst"
        folder.mkdir(mode=0o700)
        keys["analyst"].save(folder / "keys.json")
        (tmp_path / "project.toml").write_text(project_text(project, keys["owner"]), encoding="utf-8")

        def send(name, file_name=None, **options):
            file = tmp_path / (file_name or f"{name}.dcshare")
            file.write_bytes(make_share(project, keys, digits, name, **options))
            return file

        opened = AnalystFolder.init(folder, tmp_path / "project.toml")
        return SimpleNamespace(folder=opened, project=project, send=send, path=tmp_path, keys=keys, digits=digits)

    return build


@pytest.fixture
def both(place):
    """A folder to which two of three parties have sent their shares."""
    there = place()
    there.folder.add([there.send(name) for name in ("north", "south")])
    return there
