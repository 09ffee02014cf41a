"""`party explain`, as somebody at a party runs it."""

import pandas as pd
import pytest

from named_world import NamedWorld
from party_world import new_world
from playing import done as run
from playing import told


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
