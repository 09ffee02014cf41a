"""A party's commands: joining, sharing, predicting, and tables that do not quite fit, of which no entry is shown."""

import json
import re
import shlex
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from datacollab.agreement import Anchor
from datacollab.bundle import unpack
from datacollab.plugins import all_codes
from datacollab.steps.party import PartyFolder
from datacollab.table import Column, encode_table
from party_world import NAMES, allow_without_audit, contents, made_up_table, new_world
from playing import app, assert_refused, runs
from playing import run as run_program

QUICK = ["--components", "3", "--no-audit", "--preset", "none"]


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.delenv("DATACOLLAB_PASSPHRASE", raising=False)
    return new_world(tmp_path)


def run(world, *words, folder="a", typed=None):
    return CliRunner().invoke(app, ["party", *map(str, words), "-C", str(world.root / folder)], input=typed)


def done(world, *words, folder="a", **options):
    result = run(world, *words, folder=folder, **options)
    assert result.exit_code == 0, result.output
    return result.stdout


def join(world, name="a"):
    told = done(world, "join", world.root / "project.toml", world.root / "anchor.dcanchor", folder=name)
    allow_without_audit(world.root / name / "policy.toml")
    return told


def share(world, name="a", *words):
    return done(world, "share", world.root / f"{name}.csv", *QUICK, "--approve", "--undefended", *words, folder=name)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    world = new_world(tmp_path_factory.mktemp("installed"))
    for name in "ab":
        join(world, name)
        share(world, name)
    model = world.model_file(PartyFolder(world.root / "a"), PartyFolder(world.root / "b"))
    assert "signed by the project's analyst" in done(world, "install", model)
    return world


@pytest.fixture
def ready(installed, tmp_path):
    """A world whose first party has a model."""
    return installed.copied(tmp_path)


def plain(text):
    """The words, in one line."""
    return " ".join(text.split())


def refused(result, code):
    assert result.exit_code == all_codes()[code].exit_code, result.output
    assert f"datacollab: {code}: " in result.stderr


def test_from_joining_to_predictions(ready):
    output = ready.root / "out.csv"
    assert done(ready, "predict", ready.root / "new.csv", "-o", output, "--keep", "id").endswith(
        "out.csv: 80 predictions\n"
    )
    assert list(pd.read_csv(output)) == ["id", "prediction", "proba_no", "proba_yes"]
    new, flagged = ready.root / "new.csv", ready.root / "flagged.csv"
    told = done(ready, "predict", new, "-o", flagged, "--tested", new, "--find", "0.9")
    found = pd.read_csv(flagged)
    n_found, n_ill = (found["flagged"] & (ready.table["ill"] == "yes")).sum(), (ready.table["ill"] == "yes").sum()
    assert f"finds {n_found} of {n_ill} yes, among {found['flagged'].sum()} rows flagged; of new ones " in told
    told = done(ready, "evaluate", ready.root / "new.csv")
    assert "80 rows, target ill" in told
    assert "Balanced accuracy" in told
    scores = json.loads(done(ready, "evaluate", ready.root / "new.csv", "--json"))
    predicted = pd.read_csv(output)["prediction"]
    assert scores["accuracy"] == (predicted == ready.table["ill"]).mean()


def test_how_well_probabilities_find_the_ill(ready):
    output, table = ready.root / "out.csv", ready.root / "new.csv"
    done(ready, "predict", table, "-o", output)
    found, ill = pd.read_csv(output)["proba_yes"], ready.table["ill"] == "yes"
    scores = json.loads(done(ready, "evaluate", table, "--find", "0.9", "--json"))["ranking"]
    assert (scores["positive"], scores["prevalence"]) == ("yes", ill.mean())
    assert scores["auc"] == pytest.approx(roc_auc_score(ill, found))
    assert scores["threshold"]["n_positive"] == ill.sum()
    assert scores["threshold"]["n_found"] >= 0.9 * ill.sum()
    told = done(ready, "evaluate", table, "--find", "0.9")
    assert f"among {scores['threshold']['n_called']} rows" in told
    assert "To find 90%" in told


def test_where_nobody_is_called_that_is_said(ready):
    world = ready
    model = DecisionTreeClassifier(min_samples_split=1000, class_weight={"no": 1.0, "yes": 0.1})  # one leaf
    folders = [PartyFolder(world.root / name) for name in ("a", "b")]
    done(world, "install", world.model_file(*folders, estimator=model))
    told = done(world, "evaluate", world.root / "new.csv", "--using", "collaboration")
    assert "No row is called 'yes', for no probability reaches one half" in told
    assert re.search(r"AUC of yes +0\.500", told)


