"""Anchor predictions by commands: exported, distilled, predicted with, and the map forgotten; explanations."""

import shutil

import numpy as np
import pandas as pd
import pytest
from anchor_predictions_world import world_of
from sklearn.svm import SVC

import datacollab as dc
from datacollab.bundle import unpack
from datacollab.errors import UnsendableWarning
from datacollab.steps.analyst import AnalystFolder
from named_world import NamedWorld
from party_world import new_world
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
    folder = AnalystFolder(place / "analyst")
    with pytest.warns(UnsendableWarning, match="predictions on the anchor"):
        folder.integrate(dc.LTI(4), SVC())
    run("analyst", "export", "-C", place / "analyst", code=12)
    folder.export(anchor_predictions=True)
    facts = told("party", "distil", place / "analyst" / "outbox" / "a.dcanswers", "-C", place / "a")
    assert facts["r2"] > 0.6


@pytest.fixture
def world(tmp_path):
    world = new_world(tmp_path)
    world.installed()
    return world


@pytest.mark.slow
def test_what_is_printed_and_written(world):
    root, output = world.root, world.root / "why.csv"
    shown = run("party", "explain", root / "new.csv", "-o", output, "--rows", 20, "--keep", "id", "-C", root / "a")
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("20 of 80 rows explained: the collaboration's LogisticRegression")
    assert lines[1].endswith("for yes:")
    assert {line.split()[0] for line in lines[2:6]} == {"age", "pulse", "weight", "ward"}
    assert lines[2].split()[0] in ("age", "pulse")
    assert lines[-1].endswith("Nothing left the party.")
    frame = pd.read_csv(output)
    assert len(frame) == 20
    assert "id" in frame
    assert "patient" not in shown.stdout
    assert len(list((root / "a" / "outbox").iterdir())) == 1


@pytest.mark.slow
def test_facts_are_those_of_the_file(world):
    root = world.root
    options = ("-o", root / "why.csv", "--figure", root / "why.png", "--rows", 10, "-C", root / "a")
    facts = told("party", "explain", root / "new.csv", *options)
    frame = pd.read_csv(root / "why.csv")
    for name, value in facts["importance"].items():
        assert value == pytest.approx(frame[f"contribution_{name}"].abs().mean())
    assert (facts["n_rows"], facts["n_rows_of_table"], facts["classes"], facts["exact"]) == (10, 80, ["yes"], True)
    assert (facts["contributions"], facts["figure"]) == (str(root / "why.csv"), str(root / "why.png"))
    assert (root / "why.png").read_bytes().startswith(b"\x89PNG")
    again = run("party", "explain", root / "new.csv", *options, code=14).stderr
    assert "--force" in again
    assert told("party", "explain", root / "new.csv", *options, "--force")["importance"] == facts["importance"]


@pytest.mark.slow
def test_log_risks_are_explained_without_a_class(tmp_path):
    world = NamedWorld(tmp_path, "survival", n_rows=150)
    a, b = world.shared("a"), world.shared("b")
    world.analyst(a, b)
    folder = tmp_path / "analyst"
    run("analyst", "integrate", "--model", "cox", "-C", folder)
    run("analyst", "export", "-C", folder)
    run("party", "install", folder / "outbox" / "a.dcmodel", "-C", a.path)
    facts = told("party", "explain", tmp_path / "b.csv", "-o", tmp_path / "why.csv", "--rows", 30, "-C", a.path)
    # Made so that age raises the hazard, and the pulse does nothing.
    assert next(iter(facts["importance"])) == "age"
    assert facts["classes"] is None
