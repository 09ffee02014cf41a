"""A description and a regression by files, against pandas and statsmodels on all rows in one place."""

import csv
import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from typer.testing import CliRunner

from datacollab.agreement import Task, column_rows, make_anchor
from datacollab.agreement._project_file import parse_project
from datacollab.bundle import unpack
from datacollab.by_sums.analyst._study_files import study_files
from datacollab.by_sums.party import auc_text
from datacollab.cli._app import app
from datacollab.errors import AgreementError
from datacollab.linalg import gaussian_sigma
from datacollab.steps.analyst import STUDY_FILES
from datacollab.steps.party import PartyFolder
from datacollab.study import CategoryColumn, NumberColumn, Survival, study_membership_figures
from datacollab.sums import RidgeSums
from datacollab.table import Column
from party_world import refusal
from sums_world import PARTIES, ROWS, new_sums_world, rows_of

NAMES = PARTIES[:3]
COLUMNS = (
    Column(name="age", kind="number", minimum=0.0, maximum=100.0, missing="fill", fill=50.0, flag_missing=True),
    Column(name="pulse", kind="number", minimum=0.0, maximum=100.0),
    Column(name="ward", kind="category", categories=("day", "night"), missing="fill", fill="day", flag_missing=True),
)


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """Three hospitals of 1,000 rows with gaps, whose stays differ by hospital."""
    sharing = {"statistics": ("description", "least squares"), "by": "ward", "cluster": "doctor"}
    world = new_sums_world(
        tmp_path_factory.mktemp("study"), "regression", parties=NAMES, sharing=sharing, columns=COLUMNS
    )
    for place, name in enumerate(NAMES):
        random = np.random.default_rng(place)
        table = pd.DataFrame({"age": random.uniform(0, 100, 1000), "pulse": random.uniform(0, 100, 1000)})
        table["ward"] = random.choice(["day", "night"], 1000).astype(object)
        table["ill"] = 20 * place + 0.5 * table["age"] - 10 * (table["ward"] == "night") + random.normal(0, 15, 1000)
        table["ill"] = table["ill"].clip(-100, 100)
        table["doctor"] = [f"Dr {name}" for name in random.integers(0, 40, 1000)]
        table.loc[:49, "age"] = np.nan
        table.loc[30:79, "ward"] = None
        table.to_csv(world.table(name), index=False)
    world.without_doctor = refusal("SCHEMA_MISSING_COLUMN", world.folder(name).prepare, table.drop(columns="doctor"))
    world.summaries = []
    world.files = [world.share(name, approve=lambda summary: world.summaries.append(summary) or "me") for name in NAMES]
    arguments = ["analyst", "integrate", *map(str, world.files), "-C", str(world.root / "analyst")]
    world.said = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert world.said.exit_code == 0, world.said.output
    return world


def figures(world, statistic):
    """What study.csv holds, as rows of texts by head."""
    lines = [*csv.reader(io.StringIO((world.root / "analyst" / STUDY_FILES[0]).read_text(encoding="utf-8")))]
    start = next(
        place for place, line in enumerate(lines) if line[0] == "statistic" and lines[place + 1][0] == statistic
    )
    rows = [line for line in lines[start + 1 :] if line[0] == statistic]
    return [dict(zip(lines[start], row, strict=False)) for row in rows]


def together(world):
    return pd.concat([pd.read_csv(world.table(name)) for name in NAMES])


def test_the_description_is_that_of_all_tables(studied):
    frame = together(studied)
    noise = 6 * 2 * 3**0.5  # one of three may collude
    for each in figures(studied, "description"):
        rows = frame if each["group"] == "all" else frame[frame["ward"] == each["group"]]
        entries = rows[each["column"]]
        assert abs(int(each["missing"]) - entries.isna().sum()) < 2 * noise
        if each["level"]:
            assert abs(int(each["rows"]) - (entries == each["level"]).sum()) < noise
            continue
        assert abs(int(each["rows"]) - entries.notna().sum()) < noise
        assert float(each["mean"]) == pytest.approx(entries.mean(), abs=1.0)
        assert float(each["sd"]) == pytest.approx(entries.std(), rel=0.05)
        assert float(each["median"]) == pytest.approx(entries.median(), abs=(8 if each["column"] == "ill" else 4))


