import json
import shlex

import pandas as pd
import pytest

from party_world import contents, new_world
from playing import runs

NO_LIMITS = "max_linkage = 1\nmax_reidentification = 1\nmax_membership = 1\n"
LENIENT = 'min_rows = 1\nmin_class_rows = 1\naudit = "off"\n'
PLAIN = ("--preset", "none")
run = runs("party")


@pytest.fixture
def world(tmp_path):
    world = new_world(tmp_path)
    world.join("a")
    return world


def with_policy(world, text):
    (world.root / "a" / "policy.toml").write_text(text)
    return world.root / "a.csv", "-C", world.root / "a"


def entries(world):
    return [json.loads(line) for line in (world.root / "a" / "log.jsonl").read_text().splitlines()]


def test_check_shows_what_would_leave_and_writes_nothing_of_it(world):
    given = with_policy(world, LENIENT)
    before = contents(world.folder())
    result = run("check", *given, *PLAIN, "--components", 2)
    assert result.exit_code == 0, result.output
    assert contents(world.folder()) == before
    for words in ("80, in random order", "2 of float64", "no: ", "60 rows", "This may be shared", "--approve"):
        assert words in result.stdout
    assert entries(world)[-1]["event"] == "check"
    assert entries(world)[-1]["facts"]["reasons"] == []


def test_rows_that_are_only_turned_are_said_to_be(world):
    given = with_policy(world, LENIENT)
    said = "4 numbers determine a row of it, so that this turns the table and hides nothing"

    def told(*options):
        return " ".join(run("check", *given, *options).stdout.split())

    assert said in told(*PLAIN, "--components", 4)
    assert said not in told(*PLAIN, "--components", 3)
    assert said not in told(*PLAIN, "--components", 4, "--obfuscator", "kernel-pca")
    # By default something is reduced.
    assert "3 of float64, instead of the table's" in told(*PLAIN)


def test_check_asks_about_record_numbers(world):
    given = with_policy(world, LENIENT)
    asked = "Column 'age' has another whole number in every row. If it is a record number, do not share"
    assert "record number" not in run("check", *given, *PLAIN).stdout
    rows = pd.read_csv(given[0])
    # As if they had been given out one after another.
    rows.assign(age=range(len(rows))).to_csv(given[0], index=False)
    assert asked in run("check", *given, *PLAIN).stdout


def test_the_command_that_check_prints_shares_in_that_way(world):
    given = with_policy(world, LENIENT)
    options = "--obfuscator kernel-pca --components 2 --no-standardize --fit-on-anchor --group-size 3 --noise 0.25"
    result = run("check", *given, *options.split(), "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert options in facts["command"]
    program, noun, *words = shlex.split(facts["command"])
    assert (program, noun) == ("datacollab", "party")
    assert run(*words).exit_code == 0
    share, _ = world.open_share(world.join("a"))
    assert share.representation.shape == (80, 2)
    logged = [entry for entry in entries(world) if entry["event"] == "share"]
    assert len(logged) == 1
    assert not facts["shared_before"]
    again = run("check", *given, *PLAIN, "--components", 2)
    assert "has shared before" in again.stdout
    assert "--approve --undefended --again" in again.stdout


def test_check_tells_every_reason_and_exits_with_that_of_a_policy(world):
    given = with_policy(world, 'min_rows = 100\nmax_components = 1\ndefence = "any"\naudit = "required"\n')
    result = run("check", *given, *PLAIN, "--components", 2, "--no-audit")
    assert result.exit_code == 12
    codes = ["TOO_FEW_ROWS", "DIM_TOO_LARGE", "DEFENCE_NEEDED", "RISK_UNKNOWN"]
    assert [line.split(": ")[1] for line in result.stderr.splitlines()] == codes
    assert "may not be shared" in result.stdout
    assert entries(world)[-1]["facts"]["reasons"] == codes
    result = run("check", *given, *PLAIN, "--components", 2, "--no-audit", "--json")
    facts = json.loads(result.stdout)
    assert [reason["code"] for reason in facts["reasons"]] == codes
    assert facts["error"] == facts["reasons"][0]
    assert not facts["allowed"]
    assert facts["summary"]["n_rows"] == 80


@pytest.mark.slow
def test_risk_is_measured_and_held_against_the_policy(world):
    given = with_policy(world, 'audit = "required"\n' + NO_LIMITS.replace("linkage = 1", "linkage = 0.5"))
    result = run("check", *given, *PLAIN, "--components", 3, "--json")
    assert result.exit_code == 12
    facts = json.loads(result.stdout)
    assert [reason["code"] for reason in facts["reasons"]] == ["RISK_TOO_HIGH"]
    assert facts["summary"]["risk"]["linkage"] == 1.0
    assert facts["summary"]["limits"] == {"linkage": 0.5, "reidentification": 1, "membership": 1}
    given = with_policy(world, 'audit = "warn"\n' + NO_LIMITS.replace("linkage = 1", "linkage = 0.5"))
    result = run("check", *given, *PLAIN, "--components", 3)
    assert result.exit_code == 0
    assert "ABOVE" in result.stdout
    assert "There is no defence; try --preset groups." in result.stdout
    result = run("check", *given, "--components", 3, "--noise", 0.001)
    assert "ABOVE" in result.stdout
    assert "no defence" not in result.stdout
