import base64
import html
import json
import re

import numpy as np
import pandas as pd
import pytest

from datacollab.steps.party import APART, TOGETHER, message_bytes
from datacollab.sums import RidgeSums, membership_figures
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


@pytest.mark.slow
def test_a_trial_prints_and_writes_what_came_out(tables, tmp_path):
    given = (tables / "own.csv", tables / "public.csv", "--target", "died", "--parties", "3")
    result = run("trial", *given, "-o", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    scores, losses = facts["scores"]
    assert losses["metric"] == "log loss"
    assert (scores["metric"], scores["parties"], scores["rows_each"]) == ("AUC", 3, 24)
    assert scores["constant"] == 0.5 < scores["local"] <= scores["central"] + 0.1
    assert scores["low"] < scores["sums_less_local"] < scores["high"]
    assert "60 public rows, from whose targets all learn" in facts["notes"][0]
    assert "10 rows without a target are left out." in facts["notes"]
    assert any(re.match("Columns left out, which .*public.csv lacks: record", each) for each in facts["notes"])
    written = pd.read_csv(tmp_path / "out" / "trial.csv")
    assert written["sums"][0] == pytest.approx(scores["sums"])
    picture = (tmp_path / "out" / "trial.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    page = (tmp_path / "out" / "trial.html").read_text(encoding="utf-8")
    assert base64.b64encode(picture).decode() in page
    assert not re.search(r"(src|href)=.(?!data:)|<script|url\(|@import", page)
    for text in (facts["sentence"], *facts["notes"], *facts["leaves"], *facts["knows"]):
        assert html.escape(text) in page
    assert not (tmp_path / "out" / "trial.csv").stat().st_mode & 0o077


@pytest.mark.slow
def test_what_would_leave_and_who_would_know_is_that_of_a_project_like_this(tables, tmp_path):
    """The numbers of a real message, the texts of `party check`, and the figures for three tables and ten like this."""
    public = pd.read_csv(tables / "public.csv").assign(ward="day")
    public.iloc[:2] = pd.read_csv(tables / "own.csv")[["age", "ward", "died"]].fillna("day").iloc[20:22]
    public.loc[50:, "died"] = None
    public.to_csv(tmp_path / "public.csv", index=False)
    given = ("--target", "died", "--parties", "3,10", "--without", "record", "--json")
    facts = json.loads(run("trial", tables / "own.csv", tmp_path / "public.csv", *given).stdout)
    leaves = " ".join(facts["leaves"])
    numbers = int(re.search(r"once: about ([\d,]+) numbers", leaves)[1].replace(",", ""))
    sizes = {RidgeSums(n, classes=("no", "yes")).n_numbers: n for n in range(1, 129)}
    assert f" {message_bytes(numbers):,} bytes" in leaves
    assert sizes[numbers] <= 60
    assert "2 columns go into the map: age, ward." in leaves
    assert {APART, TOGETHER} <= set(facts["knows"])
    people = [each for each in membership_figures() if not each.rare]
    together = facts["attackers"][2]
    assert together["3 parties, 330 rows"] == f".{100 * people[0].together:.0f} red"
    assert together["10 parties, 1,100 rows"] == f".{100 * people[1].together:.0f} red"
    assert re.match(r"\d+ different rows of .*own.csv are also in .*public.csv. Chance explains", facts["notes"][-1])
    assert "60 public rows, and all learn from the 50 with targets" in facts["notes"][0]


@pytest.mark.nightly
def test_codes_of_which_small_parties_and_labelled_public_rows_have_few_are_no_reason_to_refuse(tmp_path):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"age": random.integers(20, 90, 480), "code": random.permutation(np.arange(480) % 40)})
    table["code"] = "I" + table["code"].astype(str).str.zfill(2)
    table["died"] = np.where(table["age"] + random.normal(0, 15, 480) > 70, "yes", "no")
    table[:300].to_csv(tmp_path / "own.csv", index=False)
    table.loc[340:, "died"] = None
    table[300:].to_csv(tmp_path / "public.csv", index=False)
    result = run("trial", tmp_path / "own.csv", tmp_path / "public.csv", "--target", "died", "--parties", "3")
    assert result.exit_code == 0, result.output
    assert "180 public rows, and all learn from the 40 with targets" in result.stdout.replace("\n", " ")
    assert "unknown" not in result.output
    table[table["code"] < "I20"][:100].to_csv(tmp_path / "public.csv", index=False)
    result = run("trial", tmp_path / "own.csv", tmp_path / "public.csv", "--target", "died", "--parties", "3")
    assert result.exit_code == 1
    assert "column 'code' holds unknown categories" in result.stderr


@pytest.mark.slow
def test_without_public_rows_some_play_them_and_a_record_number_is_left_out(tables):
    result = run("trial", tables / "own.csv", "--target", "died", "--parties", "3")
    assert result.exit_code == 0, result.output
    assert "11 others play public rows without targets" in result.stdout
    assert "Columns left out, which name rows or are all alike: record." in result.stdout
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
    monkeypatch.setattr("datacollab.cli._trial_commands.simulate_parties", interrupted)
    result = run("trial", tables / "own.csv", "--target", "died", "-o", tmp_path / "out")
    assert result.exit_code == 130
    assert "Interrupted. Nothing was written." in result.stderr
    assert not (tmp_path / "out").exists()
