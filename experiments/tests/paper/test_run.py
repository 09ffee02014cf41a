import csv
import gzip
import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import TINY, tiny
from trials import shrink_forests

from datacollab.datasets import Dataset
from datacollab_experiments.harness import ResultStore
from datacollab_experiments.paper import (
    TrialTask,
    definition_text,
    load_experiment,
    read_results,
    run_experiments,
    take_rows,
)
from datacollab_experiments.reports import write_report

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def small_forests():
    with pytest.MonkeyPatch.context() as patch:
        shrink_forests(patch)
        yield patch


def scores(path):
    """Everything that does not vary between runs."""
    rows = [row for of_experiment in read_results(path).rows.values() for row in of_experiment]
    return {(row.condition, row.kind, row.name, row.seed): (dict(row.scores), row.error) for row in rows}


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """Scores and tables of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert run_experiments([tiny(folder)], folder / "results.sqlite") == 0
    return scores(folder), tables(folder)


@pytest.fixture(scope="module")
def undisturbed(quiet):
    return quiet[0]


@pytest.mark.slow
def test_every_row_is_there_with_its_scores_and_where_it_comes_from(undisturbed, tmp_path):
    conditions = 2 * 2 * 2
    assert len(undisturbed) == conditions * 2 * (3 + 2)
    for (_, kind, _, _), (found, error) in undisturbed.items():
        assert error is None
        wanted = {"accuracy"} if kind == "method" else {
            "reconstruction_accuracy", "most_common_share", "mean_image_accuracy", "original_accuracy"
        }  # fmt: skip
        assert set(found) == wanted
        assert all(0 <= value <= 1 for value in found.values())


@pytest.mark.nightly
def test_a_run_goes_on_where_it_was_stopped(quiet, undisturbed, tmp_path, monkeypatch):
    """Ctrl-C after three trials; the second run computes the others only, and the tables are the same bytes."""
    file, ran = tmp_path / "results.sqlite", []
    original = TrialTask.measure
    monkeypatch.setattr(TrialTask, "measure", lambda task: ran.append(task) or original(task))

    def stop(state):
        if state.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiments([tiny(tmp_path)], file, progress=stop)
    first, states = len(ran), []
    assert 0 < read_results(tmp_path).missing < len(undisturbed)
    run_experiments([tiny(tmp_path)], file, progress=states.append)
    assert len(ran) == 2 * 4
    assert [state.done for state in states] == list(range(1, 2 * 4 - first + 1))
    assert states[-1].share == 1
    assert (scores(tmp_path), tables(tmp_path)) == quiet
    run_experiments([tiny(tmp_path)], file)
    assert len(ran) == 2 * 4, "nothing is left to do"


def test_published_rows_count_as_done(tmp_path):
    """Scores are taken to the last digit; a failed row is computed again."""
    published = FOLDER.parents[2] / "docs" / "results" / "printed" / "rows.csv.gz"
    with gzip.open(published, "rt", encoding="utf-8", newline="") as file:
        lines = list(itertools.islice(csv.DictReader(file), 40))
    lines[0]["error"] = "ValueError: no"
    with gzip.open(tmp_path / "rows.csv.gz", "wt", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    take_rows(tmp_path / "rows.csv.gz", tmp_path / "results.sqlite")
    with ResultStore(tmp_path / "results.sqlite") as store:
        found = store.results()
    assert found.keys() == {(line["cell"], int(line["seed"])) for line in lines[1:]}
    for line in lines[1:]:
        scores = found[line["cell"], int(line["seed"])].scores
        assert scores
        assert scores == {measure: float(line[measure]) for measure in scores}


def test_a_file_without_rows_of_experiments_is_refused(tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="table.csv holds no rows of experiments: expected the columns cell, seed"):
        take_rows(tmp_path / "table.csv", tmp_path / "results.sqlite")


def tables(folder):
    """Bytes of all result tables of the report that do not hold times."""
    written = write_report(read_results(folder).rows, folder / "report", title="", command="")
    kept = [path for path in written if path.suffix in {".csv", ".md", ".tex"} and "seconds" not in path.name]
    assert any(path.name == "rows.csv" for path in kept)
    return {path.name: path.read_bytes() for path in kept}


@pytest.mark.nightly
def test_a_failing_method_is_a_row_and_the_others_go_on(tmp_path):
    text = TINY.replace("LTI = {}", 'LTI = {}\nBroken = { class = "tiny:Broken" }')
    experiment = replace(tiny(tmp_path, text), seeds=(0,))
    assert run_experiments([experiment], tmp_path / "results.sqlite") == 4
    failed = [row for row in read_results(tmp_path).rows["tiny"] if row.error]
    assert {row.name for row in failed} == {"Broken"}
    assert {row.error for row in failed} == {"ZeroDivisionError: not today"}
    assert all(not row.scores and not row.seconds for row in failed)
    assert run_experiments([experiment], tmp_path / "results.sqlite") == 0, "failures are kept, not tried again"


def test_two_experiments_of_one_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="Each experiment needs a name of its own, but tiny came more often"):
        run_experiments([tiny(tmp_path), tiny(tmp_path)], tmp_path / "results.sqlite")


def test_a_class_that_is_not_there_is_refused_before_any_work(tmp_path):
    experiment = tiny(tmp_path).with_methods({"Mine": {"class": "nowhere.to.be:Found"}})
    with pytest.raises(ValueError, match="'Mine' cannot be made .*'nowhere.to.be:Found' cannot be imported"):
        run_experiments([experiment], tmp_path / "results.sqlite")
    assert not (tmp_path / "results.sqlite").exists()


@pytest.mark.slow
def test_a_method_of_ones_own_takes_one_class_and_one_line_in_rq1(tmp_path, monkeypatch):
    """The class and the line are those that CONTRIBUTING shows."""
    guide = (FOLDER.parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (module,) = re.findall(r"```python\n(# my_module\.py.*?)```", guide, flags=re.DOTALL)
    (line,) = re.findall(r"/a (FirstColumns = .*?)'", guide)
    (tmp_path / "my_module.py").write_text(module, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    text = definition_text("rq1").replace("[methods]\n", f"[methods]\n{line}\n")
    (tmp_path / "rq1.toml").write_text(text, encoding="utf-8")
    experiment = load_experiment(tmp_path / "rq1.toml", "smoke")
    conditions = [replace(c, obfuscator="pca") for c in experiment.conditions if c.n_parties == 2]
    run_experiments([replace(experiment, conditions=tuple(conditions), seeds=(0,))], tmp_path / "results.sqlite")
    rows = read_results(tmp_path).rows["rq1"]
    mine = [row for row in rows if row.name == "FirstColumns"]
    assert len(mine) == len(conditions) > 0
    assert not any(row.error for row in rows)
    assert "FirstColumns" in tables(tmp_path)["rq1_digits_paper.md"].decode()
    # The first columns of two parties' PCAs are the same up to sign at best: worse than integration.
    assert mine[0].scores["accuracy"] < next(r for r in rows if r.name == "LTI").scores["accuracy"]


def wrong():
    return 3


def untold():
    return Dataset(X=[[1.0]], y=[0])


@pytest.mark.slow
def test_a_data_set_of_ones_own_is_a_function(tmp_path):
    experiment = tiny(tmp_path)
    (condition, *_), store = experiment.conditions, tmp_path / "results.sqlite"

    def run_on(dataset):
        run_experiments([replace(experiment, conditions=(replace(condition, dataset=dataset),), seeds=(0,))], store)

    with pytest.raises(TypeError, match=r"'test_run:wrong' must return a datacollab.datasets.Dataset; .* int"):
        run_on("test_run:wrong")
    with pytest.raises(ValueError, match=r"'test_run:untold' lacks \['task', 'name'\]; expected Dataset\(X="):
        run_on("test_run:untold")
    with pytest.raises(ValueError, match="cannot be imported"):
        run_on("test_run:missing")
    with pytest.raises(ValueError, match="There is no data set 'mnits'"):
        run_on("mnits")
    run_on("trials:distinct_digits")
    assert not any(row.error for row in read_results(tmp_path).rows["tiny"])


@pytest.mark.slow
def test_parties_that_several_anchors_share_give_the_same_scores_as_alone(tmp_path):
    """Whichever trial fitted them, and however often they were used since."""
    experiment = replace(tiny(tmp_path), seeds=(0,), attacks=None)
    few, many = (replace(experiment.conditions[0], n_anchors=n) for n in (80, 120))
    for folder, conditions in (("both", (few, many)), ("few", (few,)), ("many", (many,))):
        run_experiments([replace(experiment, conditions=conditions)], tmp_path / folder / "results.sqlite")
    assert scores(tmp_path / "both") == scores(tmp_path / "few") | scores(tmp_path / "many")
