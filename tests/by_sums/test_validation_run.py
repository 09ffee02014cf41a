"""A published model is tried by files: from its TOML to the analyst's page, against all rows in one place."""

import csv
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from datacollab.agreement import Task, load_project, parse_project, read_logistic_model
from datacollab.by_sums.plan import study_statistics
from datacollab.steps.analyst import STUDY_FILES
from party_world import refused
from playing import done
from sums_world import PARTIES, new_sums_world

NAMES = PARTIES[:3]
MODEL = {"intercept": -1.5, "age": 0.06, "pulse": -0.04, "ward=night": 0.5}
FILE = 'link = "logit"\nintercept = -1.5\nage = 0.06\npulse = -0.04\n"ward=night" = 0.5\n'


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """Three hospitals of 700 rows draft, join, share and add up by commands; the model is a little too extreme."""
    sharing = {"statistics": ("counts", "validation", "meta-analysis"), "logistic_model": MODEL}
    world = new_sums_world(tmp_path_factory.mktemp("validation"), parties=NAMES, sharing=sharing)
    for place, name in enumerate(NAMES):
        random = np.random.default_rng(place)
        table = pd.DataFrame(random.normal(50, 15, size=(700, 2)).clip(0, 100), columns=["age", "pulse"])
        table["ward"] = random.choice(["day", "night"], 700)
        table["ill"] = np.where(random.random(700) < expit(0.8 * log_odds(table)), "yes", "no")
        table.to_csv(world.table(name), index=False)
    world.summaries = []
    world.files = [world.share(name, approve=lambda summary: world.summaries.append(summary) or "me") for name in NAMES]
    world.said = done("analyst", "integrate", *world.files, "-C", world.root / "analyst").output
    return world


def log_odds(table):
    return -1.5 + 0.06 * table["age"] - 0.04 * table["pulse"] + 0.5 * (table["ward"] == "night")


@pytest.mark.slow
def test_the_files_hold_the_figures_of_all_rows(tried):
    frame = pd.concat([pd.read_csv(tried.table(name)) for name in NAMES])
    text = (tried.root / "analyst" / STUDY_FILES[0]).read_text(encoding="utf-8")
    lines = [line for line in csv.reader(io.StringIO(text)) if line[0] == "validation"]
    figures = {line[1]: line[5:8] for line in lines}
    expected = {"AUC": roc_auc_score(frame["ill"] == "yes", log_odds(frame)), "calibration slope": 0.8}
    for name, value in expected.items():
        middle, low, high = map(float, figures[name])
        assert low < middle < high
        # Five standard errors: the noise is drawn anew in each run.
        assert abs(middle - value) < 2.5 * (high - low) / 2
    assert "calibration slope" in tried.said
    assert "observed share" in tried.said
    page = (tried.root / "analyst" / STUDY_FILES[1]).read_text(encoding="utf-8")
    assert "calibration and net benefit for ill" in page


def test_figures_are_compared_between_hospitals(tried):
    """All three are alike, and their mean is that of all rows; the noise is drawn anew in each run."""
    text = (tried.root / "analyst" / STUDY_FILES[0]).read_text(encoding="utf-8")
    lines = [line for line in csv.reader(io.StringIO(text)) if "predicted low" in line or line[:1] == ["meta-analysis"]]
    heads, *lines = lines[next(k for k, line in enumerate(lines) if "predicted low" in line) :]
    figures = {line[1]: dict(zip(heads, line, strict=True)) for line in lines}
    slope = figures["calibration slope"]
    assert slope["parties"] == "3"
    assert float(slope["predicted low"]) <= float(slope["low"]) < float(slope["value"]) < float(slope["high"])
    # A t distribution of two degrees of freedom reaches far: 4.3 standard errors.
    assert float(slope["low"]) - 0.2 < 0.8 < float(slope["high"]) + 0.2
    page = (tried.root / "analyst" / STUDY_FILES[1]).read_text(encoding="utf-8")
    assert "random-effects meta-analysis" in page
    told = " ".join(tried.summaries[0].to_text().split())
    assert "its sums tell each party's own AUC, calibration" in told


def test_every_party_reads_the_model_and_what_its_total_tells(tried):
    text = " ".join(tried.summaries[0].to_text().split())
    assert "validation: how many rows have the outcome" in text
    assert "The totals of counts:" in text
    shown = done("project", "show", tried.root / "project.toml").output
    assert "the logistic model that is tried: age 0.06, intercept -1.5, pulse -0.04, ward=night 0.5" in shown


