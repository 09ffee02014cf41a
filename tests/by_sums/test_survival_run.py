"""Survival by files, against lifelines and statsmodels on all rows in one place."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from lifelines import KaplanMeierFitter
from statsmodels.duration.survfunc import survdiff
from typer.testing import CliRunner

from datacollab.agreement import Task
from datacollab.cli._app import app
from datacollab.steps.analyst import STUDY_FILES
from datacollab.table import Column
from sums_world import PARTIES, new_sums_world

NAMES = PARTIES[:3]
COLUMNS = (
    Column(name="age", kind="number", minimum=0.0, maximum=100.0),
    Column(name="ward", kind="category", categories=("day", "night")),
)
TASK = Task(
    kind="survival",
    event="died",
    seen=("yes",),
    not_seen=("no",),
    time="month",
    unit="months",
    maximum=60.0,
    rounding=1.0,
)


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """Three hospitals of 800 rows, whose hazards differ; and are half as large in the ward at night."""
    sharing = {"statistics": ("survival", "additive hazards", "poisson regression"), "by": "ward"}
    world = new_sums_world(
        tmp_path_factory.mktemp("survival"), parties=NAMES, sharing=sharing, columns=COLUMNS, task_of_project=TASK
    )
    for place, name in enumerate(NAMES):
        random = np.random.default_rng(place)
        table = pd.DataFrame({"age": random.uniform(0, 100, 800), "ward": random.choice(["day", "night"], 800)})
        hazard = (0.01 + 0.01 * place + 0.0004 * table["age"]) * (1 - 0.5 * (table["ward"] == "night"))
        event, censored = random.exponential(1 / hazard), random.uniform(10, 90, 800).clip(max=60)
        table["month"], table["died"] = np.minimum(event, censored), np.where(event <= censored, "yes", "no")
        table.to_csv(world.table(name), index=False)
    world.summaries = []
    world.files = [world.share(name, approve=lambda summary: world.summaries.append(summary) or "me") for name in NAMES]
    arguments = ["analyst", "integrate", *map(str, world.files), "-C", str(world.root / "analyst")]
    world.said = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert world.said.exit_code == 0, world.said.output
    return world


def together(world):
    return pd.concat([pd.read_csv(world.table(name)) for name in NAMES])


def test_study_csv_has_the_curves_of_all_tables(followed):
    text = (followed.root / "analyst" / STUDY_FILES[0]).read_text(encoding="utf-8")
    lines = [*csv.reader(io.StringIO(text))]
    heads = lines[[line[1] for line in lines].index("group")]
    rows = [dict(zip(heads, line, strict=False)) for line in lines if line[0] == "survival"]
    rows_of_all = together(followed)
    for ward in ("day", "night"):
        frame = rows_of_all[rows_of_all["ward"] == ward]
        expected = KaplanMeierFitter().fit(frame["month"], frame["died"] == "yes")
        curve = [each for each in rows if each["group"] == ward]
        assert len(curve) > 15
        for each in curve:
            exact = expected.survival_function_at_times(float(each["to"])).item()
            assert float(each["survival"]) == pytest.approx(exact, abs=0.04)
            assert float(each["low"]) < exact + 0.03 < float(each["high"]) + 0.06


def test_rate_ratios_are_those_of_poisson_regression_on_all_tables(followed):
    frame = together(followed)
    X = np.column_stack([np.ones(len(frame)), frame["ward"] == "night"]).astype(float)
    family = sm.families.Poisson()
    died = (frame["died"] == "yes").to_numpy(dtype=float)
    expected = sm.GLM(died, X, family=family, exposure=frame["month"].to_numpy()).fit()
    rows = [*csv.reader(io.StringIO((followed.root / "analyst" / STUDY_FILES[0]).read_text(encoding="utf-8")))]
    of_ratios = [row[1:] for row in rows if row[0] == "poisson regression"]
    name, ratio, low, high, coefficient, error, _ = of_ratios[0]
    assert name == "ward=night"
    assert abs(float(coefficient) - expected.params[1]) < 6 * float(error)
    assert expected.bse[1] < float(error) < 2 * expected.bse[1]
    assert float(ratio) == pytest.approx(np.exp(float(coefficient)), rel=1e-3)
    assert float(low) < float(ratio) < float(high)
    assert "Poisson regression" in followed.said.output
    assert "not adjusted for" in " ".join(followed.said.output.split())


def test_the_page_and_the_analyst_show_the_test_stratified_by_party(followed):
    frames = [pd.read_csv(followed.table(name)) for name in NAMES]
    frame, party = pd.concat(frames), np.repeat(np.arange(3), 800)
    chi_square = survdiff(frame["month"], frame["died"] == "yes", frame["ward"], strata=party)[0]
    page = (followed.root / "analyst" / STUDY_FILES[1]).read_text(encoding="utf-8")
    shown = float(page.partition("chi-square ")[2].partition(" (df")[0])
    assert shown == pytest.approx(chi_square, rel=0.15)
    assert "Hazard ratio of night against day" in page
    assert "Additive hazards" in followed.said.output
    assert "ward=night" in followed.said.output
    text = " ".join(followed.summaries[0].to_text().split())
    assert "survival, additive hazards, poisson regression over 800 of its rows" in text
