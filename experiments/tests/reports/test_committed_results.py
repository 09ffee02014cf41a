"""The results in docs/results: the tables are those of the rows, and the rows are what the documents say."""

import csv
import gzip
from dataclasses import fields
from pathlib import Path

import pytest

from datacollab_experiments import readings
from datacollab_experiments.claims import check_claims
from datacollab_experiments.paper import Condition, Row, experiment_names, load_experiment, make_tasks
from datacollab_experiments.readings import printed
from datacollab_experiments.reports._page import claims_markdown
from datacollab_experiments.reports._report import canonical
from datacollab_experiments.reports._table import to_markdown
from datacollab_experiments.reports._tables import TIME_FIGURES, result_tables

RESULTS = Path(__file__).parents[3] / "docs" / "results"
RISKS = {"rq4-risks", "rq4-risks-table"}
"""They have a folder of their own, and three seeds."""
MEASURES = {
    *("accuracy", "rmse", "reconstruction_accuracy"),
    *("most_common_share", "mean_image_accuracy", "original_accuracy"),
    *("linkage", "linkage_labels", "open_world_linkage", "r2c", "membership_auc", "map_membership_auc"),
    *("reidentification", "reidentification_labels", "zero_leak_reidentification"),
}


def setting(field, text):
    if field.type in ("int", "int | None"):
        return int(text) if text else None
    return float(text) if field.type == "float" else text


def read_rows(path):
    found = {}
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            settings = {
                field.name: setting(field, line[field.name])
                for field in fields(Condition)
                # Settings that came later have their defaults.
                if field.name in line
            }
            row = Row(
                experiment=line["experiment"],
                condition=Condition(**settings),
                kind=line["kind"],
                name=line["name"],
                seed=int(line["seed"]),
                cell=line["cell"],
                scores={measure: float(line[measure]) for measure in MEASURES & set(line) if line[measure]},
                error=line["error"] or None,
            )
            found.setdefault(row.experiment, []).append(row)
    return canonical(found)


def assert_complete(rows, experiment):
    """Every result that the definition asks for is there once, and none failed."""
    wanted = {(key, cell.name, task.seed) for task in make_tasks([experiment]) for key, cell in task.cells.items()}
    assert {(row.cell, row.name, row.seed) for row in rows} == wanted
    assert not any(row.error for row in rows)


@pytest.fixture(scope="module")
def rows():
    return read_rows(RESULTS / "rows.csv.gz")


@pytest.fixture(scope="module")
def risks():
    return read_rows(RESULTS / "risks" / "rows.csv")


def test_they_are_complete_and_of_the_definitions_that_are_shipped(rows, risks):
    assert set(rows) == set(experiment_names()) - RISKS
    assert set(risks) == RISKS
    for name, part in (rows | risks).items():
        experiment = load_experiment(name, "quick")
        assert_complete(part, experiment)
        assert len(experiment.seeds) >= (3 if name in RISKS else 5)
    protocol = read_rows(RESULTS / "protocol" / "rows.csv")
    assert set(protocol) == {"protocol"}
    experiment = load_experiment(Path(readings.__file__).with_name("protocol.toml"), "quick")
    assert_complete(protocol["protocol"], experiment)


def test_the_tables_of_risks_are_those_of_the_rows(risks):
    tables = {f"{table.name}.md": to_markdown(table) for table in result_tables(risks)}
    assert {path.name for path in (RESULTS / "risks").glob("*.md")} == set(tables)
    for name, text in tables.items():
        assert (RESULTS / "risks" / name).read_text(encoding="utf-8") == text, name


def test_the_tables_are_those_of_the_rows(rows):
    tables = {f"{table.name}.md": to_markdown(table) for table in result_tables(rows)}
    assert len(tables) > 10
    for name, text in tables.items():
        assert (RESULTS / "tables" / name).read_text(encoding="utf-8") == text, name
    made_of_times = {path.name for path in (RESULTS / "tables").glob("*seconds*")}
    assert {path.name for path in (RESULTS / "tables").iterdir()} == {*tables, *made_of_times, "claims.md"}


@pytest.mark.slow
def test_the_verdicts_are_those_of_the_rows(rows):
    verdicts = {
        preset: [verdict for verdict in check_claims(rows, preset) if verdict.claim.source not in TIME_FIGURES.values()]
        for preset in ("paper", "recommended")
    }
    assert (RESULTS / "tables" / "claims.md").read_text(encoding="utf-8") == claims_markdown(verdicts)


@pytest.mark.slow
def test_the_page_of_printed_numbers_is_that_of_its_rows():
    folder = RESULTS / "printed"
    results = printed.gather_results([folder / "rows.csv.gz"])
    assert not any(row.error for part in results.rows.values() for row in part)
    shown = [path.name for path in folder.glob("*.png")]
    for name, text in printed.make_texts(results, shown).items():
        assert (folder / name).read_text(encoding="utf-8") == text, name
    scores = {"kernels.csv", "rows.csv.gz", "tries.csv"}
    assert {path.name for path in folder.iterdir()} == {"README.md", "claims.md", *scores, *shown}
