"""The analyst's commands, on made-up parties; anchor predictions; times to events, effects and no targets."""

import copy
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from anchor_predictions_world import world_of
from sklearn.svm import SVC

import datacollab as dc
import playing
from datacollab.bundle import unpack
from datacollab.errors import UnsendableWarning
from datacollab.steps.analyst import AnalystFolder
from named_world import NamedWorld, table_of
from party_world import allow_without_audit, new_world
from playing import done, run, told


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Two parties have shared; the second in groups."""
    root = tmp_path_factory.mktemp("exchange")
    random = np.random.default_rng(0)

    def table(n_rows):
        rows = pd.DataFrame(random.normal(size=(n_rows, 4)), columns=list("abcd"))
        return rows.assign(ill=np.where(rows["a"] + rows["b"] > 0, "yes", "no"))

    for name, n_rows in {"north": 80, "south": 80, "public": 200}.items():
        table(n_rows).to_csv(root / f"{name}.csv", index=False)
    done("keys", "new", *(root / name for name in ("north", "south", "west", "analyst")))
    members = [f"--party={name}={root / name / 'public.key'}" for name in ("north", "south", "west")]
    agreed = ["--like", root / "public.csv", "--target", "ill", "--purpose", "Tests.", "--anchor-rows", 60]
    keys = ["--analyst", root / "analyst" / "public.key", "-C", root / "north"]
    done("project", "new", "p", *agreed, *members, *keys, "--range", -9, 9, "--rows", "-o", root / "project.toml")
    seal = ["--project", root / "project.toml", "-C", root / "north", "-o", root / "anchor.dcanchor"]
    done("anchor", "seal", root / "public.csv", *seal)
    for name, options in {"north": ["--preset", "none", "--undefended"], "south": ["--group-size", 4]}.items():
        done("party", "join", root / "project.toml", root / "anchor.dcanchor", "-C", root / name)
        allow_without_audit(root / name / "policy.toml")
        done("party", "share", root / f"{name}.csv", "--no-audit", "--approve", "-C", root / name, *options)
    return root


def shares(root):
    return [root / name / "outbox" / f"{name}.dcshare" for name in ("north", "south")]


def test_integrating_says_what_a_person_should_know(shared):
    named = ["--method", "kti", "--model", "linear", "--seed", 0]
    given = ["--project", shared / "project.toml", "-C", shared / "analyst", *named]
    told = done("analyst", "integrate", *shares(shared), *given).stdout
    assert "StandardScaler + LogisticRegression on 160 rows of 2 parties" in told
    assert "80 of south" in told  # rows of groups, and what that means for the score
    assert "Not among them: west" in told
    status = json.loads(done("analyst", "status", "-C", shared / "analyst", "--json").stdout)
    assert (status["n_shares"], [each["n_rows"] for each in status["parties"]]) == (2, [80, 80, None])
    models = json.loads(done("analyst", "export", "-C", shared / "analyst", "--json").stdout)["models"]
    assert [model.rpartition("/")[2] for model in models] == ["north.dcmodel", "south.dcmodel"]


def test_by_default_methods_and_models_are_tried_and_told(shared):
    given = ["--project", shared / "project.toml", "-C", shared / "analyst", "--budget", 0]
    told = done("analyst", "integrate", *shares(shared), *given).stdout
    assert "Chosen by log loss on 80 rows: the parties' rows, each left out" in told
    assert " * " in told
    facts = json.loads(done("analyst", "integrate", *given, "--json").stdout)
    assert facts["selection"]["chosen"]["chosen"]
    assert re.search(rf"AUC of yes +{facts['score']['ranking']['auc']:.3f}", told)
    assert facts["method"].lower() in facts["selection"]["chosen"]["integrator"].lower()
    assert any(each["failure"] for each in facts["selection"]["candidates"])  # there was no time for more
    for wrong in (["--components", 2], ["--alpha", 1]):
        assert run("analyst", "integrate", *given, *wrong).exit_code != 0


def test_a_replacement_is_said_to_be_one(shared):
    given = ["--project", shared / "project.toml", "-C", shared / "analyst"]
    done("analyst", "integrate", *shares(shared), *given, "--folds", 0, "--budget", 0)
    again = ["--no-audit", "--preset", "none", "--undefended", "--approve", "--again", "-C", shared / "north"]
    done("party", "share", shared / "north.csv", *again)
    assert "takes the place" in done("analyst", "add", shares(shared)[0], "-C", shared / "analyst").stdout


@pytest.mark.parametrize("option", ["--method", "--model"])
def test_an_unknown_name_is_a_wrong_usage(shared, option):
    result = run("analyst", "integrate", option, "magic", "-C", shared / "analyst")
    assert result.exit_code == 2
    assert "magic" in result.output


@pytest.fixture(scope="module")
def integrated(tmp_path_factory):
    """Two parties who have shared, and an analyst who has integrated."""
    world = world_of(tmp_path_factory.mktemp("learning"))
    root = world.root
    analyst = AnalystFolder.init(root / "analyst", root / "project.toml")
    for name in ("a", "b"):
        analyst.add([world.shared(name, n_components=4).path / "outbox" / f"{name}.dcshare"])
    done("analyst", "integrate", "--method", "lti", "--model", "linear", "-C", root / "analyst")
    return root


@pytest.fixture
def place(integrated, tmp_path):
    """The same in a folder of the test's own."""
    return shutil.copytree(integrated, tmp_path, dirs_exist_ok=True)


