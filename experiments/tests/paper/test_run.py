import gzip
import re
from dataclasses import replace
from pathlib import Path

import pytest
from numpy.testing import assert_array_equal
from tiny import TINY, tiny
from trials import DIGITS, distinct_digits, shrink_forests

from datacollab.datasets import Dataset
from datacollab_experiments.harness import ResultStore
from datacollab_experiments.paper import (
    METHODS,
    TrialTask,
    definition_text,
    draw_trial,
    load_experiment,
    read_results,
    run_experiments,
    take_rows,
)
from datacollab_experiments.paper._run import load_data
from datacollab_experiments.paper._trial import fit_parties
from datacollab_experiments.reports._records import all_csv

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


def test_rows_carry_versions_commit_hash_and_times(tmp_path):
    experiment = replace(tiny(tmp_path), conditions=tiny(tmp_path).conditions[:1], seeds=(0,))
    run_experiments([experiment], tmp_path / "results.sqlite")
    results = read_results(tmp_path)
    assert results.missing == 0
    assert results.experiments == (experiment,)
    for row in results.rows["tiny"]:
        assert {"python", "numpy", "scikit-learn", "datacollab"} <= set(row.versions)
        assert len(row.cell) == 16
        assert sum(row.seconds.values()) > 0
        if row.name in METHODS:
            assert set(row.seconds) == {"construct", "represent", "train", "predict", "cpu"}
        images = results.images(row)
        assert (images is None) == (row.kind == "method")
        if images is not None:
            assert images.shape == (2, 7, 64)


@pytest.mark.slow
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


@pytest.mark.nightly
def test_rows_of_an_earlier_run_count_as_done(undisturbed, tmp_path, monkeypatch):
    """What a report writes is read again, scores to the last digit; failed rows are computed."""
    experiment = replace(tiny(tmp_path), conditions=tiny(tmp_path).conditions[:2])
    run_experiments([experiment], tmp_path / "earlier.sqlite")
    rows = read_results(tmp_path / "earlier.sqlite").rows
    packed, file = tmp_path / "rows.csv.gz", tmp_path / "results.sqlite"
    packed.write_bytes(gzip.compress(all_csv(rows).encode()))
    take_rows(packed, file)
    ran = []
    monkeypatch.setattr(TrialTask, "measure", lambda task: ran.append(task))
    assert run_experiments([experiment], file) == 0
    assert not ran
    assert scores(file) == scores(tmp_path / "earlier.sqlite")
    again = read_results(file).rows["tiny"]
    assert again[0].seconds.keys() == rows["tiny"][0].seconds.keys()
    assert again[0].seconds["cpu"] == pytest.approx(rows["tiny"][0].seconds["cpu"], abs=0.001)

    failed = {"tiny": [replace(rows["tiny"][0], error="ValueError: no", scores={}, seconds={})]}
    (tmp_path / "failed.csv").write_text(all_csv(failed), encoding="utf-8")
    take_rows(tmp_path / "failed.csv", tmp_path / "other.sqlite")
    with ResultStore(tmp_path / "other.sqlite") as store:
        assert not store.done()


def test_a_file_without_rows_of_experiments_is_refused(tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="table.csv holds no rows of experiments: expected the columns cell, seed"):
        take_rows(tmp_path / "table.csv", tmp_path / "results.sqlite")


@pytest.mark.nightly
def test_how_many_run_at_a_time_changes_nothing(tmp_path, small_forests):
    """Processes of their own have forests of the usual size."""
    small_forests.undo()
    experiment = tiny(tmp_path)
    experiment = replace(experiment, conditions=experiment.conditions[:4])
    for n_jobs in (1, 2):
        run_experiments([experiment], tmp_path / str(n_jobs) / "results.sqlite", n_jobs=n_jobs)
    assert scores(tmp_path / "1") == scores(tmp_path / "2")
    shrink_forests(small_forests)


def tables(folder):
    """Bytes of all result tables of the report that do not hold times."""
    from datacollab_experiments.reports import write_report

    written = write_report(read_results(folder).rows, folder / "report", title="", command="")
    kept = [path for path in written if path.suffix in {".csv", ".md", ".tex"} and "seconds" not in path.name]
    assert any(path.name == "rows.csv" for path in kept)
    return {path.name: path.read_bytes() for path in kept}


