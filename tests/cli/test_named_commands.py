"""Commands of projects with times to events, effects and no targets, as a hospital's engineer runs them."""

import copy
import json
import shutil

import pandas as pd
import pytest

import playing
from named_world import table_of
from party_world import allow_without_audit
from playing import run

COLUMNS = {
    "survival": ["--event", "died", "--time", "days", "--without", "drug", "--without", "pressure"],
    "effect": ["--treatment", "drug", "--outcome", "pressure", "--without", "died", "--without", "days"],
    "none": ["--task", "none", *(f"--without={name}" for name in ("died", "days", "drug", "pressure"))],
}


def done(*arguments):
    return playing.done(*arguments).stdout


class Exchange:
    """Folders and tables of two parties and an analyst, up to the analyst's folder with both shares."""

    def __init__(self, root, columns, table=table_of, n_rows=120, like=None):
        self.root = root
        like = table(150, seed=7) if like is None else like
        like.to_csv(root / "public.csv", index=False)
        for name in ("a", "b", "analyst"):
            done("keys", "new", "-C", root / name)
        for seed, name in enumerate(("a", "b")):
            table(n_rows, seed=seed).to_csv(root / f"{name}.csv", index=False)
        members = [f"--party=a={root}/a/public.key", f"--party=b={root}/b/public.key"]
        self.drafted = done(
            *("project", "new", "trial", "--like", root / "public.csv", "--purpose", "Tests.", *members),
            *("--analyst", root / "analyst" / "public.key", "-C", root / "a", "-o", root / "project.toml"),
            *("--anchor-rows", 100, "--rows", *columns),
        )
        sealed = ("--project", self.project, "-o", root / "x.dcanchor", "-C", root / "a")
        done("anchor", "seal", root / "public.csv", *sealed)
        for name in ("a", "b"):
            done("party", "join", self.project, root / "x.dcanchor", "-C", root / name)
            allow_without_audit(root / name / "policy.toml")

    @property
    def project(self):
        return self.root / "project.toml"

    def share(self, *options):
        for name in ("a", "b"):
            table = self.root / f"{name}.csv"
            done("party", "share", table, "-C", self.root / name, "--approve", "--no-audit", *options)
        done("analyst", "init", self.project, "-C", self.root / "analyst")
        shares = [self.root / name / "outbox" / f"{name}.dcshare" for name in ("a", "b")]
        return done("analyst", "add", *shares, "-C", self.root / "analyst")

    def model(self):
        done("analyst", "export", "-C", self.root / "analyst")
        model = self.root / "analyst" / "outbox" / "a.dcmodel"
        return done("party", "install", model, "-C", self.root / "a")

    def predict(self, *options):
        done("party", "predict", self.root / "b.csv", "-o", self.root / "told.csv", "-C", self.root / "a", *options)
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
    shown = done("project", "show", exchange.project)
    assert words[kind] in shown
    assert ("rounded up to" in shown) == (kind == "survival")
    assert ("drug: treated 1; not 0" in shown) == (kind == "effect")
    assert "warning" not in shown
    content = json.loads(done("project", "show", exchange.project, "--json"))["content"]
    assert content["task"]["kind"] == kind


def test_exact_times_are_warned_of(tmp_path):
    exchange = Exchange(tmp_path, COLUMNS["survival"])
    text = exchange.project.read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("rounding = ")]
    exchange.project.write_text(text.replace(line, "rounding = 0"))
    done("project", "revise", exchange.project, "-C", tmp_path / "a")
    shown = done("project", "show", exchange.project)
    assert "NOT rounded" in shown
    assert "warning: times are not rounded" in shown


def test_check_says_what_leaves(exchange, kind):
    shown = done("party", "check", exchange.root / "a.csv", "-C", exchange.root / "a", "--no-audit", "--components", 3)
    assert ("--group-size 5 -C" if kind == "effect" else "--group-size 5 --noise 0.3") in shown
    told = json.loads(
        done("party", "check", exchange.root / "a.csv", "-C", exchange.root / "a", "--no-audit", "--json")
    )
    assert told["summary"]["named"]["kind"] == kind
    refused = run("party", "check", exchange.root / "a.csv", "-C", exchange.root / "a", "--epsilon", 4)
    assert refused.exit_code != 0
    assert "classes and numbers" in refused.stderr


def test_from_tables_to_results(exchange, kind):
    assert "120 rows" in exchange.share()
    folder = exchange.root / "analyst"
    if kind == "effect":
        told = json.loads(done("analyst", "effect", "-C", folder, "--json"))
        low, high = told["interval"]
        assert abs((low + high) / 2 + 10) < high - low  # four standard errors: secrets are new each time
        assert sorted(told["written"]) == [str(folder / "effect.html"), str(folder / "effect.json")]
        assert "Effect of treatment on the outcome" in done("analyst", "effect", "-C", folder, "--estimand", "ATT")
        assert "over rows weighted by overlap" in done("analyst", "effect", "-C", folder, "--method", "plr")
        assert "needs 5 parties" in run("analyst", "effect", "-C", folder, "--errors", "parties").stderr
        for wrong in (["--estimand", "ATC"], ["--method", "magic"], ["--errors", "none"]):
            assert run("analyst", "effect", "-C", folder, *wrong).exit_code == 2
        assert "no model to send" in run("analyst", "integrate", "-C", folder).stderr
        return
    assert "no treatment" in run("analyst", "effect", "-C", folder).stderr
    extra = ["--clusters", 3] if kind == "none" else []
    integrated = done("analyst", "integrate", "-C", folder, *extra)
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
