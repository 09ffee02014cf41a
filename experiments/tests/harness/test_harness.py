"""The harness: tasks, runs that go on where they were, results in a file, and where numbers come from."""

import argparse
import gzip
import itertools
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_info

import datacollab
import datacollab_experiments
from datacollab_experiments.harness import (
    Outcome,
    ResultStore,
    Study,
    Task,
    attempt,
    cell_id,
    markdown,
    read_outcomes,
    run_study,
    run_tasks,
    source_state,
    study_options,
    versions,
    write_rows,
)
from datacollab_experiments.harness import ResultStore as Store

MEASURED, TROUBLE = [], {}
"""What was computed in this process, and what is raised instead."""


@dataclass(frozen=True, kw_only=True)
class Square(Task):
    """Squares of its cells' numbers, and noise that its seed determines."""

    pause: float = 0.0

    @property
    def label(self):
        return f"squares of {len(self.cells)}, seed {self.seed}"

    def measure(self):
        time.sleep(self.pause)
        for cell, number in self.cells.items():
            yield attempt(cell, partial(self._score, number))

    def _score(self, number):
        if trouble := TROUBLE.get((number, self.seed)):
            raise trouble
        MEASURED.append((number, self.seed))
        noise = float(np.random.RandomState([number, self.seed]).normal())
        return {"square": number**2 + noise}, {"step": 0.5}, None


def square(seed, *numbers, **more):
    return Square(seed=seed, cells={cell_id({"number": number}): number for number in numbers}, **more)


TASKS = [square(seed, *numbers) for seed in (0, 1, 2) for numbers in ((1, 2), (3,))]


@pytest.fixture(autouse=True)
def nothing_measured():
    MEASURED.clear()
    TROUBLE.clear()


def run(path, tasks=TASKS, **options):
    with Store(path) as store:
        return run_tasks(tasks, store, **options)


def scores(path, tasks=TASKS):
    return {
        (cell, task.seed): (result.scores, result.error)
        for task, found in read_outcomes(path, tasks)
        for cell, result in found.items()
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed") / "results.sqlite"
    assert run(path) == 0
    return scores(path)


def test_every_cell_has_its_score_and_where_it_comes_from(tmp_path, undisturbed):
    path = tmp_path / "results.sqlite"
    states = []
    assert run(path, progress=states.append) == 0
    # The longest tasks first.
    assert [(number, seed) for numbers in ((1, 2), (3,)) for seed in (0, 1, 2) for number in numbers] == MEASURED
    assert scores(path) == undisturbed
    assert [(state.done, state.total, state.failed) for state in states] == [(n, 6, 0) for n in range(1, 7)]
    np.testing.assert_allclose([state.share for state in states], np.cumsum([2, 2, 2, 1, 1, 1]) / 9)
    assert states[0].label == "squares of 2, seed 0"
    _, found = next(read_outcomes(path, TASKS))
    assert {result.seconds["step"] for result in found.values()} == {0.5}
    assert all(result.versions == versions() for result in found.values())


def test_after_its_hours_no_task_begins(tmp_path, undisturbed, monkeypatch):
    """A clock that moves by a quarter of an hour with every look at it."""
    path, clock = tmp_path / "results.sqlite", itertools.count(0, 900)
    monkeypatch.setattr(
        "datacollab_experiments.harness._run.time", SimpleNamespace(monotonic=lambda: float(next(clock)))
    )
    run(path, hours=0)
    assert not MEASURED
    run(path, hours=0.8)
    assert MEASURED == [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1)]
    run(path, hours=10)
    assert scores(path) == undisturbed


def test_a_run_goes_on_where_it_was_stopped(tmp_path, undisturbed):
    path = tmp_path / "results.sqlite"

    def stop(state):
        if state.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(path, progress=stop)
    states = []
    assert 0 < len(scores(path)) < len(undisturbed)
    run(path, progress=states.append)
    assert len(MEASURED) == len(set(MEASURED)) == 9
    assert states[-1].share == 1
    assert scores(path) == undisturbed
    run(path)
    assert len(MEASURED) == 9, "nothing is left to do"


