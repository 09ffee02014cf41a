"""Streams of Arrow: an entry is the same from every library, and a stream that is read once is never read twice."""

import datetime
import sys
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from datacollab.errors import ExchangeError, MissingExtraError
from datacollab.table import Column, Query, Schema, encode_table, read_table, table_batches

SCHEMA = Schema(
    columns=(
        Column(name="whole", kind="number", minimum=-10, maximum=10, missing="fill", fill=0.0, flag_missing=True),
        Column(name="unsigned", kind="number", minimum=0, maximum=2.0**64),
        Column(name="decimal", kind="number", minimum=0, maximum=10, missing="fill", fill=5.0, flag_missing=True),
        Column(name="truth", kind="number", minimum=0, maximum=1),
        Column(name="level", kind="category", categories=("a", "b"), missing="fill", fill="a", flag_missing=True),
        Column(name="code", kind="category", categories=("1", "9007199254740993")),
        Column(name="long", kind="category", categories=("a text of more than twelve letters", "b")),
        Column(name="none", kind="number", minimum=0, maximum=1, missing="fill", fill=0.5, flag_missing=True),
    )
)
ROWS = pa.table(
    {
        "whole": pa.array([1, None, -3], pa.int64()),
        "unsigned": pa.array([0, 2**63, 7], pa.uint64()),
        "decimal": pa.array([Decimal("1.25"), Decimal("9.99"), None], pa.decimal128(10, 2)),
        "truth": pa.array([True, False, True]),
        "level": pa.array(["a", None, "b"]).dictionary_encode(),
        "code": pa.array([1, 9007199254740993, 1], pa.int64()),
        "long": pa.array(["a text of more than twelve letters", "b", "b"]),
        "none": pa.nulls(3),
        "day": pa.array([datetime.date(2026, 1, 31), None, None]),
        "moment": pa.array([datetime.datetime(2026, 1, 31, 12), None, None], pa.timestamp("us", "UTC")),
        "nested": pa.array([[1], [], None], pa.list_(pa.int64())),
    }
)


def relation():
    here = ROWS  # noqa: F841
    return duckdb.connect().from_arrow(ROWS)


SOURCES = {
    "table": lambda: ROWS,
    "batches of one row": lambda: pa.Table.from_batches(ROWS.to_batches(max_chunksize=1)),
    "reader": ROWS.to_reader,
    "polars": lambda: pl.from_arrow(ROWS),
    "polars, categorical": lambda: pl.from_arrow(ROWS).with_columns(pl.col("long").cast(pl.Categorical)),
    "DuckDB": relation,
    "Ibis": lambda: pytest.importorskip("ibis", reason="ibis-framework is not installed").memtable(ROWS),
    "string views": lambda: ROWS.set_column(6, "long", ROWS["long"].cast(pa.string_view())),
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The matrix of a Parquet file, whose readings have tests of their own."""
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(ROWS, path)
    return encode_table(SCHEMA, read_table(path, schema=SCHEMA), where="the file", with_target=False).X


@pytest.mark.parametrize("source", SOURCES)
def test_an_entry_is_the_same_from_every_library(source, expected):
    frame = read_table(SOURCES[source](), schema=SCHEMA)
    assert_array_equal(encode_table(SCHEMA, frame, where="the rows", with_target=False).X, expected)
    assert expected[1, SCHEMA.feature_names.index("code=9007199254740993")] == 1, "no neighbour, as in float64"


def test_frames_have_the_rows_asked_for_whatever_the_batches_of_the_stream():
    rows = pa.table({"whole": range(100)})
    for size in (1, 7, 100):
        batches = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=size))
        frames = list(table_batches(batches, batch_rows=30))
        assert [len(each) for each in frames] == [30, 30, 30, 10]
        assert pd.concat(frames)["whole"].tolist() == list(range(100))
    (empty,) = table_batches(rows.slice(0, 0), batch_rows=30)
    assert (list(empty.columns), len(empty)) == (["whole"], 0)


def test_dictionaries_may_differ_from_batch_to_batch():
    batches = [pa.record_batch({"level": pa.array([each]).dictionary_encode()}) for each in ("a", "b", "a")]
    rows = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    assert read_table(rows)["level"].tolist() == ["a", "b", "a"]


def test_a_stream_is_read_lazily():
    read = []

    def make():
        for number in range(5):
            read.append(number)
            yield pa.record_batch({"whole": [number] * 10})

    frames = table_batches(pa.RecordBatchReader.from_batches(pa.schema({"whole": pa.int64()}), make()), batch_rows=10)
    next(frames)
    assert read == [0]


def test_a_stream_that_gives_its_rows_once_is_not_read_twice():
    reader = ROWS.to_reader()
    assert len(read_table(reader)) == 3
    with pytest.raises(ExchangeError, match="read already.*read_all") as caught:
        read_table(reader)
    assert caught.value.code == "TABLE_UNREADABLE"
    again = relation()
    assert len(read_table(again)) == len(read_table(again)) == 3


def test_nested_entries_are_refused_where_the_project_has_the_column():
    schema = Schema(columns=(Column(name="nested", kind="number", minimum=0, maximum=1),))
    for source in ("polars", "DuckDB", "reader"):
        with pytest.raises(ExchangeError, match="'nested' holds lists or records") as caught:
            read_table(SOURCES[source](), schema=schema)
        assert caught.value.code == "SCHEMA_DTYPE"


def test_words_of_a_producer_are_not_passed_on():
    def fail():
        yield pa.record_batch({"whole": [1]})
        raise ValueError("could not convert 'secret'")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"whole": pa.int64()}), fail())
    with pytest.raises(ExchangeError, match="nothing was made of it") as caught:
        read_table(reader)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_type_that_arrow_lacks_is_refused():
    with pytest.raises(ExchangeError, match="types that Arrow lacks"):
        read_table(pl.DataFrame({"wide": pl.Series([2**100], dtype=pl.Int128)}))


def test_without_pyarrow_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"datacollab\[tables\]"):
        read_table(pl.DataFrame({"whole": [1]}))


def test_hugeint_of_duckdb_keeps_all_digits():
    """Sums of whole numbers are HUGEINT there, which earlier versions gave as doubles."""
    rows = duckdb.connect().sql("SELECT 9007199254740993::HUGEINT AS code, sum(1) AS whole")
    schema = Schema(
        columns=(
            Column(name="code", kind="category", categories=("9007199254740992", "9007199254740993")),
            Column(name="whole", kind="number", minimum=0, maximum=1),
        )
    )
    found = encode_table(schema, read_table(rows, schema=schema), where="the rows", with_target=False)
    assert_array_equal(found.X, np.array([[0.0, 1.0, 1.0]]))


def test_a_query_is_for_databases_alone(tmp_path):
    with pytest.raises(ExchangeError, match="is no database"):
        Query(tmp_path / "rows.csv", "SELECT 1")
