"""All statistics of a study in one message by files, each against all rows in one place."""

import csv
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from lifelines import KaplanMeierFitter

from datacollab.agreement import Task, load_project
from datacollab.by_sums.party._added_rows import effect_project_map
from datacollab.by_sums.plan import study_statistics
from datacollab.folder.ledger import Ledger
from datacollab.steps.analyst import STUDY_FILES
from datacollab.study import RIDGE_MOVED
from datacollab.table import Column
from party_world import refused
from playing import done
from sums_world import PARTIES, new_sums_world

NAMES = PARTIES[:3]
STATISTICS = ("counts", "description", "least squares", "survival", "additive hazards", "effect")
COLUMNS = (
    Column(name="age", kind="number", minimum=0.0, maximum=100.0),
    Column(name="pulse", kind="number", minimum=0.0, maximum=100.0),
    Column(name="stay", kind="number", minimum=0.0, maximum=50.0),
    Column(name="ward", kind="category", categories=("day", "night")),
)
TASK = Task(
    kind="effect",
    treatment="drug",
    treated=("yes",),
    untreated=("no",),
    event="died",
    seen=("yes",),
    not_seen=("no",),
    time="month",
    maximum=60.0,
    rounding=1.0,
)


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """Three hospitals of 2,000 rows; the drug, more often of the old, shortens stays by 5 days and halves hazards."""
    sharing = {"statistics": STATISTICS, "by": "drug", "outcome": "stay", "noise": 0.05}
    random = np.random.default_rng(9)
    public = pd.DataFrame(random.uniform(0, 100, (200, 2)), columns=["age", "pulse"])
    public["stay"], public["ward"] = random.uniform(0, 50, 200), random.choice(["day", "night"], 200)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sums_world.rows_of", lambda *_: public.copy())
        world = new_sums_world(
            tmp_path_factory.mktemp("whole"), parties=NAMES, sharing=sharing, columns=COLUMNS, task_of_project=TASK
        )
    for place, name in enumerate(NAMES):
        random = np.random.default_rng(place)
        table = pd.DataFrame(random.uniform(0, 100, (2000, 2)), columns=["age", "pulse"])
        table["ward"] = random.choice(["day", "night"], 2000)
        drug = random.random(2000) < 0.2 + 0.006 * table["age"]
        table["stay"] = (15 + 5 * place + 0.1 * table["age"] - 5 * drug + random.normal(0, 4, 2000)).clip(0, 50)
        died, left = random.exponential(50 * (1 + drug)), random.uniform(10, 90, 2000).clip(max=60)
        table["month"], table["died"] = np.minimum(died, left), np.where(died <= left, "yes", "no")
        table["drug"] = np.where(drug, "yes", "no")
        table.to_csv(world.table(name), index=False)
    world.analyst.add(world.share_all())
    world.total = world.analyst.integrate()
    return world


@pytest.mark.slow
def test_one_message_carries_all_six(studied):
    assert list(studied.total.results) == [*STATISTICS]
    frame = pd.concat([pd.read_csv(studied.table(name)) for name in NAMES])
    party = np.repeat(np.arange(3), 2000)[:, None] == np.arange(3)
    explaining = [frame["age"], frame["pulse"], frame["ward"] == "night", frame["drug"] == "yes", party]
    expected = sm.OLS(frame["stay"].to_numpy(), np.column_stack(explaining).astype(float)).fit()
    regression = studied.total.results["least squares"]
    assert regression.names == ("age", "pulse", "ward=night", "drug=yes")
    assert (np.abs(regression.coefficients - expected.params[:4]) < 5 * regression.errors).all()
    assert regression.coefficients[3] == pytest.approx(-5, abs=1)
    lines = [*csv.reader(io.StringIO((studied.root / "analyst" / STUDY_FILES[0]).read_text(encoding="utf-8")))]
    effect = next(line for line in lines if line[0] == "effect" and line[1] != "figure")
    assert effect[1].startswith("effect of drug on stay")
    assert float(effect[2]) == pytest.approx(-5, abs=1)
    heads = lines[[line[1] for line in lines].index("group")]
    curve = [dict(zip(heads, line, strict=False)) for line in lines if line[0] == "survival"]
    for group in ("no", "yes"):
        rows = frame[frame["drug"] == group]
        exact = KaplanMeierFitter().fit(rows["month"], rows["died"] == "yes")
        for each in (point for point in curve if point["group"] == group):
            found = exact.survival_function_at_times(float(each["to"])).item()
            assert float(each["survival"]) == pytest.approx(found, abs=0.05)


def test_the_outcome_explains_nothing_and_is_not_mapped(studied):
    *_, hazards, effect = study_statistics(studied.project, n_components=4)
    assert [each.name for each in hazards.columns] == ["age", "pulse", "ward", "drug"]
    assert [each.name for each in effect.columns] == ["age", "pulse", "ward"]
    common = effect_project_map(studied.project, studied.folder("north").anchor)
    X = studied.folder("north").encode(studied.table("north")).X[:5]
    other = X.copy()
    other[:, 2] = 0.0
    assert not np.array_equal(X, other)
    assert np.array_equal(common.transform(X), common.transform(other))


def test_the_ledger_adds_up_what_one_message_carries(studied):
    """A row moves all numbers as far as the root of the summed squares says: it is hidden less than by any one."""
    parts = study_statistics(studied.project, n_components=studied.total.n_components)
    entry = Ledger(studied.root / "north" / "ledger" / "ledger.json", bytes(32)).entries[0]
    assert entry.statistic == ", ".join(STATISTICS)
    alone = RIDGE_MOVED / np.linalg.norm([each.loss for each in parts])
    assert alone < entry.noise < 1.01 * alone, "counts that several of them have get a little more noise"
    assert entry.noise < min(RIDGE_MOVED / each.loss for each in parts)


def test_a_task_with_a_number_of_its_own_takes_no_other_outcome(studied):
    task = Task(kind="regression", target="ill", minimum=0.0, maximum=1.0)
    sharing = replace(studied.project.sharing, statistics=("least squares",), by=None)
    with refused("SPEC_INVALID", "a number of its own, 'ill'"):
        replace(studied.project, task=task, sharing=sharing)
    with refused("SPEC_INVALID", "no other column explains it"):
        replace(studied.project, columns=COLUMNS[2:3], max_components=1)


def test_a_draft_takes_an_outcome_beside_times(studied, tmp_path):
    frame = pd.read_csv(studied.table("north")).head(300)
    frame.to_csv(tmp_path / "public.csv", index=False)
    for name in (*NAMES, "analyst"):
        done("keys", "new", "-C", tmp_path / name)
    named = [part for name in NAMES for part in ("--party", f"{name}={tmp_path / name / 'public.key'}")]
    columns = ("--treatment", "drug", "--event", "died", "--time", "month", "--outcome", "stay")
    wanted = [part for each in STATISTICS for part in ("--statistic", each)]
    file = tmp_path / "project.toml"
    done(
        *("project", "new", "whole", "--like", tmp_path / "public.csv", "--purpose", "p", *columns, *wanted, *named),
        *("--analyst", tmp_path / "analyst" / "public.key", "-C", tmp_path / NAMES[0], "-o", file),
    )
    project = load_project(file)
    assert (project.sharing.outcome, project.task.time, project.has_anchor) == ("stay", "month", True)
    assert "stay" in [each.name for each in project.columns]
