"""The effect of a treatment by files: from tables to the page, and what an anchor could do to it."""

import csv
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from datacollab.agreement import Task
from datacollab.by_sums.plan import study_statistics
from datacollab.cli._app import app
from datacollab.errors import ExchangeError
from datacollab.steps.analyst import STUDY_FILES
from datacollab.table import Column
from sums_world import PARTIES, new_sums_world, rows_of

NAMES = PARTIES[:3]
COLUMNS = (
    Column(name="age", kind="number", minimum=0.0, maximum=100.0),
    Column(name="pulse", kind="number", minimum=0.0, maximum=100.0),
    Column(name="ward", kind="category", categories=("day", "night")),
)
TASK = Task(
    kind="effect", treatment="drug", treated=("yes",), untreated=("no",), outcome="stay", minimum=0.0, maximum=50.0
)


def world_in(root):
    """Three hospitals with 600 rows each; the drug shortens a stay by 5 days.

    Who is old, or in the ward at night, gets the drug more often and stays longer; hospitals differ in both, too.
    """
    sharing = {"statistics": ("effect",), "cluster": "doctor", "by": "ward"}
    world = new_sums_world(root, parties=NAMES, sharing=sharing, columns=COLUMNS, task_of_project=TASK)
    for place, name in enumerate(NAMES):
        random = np.random.default_rng(10 + place)
        table = pd.DataFrame(random.normal(50, 15, (600, 2)).clip(0, 100), columns=["age", "pulse"])
        table["ward"] = random.choice(["day", "night"], 600)
        night = table["ward"] == "night"
        drug = random.random(600) < 1 / (1 + np.exp(1.5 - place - night - (table["age"] - 50) / 30))
        stay = 15 + 5 * place + 0.15 * (table["age"] - 50) + 3 * night - 5 * drug + random.normal(0, 3, 600)
        table["drug"], table["stay"] = np.where(drug, "yes", "no"), stay.clip(0, 50)
        table["doctor"] = random.integers(0, 60, 600)
        table.to_csv(world.table(name), index=False)
    return world


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    world = world_in(tmp_path_factory.mktemp("effect"))
    world.summaries = []
    files = [world.share(name, approve=lambda summary: world.summaries.append(summary) or "me") for name in NAMES]
    arguments = ["analyst", "integrate", *map(str, files), "-C", str(world.root / "analyst")]
    world.said = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert world.said.exit_code == 0, world.said.output
    return world


def test_the_effect_is_found_and_named(studied):
    lines = [*csv.reader(io.StringIO((studied.root / "analyst" / STUDY_FILES[0]).read_text(encoding="utf-8")))]
    effect, difference, overlap, *balance = (dict(zip(lines[0], line, strict=True)) for line in lines[1:])
    assert effect["figure"] == "effect of drug on stay, weighted by overlap (partially linear)"
    assert float(effect["value"]) == pytest.approx(-5, abs=0.8)
    assert float(effect["standard error"]) < 1
    assert difference["figure"] == "effect of drug on stay: ward night less day (linear, weighted by overlap)"
    assert abs(float(difference["value"])) < 2, "it is the same in both"
    assert 0.7 < float(overlap["value"]) < 1
    assert [each["figure"] for each in balance] == [
        f"balance of {each}" for each in ("age", "pulse", "ward=day", "ward=night")
    ]
    assert float(balance[0]["before"]) > 0.2
    assert abs(float(balance[0]["after"])) < 0.2
    assert "weighted by overlap" in studied.said.output
    assert "weighted by overlap" in (studied.root / "analyst" / STUDY_FILES[1]).read_text(encoding="utf-8")


def test_the_approver_is_shown_what_it_is(studied):
    (summary, *_) = studied.summaries
    assert "effect over 600 of its rows" in " ".join(summary.to_text().split())
    assert summary.noise == pytest.approx(studied.project.sharing.noise)
    assert 2 <= summary.n_components <= 20


def test_clusters_of_an_effect_leave_classical_errors_beside_it(studied):
    sharing = replace(studied.project.sharing, statistics=("effect", "least squares"), errors="classical")
    regression, effect = study_statistics(replace(studied.project, sharing=sharing), n_components=4)
    assert (regression.errors, regression.cluster, effect.cluster) == ("classical", None, "doctor")


def test_an_effect_may_differ_between_two_levels_of_a_column(studied):
    project = studied.project
    sharing = replace(project.sharing, statistics=("description", "effect"), by="drug")
    assert study_statistics(replace(project, sharing=sharing), n_components=4)[1].by is None
    with pytest.raises(ExchangeError, match="'age' is no column of two categories; there are ward"):
        replace(project, sharing=replace(project.sharing, by="age"))


def test_its_anchor_is_checked_as_that_of_a_model(tmp_path, monkeypatch):
    """As the map follows from it: rows close together could single out one person."""
    public = rows_of(200, 1)
    public["age"] = 71.3 + np.random.default_rng(0).normal(0, 0.01, 200)
    monkeypatch.setattr("sums_world.rows_of", lambda *_: public.copy())
    world = world_in(tmp_path)
    with pytest.raises(ExchangeError) as caught:
        world.share("north")
    assert caught.value.code == "ANCHOR_UNFIT"


def test_an_effect_on_a_number_is_not_one_on_times(tmp_path):
    times = {"time": "month", "event": "died", "seen": ("yes",), "not_seen": ("no",), "maximum": 60.0, "rounding": 1.0}
    task = Task(kind="effect", treatment="drug", treated=("yes",), untreated=("no",), **times)
    with pytest.raises(ExchangeError, match="effect needs kind effect \\(.*\\), and a number"):
        new_sums_world(tmp_path, parties=NAMES, sharing={"statistics": ("effect",)}, task_of_project=task)
