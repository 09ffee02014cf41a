"""Attacks on a party's own table, and a trial of what sums would bring, by commands."""

import base64
import html
import json
import os
import re
import stat

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import datacollab.risk.audit
from audit_example import audit_result
from datacollab import Party
from datacollab.cli._trial_commands import draft
from datacollab.party import SharingPlan
from datacollab.steps.party import APART, TOGETHER, message_bytes
from datacollab.sums import RidgeSums, membership_figures
from datacollab.table import encode_table
from playing import assert_one_line, interrupted, run, runs

run_audit = runs("audit")


SECRET = "Xaver Huber"


def table_of(rng, n_rows):
    return pd.DataFrame(
        {
            "age": rng.normal(50, 10, n_rows),
            "ward": rng.choice(["north", "south", "west"], n_rows),
            "smoker": rng.random(n_rows) < 0.3,
            "dose": rng.normal(size=n_rows),
            "diagnosis": rng.choice(["ill", "well"], n_rows),
        }
    )


@pytest.fixture
def tables(rng):
    return {"private": table_of(rng, 40), "anchor": table_of(rng, 60), "public": table_of(rng, 90)}


@pytest.fixture
def files(tables, write):
    return {name: write(f"{name}.csv", table) for name, table in tables.items()}


@pytest.fixture
def calls(monkeypatch):
    """What the audit was called with, in place of an audit."""
    calls = []

    def stub(*given, progress, **options):
        progress(0, 1, "T0: Procrustes")
        calls.append((given, options))
        return audit_result(party=given[0].name)

    monkeypatch.setattr(datacollab.risk.audit, "audit", stub, raising=False)
    return calls


def test_columns_are_left_out_by_name(files, tables, write, calls, tmp_path):
    plain = run_audit(files["private"], files["anchor"], "--target", "diagnosis", "-o", tmp_path / "plain")
    assert plain.exit_code == 0, plain.output
    assert "record number" not in plain.output
    numbered = [write("numbered.csv", tables["private"].assign(record=np.arange(40) * 7)), files["anchor"]]
    assert_one_line(run_audit(*numbered, "--target", "diagnosis"), "lacks columns", "record")
    left_out = run_audit(*numbered, "--target", "diagnosis", "--without", "record", "-o", tmp_path / "numbered")
    assert left_out.exit_code == 0, left_out.output
    (given, _), (given_without, _) = calls
    for one, other in zip(given[1:], given_without[1:], strict=True):
        assert_array_equal(one, other)
    assert_one_line(run_audit(*numbered, "--target", "diagnosis", "--without", "name"), "--without name", "age")


def test_record_numbers_and_constants_are_left_out(tables, write, calls, tmp_path):
    numbered = [
        write(f"{name}.csv", tables[name].assign(record=1000 + np.arange(len(tables[name])), year=2000 + start))
        for start, name in enumerate(("private", "anchor"))
    ]
    result = run_audit(*numbered, "--target", "diagnosis", "-o", tmp_path)
    assert result.exit_code == 0, result.output
    assert "Columns left out, which name rows or are all alike: record, year." in result.stderr
    assert calls[0][0][1].shape == (40, 7)


def test_a_page_a_result_and_a_table_are_written(files, calls, tmp_path):
    output = tmp_path / "new" / "audit"
    result = run_audit(files["private"], files["anchor"], "--target", "diagnosis", "--output", output, COLUMNS="200")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in output.iterdir()) == ["audit.csv", "audit.html", "audit.json"]
    expected = audit_result(party="private")
    assert (output / "audit.html").read_text(encoding="utf-8") == expected.to_html()
    assert (output / "audit.json").read_text(encoding="utf-8") == expected.to_json()
    assert len(pd.read_csv(output / "audit.csv")) == len(expected.findings)
    if os.name == "posix":
        assert {stat.S_IMODE(path.stat().st_mode) for path in output.iterdir()} == {0o600}
    for words in ("private", "RED", "17, 3, 88", "Attacks not known today", "audit.html", "Inconclusive"):
        assert words in result.stdout
    assert result.stderr == ""


