import json

import numpy as np
import pandas as pd
import pytest

from playing import assert_one_line, interrupted, run


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A table with gaps and a column that only numbers its rows, and public rows."""
    folder, random = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    table = pd.DataFrame({"age": random.integers(20, 90, 180), "ward": random.choice(["day", "night"], 180)})
    died = (table["age"] + 20 * (table["ward"] == "night") + random.normal(0, 15, 180)) > 70
    table["died"] = np.where(died, "yes", "no")
    table.loc[::9, "ward"] = None
    table[:60].to_csv(folder / "public.csv", index=False)
    own = table[60:].assign(record=range(120))
    own.loc[60:69, "died"] = None
    own.to_csv(folder / "own.csv", index=False)
    return folder


def test_a_trial_prints_and_writes_what_came_out(tables, tmp_path):
    given = (tables / "own.csv", "--public", tables / "public.csv", "--target", "died", "--parties", "3")
    result = run("trial", *given, "--without", "record", "-o", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    (scores,) = facts["scores"]
    assert (scores["metric"], scores["parties"], scores["rows_each"]) == ("AUC", 3, 24)
    assert scores["constant"] == 0.5 < scores["local"] <= scores["central"] + 0.1
    assert scores["low"] < scores["sums_less_local"] < scores["high"]
    assert "60 public rows, from whose targets all learn" in facts["notes"][0]
    assert "10 rows without a target are left out." in facts["notes"]
    written = pd.read_csv(tmp_path / "out" / "trial.csv")
    assert written["sums"][0] == pytest.approx(scores["sums"])
    assert (tmp_path / "out" / "trial.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "out" / "trial.csv").stat().st_mode & 0o077


@pytest.mark.slow
def test_without_public_rows_some_play_them_and_a_record_number_is_asked_about(tables):
    result = run("trial", tables / "own.csv", "--target", "died", "--parties", "3")
    assert result.exit_code == 0, result.output
    assert "11 others play public rows without targets" in result.stdout
    assert "Column 'record' has another whole number in every row." in result.stdout
    assert "In this simulation the 95 % interval" in result.stdout


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--target", "dead"), "has no column dead; it has age, ward, died, record"),
        (("--target", "died", "--without", "id"), "has no column id"),
        (("--target", "died", "--parties", "40"), "40 parties would have"),
    ],
)
def test_a_refusal_is_one_line(tables, given, words):
    result = run("trial", tables / "own.csv", *given)
    assert result.exit_code == 1
    assert words in result.stderr
    assert_one_line(result)


def test_numbers_of_parties_are_whole_numbers(tables):
    result = run("trial", tables / "own.csv", "--target", "died", "--parties", "few")
    assert result.exit_code == 2
    assert "3,5,10" in result.stderr


def test_an_interruption_leaves_nothing_behind(tables, tmp_path, monkeypatch):
    monkeypatch.setattr("datacollab.cli._trial.simulate_parties", interrupted)
    result = run("trial", tables / "own.csv", "--target", "died", "-o", tmp_path / "out")
    assert result.exit_code == 130
    assert "Interrupted. Nothing was written." in result.stderr
    assert not (tmp_path / "out").exists()
