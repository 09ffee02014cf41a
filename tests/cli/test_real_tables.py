"""Tables that do not quite fit a public one, from the command line: what people are shown, and no entry."""

import json

import numpy as np
import pandas as pd
import pytest

from datacollab.agreement import Anchor
from datacollab.bundle import unpack
from datacollab.steps.party import PartyFolder
from datacollab.table import Column, encode_table
from party_world import NAMES, allow_without_audit, made_up_table, new_world
from playing import assert_refused
from playing import run as run_program

QUICK = ["--components", "3", "--no-audit", "--preset", "none"]
VALUE = 987.654321
WARD = "Elsewhere"


def unfit_table(n_rows, seed):
    """Of the numbers of one column 1 % are outside; one category is unknown, one entry is missing."""
    table = made_up_table(n_rows, seed=seed)
    table["pulse"] = table["pulse"].clip(1, 99)
    table.loc[: n_rows // 100 - 1, "pulse"] = VALUE
    table.loc[3, "ward"] = WARD
    table.loc[4, "weight"] = np.nan
    return table


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.delenv("DATACOLLAB_PASSPHRASE", raising=False)
    rules = {"missing": "fill", "fill": 50.0, "outside": "clip"}
    columns = [Column(name=name, kind="number", minimum=0.0, maximum=100.0, **rules) for name in NAMES[:3]]
    columns.append(Column(name="ward", kind="category", categories=("north", "south"), unknown="other"))
    world = new_world(tmp_path, columns=columns)
    public = encode_table(world.project, made_up_table(60, seed=99), where="public", with_target=False)
    world.anchor = Anchor(rows=public.X)
    world.write_project(world.project)
    for name in "ab":
        unfit_table(200, seed=ord(name)).to_csv(tmp_path / f"{name}.csv", index=False)
    unfit_table(200, seed=1).to_csv(tmp_path / "new.csv", index=False)
    return world


def run(world, *words, folder="a"):
    return run_program("party", *words, "-C", world.root / folder)


def assert_no_entry(text):
    assert "987.65" not in text
    assert WARD not in text


def done(world, *words, folder="a"):
    result = run(world, *words, folder=folder)
    assert result.exit_code == 0, result.output
    if words[0] == "join":
        allow_without_audit(world.root / folder / "policy.toml")
    assert_no_entry(result.output)
    return result.stdout


LINE = "3 of 200 rows in 2 columns: 2 numbers clipped, 1 counted as other; 2 numbers far outside;"
DETAILS = [
    "  pulse: of 200 entries 2 clipped above; 2 far outside",
    "  weight: 1 missing filled in",
    "  ward: of 200 entries 1 counted as other",
]
COUNTS = {
    "n_rows": 200,
    "n_rows_outside": 3,
    "columns": {
        "pulse": {"n_entries": 200, "clipped_above": 2, "far_outside": 2},
        "weight": {"n_entries": 199, "filled": 1},
        "ward": {"n_entries": 200, "to_other": 1},
    },
}


@pytest.mark.slow
def test_a_table_with_some_numbers_outside_goes_all_the_way(world):
    for name in "ab":
        table = world.root / f"{name}.csv"
        done(world, "join", world.root / "project.toml", world.root / "anchor.dcanchor", folder=name)
        told = done(world, "check", table, *QUICK, folder=name)
        assert f" adjusted entries {LINE}" in " ".join(told.split())
        told = told.splitlines()
        at = told.index("Adjusted entries, by column")
        assert told[at + 1 : at + 4] == DETAILS
        assert json.loads(done(world, "check", table, *QUICK, "--json", folder=name))["summary"]["adjusted"] == COUNTS
        assert LINE in " ".join(done(world, "share", table, *QUICK, "--approve", "--undefended", folder=name).split())
    done(world, "install", world.model_file(*(PartyFolder(world.root / name) for name in "ab")))
    new, output, same = world.root / "new.csv", world.root / "out.csv", world.root / "same.csv"
    told = done(world, "predict", new, "-o", output)
    assert f"Adjusted entries: {LINE} 1 missing entry filled in, in 1 column" in told
    assert done(world, "evaluate", new).splitlines()[-3:] == DETAILS
    for command in (["predict", new, "-o", output], ["evaluate", new]):
        assert json.loads(done(world, *command, "--json"))["adjusted"] == COUNTS
    table = pd.read_csv(new)
    table.assign(pulse=table["pulse"].clip(0, 100)).to_csv(new, index=False)
    done(world, "predict", new, "-o", same)
    assert same.read_text() == output.read_text()


def test_the_log_has_the_counts_and_what_leaves_has_not(world):
    done(world, "join", world.root / "project.toml", world.root / "anchor.dcanchor")
    done(world, "check", world.root / "a.csv", *QUICK)
    done(world, "share", world.root / "a.csv", *QUICK, "--approve", "--undefended")
    (entry,) = [entry for entry in PartyFolder(world.root / "a").log.entries() if entry["event"] == "share"]
    assert entry["facts"]["adjusted"] == COUNTS
    assert_no_entry((world.root / "a" / "log.jsonl").read_text())
    share = unpack(world.root / "a" / "outbox" / "a.dcshare")
    assert "adjusted" not in json.dumps(share.facts)
    assert_no_entry(json.dumps(share.facts))


def test_another_unit_is_refused_and_named(world):
    done(world, "join", world.root / "project.toml", world.root / "anchor.dcanchor")
    table = made_up_table(80)
    table.assign(pulse=table["pulse"].clip(11, 99) * 100).to_csv(world.root / "a.csv", index=False)
    for command, *said in (("check",), ("share", "--undefended")):
        result = run(world, command, world.root / "a.csv", *QUICK, *said)
        assert_refused(result, "SCHEMA_RANGE", 13)
        assert "column 'pulse' has numbers outside the agreed range, 0 to 100, in 80 of 80 rows." in result.stderr
        assert "Nearly all would fit if they were multiplied by 0.01" in result.stderr
        assert "no exceptions that could be clipped. Check the unit" in result.stderr
    assert not list((world.root / "a" / "outbox").iterdir())