def test_categories_become_columns_of_zeros_and_ones(files, tables, calls, tmp_path):
    result = run_audit(
        files["private"], files["anchor"], "--public", files["public"], "--target", "diagnosis", "--output", tmp_path,
        "--attribute", "ward", "--attribute", "dose", "--seed", 3, "--seeds", 2,
        "--time-budget", 9, "--components", 4,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    (((party, X, anchor), options),) = calls
    wards = np.stack([tables["private"]["ward"] == ward for ward in ("north", "south", "west")], axis=1)
    numbers = tables["private"][["age", "smoker", "dose"]].to_numpy(float)
    # No row is of another ward.
    assert_allclose(X, np.column_stack([numbers[:, 0], wards, np.zeros(40), numbers[:, 1:]]), rtol=1e-12)
    assert anchor.shape == (60, 7)
    # A third of the public rows is kept apart, as strangers that the attacker does not hold.
    assert options["public"].shape == (60, 7)
    assert options["control"].shape == (30, 7)
    assert_array_equal(options["y"], tables["private"]["diagnosis"])
    assert_array_equal(options["anchor_target"], tables["anchor"]["diagnosis"])
    both = [*options["public_target"], *options["control_target"]]
    assert sorted(both) == sorted(tables["public"]["diagnosis"])
    assert options["attributes"] == {"ward": [1, 2, 3, 4], "dose": 6}
    assert options["n_seeds"] == 2
    assert isinstance(options["random_state"], np.random.RandomState)
    assert options["time_budget"] == 9
    assert isinstance(party, Party)
    assert party.share(anchor).representation.shape == (40, 4)


def test_columns_may_stand_in_another_order_and_the_target_may_be_missing(files, tables, write, calls, tmp_path):
    shuffled = write("shuffled.csv", tables["anchor"][["dose", "smoker", "ward", "age"]])
    assert run_audit(files["private"], shuffled, "--target", "diagnosis", "--output", tmp_path).exit_code == 0
    assert run_audit(files["private"], files["anchor"], "--target", "diagnosis", "--output", tmp_path).exit_code == 0
    (without, options), (given, _) = calls
    assert_array_equal(without[2], given[2])
    assert options["anchor_target"] is None
    assert options.get("public") is None


def test_the_party_is_what_the_options_say(files, calls, tmp_path):
    def party(*options):
        calls.clear()
        result = run_audit(files["private"], files["anchor"], "--target", "diagnosis", "--output", tmp_path, *options)
        assert result.exit_code == 0, result.output
        return calls[0][0][0]

    assert [name for name, _ in party().obfuscator.steps] == ["standardize", "reduce"]
    # Three wards are told by two of their columns, so five numbers tell a row, of which five components hide nothing.
    assert party().obfuscator["reduce"].n_components == 4
    assert party("--no-standardize", "--components", 3).obfuscator.n_components == 3
    assert type(party("--obfuscator", "kernel-pca").obfuscator["reduce"]).__name__ == "KernelPCAObfuscator"


@pytest.mark.parametrize("name", ["private", "anchor", "public"])
def test_errors_name_file_and_column_and_no_entry(files, tables, write, calls, tmp_path, name):
    def failing(table, *words):
        paths = files | {name: write("broken.csv", table)}
        result = run_audit(
            paths["private"], paths["anchor"], "--public", paths["public"], "--target", "diagnosis", "--output",
            tmp_path / "out",
        )  # fmt: skip
        assert_one_line(result, "broken.csv", *words)
        assert "Huber" not in result.output
        assert not (tmp_path / "out").exists()
        assert not calls

    table = tables[name]
    if name == "private":
        failing(table.assign(name=SECRET), "name", "lacks")
    else:
        failing(table.drop(columns="dose"), "dose", "lacks")
    if name != "public":
        failing(table.assign(dose=SECRET), "'dose'", "number")
        unknown = table.copy()
        unknown.loc[::2, "ward"] = SECRET
        failing(unknown, "'ward'")


def test_columns_that_the_private_table_lacks_are_named(files, tables, write, calls, tmp_path):
    fewer = write("fewer.csv", tables["private"].drop(columns="dose"))
    result = run_audit(fewer, files["anchor"], "--target", "diagnosis", "-o", tmp_path)
    assert result.exit_code == 0, result.output
    assert "Columns left out, which" in result.stderr
    assert "lacks: dose." in result.stderr
    assert calls[0][0][1].shape == (40, 6)


def test_gaps_are_filled_in_as_a_project_would(files, tables, write, calls, tmp_path):
    """By the public rows alone, whosever the gaps are; truth values with gaps stay numbers."""
    holed = {name: table.copy() for name, table in tables.items()}
    for name, table in holed.items():
        table["smoker"] = table["smoker"].astype(object)
        table.loc[[3, 7], ["ward", "smoker"]] = None
        table.loc[[5], "dose"] = np.nan
        files[name] = write(f"holed-{name}.csv", table)
    given = ["--target", "diagnosis", "--output", tmp_path, "--public", files["public"]]
    result = run_audit(files["private"], files["anchor"], *given)
    assert result.exit_code == 0, result.output
    private, _, public = (holed[name] for name in ("private", "anchor", "public"))
    assert "holed-private.csv: adjusted by what" in result.stderr
    assert "5 missing entries filled in, in 3 columns" in result.stderr
    X = calls[0][0][1]
    found = draft(public.drop(columns="diagnosis"), task="none")
    assert_array_equal(X, encode_table(found, private, where="private").X)
    # Two of 90 public rows have no ward: a column says where, behind those of the wards and of others.
    wards = sorted(public["ward"].dropna().unique())
    assert wards[int(X[3, 1:4].argmax())] == public["ward"].mode()[0]
    assert X[3, 5] == 1
    untouched = [row for row in range(40) if row not in (3, 5, 7)]
    assert_allclose(X[untouched, 0], tables["private"]["age"].to_numpy()[untouched])


@pytest.mark.parametrize("name", ["private", "anchor", "public"])
def test_many_gaps_of_one_table_are_flagged_in_all(files, tables, write, calls, tmp_path, name):
    """A project without the flag would refuse them, and nothing would be attacked."""
    holed = tables[name].copy()
    holed.loc[::4, ["dose", "ward"]] = None
    files[name] = write("holed.csv", holed)
    given = ["--target", "diagnosis", "--output", tmp_path, "--public", files["public"]]
    result = run_audit(files["private"], files["anchor"], *given)
    assert result.exit_code == 0, result.output
    ((_, X, anchor), options) = calls[0]
    # Behind the four columns of the wards, and behind the dose.
    for matrix, table in ((X, "private"), (anchor, "anchor")):
        is_gap = np.arange(len(matrix)) % 4 == 0 if name == table else np.zeros(len(matrix), dtype=bool)
        assert_array_equal(matrix[:, 5], is_gap)
        assert_array_equal(matrix[:, -1], is_gap)
    assert X.shape[1] == options["public"].shape[1] == 9


def test_exceptions_count_as_other(files, tables, write, calls, tmp_path):
    strange = tables["private"].copy()
    strange.loc[[4, 8], "ward"] = SECRET
    given = ["--target", "diagnosis", "--output", tmp_path, "--attribute", "ward"]
    result = run_audit(write("strange.csv", strange), files["anchor"], *given)
    assert result.exit_code == 0, result.output
    assert "2 of 40 rows in 1 column: 2 counted as other" in result.stderr
    assert SECRET not in result.output
    ((_, X, _), options) = calls[0]
    assert np.flatnonzero(X[:, 4]).tolist() == [4, 8]
    assert_allclose(X[:, 1:5].sum(axis=1), 1)
    assert options["attributes"] == {"ward": [1, 2, 3, 4]}


def test_a_full_rotation_is_hinted_at(files, calls, tmp_path):
    """Whoever has the anchor undoes it, and every record is told."""
    given = files["private"], files["anchor"], "--target", "diagnosis", "--output", tmp_path
    assert "5 numbers tell a row" in run_audit(*given, "--components", 5).stderr
    assert run_audit(*given, "--components", 4).stderr == ""


@pytest.mark.parametrize(
    ("options", "defences", "fitted_at_home"),
    [
        ([], [], True),
        (["--preset", "none"], [], True),
        (["--preset", "groups"], ["Microaggregation", "GaussianNoise"], False),
    ],
)
def test_a_preset_is_what_it_is_where_shares_are_made(files, calls, tmp_path, options, defences, fitted_at_home):
    """The same names as `party share`, with the same defences."""
    given = files["private"], files["anchor"], "--public", files["public"], "--target", "diagnosis"
    assert run_audit(*given, "--output", tmp_path, *options).exit_code == 0
    (((party, *_), _),) = calls
    assert [type(each).__name__ for each in party.defences] == defences
    assert (party.fit_on is None) == fitted_at_home
    plan = SharingPlan.of(preset=options[-1] if options else "none", largest=6)
    assert [type(each).__name__ for each in plan.defences] == defences


def test_wrong_options_are_one_line(files, calls, tmp_path):
    def failing(*options, target="diagnosis"):
        return run_audit(files["private"], files["anchor"], "--target", target, "--output", tmp_path / "out", *options)

    assert_one_line(failing(target="outcome"), "'outcome'", "age, ward, smoker, dose, diagnosis")
    assert_one_line(failing("--attribute", "income"), "income", "age, ward, smoker, dose")
    assert_one_line(failing("--attribute", "diagnosis"), "diagnosis", "is the target")
    assert_one_line(failing("--obfuscator", "gan"), "gan", "kernel-pca")
    assert_one_line(failing("--preset", "strict"), "strict", "groups")
    assert_one_line(failing("--components", 8), "--components 8", "7 columns")
    assert failing("--components", 0).exit_code == 2
    assert run_audit(files["private"], files["anchor"]).exit_code == 2
    assert run_audit(files["private"], tmp_path / "absent.csv", "--target", "diagnosis").exit_code == 2
    assert not (tmp_path / "out").exists()
    assert not calls


def test_an_interruption_writes_nothing(files, monkeypatch, tmp_path):
    monkeypatch.setattr(datacollab.risk.audit, "audit", interrupted, raising=False)
    result = run_audit(files["private"], files["anchor"], "--target", "diagnosis", "--output", tmp_path / "out")
    assert result.exit_code == 130
    assert "interrupted. Nothing was written" in result.stderr
    assert not list((tmp_path / "out").iterdir())


def test_private_rows_in_the_anchor_are_refused(files, tmp_path):
    result = run_audit(files["private"], files["private"], "--target", "diagnosis", "--output", tmp_path)
    assert result.exit_code == 1
    assert "every party sees the anchor" in result.stderr


@pytest.fixture(scope="module")
def trial_tables(tmp_path_factory):
    """A table with gaps and a column that only numbers its rows, and public rows."""
    folder, random = tmp_path_factory.mktemp("trial_tables"), np.random.default_rng(0)
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
def test_a_trial_prints_and_writes_what_came_out(trial_tables, tmp_path):
    given = (trial_tables / "own.csv", trial_tables / "public.csv", "--target", "died", "--parties", "3")
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
def test_what_would_leave_and_who_would_know_is_that_of_a_project_like_this(trial_tables, tmp_path):
    """The numbers of a real message, the texts of `party check`, and the figures for three tables and ten like this."""
    public = pd.read_csv(trial_tables / "public.csv").assign(ward="day")
    public.iloc[:2] = pd.read_csv(trial_tables / "own.csv")[["age", "ward", "died"]].fillna("day").iloc[20:22]
    public.loc[50:, "died"] = None
    public.to_csv(tmp_path / "public.csv", index=False)
    given = ("--target", "died", "--parties", "3,10", "--without", "record", "--json")
    facts = json.loads(run("trial", trial_tables / "own.csv", tmp_path / "public.csv", *given).stdout)
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
def test_without_public_rows_some_play_them_and_a_record_number_is_left_out(trial_tables):
    result = run("trial", trial_tables / "own.csv", "--target", "died", "--parties", "3")
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
def test_a_refusal_is_one_line(trial_tables, given, words):
    result = run("trial", trial_tables / "own.csv", *given)
    assert result.exit_code == 1
    assert words in result.stderr
    assert_one_line(result)


def test_numbers_of_parties_are_whole_numbers(trial_tables):
    result = run("trial", trial_tables / "own.csv", "--target", "died", "--parties", "few")
    assert result.exit_code == 2
    assert "3,5,10" in result.stderr


def test_an_interruption_leaves_nothing_behind(trial_tables, tmp_path, monkeypatch):
    monkeypatch.setattr("datacollab.cli._trial_commands.simulate_parties", interrupted)
    result = run("trial", trial_tables / "own.csv", "--target", "died", "-o", tmp_path / "out")
    assert result.exit_code == 130
    assert "Interrupted. Nothing was written." in result.stderr
    assert not (tmp_path / "out").exists()
