"""`party explain` and `party columns`, as somebody at a party runs them."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from datacollab.cli._app import app
from named_world import NamedWorld
from party_world import new_world


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done


def told(*arguments):
    return json.loads(run(*arguments, "--json").stdout)


@pytest.fixture
def world(tmp_path):
    world = new_world(tmp_path)
    world.installed()
    return world


def test_what_is_printed_and_written(world):
    root, output = world.root, world.root / "why.csv"
    shown = run("party", "explain", root / "new.csv", "-o", output, "--rows", 20, "--keep", "id", "-C", root / "a")
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("20 of 80 rows explained: the collaboration's LogisticRegression")
    assert lines[1].endswith("for yes:")
    assert {line.split()[0] for line in lines[2:6]} == {"age", "pulse", "weight", "ward"}
    assert lines[2].split()[0] in ("age", "pulse")
    assert "warning" in shown.stdout
    assert "not identified" in shown.stdout
    assert lines[-1].endswith("Nothing left the party.")
    frame = pd.read_csv(output)
    assert len(frame) == 20
    assert "id" in frame
    assert "patient" not in shown.stdout
    assert len(list((root / "a" / "outbox").iterdir())) == 1


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
    few = told("party", "explain", root / "new.csv", *options, "--force", "--orders", 2, "--background", 5)
    assert few["exact"] is False


def test_refusals_say_what_to_do(world):
    root = world.root
    run("party", "explain", root / "new.csv", "-o", root / "new.csv", "-C", root / "a", code=2)
    refused = run(
        "party", "explain", root / "new.csv", "-o", root / "x.csv", "--class", "maybe", "-C", root / "a", code=1
    )
    assert "no, yes" in refused.stderr
    assert not (root / "x.csv").exists()
    assert "covariance" in run("party", "columns", "-C", root / "a", code=1).stderr


def test_hazard_ratios_of_columns(tmp_path):
    world = NamedWorld(tmp_path, "survival", n_rows=150)
    a, b = world.shared("a"), world.shared("b")
    world.analyst(a, b)
    folder = tmp_path / "analyst"
    run("analyst", "integrate", "--model", "cox", "-C", folder)
    run("analyst", "export", "-C", folder)
    run("party", "install", folder / "outbox" / "a.dcmodel", "-C", a.path)
    facts = told("party", "columns", "--per-unit", "-C", a.path)
    # Made so that the hazard is e times as high for ten years more, and the pulse does nothing.
    ratio, low, high = facts["ratios"]["age"]
    assert low < ratio < high
    assert low < 1.105 < high
    assert facts["ratios"]["pulse"][1] < 1 < facts["ratios"]["pulse"][2]
    assert facts["columns"]["age"]["steps"] == 1
    assert facts["of"] == "log hazard"
    shown = run("party", "columns", "-C", a.path).stdout
    assert "hazard ratios" in shown
    assert "Nothing left the party." in shown
    assert "the other parties, too" in shown
    # Log risks are explained without a class.
    facts = told("party", "explain", tmp_path / "b.csv", "-o", tmp_path / "why.csv", "--rows", 30, "-C", a.path)
    assert next(iter(facts["importance"])) == "age"
    assert facts["classes"] is None


def test_intervals_of_a_defended_share_are_warned_of(tmp_path):
    world = NamedWorld(tmp_path, "survival", n_rows=150)
    a, b = world.shared("a", group_size=5), world.shared("b", group_size=5)
    world.analyst(a, b)
    folder = tmp_path / "analyst"
    run("analyst", "integrate", "--model", "cox", "-C", folder)
    run("analyst", "export", "-C", folder)
    run("party", "install", folder / "outbox" / "a.dcmodel", "-C", a.path)
    assert "Do not read the intervals" in run("party", "columns", "-C", a.path).stdout
    assert told("party", "columns", "-C", a.path)["defences"]
