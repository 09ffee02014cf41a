"""Anchor predictions by files and commands: exported, distilled, predicted with, and the map forgotten."""

import shutil

import numpy as np
import pandas as pd
import pytest
from anchor_predictions_world import world_of

from datacollab.bundle import unpack
from datacollab.errors import UnsendableWarning
from datacollab.steps.analyst import AnalystFolder
from playing import done as run
from playing import told


@pytest.fixture(scope="module")
def integrated(tmp_path_factory):
    """Two parties who have shared, and an analyst who has integrated."""
    world = world_of(tmp_path_factory.mktemp("learning"))
    root = world.root
    analyst = AnalystFolder.init(root / "analyst", root / "project.toml")
    for name in ("a", "b"):
        analyst.add([world.shared(name, n_components=4).path / "outbox" / f"{name}.dcshare"])
    run("analyst", "integrate", "--method", "lti", "--model", "linear", "-C", root / "analyst")
    return root


@pytest.fixture
def place(integrated, tmp_path):
    """The same in a folder of the test's own."""
    return shutil.copytree(integrated, tmp_path, dirs_exist_ok=True)


def test_from_answers_to_predictions_without_a_map(place):
    analyst, a = place / "analyst", place / "a"
    files = told("analyst", "export", "--anchor-predictions", "-C", analyst)["anchor_predictions"]
    assert [file.rpartition("/")[2] for file in files] == ["a.dcanswers", "b.dcanswers"]
    bundle = unpack(analyst / "outbox" / "a.dcanswers")
    assert bundle.kind == "datacollab.answers"
    assert list(bundle.members) == ["sealed.bin"]
    status = told("analyst", "status", "-C", analyst)
    assert [each["exported"] for each in status["parties"]] == [True, True]
    facts = told("party", "distil", analyst / "outbox" / "a.dcanswers", "-C", a)
    assert facts["r2"] > 0.8
    assert (facts["n_parties"], facts["n_anchors"], facts["tree"]) == (2, 60, None)
    run("party", "predict", place / "new.csv", "-o", place / "before.csv", "-C", a)
    shown = run("party", "forget", "--yes", "-C", a)
    assert "has forgotten its map" in shown.stdout
    run("party", "predict", place / "new.csv", "-o", place / "after.csv", "--using", "distilled", "-C", a)
    assert (place / "before.csv").read_bytes() == (place / "after.csv").read_bytes()
    accuracy = np.mean(pd.read_csv(place / "after.csv")["prediction"] == pd.read_csv(place / "new.csv")["ill"])
    assert accuracy > 0.8
    assert "distilled from anchor predictions" not in run("party", "evaluate", place / "new.csv", "-C", a).stdout
    run("log", "verify", "-C", a)
    run("log", "verify", "-C", analyst)
    # The analyst's file tells of the share, so the end of the party's log cannot be cut off unseen.
    run("log", "verify", "-C", a, "--against", analyst / "outbox" / "a.dcanswers")
    (b_log,) = (place / "b").glob("log.jsonl")
    lines = b_log.read_text().splitlines(keepends=True)
    b_log.write_text("".join(lines[:-1]))
    run("log", "verify", "-C", place / "b", "--against", analyst / "outbox" / "b.dcanswers", code=11)


def test_a_tree_is_shown(place):
    file = place / "analyst" / "outbox" / "a.dcanswers"
    run("analyst", "export", "--anchor-predictions", "-C", place / "analyst")
    shown = run("party", "distil", file, "--tree", 3, "-C", place / "a").stdout
    assert "age" in shown
    assert "class: yes" in shown
    assert "variance on anchor rows left out" in shown


def test_nobody_forgets_by_mistake(place):
    a = place / "a"
    before = (a / "party.dcstate").read_bytes()
    refused = run("party", "forget", "-C", a, code=12)
    assert "--yes" in refused.stderr
    assert "nothing was destroyed" in refused.stderr
    assert (a / "party.dcstate").read_bytes() == before


def test_a_model_that_carries_rows_may_answer(place):
    from sklearn.svm import SVC

    import datacollab as dc

    folder = AnalystFolder(place / "analyst")
    with pytest.warns(UnsendableWarning, match="predictions on the anchor"):
        folder.integrate(dc.LTI(4), SVC())
    run("analyst", "export", "-C", place / "analyst", code=12)
    folder.export(anchor_predictions=True)
    facts = told("party", "distil", place / "analyst" / "outbox" / "a.dcanswers", "-C", place / "a")
    assert facts["r2"] > 0.6