def test_from_answers_to_predictions_without_a_map(place):
    analyst, a = place / "analyst", place / "a"
    files = told("analyst", "export", "--anchor-predictions", "-C", analyst)["anchor_predictions"]
    assert [file.rpartition("/")[2] for file in files] == ["a.dcanswers", "b.dcanswers"]
    bundle = unpack(analyst / "outbox" / "a.dcanswers")
    assert bundle.kind == "datacollab.answers"
    assert list(bundle.members) == ["sealed.bin"]
    status = told("analyst", "status", "-C", analyst)
    assert [each["exported"] for each in status["parties"]] == [True, True]
    facts = told("party", "distil", analyst / "outbox" / "a.dcanswers", "-C", a)
    assert facts["r2"] > 0.8
    assert (facts["n_parties"], facts["n_anchors"], facts["tree"]) == (2, 60, None)
    done("party", "predict", place / "new.csv", "-o", place / "before.csv", "-C", a)
    shown = done("party", "forget", "--yes", "-C", a)
    assert "has forgotten its map" in shown.stdout
    done("party", "predict", place / "new.csv", "-o", place / "after.csv", "--using", "distilled", "-C", a)
    assert (place / "before.csv").read_bytes() == (place / "after.csv").read_bytes()
    accuracy = np.mean(pd.read_csv(place / "after.csv")["prediction"] == pd.read_csv(place / "new.csv")["ill"])
    assert accuracy > 0.8
    assert "distilled from anchor predictions" not in done("party", "evaluate", place / "new.csv", "-C", a).stdout
    done("log", "verify", "-C", a)
    done("log", "verify", "-C", analyst)
    # The analyst's file tells of the share, so the end of the party's log cannot be cut off unseen.
    done("log", "verify", "-C", a, "--against", analyst / "outbox" / "a.dcanswers")
    (b_log,) = (place / "b").glob("log.jsonl")
    lines = b_log.read_text().splitlines(keepends=True)
    b_log.write_text("".join(lines[:-1]))
    done("log", "verify", "-C", place / "b", "--against", analyst / "outbox" / "b.dcanswers", code=11)


def test_a_tree_is_shown(place):
    file = place / "analyst" / "outbox" / "a.dcanswers"
    done("analyst", "export", "--anchor-predictions", "-C", place / "analyst")
    shown = done("party", "distil", file, "--tree", 3, "-C", place / "a").stdout
    assert "age" in shown
    assert "class: yes" in shown
    assert "variance on anchor rows left out" in shown


def test_nobody_forgets_by_mistake(place):
    a = place / "a"
    before = (a / "party.dcstate").read_bytes()
    refused = done("party", "forget", "-C", a, code=12)
    assert "--yes" in refused.stderr
    assert "nothing was destroyed" in refused.stderr
    assert (a / "party.dcstate").read_bytes() == before


def test_a_model_that_carries_rows_may_answer(place):
    folder = AnalystFolder(place / "analyst")
    with pytest.warns(UnsendableWarning, match="predictions on the anchor"):
        folder.integrate(dc.LTI(4), SVC())
    done("analyst", "export", "-C", place / "analyst", code=12)
    folder.export(anchor_predictions=True)
    facts = told("party", "distil", place / "analyst" / "outbox" / "a.dcanswers", "-C", place / "a")
    assert facts["r2"] > 0.6


