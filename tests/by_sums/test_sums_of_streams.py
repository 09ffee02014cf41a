"""Sums of streams and queries: those of the file, in batches, and nothing is left of what fails on its way."""

import sqlite3
from contextlib import closing

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

from datacollab.errors import ExchangeError
from datacollab.table import Query
from sums_world import new_sums_world, rows_of

PARTIES = ("north", "south", "east")
TABLE = rows_of(600, 11)
ARROW = pa.Table.from_pandas(TABLE)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The analyst's model is installed in the south; the north has shared nothing in the run after that."""
    world = new_sums_world(tmp_path_factory.mktemp("streams"), parties=PARTIES)
    with closing(sqlite3.connect(world.root / "rows.sqlite")) as connection:
        TABLE.to_sql("rows", connection, index=False)
    with duckdb.connect(world.root / "rows.duckdb") as connection:
        connection.from_arrow(ARROW).create("rows")
    return world


def relation():
    return duckdb.connect().from_arrow(ARROW)


SOURCES = {
    "polars": lambda root: pl.from_arrow(ARROW),
    "pyarrow": lambda root: ARROW,
    "reader of short batches": lambda root: pa.RecordBatchReader.from_batches(
        ARROW.schema, ARROW.to_batches(max_chunksize=7)
    ),
    "DuckDB": lambda root: relation(),
    "query of SQLite": lambda root: Query(root / "rows.sqlite", "SELECT * FROM rows"),
    "query of DuckDB": lambda root: Query(root / "rows.duckdb", "SELECT * FROM rows"),
}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_sums_are_those_of_the_frame(world, source):
    folder = world.folder("north")
    found, expected = (folder.prepare(each) for each in (SOURCES[source](world.root), TABLE))
    assert_allclose(found.part, expected.part, rtol=0, atol=1e-9)
    assert found.total.table.n_different(expected.total.table, 10) == 0
    part = folder.part_maker().part(SOURCES[source](world.root))
    assert_allclose(folder.prepare(part).part, expected.part, rtol=0, atol=1e-9)
    assert_allclose(folder.encode(SOURCES[source](world.root)).X, folder.encode(TABLE).X, rtol=0, atol=0)


def files_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.path.rglob("*")) if path.is_file()}


def breaking():
    """A stream whose source is lost after some batches."""
    yield from ARROW.slice(0, 300).to_batches(max_chunksize=50)
    raise OSError("connection to 'geheim' lost")


def test_a_source_that_is_lost_leaves_nothing_and_the_second_run_shares(world, tmp_path):
    world = world.copied(tmp_path)
    folder = world.folder("north")
    before = files_of(folder)
    ledger = sorted(tmp_path.rglob("*.dcledger"))
    for act in (folder.prepare, lambda table: world.share("north", table)):
        with pytest.raises(ExchangeError, match="nothing was made of it") as caught:
            act(pa.RecordBatchReader.from_batches(ARROW.schema, breaking()))
        assert "geheim" not in str(caught.value)
    after = files_of(folder)
    # Fingerprints that were heard are kept whatever becomes of the table.
    assert {path.name for path in after.keys() ^ before.keys()} == {"heard.dcstate"}
    assert {path.name for path in before if after[path] != before[path]} <= {"log.jsonl"}
    assert sorted(tmp_path.rglob("*.dcledger")) == ledger
    assert not any(folder.outbox.iterdir())
    assert world.share("north", ARROW.to_reader()).is_file()
    assert "You shared 600 rows" in folder.way.describe_share()


def test_a_reader_that_was_looked_at_cannot_be_shared_as_a_table_without_rows(world, tmp_path):
    world = world.copied(tmp_path)
    reader = ARROW.to_reader()
    assert world.folder("north").prepare(reader).summary.n_rows == 600
    with pytest.raises(ExchangeError, match="read already"):
        world.share("north", reader)
    assert not any(world.folder("north").outbox.iterdir())


def test_a_query_leaves_its_place_without_user_in_log_and_share(world, tmp_path):
    world = world.copied(tmp_path)
    query = Query(world.root / "rows.sqlite", "SELECT * FROM rows WHERE ward <> 'geheim'")
    world.share("north", query)
    assert "of rows.sqlite on" in world.folder("north").way.describe_share()
    assert not any(b"geheim" in data for data in files_of(world.folder("north")).values())


@pytest.mark.slow
def test_predictions_are_those_of_the_file(world, tmp_path):
    world = world.copied(tmp_path)
    for path in world.share_all():
        world.analyst.add([path])
    world.analyst.integrate([])
    (model,) = (each for each in world.analyst.export() if "north" in each.name)
    folder = world.folder("north")
    folder.install(model)
    TABLE.to_csv(tmp_path / "rows.csv", index=False)
    sources = {name: make(world.root) for name, make in SOURCES.items()} | {"pandas": TABLE}
    expected = list(folder.predict_batches(tmp_path / "rows.csv", batch_rows=250))
    for name, source in sources.items():
        found = list(folder.predict_batches(source, batch_rows=250))
        assert [len(each) for each in found] == [250, 250, 100], name
        for one, other in zip(found, expected, strict=True):
            assert_allclose(one["proba_yes"], other["proba_yes"], rtol=0, atol=1e-9)
    scores = folder.evaluate(tmp_path / "rows.csv")
    assert folder.evaluate(relation())["accuracy"] == scores["accuracy"]
    assert folder.predict(relation(), tmp_path / "predictions.csv") == 600
    assert folder.log_entries("predict")[-1]["facts"]["file"] == "the table"
    assert np.isfinite(scores["log_loss"])