@pytest.mark.slow
def test_what_is_there_of_a_task_is_not_computed_again(tmp_path):
    path = tmp_path / "results.sqlite"
    run(path, [square(0, 1, 2)])
    run(path, [square(0, 2, 4, 1), square(1, 2)])
    assert MEASURED == [(1, 0), (2, 0), (4, 0), (2, 1)]
    left = square(0, 1, 2).without({(cell_id({"number": 1}), 0), (cell_id({"number": 2}), 1)})
    assert list(left.cells.values()) == [2]
    assert left.keys == ((cell_id({"number": 2}), 0),)


def test_a_task_has_one_thread(tmp_path):
    seen = []

    @dataclass(frozen=True, kw_only=True)
    class Looking(Square):
        def measure(self):
            seen.extend(pool["num_threads"] for pool in threadpool_info())
            return super().measure()

    run(tmp_path / "results.sqlite", [Looking(seed=0, cells={"a": 1})])
    assert set(seen) == {1}


def test_failures_are_kept_and_the_others_go_on(tmp_path):
    path, trouble = tmp_path / "results.sqlite", ValueError("no such luck")
    TROUBLE[2, 1] = trouble
    assert run(path) == 1
    assert scores(path)[cell_id({"number": 2}), 1] == ({}, "ValueError: no such luck")
    assert len(scores(path)) == 9
    TROUBLE.clear()
    assert run(path) == 0, "it is there, and not tried again"
    with Store(path) as store:
        assert store.forget_failures({cell for task in TASKS for cell in task.cells}) == 1
    assert run(path) == 0
    assert MEASURED.count((2, 1)) == 1
    assert not any(error for _, error in scores(path).values())


@pytest.mark.parametrize("trouble", [OSError("no space left"), MemoryError(), ImportError("no such package")])
def test_what_is_wrong_with_the_machine_ends_the_run(tmp_path, trouble):
    path = tmp_path / "results.sqlite"
    TROUBLE[1, 1] = trouble
    with pytest.raises(type(trouble)):
        run(path)
    assert {seed for _, seed in scores(path)} == {0}


def test_a_cell_is_all_that_determines_it():
    assert cell_id({"a": 1, "b": [2.5, None]}) == cell_id({"b": [2.5, None], "a": 1})
    assert len({cell_id({"a": value}) for value in (1, 2, "1", None, [1])}) == 5
    assert len(cell_id({})) == 16


SLOWLY = """
import sys
sys.path.insert(0, {folder!r})
from pathlib import Path
from test_harness import run, square
tasks = [square(seed, number, pause=0.05) for seed in range(6) for number in (1, 2)]
run(Path({path!r}), tasks, n_jobs=2)
"""


@pytest.mark.nightly
@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_killed_again_and_again_a_run_gives_the_same_results(tmp_path):
    """SIGKILL at random moments, to the whole group of processes; then the scores are those of a quiet run."""
    path, tasks = tmp_path / "results.sqlite", [square(seed, number) for seed in range(6) for number in (1, 2)]
    code = SLOWLY.format(folder=str(Path(__file__).parent), path=str(path))
    chance, kills = random.Random(0), 0
    while True:
        process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        deadline = time.monotonic() + chance.uniform(0.5, 1.5) * (1 + kills)
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.poll() is not None:
            break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    assert process.returncode == 0
    assert kills > 0
    quiet = tmp_path / "quiet.sqlite"
    run(quiet, tasks)
    assert scores(path, tasks) == scores(quiet, tasks)
    assert len(scores(path, tasks)) == 12


# studies


def write(found, folder):
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"seed": task.seed, "cell": cell, "square": result.scores.get("square")}
        for task, results in found
        for cell, result in results.items()
    ]
    write_rows(rows, folder / "scores.csv")
    page = folder / "README.md"
    page.write_text(markdown(["seed", "square"], [[str(row["seed"]), str(row["square"])] for row in rows]))
    return page