def test_the_model_is_a_part_of_the_signed_project(tried):
    project = load_project(tried.root / "project.toml")
    assert project.sharing.logistic_model == MODEL
    assert project.digest == tried.project.digest
    other = replace(project.sharing, logistic_model=MODEL | {"age": 0.07})
    assert replace(project, sharing=other).digest != project.digest
    whole, point = (replace(project.sharing, logistic_model=MODEL | {"age": one}) for one in (1, 1.0))
    assert replace(project, sharing=whole).digest == replace(project, sharing=point).digest


def test_a_draft_reads_the_model_from_its_file(tried, tmp_path):
    (tmp_path / "model.toml").write_text(FILE)
    # Those of the world's parties are used up.
    for name in (*NAMES, "analyst"):
        done("keys", "new", "-C", tmp_path / name)
    named = [part for name in NAMES for part in ("--party", f"{name}={tmp_path / name / 'public.key'}")]
    draft = (
        *("project", "new", "ward", "--like", tried.root / "public.csv", "--purpose", "p", "--target", "ill", *named),
        *("--analyst", tmp_path / "analyst" / "public.key", "-C", tmp_path / NAMES[0]),
    )
    file = tmp_path / "project.toml"
    model = ("--logistic-model", tmp_path / "model.toml")
    done(*draft, "--statistic", "validation", *model, "-o", file)
    project = load_project(file)
    assert project.sharing.logistic_model == MODEL
    (statistic,) = study_statistics(project, n_components=0)
    assert statistic.outcome.levels == ("no", "yes")
    assert not project.has_anchor
    assert "coefficients of log odds" in file.read_text()
    for options, words in (
        (model, "--logistic-model is for --statistic validation"),
        (("--statistic", "validation"), "validation needs a model"),
    ):
        assert words in done(*draft, *options, "-o", tmp_path / "other.toml", code=13).stderr


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (FILE.replace("logit", "probit"), "SPEC_INVALID", 'link: expected "logit"'),
        (FILE.replace("0.06", '"0.06"'), "SPEC_INVALID", "age: expected a number, got text"),
        (FILE.replace("=", ":"), "SPEC_INVALID", "this is no TOML file"),
        ("a.b.c.d.e = 1", "TOO_LARGE", "between dots"),
        ("age = inf", "SPEC_INVALID", "expected a finite number"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path, text, code, words):
    file = tmp_path / "model.toml"
    file.write_text(text)
    with refused(code, words):
        read_logistic_model(file)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"logistic_model": None}, "validation needs a model. Write the table"),
        ({"logistic_model": {"intercept": 1.0, "age": 0.1, "ward=night": 0.2}}, "'pulse' has no coefficient"),
        ({"logistic_model": MODEL | {"weight": 0.1}}, "'weight' is no column or level"),
        ({"logistic_model": MODEL | {"ward=dusk": 0.1}}, "'ward=dusk' is no column or level"),
        ({"statistics": ("counts",)}, "validation tries it, and is not asked for"),
        ({"statistics": ("meta-analysis",), "logistic_model": None}, "Add 'validation' to the list"),
    ],
)
def test_a_project_whose_model_does_not_fit_is_refused(tried, changes, words):
    with refused("SPEC_INVALID", words):
        replace(tried.project, sharing=replace(tried.project.sharing, **changes))


def test_an_outcome_of_more_than_yes_and_no_is_refused(tried):
    for task in (
        Task(kind="classification", target="ill", classes=("no", "mild", "yes")),
        Task(kind="regression", target="ill", minimum=0.0, maximum=2.0),
    ):
        with refused("SPEC_INVALID", "validation needs two classes"):
            replace(tried.project, task=task)
    # As least squares take yes and no: a number that is 0 or 1.
    project = replace(tried.project, task=Task(kind="regression", target="ill", minimum=0.0, maximum=1.0))
    _, statistic, _ = study_statistics(project, n_components=0)
    assert statistic.outcome.levels == (0, 1)
    assert statistic.part({"age": [1.0, 2.0], "pulse": [3.0, 4.0], "ward": ["day", "night"], "ill": [0.0, 1.0]})[0] == 1


def test_a_file_keeps_the_model_where_it_stands(tried):
    """An owner may write the table by hand; the entry of a column that looks like a dotted key is quoted."""
    text = (tried.root / "project.toml").read_text()
    assert '"ward=night" = 0.5' in text
    project, _ = parse_project(text)
    assert project.digest == tried.project.digest