@pytest.fixture
def world(tmp_path):
    world = new_world(tmp_path)
    world.installed()
    return world


@pytest.mark.slow
def test_what_is_printed_and_written(world):
    root, output = world.root, world.root / "why.csv"
    shown = done("party", "explain", root / "new.csv", "-o", output, "--rows", 20, "--keep", "id", "-C", root / "a")
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
    again = done("party", "explain", root / "new.csv", *options, code=14).stderr
    assert "--force" in again
    assert told("party", "explain", root / "new.csv", *options, "--force")["importance"] == facts["importance"]


@pytest.mark.slow
def test_log_risks_are_explained_without_a_class(tmp_path):
    world = NamedWorld(tmp_path, "survival", n_rows=150)
    a, b = world.shared("a"), world.shared("b")
    world.analyst(a, b)
    folder = tmp_path / "analyst"
    done("analyst", "integrate", "--model", "cox", "-C", folder)
    done("analyst", "export", "-C", folder)
    done("party", "install", folder / "outbox" / "a.dcmodel", "-C", a.path)
    facts = told("party", "explain", tmp_path / "b.csv", "-o", tmp_path / "why.csv", "--rows", 30, "-C", a.path)
    # Made so that age raises the hazard, and the pulse does nothing.
    assert next(iter(facts["importance"])) == "age"
    assert facts["classes"] is None


COLUMNS = {
    "survival": ["--event", "died", "--time", "days", "--without", "drug", "--without", "pressure"],
    "effect": ["--treatment", "drug", "--outcome", "pressure", "--without", "died", "--without", "days"],
    "none": ["--task", "none", *(f"--without={name}" for name in ("died", "days", "drug", "pressure"))],
}


def printed(*arguments):
    return playing.done(*arguments).stdout


class Exchange:
    """Folders and tables of two parties and an analyst, up to the analyst's folder with both shares."""

    def __init__(self, root, columns, table=table_of, n_rows=120, like=None):
        self.root = root
        like = table(150, seed=7) if like is None else like
        like.to_csv(root / "public.csv", index=False)
        for name in ("a", "b", "analyst"):
            printed("keys", "new", "-C", root / name)
        for seed, name in enumerate(("a", "b")):
            table(n_rows, seed=seed).to_csv(root / f"{name}.csv", index=False)
        members = [f"--party=a={root}/a/public.key", f"--party=b={root}/b/public.key"]
        self.drafted = printed(
            *("project", "new", "trial", "--like", root / "public.csv", "--purpose", "Tests.", *members),
            *("--analyst", root / "analyst" / "public.key", "-C", root / "a", "-o", root / "project.toml"),
            *("--anchor-rows", 100, "--rows", *columns),
        )
        sealed = ("--project", self.project, "-o", root / "x.dcanchor", "-C", root / "a")
        printed("anchor", "seal", root / "public.csv", *sealed)
        for name in ("a", "b"):
            printed("party", "join", self.project, root / "x.dcanchor", "-C", root / name)
            allow_without_audit(root / name / "policy.toml")

    @property
    def project(self):
        return self.root / "project.toml"

    def share(self, *options):
        for name in ("a", "b"):
            table = self.root / f"{name}.csv"
            printed("party", "share", table, "-C", self.root / name, "--approve", "--no-audit", *options)
        printed("analyst", "init", self.project, "-C", self.root / "analyst")
        shares = [self.root / name / "outbox" / f"{name}.dcshare" for name in ("a", "b")]
        return printed("analyst", "add", *shares, "-C", self.root / "analyst")

    def model(self):
        printed("analyst", "export", "-C", self.root / "analyst")
        model = self.root / "analyst" / "outbox" / "a.dcmodel"
        return printed("party", "install", model, "-C", self.root / "a")

    def predict(self, *options):
        printed("party", "predict", self.root / "b.csv", "-o", self.root / "told.csv", "-C", self.root / "a", *options)
        return pd.read_csv(self.root / "told.csv")