STUDY = Study(name="squares", tasks=TASKS, write_report=write, fingerprints={"numbers": "a"})


def command(folder, *arguments, study=STUDY):
    parser = study_options(argparse.ArgumentParser(), folder / "run")
    return run_study(study, parser.parse_args(arguments))


def test_a_study_runs_reports_and_copies_what_is_complete(tmp_path, capsys, undisturbed):
    docs = tmp_path / "docs"
    assert command(tmp_path, "--copy-to", str(docs)) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "1/6 squares of 2, seed 0 (22 %)"
    assert said[-1] == str(tmp_path / "run" / "report" / "README.md")
    assert sorted(path.name for path in docs.iterdir()) == ["README.md", "scores.csv"]
    text = (docs / "README.md").read_text()
    assert text.splitlines()[:2] == ["| seed | square |", "| --- | --- |"]
    assert len(text.splitlines()) == 2 + len(undisturbed)
    assert command(tmp_path, "--copy-to", str(docs)) == 0
    assert "seed" not in capsys.readouterr().out.replace(str(tmp_path), "")
    assert len(MEASURED) == 9
    assert (docs / "README.md").read_text() == text


def test_what_is_missing_or_failed_is_said_and_not_copied(tmp_path, capsys):
    docs = tmp_path / "docs"
    TROUBLE[3, 2] = ValueError("no such luck")
    assert command(tmp_path, "--copy-to", str(docs)) == 1
    told = capsys.readouterr()
    assert "6/6 squares of 1, seed 2 (100 %, 1 failed)" in told.out
    assert "0 results are missing, 1 failed." in told.err
    assert not docs.exists()
    TROUBLE.clear()
    assert command(tmp_path, "--retry-failed", "--copy-to", str(docs)) == 0
    assert docs.exists()
    more = replace(STUDY, tasks=[*TASKS, square(9, 1)])
    assert command(tmp_path, "--report-only", study=more) == 1
    assert "1 results are missing, 0 failed." in capsys.readouterr().err


def test_other_data_of_the_same_name_are_refused(tmp_path):
    assert command(tmp_path) == 0
    with pytest.raises(ValueError, match="another version of 'numbers'"):
        command(tmp_path, study=replace(STUDY, fingerprints={"numbers": "b"}))


# tables


