"""The anchor by commands: searched for private rows, made, and sealed."""

import json
import os
import shutil
import stat
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import playing
from datacollab.agreement import AnchorRecipe, guessing, load_project, open_anchor, project_text
from datacollab.bundle import KeyPair, pack, unpack
from datacollab.steps.party import PartyFolder
from datacollab.table import encode_table
from party_world import made_up_table, new_world
from playing import assert_one_line, assert_refused, runs

run = runs("anchor")


FEATURES = ["age", "dose", "weight"]
SECRET = "Xaver Huber"


@pytest.fixture
def table(rng):
    return pd.DataFrame(rng.normal(size=(60, 3)), columns=FEATURES)


def test_an_anchor_without_private_rows_passes_and_near_copies_are_found_with_a_tolerance(table, write, rng):
    anchor = write("anchor.csv", pd.DataFrame(rng.normal(size=(20, 3)), columns=FEATURES))
    result = run("check", anchor, write("patients.csv", table))
    assert result.exit_code == 0, result.output
    assert result.stdout == f"No private row among the 20 anchor rows. Compared: {', '.join(FEATURES)}.\n"
    anchor = write("anchor.csv", table.head(5) + 1e-9)
    private = write("patients.csv", table)
    assert run("check", anchor, private).exit_code == 0
    assert_one_line(run("check", anchor, private, "--tolerance", "1e-6"), "5 rows of the anchor", code=3)


@pytest.mark.parametrize("diagnosis", [1, "ill"])
def test_a_row_with_another_target_is_still_a_copy(table, write, diagnosis):
    """A copied patient whose diagnosis was changed is a copied patient."""
    anchor = write("anchor.csv", table.head(4).assign(diagnosis=diagnosis))
    private = write("patients.csv", table.assign(diagnosis=0 if diagnosis == 1 else "well"))
    result = run("check", anchor, private, "--target", "diagnosis")
    assert result.exit_code == 3
    assert "4 rows of the anchor are private rows (anchor positions 0, 1, 2, 3)" in result.output


def test_says_which_columns_were_not_compared(table, write):
    result = run("check", write("anchor.csv", (table + 1).assign(ward="north")), write("patients.csv", table))
    assert result.exit_code == 0, result.output
    assert "Not compared: ward. A row that differs in these alone counts as a copy." in result.output
    result = run("check", write("anchor.csv", table), write("patients.csv", table), "--target", "diagnosis")
    assert result.exit_code == 1
    assert "no column 'diagnosis'" in result.output


def test_private_rows_in_an_anchor_are_told_by_position_alone(table, write, rng):
    """Columns stand in another order there, and each side has one of its own."""
    anchor = pd.DataFrame(rng.normal(size=(20, 3)), columns=FEATURES)
    anchor.loc[[4, 11]] = table.loc[[30, 2]].to_numpy()
    private = write("patients.csv", table[FEATURES[::-1]].assign(name=SECRET))
    result = run("check", write("anchor.csv", anchor.assign(made="yes")), private)
    assert_one_line(result, "2 rows of the anchor are private rows (anchor positions 4, 11)", code=3)
    for value in [SECRET, *(str(entry)[:6] for entry in anchor.loc[[4, 11]].to_numpy().ravel())]:
        assert value not in result.output


def test_tables_that_cannot_be_compared_are_named_and_not_quoted(table, write):
    private = write("patients.csv", table.set_axis(["a", "b", "c"], axis=1))
    assert_one_line(run("check", write("anchor.csv", table), private), "no column of numbers with the same name")
    content = f"age,dose\n1,2\n3,4,{SECRET}\n"
    result = run("check", write("table.csv", content), write("second.csv", content))
    assert_one_line(result, "table.csv", "line 3", code=13)
    private = write("patients.csv", table.assign(dose=SECRET))
    assert_one_line(run("check", write("anchor.csv", table), private), "patients.csv: 1 of 3 columns", "(dose)")


def test_copies_are_found_by_their_gaps_too(table, write):
    table.loc[[3, 7], "dose"] = np.nan
    gaps = write("gaps.csv", table)
    assert_one_line(run("check", gaps, gaps), "60 rows of the anchor", code=3)
    others = run("check", write("others.csv", table + 1), gaps)
    assert others.exit_code == 0, others.output


