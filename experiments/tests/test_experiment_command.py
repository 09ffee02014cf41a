import re
import sqlite3

import pytest
from matplotlib.figure import Figure
from trials import shrink_forests
from typer import Typer
from typer.testing import CliRunner

from datacollab_experiments.commands import register
from datacollab_experiments.paper import read_results

APP = Typer()
register(APP)
SMALL = """
title = "Small"

[condition]
dataset = "digits"
n_parties = 2
n_per_party = 30
n_test = 40
n_anchors = 60
n_sources = 40
obfuscator = "pca"
n_components = 4

[axes]
hyperparameters = ["paper", "recommended"]

[methods]
Local = {}
LTI = {}
KTI = {}

[presets.smoke]
seeds = 2
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A definition with small forests, whose report draws no picture that costs a UMAP."""
    shrink_forests(monkeypatch)
    monkeypatch.setattr("datacollab_experiments.reports._report.alignment_figure", lambda data: Figure())
    path = tmp_path / "rq2.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def run(*arguments):
    return CliRunner().invoke(APP, ["experiment", *map(str, arguments)])


def test_list_shows_every_experiment_and_its_size():
    result = run("list")
    assert result.exit_code == 0
    for name in ("rq1", "rq2", "rq3", "rq4", "regression", "slice", "smoke", "quick", "paper", "2400"):
        assert name in result.output


def test_show_prints_a_definition_that_can_be_run():
    result = run("show", "rq1")
    assert result.exit_code == 0
    assert "[methods]" in result.output
    assert run("show", "rq9").exit_code == 1


@pytest.mark.slow
def test_run_then_report(small, tmp_path):
    folder = tmp_path / "out"
    result = run("run", small, "--output", folder, "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert f"datacollab experiment report {folder}" in result.output
    rows = read_results(folder).rows["rq2"]
    assert len(rows) == 2 * 3 * 2
    result = run("report", folder)
    assert result.exit_code == 0, result.output
    page = (folder / "report" / "index.html").read_text(encoding="utf-8")
    assert re.search(r"Reproduce with <code>.*</code>", page)
    assert "datacollab experiment run rq2 --preset smoke" in page
    for note in ("standardised before the forest", "umap-learn", "spectral"):
        assert note in page
    assert "INCOMPLETE" not in page
    assert (folder / "report" / "figures" / "illustration.png").exists()
    assert (folder / "report" / "tables" / "rq2_digits_paper.md").exists()


@pytest.mark.slow
def test_a_method_can_be_added_to_all_experiments(small, tmp_path):
    result = run("run", small, "--output", tmp_path, "--jobs", 1, "--method", "Mine=tiny:FirstColumns")
    assert result.exit_code == 0, result.output
    assert {row.name for row in read_results(tmp_path).rows["rq2"]} == {"Local", "LTI", "KTI", "Mine"}


@pytest.mark.slow
def test_failed_rows_are_announced_and_can_be_retried(small, tmp_path):
    arguments = ("run", small, "--output", tmp_path, "--jobs", 1, "--method", "Broken=tiny:Broken")
    for more in ((), (), ("--retry-failed",)):
        result = run(*arguments, *more)
        assert result.exit_code == 1
        assert "rq2, Broken: 4 x ZeroDivisionError: not today" in result.stderr
    rows = read_results(tmp_path).rows["rq2"]
    assert {row.name for row in rows if row.error} == {"Broken"}
    assert all(row.scores for row in rows if row.name != "Broken")


@pytest.mark.slow
def test_a_run_that_was_stopped_is_reported_as_incomplete(small, tmp_path):
    run("run", small, "--output", tmp_path, "--jobs", 1)
    with sqlite3.connect(tmp_path / "results.sqlite") as connection:
        connection.execute("DELETE FROM results WHERE seed = 1")
    connection.close()
    assert run("report", tmp_path).exit_code == 0
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "INCOMPLETE: 6 of 12 rows" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "rq9"], "There is no experiment 'rq9'"),
        (["run", "slice", "--preset", "smoke"], "'slice' has no preset 'smoke'; it has paper, quick"),
        (["run", "all", "--preset", "tiny"], "No experiment has a preset 'tiny'"),
        (["run", "rq1", "--method", "Mine"], "--method takes NAME=package.module:Class; got 'Mine'"),
        (["run", "rq1", "--method", "KTI=tiny:FirstColumns"], "'KTI' is one of the library's methods"),
        (["run", "rq1", "--method", "Mine=tiny:TINY"], "method 'Mine' cannot be made (TypeError"),
        (["run", "rq1", "--done", "nowhere.csv"], "nowhere.csv"),
        (["report", "nowhere"], "There are no results in nowhere"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "output").exists()