@pytest.mark.slow
def test_a_failing_method_is_a_row_and_the_others_go_on(tmp_path):
    text = TINY.replace("LTI = {}", 'LTI = {}\nBroken = { class = "tiny:Broken" }')
    experiment = replace(tiny(tmp_path, text), seeds=(0,))
    assert run_experiments([experiment], tmp_path / "results.sqlite") == 4
    failed = [row for row in read_results(tmp_path).rows["tiny"] if row.error]
    assert {row.name for row in failed} == {"Broken"}
    assert {row.error for row in failed} == {"ZeroDivisionError: not today"}
    assert all(not row.scores and not row.seconds for row in failed)
    assert run_experiments([experiment], tmp_path / "results.sqlite") == 0, "failures are kept, not tried again"


@pytest.mark.slow
def test_what_a_party_does_alone_does_not_fail_with_the_obfuscation(undisturbed, tmp_path):
    """Forty rows cannot have fifty components, whichever condition comes first."""
    text = TINY.replace("n_components = [3, 5]", "n_components = [50, 3]").replace('"pca", ', "")
    experiment = replace(tiny(tmp_path, text), seeds=(0,))
    failed = run_experiments([experiment], tmp_path / "results.sqlite")
    rows = read_results(tmp_path).rows["tiny"]
    assert {row.condition.n_components for row in rows if row.error} == {50}
    assert {row.name for row in rows if row.error} == {"LTI", "KTI", "LR", "PINV"}
    assert failed == len({row.cell for row in rows if row.error}) == 5
    central = {row.scores["accuracy"] for row in rows if row.name == "Central"}
    assert central == {found["accuracy"] for (_, _, name, seed), (found, _) in undisturbed.items()
                       if (name, seed) == ("Central", 0)}  # fmt: skip


def test_two_experiments_of_one_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="Each experiment needs a name of its own, but tiny came more often"):
        run_experiments([tiny(tmp_path), tiny(tmp_path)], tmp_path / "results.sqlite")


def test_a_class_that_is_not_there_is_refused_before_any_work(tmp_path):
    experiment = tiny(tmp_path).with_methods({"Mine": {"class": "nowhere.to.be:Found"}})
    with pytest.raises(ValueError, match="'Mine' cannot be made .*'nowhere.to.be:Found' cannot be imported"):
        run_experiments([experiment], tmp_path / "results.sqlite")
    assert not (tmp_path / "results.sqlite").exists()


def test_a_condition_larger_than_the_data_is_refused_before_any_work(tmp_path):
    experiment = tiny(tmp_path, TINY.replace("n_per_party = 40", "n_per_party = 4000"))
    with pytest.raises(ValueError, match="need 12140 rows, but digits has 1797"):
        run_experiments([experiment], tmp_path / "results.sqlite")
    assert not (tmp_path / "results.sqlite").exists()


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


def made_up():
    data = distinct_digits()
    data["name"] = "made-up"
    return data


def wrong():
    return 3


def untold():
    return Dataset(X=[[1.0]], y=[0])


def test_a_data_set_of_ones_own_is_a_function():
    assert isinstance(load_data("test_run:made_up"), Dataset)
    with pytest.raises(TypeError, match=r"'test_run:wrong' must return a datacollab.datasets.Dataset; .* int"):
        load_data("test_run:wrong")
    with pytest.raises(ValueError, match=r"'test_run:untold' lacks \['task', 'name'\]; expected Dataset\(X="):
        load_data("test_run:untold")
    with pytest.raises(ValueError, match="cannot be imported"):
        load_data("test_run:missing")
    with pytest.raises(ValueError, match="There is no data set 'mnits'"):
        load_data("mnits")


@pytest.mark.parametrize("kind", ["pca", pytest.param("umap", marks=pytest.mark.slow)])
def test_parties_fitted_before_give_the_same_trial(kind):
    """Whoever fitted, and however often the parties were used since."""
    data = distinct_digits()
    condition = replace(DIGITS, obfuscator=kind)
    fitted = fit_parties(replace(condition, n_anchors=1, n_sources=None, n_neighbors=1), data, 4)
    draw_trial(replace(condition, n_anchors=100), data, 4, fitted)
    one, other = draw_trial(condition, data, 4, fitted), draw_trial(condition, data, 4)
    for share, same in zip(one.shares, other.shares, strict=True):
        assert_array_equal(share.representation, same.representation)
        assert_array_equal(share.anchor_representation, same.anchor_representation)
        assert_array_equal(share.target, same.target)
        assert_array_equal(one.test_representations[share.party], other.test_representations[share.party])


def test_no_results_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="There are no results in .*experiment run"):
        read_results(tmp_path)