def test_json_says_how_each_table_was_read(table, tmp_path, write):
    german = tmp_path / "german.csv"
    table.to_csv(german, index=False, sep=";", decimal=",")
    result = run("check", german, write("patients.csv", table), "--json")
    assert result.exit_code == 3
    read = "german.csv: 60 rows, 3 columns; semicolons, decimal commas, UTF-8"
    plain = "patients.csv: 60 rows, 3 columns; commas, UTF-8"
    assert json.loads(result.stdout)["tables"] == [read, plain]
    assert result.stderr.count(read) == 1
    assert plain not in result.stderr


NAME = "Anna Huber"


@pytest.fixture(scope="module")
def public():
    return made_up_table(80).drop(columns="id")


@pytest.fixture(scope="module")
def begun(tmp_path_factory, public):
    """Folders with keys, a project file and public rows."""
    root = new_world(tmp_path_factory.mktemp("begun"), anchor=AnchorRecipe(n_rows=60)).root
    (root / "anchor.dcanchor").unlink()
    public.to_csv(root / "public.csv", index=False)
    return root


@pytest.fixture
def place(begun, tmp_path):
    return shutil.copytree(begun, tmp_path, dirs_exist_ok=True)


def seal(place, *more, source="public.csv", owner="a", output="anchor.dcanchor"):
    first = [] if source is None else [place / source]
    return run("seal", *first, "--project", place / "project.toml", "-C", place / owner, "-o", place / output, *more)


def join(place, anchor, name="b"):
    return playing.run("party", "join", place / "project.toml", place / anchor, "-C", place / name)


def test_from_public_rows_to_the_parties_folders(place, public):
    result = seal(place)
    assert result.exit_code == 0, result.output
    assert "60 rows, 5 columns, with targets; sealed to a, b" in result.stdout
    opened = {}
    for name in ("a", "b"):
        assert join(place, "anchor.dcanchor", name).exit_code == 0
        kept = place / name / "anchor.dcstate"
        if os.name == "posix":
            assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        folder = PartyFolder(place / name)
        anchor = open_anchor(place / "anchor.dcanchor", folder.project, folder.key)
        opened[name] = anchor.commitment(folder.project)
        assert anchor.rows[0].tobytes() not in (place / "anchor.dcanchor").read_bytes()
        assert anchor.rows[:, 0].min() >= public["age"].min()
    assert opened["a"] == opened["b"]


def test_either_public_rows_or_an_anchor_are_sealed_and_facts_are_json(place):
    facts = json.loads(seal(place, "--json").stdout)
    assert facts.items() >= {"n_rows": 60, "n_features": 5, "with_target": True, "parties": ["a", "b"]}.items()
    for result in (seal(place, source=None), seal(place, "--rows-from", place / "public.csv")):
        assert result.exit_code == 2
        assert "--rows-from" in result.output


def test_rows_of_a_table_are_warned_of(place, public):
    """The table gives each row away; drawn rows are nowhere."""
    assert json.loads(seal(place, "--json").stdout)["guessing"]["level"] == "ok"
    agreed = load_project(place / "project.toml")
    encode = encode_table(agreed, public, where="public").X[:60]
    pd.DataFrame(encode, columns=agreed.feature_names).to_csv(place / "rows.csv", index=False)
    result = seal(place, "--rows-from", place / "rows.csv", source=None, output="given.dcanchor")
    assert result.exit_code == 0, result.output
    assert "Anybody with the table has the anchor" in result.stdout
    sampled = replace(agreed, anchor=AnchorRecipe(method="sample", n_rows=60))
    (place / "project.toml").write_text(project_text(sampled, KeyPair.load(place / "a" / "keys.json")))
    assert "one of the table's 80 rows. Anyone" in seal(place, output="sample.dcanchor").stdout
    found = json.loads(seal(place, "--json", output="again.dcanchor").stdout)["guessing"]
    assert (found["level"], found["bits"]) == ("warning", np.log2(80))
    shown = playing.run("project", "show", place / "project.toml").stdout
    assert "warning: Do not tell the analyst which table the anchor is made of" in shown