def test_join_says_who_one_is(world):
    told = join(world, "b")
    assert "party b of project wards" in told
    assert "policy.toml" in told
    without = json.loads(done(world, "join", world.root / "project.toml", "--json"))
    assert without == {
        "party": "a",
        "project": "wards",
        "project_digest": world.project.digest,
        "project_fingerprint": world.project.fingerprint,
        "owner": world.project.owner.fingerprint,
        "analyst": world.project.analyst.fingerprint,
        "anchor": False,
    }
    assert "anchor is missing" in done(world, "join", world.root / "project.toml")


def test_join_wants_the_owner_or_people_to_compare(world):
    told = join(world)
    for key in ("a", "analyst"):
        assert world.keys[key].public.fingerprint in told
    assert world.project.fingerprint in told
    assert "compare them with the owner by telephone" in told
    owner = world.root / "owner.key"
    owner.write_text(world.keys["a"].public.text)
    files = world.root / "project.toml", world.root / "anchor.dcanchor"
    assert "telephone" not in done(world, "join", *files, "--owner", owner)
    owner.write_text(world.keys["stranger"].public.text)
    refused(run(world, "join", *files, "--owner", owner, folder="b"), "SIGNATURE_INVALID")
    assert not (world.root / "b" / "project.toml").exists()


def test_an_older_model_needs_a_word(ready):
    folders = PartyFolder(ready.root / "a"), PartyFolder(ready.root / "b")
    older = ready.model_file(*folders, created="2026-01-01T00:00:00+00:00")
    refused(run(ready, "install", older), "ALREADY_THERE")
    assert "signed by the project's analyst" in done(ready, "install", older, "--older")


def test_without_a_yes_nothing_leaves(world, monkeypatch):
    join(world)
    words = ["share", world.root / "a.csv", *QUICK, "--undefended"]
    outbox = world.root / "a" / "outbox"
    result = run(world, *words)
    refused(result, "NOT_APPROVED")
    assert "What would leave party 'a'" in result.stdout
    monkeypatch.setattr("datacollab.cli._command.at_terminal", lambda: True)
    refused(run(world, *words, typed="n\n"), "NOT_APPROVED")
    refused(run(world, *words, "--json"), "NOT_APPROVED")
    assert not list(outbox.iterdir())
    result = run(world, *words, typed="y\n")
    assert result.exit_code == 0
    assert result.stdout.index("What would leave") < result.stdout.index("a.dcshare")
    assert [path.name for path in outbox.iterdir()] == ["a.dcshare"]


def test_who_approves_is_recorded(world):
    join(world)
    told = json.loads(share(world, "a", "--approved-by", "dr who", "--json"))
    _, bundle = world.open_share(PartyFolder(world.root / "a"))
    assert bundle.facts["approved_by"] == "dr who"
    assert told["share"].endswith("a.dcshare")
    assert told["bytes"] == Path(told["share"]).stat().st_size
    assert told["summary"]["n_rows"] == 80


def test_without_a_word_means_of_groups_leave(world):
    join(world)
    told = done(world, "share", world.root / "a.csv", "--components", "3", "--no-audit", "--approve")
    assert "none is one of yours" in plain(told)
    assert "mean of at least 5" in plain(told)
    share, _ = world.open_share(PartyFolder(world.root / "a"))
    assert not share.one_to_one


def test_undefended_rows_have_to_be_asked_for_twice(world, monkeypatch):
    join(world)
    words = ["share", world.root / "a.csv", *QUICK]
    monkeypatch.setattr("datacollab.cli._command.at_terminal", lambda: True)
    for more in ([], ["--approve"], ["--approve", "--json"]):
        result = run(world, *words, *more, typed="y\ny\n")
        refused(result, "UNDEFENDED")
        assert "its rows themselves leave" in plain(result.stderr)
        assert "--preset none and --undefended" in plain(result.stderr)
    assert not list((world.root / "a" / "outbox").iterdir())
    assert run(world, *words, "--undefended", typed="y\n").exit_code == 0


def test_refusals_have_their_codes(world):
    refused(run(world, "evaluate", world.root / "a.csv"), "FOLDER_MISSING")
    files = world.root / "project.toml", world.root / "anchor.dcanchor"
    refused(run(world, "join", *files, folder="stranger"), "NOT_A_MEMBER")
    assert [path.name for path in (world.root / "stranger").iterdir()] == ["keys.json"]
    refused(run(world, "join", *files, folder="nowhere"), "KEY_MISSING")
    join(world)
    made_up_table(80).assign(age=1e4).to_csv(world.root / "wrong.csv", index=False)
    result = run(world, "share", world.root / "wrong.csv", *QUICK, "--undefended", "--approve", "--json")
    refused(result, "SCHEMA_RANGE")
    assert json.loads(result.stdout)["error"]["code"] == "SCHEMA_RANGE"
    assert "10000" not in result.output