@pytest.fixture(scope="module", params=COLUMNS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def joined(tmp_path_factory, kind):
    return Exchange(tmp_path_factory.mktemp(kind), COLUMNS[kind])


@pytest.fixture
def exchange(joined, tmp_path):
    mine = copy.copy(joined)
    mine.root = shutil.copytree(joined.root, tmp_path, dirs_exist_ok=True)
    return mine


def test_what_is_agreed_is_shown(exchange, kind):
    words = {"survival": "survival: died after days", "effect": "effect of drug on pressure", "none": "none: nothing"}
    assert words[kind] in exchange.drafted
    shown = printed("project", "show", exchange.project)
    assert words[kind] in shown
    assert ("rounded up to" in shown) == (kind == "survival")
    assert ("drug: treated 1; not 0" in shown) == (kind == "effect")
    assert "warning" not in shown
    content = json.loads(printed("project", "show", exchange.project, "--json"))["content"]
    assert content["task"]["kind"] == kind


def test_exact_times_are_warned_of(tmp_path):
    exchange = Exchange(tmp_path, COLUMNS["survival"])
    text = exchange.project.read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("rounding = ")]
    exchange.project.write_text(text.replace(line, "rounding = 0"))
    printed("project", "revise", exchange.project, "-C", tmp_path / "a")
    shown = printed("project", "show", exchange.project)
    assert "NOT rounded" in shown
    assert "warning: times are not rounded" in shown


def test_check_says_what_leaves(exchange, kind):
    shown = printed(
        "party", "check", exchange.root / "a.csv", "-C", exchange.root / "a", "--no-audit", "--components", 3
    )
    assert ("--group-size 5 -C" if kind == "effect" else "--group-size 5 --noise 0.3") in shown
    told = json.loads(
        printed("party", "check", exchange.root / "a.csv", "-C", exchange.root / "a", "--no-audit", "--json")
    )
    assert told["summary"]["named"]["kind"] == kind
    refused = run("party", "check", exchange.root / "a.csv", "-C", exchange.root / "a", "--epsilon", 4)
    assert refused.exit_code != 0
    assert "classes and numbers" in refused.stderr


@pytest.mark.slow
def test_from_tables_to_results(exchange, kind):
    assert "120 rows" in exchange.share()
    folder = exchange.root / "analyst"
    if kind == "effect":
        told = json.loads(printed("analyst", "effect", "-C", folder, "--json"))
        low, high = told["interval"]
        assert abs((low + high) / 2 + 10) < high - low  # four standard errors: secrets are new each time
        assert sorted(told["written"]) == [str(folder / "effect.html"), str(folder / "effect.json")]
        assert "Effect of treatment on the outcome" in printed("analyst", "effect", "-C", folder, "--estimand", "ATT")
        assert "over rows weighted by overlap" in printed("analyst", "effect", "-C", folder, "--method", "plr")
        assert "needs 5 parties" in run("analyst", "effect", "-C", folder, "--errors", "parties").stderr
        for wrong in (["--estimand", "ATC"], ["--method", "magic"], ["--errors", "none"]):
            assert run("analyst", "effect", "-C", folder, *wrong).exit_code == 2
        assert "no model to send" in run("analyst", "integrate", "-C", folder).stderr
        return
    assert "no treatment" in run("analyst", "effect", "-C", folder).stderr
    extra = ["--clusters", 3] if kind == "none" else []
    integrated = printed("analyst", "integrate", "-C", folder, *extra)
    assert ("Concordance" in integrated) == (kind == "survival")
    assert "classes and numbers alone" in exchange.model()
    found = exchange.predict("--keep", "ward")
    assert [*found][:2] == ["ward", "prediction"]
    evaluated = run("party", "evaluate", exchange.root / "b.csv", "-C", exchange.root / "a")
    if kind == "none":
        assert set(found["prediction"]) <= {0, 1, 2}
        assert "no targets" in evaluated.stderr
        return
    survival = found.filter(like="survival_")
    assert survival.shape == (120, 4)
    there = survival.dropna(axis=1)
    assert (there.diff(axis=1).iloc[:, 1:] <= 0).all(axis=None)
    assert "Concordance" in evaluated.stdout


def test_warnings_are_lines_that_name_no_code(tmp_path, monkeypatch):
    exchange = Exchange(tmp_path, COLUMNS["effect"])
    exchange.share()
    monkeypatch.setattr("datacollab.effects._estimate._MANY_CLIPPED", -1.0)
    warned = run("analyst", "effect", "-C", tmp_path / "analyst")
    assert warned.exit_code == 0
    lines = warned.stderr.splitlines()
    assert [line for line in lines if not line.startswith("warning: ")] == []
    assert [line for line in lines if "rows have a propensity within 0.02 of 0 or 1" in line]