def test_rows_are_written_with_five_digits(tmp_path):
    write_rows([{"name": "a, b", "value": 0.123456789}, {"name": "c", "value": 2}], tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text().splitlines() == ["name,value", '"a, b",0.12346', "c,2"]
    write_rows([], tmp_path / "none.csv")
    assert (tmp_path / "none.csv").read_text().splitlines() == ["dataset"]


def test_a_packed_table_is_the_same_whenever_and_wherever_it_is_written(tmp_path):
    rows = [{"name": f"row {k % 7}", "value": k / 7} for k in range(3000)]
    files = [tmp_path / name for name in ("rows.csv", "rows.csv.gz", "other.csv.gz")]
    for file in files:
        write_rows(rows, file)
    plain, packed, other = (file.read_bytes() for file in files)
    assert gzip.decompress(packed) == plain
    assert packed == other
    # A flush after each row would undo most of what packing saves.
    assert len(packed) < 1.1 * len(gzip.compress(plain))


PACKAGES = {module.__name__: Path(module.__file__).parent for module in (datacollab, datacollab_experiments)}
MODULE = "datacollab_experiments.harness._carried"


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """Both packages in a repository of its own, all of it committed."""
    folder = tmp_path_factory.mktemp("repository")
    for name, package in PACKAGES.items():
        shutil.copytree(package, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for command in (
        ["init", "--quiet"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--no-gpg-sign", "--message", "all"],
    ):
        subprocess.run(["git", "-C", folder, *command], check=True)
    return folder


@pytest.fixture
def repository(committed, tmp_path, monkeypatch):
    """A copy of it, from which the packages are taken."""
    shutil.copytree(committed, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(f"{MODULE}.__file__", str(tmp_path / "datacollab_experiments" / "harness" / "_carried.py"))
    monkeypatch.setattr(datacollab, "__file__", str(tmp_path / "datacollab" / "__init__.py"))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed", ["datacollab/analyst/_kti.py", "datacollab_experiments/paper/_run.py", "datacollab/__init__.py"]
)
def test_a_change_anywhere_in_the_packages_shows(repository, changed):
    committed = source_state()
    assert len(committed) == 12
    (repository / changed).write_text("# changed")
    assert source_state() == f"{committed}+"


def test_what_is_not_of_the_packages_does_not_show(repository):
    (repository / "notes.txt").write_text("new")
    assert "+" not in source_state()


def test_outside_of_a_repository_there_is_none(repository):
    shutil.rmtree(repository / ".git")
    assert source_state() == ""


VERSIONS = {"python": "3.x", "numpy": "2.x"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some" / "where" / "results.sqlite"


def outcome(cell="a", accuracy=0.5, **more):
    return Outcome(cell=cell, scores={"accuracy": accuracy}, seconds={"train": 0.25}, **more)


def test_what_is_saved_is_read_back(path):
    images = np.random.default_rng(0).random((2, 7, 64))
    with ResultStore(path) as store:
        store.save(3, [outcome(images=images), outcome("b", error="ValueError: no")], VERSIONS, "abc+")
    with ResultStore(path) as store:
        results = store.results()
        assert set(results) == store.done() == {("a", 3), ("b", 3)}
        first = results["a", 3]
        assert (first.scores, first.seconds, first.error) == ({"accuracy": 0.5}, {"train": 0.25}, None)
        assert (first.versions, first.source) == (VERSIONS, "abc+")
        assert results["b", 3].error == "ValueError: no"
        assert_allclose(store.images("a", 3), images, atol=1e-3)
        assert store.images("b", 3) is None


@pytest.mark.slow
def test_reading_does_not_write(path):
    with ResultStore(path) as store:
        store.save(0, [outcome()], VERSIONS, "")
    before = path.read_bytes()
    path.chmod(0o444)
    with ResultStore(path) as store:
        assert store.done() == {("a", 0)}
    assert path.read_bytes() == before


def test_a_foreign_database_is_left_alone(tmp_path):
    path = tmp_path / "photos.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE photos (name TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match="a database of something else"):
        ResultStore(path)
    assert path.read_bytes() == before


def test_a_file_of_a_newer_version_is_refused(path):
    with ResultStore(path):
        pass
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(ValueError, match="format 99; .*upgrade datacollab"):
        ResultStore(path)


@pytest.mark.nightly
@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_process_killed_while_it_writes_leaves_no_part_of_a_trial(path):
    """Its results are inserted, its images are about to be, and nothing is committed."""
    with ResultStore(path) as store:
        store.save(0, [outcome("before")], VERSIONS, "")
    code = f"""
        import os, signal
        from pathlib import Path
        import numpy as np
        from datacollab_experiments.harness import Outcome, ResultStore

        def die_before_the_images(statement):
            if "INTO images" in statement:
                os.kill(os.getpid(), signal.SIGKILL)

        store = ResultStore(Path({str(path)!r}))
        store._connection.execute("PRAGMA cache_size = 1")
        store._connection.set_trace_callback(die_before_the_images)
        outcomes = [
            Outcome(cell=str(n), scores={{"accuracy": 0.5}}, seconds={{}}, images=np.zeros((2, 7, 784)))
            for n in range(500)
        ]
        store.save(1, outcomes, {{}}, "")
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert done.returncode == -9
    with ResultStore(path) as store:
        assert store.done() == {("before", 0)}
        store.save(1, [outcome("a")], VERSIONS, "")
        assert store.done() == {("before", 0), ("a", 1)}
