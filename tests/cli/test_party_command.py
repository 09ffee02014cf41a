import json
import re
from pathlib import Path
from pkgutil import resolve_name

import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from datacollab.plugins import all_codes
from datacollab.steps.party import PartyFolder
from party_world import allow_without_audit, made_up_table, new_world
from playing import app

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
