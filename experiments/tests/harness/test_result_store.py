import os
import sqlite3
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numpy.testing import assert_allclose

from datacollab_experiments.harness import Outcome, ResultStore

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