def test_the_regression_is_that_of_all_complete_rows(studied):
    frames = [pd.read_csv(studied.table(name)).dropna() for name in NAMES]
    party = np.repeat(np.arange(3), [len(frame) for frame in frames])
    frame = pd.concat(frames)
    design = np.column_stack([frame["age"], frame["pulse"], frame["ward"] == "night", party[:, None] == np.arange(3)])
    expected = sm.OLS(frame["ill"].to_numpy(), design.astype(float)).fit()
    found = figures(studied, "least squares")
    assert [each["column"] for each in found] == ["age", "pulse", "ward=night"]
    for place, each in enumerate(found):
        assert abs(float(each["coefficient"]) - expected.params[place]) < 10 * expected.bse[place]
        # Ten groups estimate the error, and the noise of the total is part of it.
        assert expected.bse[place] * 0.1 < float(each["standard error"]) < expected.bse[place] * 6
    assert "depend on each other within each doctor" in " ".join(studied.said.output.split())


def test_clusters_do_not_leave_and_must_be_there(studied):
    assert all(b"Dr " not in file.read_bytes() for file in studied.files)
    assert "lacks column 'doctor'" in studied.without_doctor


def test_the_approver_and_the_analyst_are_shown_what_it_is(studied):
    text = " ".join(studied.summaries[0].to_text().split())
    assert "description, least squares over 1000 of its rows" in text
    assert "The total tells: description: means" in text
    assert "The totals of counts, description, least squares (robust): Rows of all parties together:" in text
    measured = study_membership_figures(["description", "least squares"])
    assert " ".join(["the analyst alone", *(auc_text(each.analyst) for each in measured)]) in text
    assert "No secret map hides the rows of a study" in text
    assert "less noise" not in text
    assert "No counts of exactly these rows were shared before" in text
    assert "ward=night" in studied.said.output
    page = (studied.root / "analyst" / STUDY_FILES[1]).read_text(encoding="utf-8")
    assert "ward=night" in page
    assert "ill (days)" in page
    assert page.count("<svg") == 3 * 3 + 3, "histograms of three numbers in two groups and over all; three intervals"
    assert studied.analyst.log.entries()[-1]["event"] == "integrate"


def test_a_row_may_lack_every_category(tmp_path):
    columns = [replace(COLUMNS[2], name=name) for name in ("ward", "wing", "unit")]
    world = new_sums_world(tmp_path, parties=NAMES, sharing={"statistics": ("counts",)}, columns=tuple(columns))
    table = rows_of(ROWS, 1)[["ward", "ill"]].assign(wing="day", unit="night")
    table.loc[0, ["ward", "wing", "unit"]] = None
    assert not world.folder("north").prepare(table).reasons


def test_nobody_is_told_that_a_study_fills_in_what_is_missing(studied):
    left = "Before they were added up: 100 missing entries left missing, in 2 columns."
    assert left in studied.summaries[0].to_text()
    rows = {name: rules for name, _, rules in column_rows(studied.project.columns, fills=studied.project.fills_missing)}
    assert rows["age"] == "missing: left so"


def test_a_study_makes_no_model_and_no_part_of_it_is_made_twice(studied, tmp_path):
    """Counts of exactly the same rows may follow, and nothing of nearly the same ones."""
    with pytest.raises(AgreementError, match="makes no model"):
        studied.analyst.export()
    world = studied.copied(tmp_path)
    table = pd.read_csv(world.table("north"))
    for statistic, hindered in (("least squares", (True, True)), ("counts", (False, True))):
        sharing = replace(world.project.sharing, statistics=(statistic,), by=None, cluster=None)
        world.project = replace(world.project, sharing=sharing)
        world.next_run()
        for rows, is_hindered in zip((table, table.iloc[1:]), hindered, strict=True):
            reasons = world.folder("north").prepare(rows).reasons
            assert [each.code for each in reasons] == ["ALREADY_SHARED"] * is_hindered