def test_with_a_passphrase(world, monkeypatch):
    (world.root / "a" / "keys.json").unlink()
    world.keys["a"].save(world.root / "a" / "keys.json", "open sesame")
    words = world.root / "words.txt"
    words.write_text("open sesame\n")
    files = world.root / "project.toml", world.root / "anchor.dcanchor"
    refused(run(world, "join", *files), "PASSPHRASE_WRONG")
    done(world, "join", *files, "--passphrase-file", words)
    allow_without_audit(world.root / "a" / "policy.toml")
    monkeypatch.setenv("DATACOLLAB_PASSPHRASE", "open sesame")
    share(world)
    assert b"obfuscator" not in (world.root / "a" / "party.dcstate").read_bytes()


def test_kinds_and_presets_that_are_unknown_are_refused_before_any_work(world):
    for verb in ("check", "share"):
        result = run(world, verb, world.root / "a.csv", "--obfuscator", "PCA")
        assert result.exit_code == 2
        assert "pca, kernel-pca, umap, random-projection" in plain(result.stderr)
    for verb in ("check", "share"):
        result = run(world, verb, world.root / "a.csv", "--preset", "secret")
        assert result.exit_code == 2
        assert "Expected one of groups, none, got" in plain(result.stderr)


def test_what_cannot_be_predicted_is_a_usage_error(tmp_path, monkeypatch):
    world = new_world(tmp_path, task="regression")
    world.join()
    monkeypatch.setattr(PartyFolder, "predict", None)
    result = run(world, "predict", world.root / "new.csv", "-o", world.root / "a" / ".." / "new.csv")
    assert result.exit_code == 2
    assert "the table itself" in plain(result.stderr)


def test_predictions_overwrite_nothing_else(ready):
    output = ready.root / "a.csv"
    refused(run(ready, "predict", ready.root / "new.csv", "-o", output), "ALREADY_THERE")
    assert "age" in output.read_text()
    done(ready, "predict", ready.root / "new.csv", "-o", output, "--force")


@pytest.mark.parametrize(
    ("place", "is_shared"),
    [("by_rows.party._row_share.commit_share", False), ("folder.party._folder._finish_share", True)],
)
def test_after_an_interruption_it_is_known_whether_the_share_was_made(world, monkeypatch, place, is_shared):
    join(world)
    real = resolve_name(f"datacollab.{place}")
    calls = []

    def once_interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(f"datacollab.{place}", once_interrupted)
    result = run(world, "share", world.root / "a.csv", *QUICK, "--approve", "--undefended", "--json")
    assert result.exit_code == 130
    assert (world.root / "a" / "outbox" / "a.dcshare").exists() == is_shared
    said = json.loads(result.stdout)["error"]["message"]
    assert ("Nothing left the party." in said, "is whole in" in said) == (not is_shared, is_shared)
    assert said in result.stderr


NO_LIMITS = "max_linkage = 1\nmax_reidentification = 1\nmax_membership = 1\n"
LENIENT = 'min_rows = 1\nmin_class_rows = 1\naudit = "off"\n'
PLAIN = ("--preset", "none")
run_party = runs("party")


@pytest.fixture
def joined_world(tmp_path):
    joined_world = new_world(tmp_path)
    joined_world.join("a")
    return joined_world


def with_policy(joined_world, text):
    (joined_world.root / "a" / "policy.toml").write_text(text)
    return joined_world.root / "a.csv", "-C", joined_world.root / "a"


def entries(joined_world):
    return [json.loads(line) for line in (joined_world.root / "a" / "log.jsonl").read_text().splitlines()]


def test_check_shows_what_would_leave_and_writes_nothing_of_it(joined_world):
    given = with_policy(joined_world, LENIENT)
    before = contents(joined_world.folder())
    result = run_party("check", *given, *PLAIN, "--components", 2)
    assert result.exit_code == 0, result.output
    assert contents(joined_world.folder()) == before
    for words in ("80, in random order", "2 of float64", "no: ", "60 rows", "This may be shared", "--approve"):
        assert words in result.stdout
    assert entries(joined_world)[-1]["event"] == "check"
    assert entries(joined_world)[-1]["facts"]["reasons"] == []


