"""Answers on the anchor by files and commands: exported, learned from, predicted with, and the map forgotten."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from datacollab.bundle import KeyPair, unpack
from datacollab.cli._app import app
from datacollab.exchange.analyst_folder import AnalystFolder
from datacollab.exchange.party_folder import PartyFolder
from datacollab.exchange.project import (
    AnchorRecipe,
    Column,
    Project,
    Task,
    load_project,
    make_anchor,
    project_text,
    seal_anchor,
)
from party_world import NAMES, allow_without_audit, made_up_table


@pytest.fixture(scope="module")
def integrated(tmp_path_factory):
    """Two parties who have shared, and an analyst who has integrated."""
    root = tmp_path_factory.mktemp("learning")
    keys = {name: KeyPair.generate() for name in ("a", "b", "analyst")}
    for name, key in keys.items():
        (root / name).mkdir()
        key.save(root / name / "keys.json")
    columns = (
        *(Column(name=name, kind="number", unit="1", minimum=0.0, maximum=100.0) for name in NAMES[:3]),
        Column(name="ward", kind="category", categories=("north", "south")),
    )
    project = Project(
        name="learning",
        purpose="Tests.",
        columns=columns,
        task=Task(kind="classification", target="ill", classes=("no", "yes")),
        anchor=AnchorRecipe(method="sample", n_rows=90, source="made up"),
        max_components=4,
        min_rows=20,
        owner=keys["a"].public,
        analyst=keys["analyst"].public,
        parties={name: keys[name].public for name in ("a", "b")},
    )
    (root / "project.toml").write_text(project_text(project, keys["a"]))
    project = load_project(root / "project.toml")
    public = made_up_table(90, seed=99).drop(columns="id")
    anchor = make_anchor(project, public, where="public.csv", random_state=0)
    (root / "anchor.dcanchor").write_bytes(seal_anchor(anchor, project, keys["a"]))
    analyst = AnalystFolder.init(root / "analyst", root / "project.toml")
    options = {"audit": False, "n_components": 4, "preset": "none", "undefended": True}
    for name in ("a", "b"):
        made_up_table(80, seed=ord(name)).to_csv(root / f"{name}.csv", index=False)
        folder = PartyFolder.join(root / name, root / "project.toml", root / "anchor.dcanchor")
        allow_without_audit(folder.path / "policy.toml")
        analyst.add([folder.share(root / f"{name}.csv", approve=lambda summary: "me", **options)])
    made_up_table(50, seed=7).to_csv(root / "new.csv", index=False)
    run("analyst", "integrate", "--method", "lti", "--model", "linear", "-C", root / "analyst")
    return root


@pytest.fixture
def place(integrated, tmp_path):
    """The same in a folder of the test's own."""
    return shutil.copytree(integrated, tmp_path, dirs_exist_ok=True)


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done


def told(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


def test_from_answers_to_predictions_without_a_map(place):
    analyst, a = place / "analyst", place / "a"
    files = told("analyst", "export", "--answers", "-C", analyst)["answers"]
    assert [file.rpartition("/")[2] for file in files] == ["a.dcanswers", "b.dcanswers"]
    bundle = unpack(analyst / "outbox" / "a.dcanswers")
    assert bundle.kind == "datacollab.answers"
    assert list(bundle.members) == ["sealed.bin"]
    status = told("analyst", "status", "-C", analyst)
    assert [each["exported"] for each in status["parties"]] == [True, True]
    facts = told("party", "learn", analyst / "outbox" / "a.dcanswers", "-C", a)
    assert facts["r2"] > 0.8
    assert (facts["n_parties"], facts["n_anchors"], facts["tree"]) == (2, 90, None)
    run("party", "predict", place / "new.csv", "-o", place / "before.csv", "-C", a)
    shown = run("party", "forget", "--yes", "-C", a)
    assert "has forgotten its map" in shown.stdout
    run("party", "predict", place / "new.csv", "-o", place / "after.csv", "--learned", "-C", a)
    assert (place / "before.csv").read_bytes() == (place / "after.csv").read_bytes()
    accuracy = np.mean(pd.read_csv(place / "after.csv")["prediction"] == pd.read_csv(place / "new.csv")["ill"])
    assert accuracy > 0.8
    assert "learned from answers" not in run("party", "evaluate", place / "new.csv", "-C", a).stdout
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
    run("analyst", "export", "--answers", "-C", place / "analyst")
    shown = run("party", "learn", file, "--tree", 3, "-C", place / "a").stdout
    assert "age" in shown
    assert "class: yes" in shown
    assert "met on anchor rows left out" in shown


def test_nobody_forgets_by_mistake(place):
    a = place / "a"
    before = (a / "party.dcstate").read_bytes()
    refused = run("party", "forget", "-C", a, code=12)
    assert "--yes" in refused.stderr
    assert "nothing was destroyed" in refused.stderr
    assert (a / "party.dcstate").read_bytes() == before


def test_forgetting_twice_and_sharing_afterwards_are_refused(place):
    a = place / "a"
    run("party", "forget", "--yes", "-C", a)
    for arguments in (
        ("party", "forget", "--yes"),
        ("party", "share", place / "a.csv", "--preset", "none", "--undefended", "--approve", "--again", "--no-audit"),
        ("party", "predict", place / "new.csv", "-o", place / "out.csv"),
    ):
        refused = run(*arguments, "-C", a, "--json", code=14)
        assert json.loads(refused.stdout)["error"]["code"] == "FORGOTTEN"


def test_options_of_models_have_no_meaning_for_answers(place):
    refused = run("analyst", "export", "--answers", "--allow-training-rows", "me", "-C", place / "analyst", code=2)
    assert "--answers" in refused.stderr


def test_a_model_that_carries_rows_may_answer(place):
    from sklearn.svm import SVC

    import datacollab as dc

    folder = AnalystFolder(place / "analyst")
    folder.integrate(dc.LTI(4), SVC())
    run("analyst", "export", "-C", place / "analyst", code=12)
    folder.export(answers=True)
    facts = told("party", "learn", place / "analyst" / "outbox" / "a.dcanswers", "-C", place / "a")
    assert facts["r2"] > 0.6