def test_a_study_that_gives_nothing_says_of_each_statistic_why_and_what_to_do(tmp_path):
    """60 rows of one ward at each party are too few for the noise; with counts, these are printed and written."""
    for statistics in (("least squares",), ("least squares", "counts")):
        (root := tmp_path / statistics[-1]).mkdir()
        world = new_sums_world(root, "regression", parties=NAMES, sharing={"statistics": statistics})
        files = [world.share(name, rows_of(ROWS, 1, "regression").assign(ward="day")) for name in NAMES]
        arguments = ["analyst", "integrate", *map(str, files), "-C", str(root / "analyst")]
        said = CliRunner().invoke(app, arguments, catch_exceptions=False)
        written = (root / "analyst" / STUDY_FILES[0]).exists()
        if len(statistics) == 1:
            assert said.exit_code == 16
            assert said.stderr.startswith("datacollab: STUDY_REFUSED: No statistic of project 'wards' can be given.")
            assert "ward=night has fewer than 10" in said.stderr
            assert "Merge the level with another." in said.stderr
            assert not written
        else:
            assert said.exit_code == 0, said.output
            assert "ward=night has fewer than 10" in said.output
            assert "Counts have noise" in said.output
            assert written


def test_what_several_totals_promise_is_added_up(studied):
    """Two totals that are (2, 1e-5)-differentially private each, of the same rows."""
    noise = RidgeSums(1, limits=(0.0, 1.0)).noise_for(2.0)
    summary = replace(studied.summaries[0], epsilon=2.0, noise=noise, noise_before=noise)
    said = re.search(r"noise of 3, which is \(([\d.]+), 1e-05\)", " ".join(summary.to_text().split()))
    assert gaussian_sigma(float(said[1]), 1e-5) == pytest.approx(gaussian_sigma(2.0, 1e-5) / 2**0.5, rel=0.003)
    assert 2.0 * 2**0.5 < float(said[1]) < 4.0


def test_without_an_effect_there_is_no_anchor(studied, tmp_path):
    """None is sealed, opened or named; a table [anchor] that was left in the project file means nothing."""
    world, text = studied.copied(tmp_path), (studied.root / "project.toml").read_text()
    assert "[anchor]" not in text
    assert not [*world.root.glob("**/*anchor*")]
    facts = unpack(world.files[0]).facts
    assert (facts["anchor_commitment"], facts["n_components"]) == ("", 0)
    added = text.replace("[rules]", '[anchor]\nmethod = "smote"\nn_rows = 50\n\n[rules]')
    assert parse_project(added)[0].digest == world.project.digest
    with_model = re.sub(r"statistics = \[[^\]]*\]\n|by = .*\n|cluster = .*\n", "", text)
    assert "anchor is missing" in refusal("SPEC_INVALID", parse_project, with_model)
    rows = rows_of(120, 1, "regression")
    assert "needs no anchor" in refusal("ANCHOR_UNFIT", make_anchor, world.project, rows, where="public.csv")
    (world.root / "some.dcanchor").write_bytes(b"x")
    again = (PartyFolder.join, world.root / "north", world.root / "project.toml", world.root / "some.dcanchor")
    assert "join with the project file alone" in refusal("ANCHOR_UNFIT", *again)


def test_a_page_shows_curves_with_rows_at_risk(studied):
    """Without a table of hundreds of figures in the way; groups that are not colours do not break it."""
    time, arm = NumberColumn("time", 0, 10), CategoryColumn("arm", ("<old>", "new"))
    random = np.random.default_rng(0)
    table = {"time": random.uniform(0, 10, 600), "died": random.integers(0, 2, 600)}
    table["arm"] = random.choice(["<old>", "new"], 600)
    survival = Survival(time, "died", by=arm)
    found = survival.result(survival.part(table, bytes(32)), n_parties=1)
    task = Task(
        kind="survival",
        time="time",
        event="died",
        seen=("1",),
        not_seen=("0",),
        unit="years",
        maximum=10.0,
        rounding=0.5,
    )
    project = replace(studied.project, sharing=None, task=task)
    page = study_files({"survival": found}, project)[STUDY_FILES[1]].decode()
    figure = re.search("<figure.*?</figure>", page, re.DOTALL)[0]
    ElementTree.fromstring(figure)
    assert "time (years)" in figure
    assert "<old>" not in page
    assert len(re.findall("#0072b2", figure)) > 1
    assert "<details>" in page