def test_rows_that_are_only_turned_are_said_to_be(joined_world):
    given = with_policy(joined_world, LENIENT)
    said = "4 numbers determine a row of it, so that this turns the table and hides nothing"

    def told(*options):
        return " ".join(run_party("check", *given, *options).stdout.split())

    assert said in told(*PLAIN, "--components", 4)
    assert said not in told(*PLAIN, "--components", 3)
    assert said not in told(*PLAIN, "--components", 4, "--obfuscator", "kernel-pca")
    # By default something is reduced.
    assert "3 of float64, instead of the table's" in told(*PLAIN)


def test_check_asks_about_record_numbers(joined_world):
    given = with_policy(joined_world, LENIENT)
    asked = "Column 'age' has another whole number in every row. If it is a record number, do not share"
    assert "record number" not in run_party("check", *given, *PLAIN).stdout
    rows = pd.read_csv(given[0])
    # As if they had been given out one after another.
    rows.assign(age=range(len(rows))).to_csv(given[0], index=False)
    assert asked in run_party("check", *given, *PLAIN).stdout


def test_the_command_that_check_prints_shares_in_that_way(joined_world):
    given = with_policy(joined_world, LENIENT)
    options = "--obfuscator kernel-pca --components 2 --no-standardize --fit-on-anchor --group-size 3 --noise 0.25"
    result = run_party("check", *given, *options.split(), "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert options in facts["command"]
    program, noun, *words = shlex.split(facts["command"])
    assert (program, noun) == ("datacollab", "party")
    assert run_party(*words).exit_code == 0
    share, _ = joined_world.open_share(joined_world.join("a"))
    assert share.representation.shape == (80, 2)
    logged = [entry for entry in entries(joined_world) if entry["event"] == "share"]
    assert len(logged) == 1
    assert not facts["shared_before"]
    again = run_party("check", *given, *PLAIN, "--components", 2)
    assert "has shared before" in again.stdout
    assert "--approve --undefended --again" in again.stdout


def test_check_tells_every_reason_and_exits_with_that_of_a_policy(joined_world):
    given = with_policy(joined_world, 'min_rows = 100\nmax_components = 1\ndefence = "any"\naudit = "required"\n')
    result = run_party("check", *given, *PLAIN, "--components", 2, "--no-audit")
    assert result.exit_code == 12
    codes = ["TOO_FEW_ROWS", "DIM_TOO_LARGE", "DEFENCE_NEEDED", "RISK_UNKNOWN"]
    assert [line.split(": ")[1] for line in result.stderr.splitlines()] == codes
    assert "may not be shared" in result.stdout
    assert entries(joined_world)[-1]["facts"]["reasons"] == codes
    result = run_party("check", *given, *PLAIN, "--components", 2, "--no-audit", "--json")
    facts = json.loads(result.stdout)
    assert [reason["code"] for reason in facts["reasons"]] == codes
    assert facts["error"] == facts["reasons"][0]
    assert not facts["allowed"]
    assert facts["summary"]["n_rows"] == 80


@pytest.mark.slow
def test_risk_is_measured_and_held_against_the_policy(joined_world):
    given = with_policy(joined_world, 'audit = "required"\n' + NO_LIMITS.replace("linkage = 1", "linkage = 0.5"))
    result = run_party("check", *given, *PLAIN, "--components", 3, "--json")
    assert result.exit_code == 12
    facts = json.loads(result.stdout)
    assert [reason["code"] for reason in facts["reasons"]] == ["RISK_TOO_HIGH"]
    assert facts["summary"]["risk"]["linkage"] == 1.0
    assert facts["summary"]["limits"] == {"linkage": 0.5, "reidentification": 1, "membership": 1}
    given = with_policy(joined_world, 'audit = "warn"\n' + NO_LIMITS.replace("linkage = 1", "linkage = 0.5"))
    result = run_party("check", *given, *PLAIN, "--components", 3)
    assert result.exit_code == 0
    assert "ABOVE" in result.stdout
    assert "There is no defence; try --preset groups." in result.stdout
    result = run_party("check", *given, "--components", 3, "--noise", 0.001)
    assert "ABOVE" in result.stdout
    assert "no defence" not in result.stdout


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
def unfit_world(tmp_path, monkeypatch):
    monkeypatch.delenv("DATACOLLAB_PASSPHRASE", raising=False)
    rules = {"missing": "fill", "fill": 50.0, "outside": "clip"}
    columns = [Column(name=name, kind="number", minimum=0.0, maximum=100.0, **rules) for name in NAMES[:3]]
    columns.append(Column(name="ward", kind="category", categories=("north", "south"), unknown="other"))
    unfit_world = new_world(tmp_path, columns=columns)
    public = encode_table(unfit_world.project, made_up_table(60, seed=99), where="public", with_target=False)
    unfit_world.anchor = Anchor(rows=public.X)
    unfit_world.write_project(unfit_world.project)
    for name in "ab":
        unfit_table(200, seed=ord(name)).to_csv(tmp_path / f"{name}.csv", index=False)
    unfit_table(200, seed=1).to_csv(tmp_path / "new.csv", index=False)
    return unfit_world


def run_unfit(unfit_world, *words, folder="a"):
    return run_program("party", *words, "-C", unfit_world.root / folder)


def assert_no_entry(text):
    assert "987.65" not in text
    assert WARD not in text


def done_unfit(unfit_world, *words, folder="a"):
    result = run_unfit(unfit_world, *words, folder=folder)
    assert result.exit_code == 0, result.output
    if words[0] == "join":
        allow_without_audit(unfit_world.root / folder / "policy.toml")
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
def test_a_table_with_some_numbers_outside_goes_all_the_way(unfit_world):
    for name in "ab":
        table = unfit_world.root / f"{name}.csv"
        done_unfit(
            unfit_world, "join", unfit_world.root / "project.toml", unfit_world.root / "anchor.dcanchor", folder=name
        )
        told = done_unfit(unfit_world, "check", table, *QUICK, folder=name)
        assert f" adjusted entries {LINE}" in " ".join(told.split())
        told = told.splitlines()
        at = told.index("Adjusted entries, by column")
        assert told[at + 1 : at + 4] == DETAILS
        assert (
            json.loads(done_unfit(unfit_world, "check", table, *QUICK, "--json", folder=name))["summary"]["adjusted"]
            == COUNTS
        )
        assert LINE in " ".join(
            done_unfit(unfit_world, "share", table, *QUICK, "--approve", "--undefended", folder=name).split()
        )
    done_unfit(unfit_world, "install", unfit_world.model_file(*(PartyFolder(unfit_world.root / name) for name in "ab")))
    new, output, same = unfit_world.root / "new.csv", unfit_world.root / "out.csv", unfit_world.root / "same.csv"
    told = done_unfit(unfit_world, "predict", new, "-o", output)
    assert f"Adjusted entries: {LINE} 1 missing entry filled in, in 1 column" in told
    assert done_unfit(unfit_world, "evaluate", new).splitlines()[-3:] == DETAILS
    for command in (["predict", new, "-o", output], ["evaluate", new]):
        assert json.loads(done_unfit(unfit_world, *command, "--json"))["adjusted"] == COUNTS
    table = pd.read_csv(new)
    table.assign(pulse=table["pulse"].clip(0, 100)).to_csv(new, index=False)
    done_unfit(unfit_world, "predict", new, "-o", same)
    assert same.read_text() == output.read_text()


def test_the_log_has_the_counts_and_what_leaves_has_not(unfit_world):
    done_unfit(unfit_world, "join", unfit_world.root / "project.toml", unfit_world.root / "anchor.dcanchor")
    done_unfit(unfit_world, "check", unfit_world.root / "a.csv", *QUICK)
    done_unfit(unfit_world, "share", unfit_world.root / "a.csv", *QUICK, "--approve", "--undefended")
    (entry,) = [entry for entry in PartyFolder(unfit_world.root / "a").log.entries() if entry["event"] == "share"]
    assert entry["facts"]["adjusted"] == COUNTS
    assert_no_entry((unfit_world.root / "a" / "log.jsonl").read_text())
    share = unpack(unfit_world.root / "a" / "outbox" / "a.dcshare")
    assert "adjusted" not in json.dumps(share.facts)
    assert_no_entry(json.dumps(share.facts))


def test_another_unit_is_refused_and_named(unfit_world):
    done_unfit(unfit_world, "join", unfit_world.root / "project.toml", unfit_world.root / "anchor.dcanchor")
    table = made_up_table(80)
    table.assign(pulse=table["pulse"].clip(11, 99) * 100).to_csv(unfit_world.root / "a.csv", index=False)
    for command, *said in (("check",), ("share", "--undefended")):
        result = run_unfit(unfit_world, command, unfit_world.root / "a.csv", *QUICK, *said)
        assert_refused(result, "SCHEMA_RANGE", 13)
        assert "column 'pulse' has numbers outside the agreed range, 0 to 100, in 80 of 80 rows." in result.stderr
        assert "Nearly all would fit if they were multiplied by 0.01" in result.stderr
        assert "no exceptions that could be clipped. Check the unit" in result.stderr
    assert not list((unfit_world.root / "a" / "outbox").iterdir())