def test_what_is_drawn_has_the_bits_of_what_it_is_drawn_by():
    """53 for each number, and never more than the generator was given."""
    found = {method: guessing(method, n_public=1024, n_features=2) for method in ("smote", "uniform", "gaussian")}
    assert {method: each.bits for method, each in found.items()} == {"smote": 63, "uniform": 106, "gaussian": 106}
    assert {each.level for each in found.values()} == {"ok"}
    assert guessing("uniform", n_features=64).bits == 128


def test_an_older_anchor_does_not_take_the_place_of_a_later_one(place):
    assert "warning" not in seal(place, output="first.dcanchor").stdout
    (place / "broken.dcanchor").write_bytes(b"")
    assert "first.dcanchor is an anchor of this project, too" in seal(place, output="second.dcanchor").stdout
    PartyFolder.join(place / "b", place / "project.toml")
    assert join(place, "first.dcanchor").exit_code == 0
    for _ in range(2):
        assert join(place, "second.dcanchor").exit_code == 0
    before = PartyFolder(place / "b").anchor
    result = join(place, "first.dcanchor")
    assert_refused(result, "ALREADY_THERE", 14, "first.dcanchor", "sealed later", before.sealed_at)
    assert np.array_equal(PartyFolder(place / "b").anchor.rows, before.rows)


@pytest.mark.parametrize("said", [None, "", "2026-01-01T00:00:00", "yesterday", 3, "2026-01-01T00:00:00+01:00"])
def test_an_anchor_says_when_it_was_sealed(place, said):
    assert seal(place).exit_code == 0
    PartyFolder.join(place / "b", place / "project.toml")
    bundle = unpack(place / "anchor.dcanchor")
    facts = bundle.facts | {"sealed_at": said}
    if said is None:
        del facts["sealed_at"]
    path, owner = place / "old.dcanchor", KeyPair.load(place / "a" / "keys.json")
    path.write_bytes(pack("datacollab.anchor", facts, bundle.members, key=owner))
    result = join(place, path.name)
    assert result.exit_code == 11, result.output
    assert "BUNDLE_MALFORMED" in result.stderr


def test_rows_that_were_made_elsewhere_can_be_sealed(place):
    """Columns of the matrix, made elsewhere."""
    project = PartyFolder.join(place / "a", place / "project.toml").project
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.random((60, 5)) * [60, 60, 60, 1, 1], columns=project.feature_names)
    frame.to_csv(place / "matrix.csv", index=False)
    assert seal(place, "--rows-from", place / "matrix.csv", source=None).exit_code == 0
    made = pd.read_csv(place / "matrix.csv")
    anchor = open_anchor(place / "anchor.dcanchor", project, KeyPair.load(place / "b" / "keys.json"))
    assert anchor.rows.tobytes() == np.ascontiguousarray(made.to_numpy()).tobytes()
    assert anchor.target is None


def test_only_the_owner_seals_and_nothing_is_overwritten(place):
    assert_refused(seal(place, owner="b"), "NOT_A_MEMBER", 10, "owner")
    assert seal(place).exit_code == 0
    before = (place / "anchor.dcanchor").read_bytes()
    assert_refused(seal(place), "ALREADY_THERE", 14, "anchor.dcanchor")
    assert (place / "anchor.dcanchor").read_bytes() == before


def test_no_number_repeats_an_anchor(place):
    """Whoever guesses the anchor can test the guess against a share, and a number is soon guessed."""
    project = PartyFolder.join(place / "b", place / "project.toml").project
    key = KeyPair.load(place / "b" / "keys.json")
    anchors = []
    for output in ("1.dcanchor", "2.dcanchor"):
        np.random.seed(4)  # noqa: NPY002
        assert seal(place, output=output).exit_code == 0
        anchors.append(open_anchor(place / output, project, key))
    assert anchors[0].rows.tobytes() != anchors[1].rows.tobytes()
    assert anchors[0].secret != anchors[1].secret
    assert seal(place, "--seed", 4, output="3.dcanchor").exit_code == 2
