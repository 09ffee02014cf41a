"""A small Parquet or Arrow file that asks for much more memory than it has bytes is refused; usual tables are read."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from datacollab.errors import ExchangeError
from datacollab.table import read_table, table_batches

MIB = 2**20


def in_arrow(path, column, *, compression=None):
    schema = pa.schema([("x", column.type)])
    with ipc.new_file(path, schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(pa.record_batch([column], schema=schema))


def zeros_in_arrow(path):
    schema = pa.schema([("x", pa.float64())])
    batch = pa.record_batch([pa.array(np.zeros(1_000_000))], schema=schema)
    with ipc.new_file(path, schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        for _ in range(9):
            writer.write_batch(batch)


def pages_of_zeros(path):
    table = pa.table({"x": pa.array(np.zeros(1_000_000))})
    with pq.ParquetWriter(path, table.schema, use_dictionary=False, compression="zstd") as writer:
        for _ in range(70):
            writer.write_table(table)


def many_columns(path):
    column = pa.array(np.zeros(100_000))
    pq.write_table(pa.table({f"x{place}": column for place in range(90)}), path)


BOMBS = {
    "arrow compressed": ("arrow", zeros_in_arrow, 64),
    "arrow nothing": ("arrow", lambda path: in_arrow(path, pa.nulls(2_000_000_000)), 512),
    "parquet pages": ("parquet", pages_of_zeros, 512),
    "parquet columns": ("parquet", many_columns, 64),
}
"""Their suffixes, how they are made, and the MiB allowed: less than shipped where a bomb that size takes seconds."""


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.slow
def test_small_files_that_ask_for_gigabytes_are_refused(tmp_path, monkeypatch, bomb):
    suffix, write, allowed = BOMBS[bomb]
    if allowed < 512:
        monkeypatch.setattr("datacollab.table._limits._LEAST_MEMORY", allowed * MIB)
    path = tmp_path / f"table.{suffix}"
    write(path)
    assert path.stat().st_size < 5 * MIB
    for read in (read_table, lambda path: list(map(len, table_batches(path)))):
        with pytest.raises(ExchangeError) as caught:
            read(path)
        assert caught.value.code == "TOO_LARGE"
        assert str(path) in str(caught.value)
        assert f"{allowed * MIB:,} are allowed" in str(caught.value)
        assert pa.total_allocated_bytes() < 900 * MIB


def test_a_file_is_refused_by_its_size_before_it_is_read(tmp_path):
    path = tmp_path / "table.parquet"
    with open(path, "wb") as file:
        file.truncate(2**35 + 1)  # a hole, which takes no place on the disk
    with pytest.raises(ExchangeError) as caught:
        read_table(path)
    assert caught.value.code == "TOO_LARGE"


def test_runs_of_one_entry_are_counted_as_they_are_written_out(tmp_path):
    path = tmp_path / "table.arrow"
    in_arrow(path, pa.RunEndEncodedArray.from_arrays(pa.array([100_000_000], pa.int32()), pa.array([1.0])))
    with pytest.raises(ExchangeError) as caught:
        read_table(path)
    assert caught.value.code == "TOO_LARGE"


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_tables_that_compress_well_are_read(tmp_path, suffix):
    """Zeros and ones of a usual size, each kind of column, and a text of which there are many."""
    path = tmp_path / f"table.{suffix}"
    table = pa.table(
        {
            **{f"bit{place}": np.zeros(20_000, dtype=bool) for place in range(200)},
            "text": pa.array(["a note of some length " * 20] * 20_000).dictionary_encode(),
            "plain": ["a note of some length " * 20] * 20_000,
            "view": pa.array(["short", "a note that is longer than twelve letters"] * 10_000, pa.string_view()),
            "nothing": pa.nulls(20_000),
            "list": [[1, 2], None] * 10_000,
            "record": [{"a": "b"}] * 20_000,
            "map": pa.array([[("k", "v")]] * 20_000, pa.map_(pa.string(), pa.string())),
        }
    )
    if suffix == "parquet":
        pq.write_table(table, path, store_schema=True)
    else:
        with ipc.new_file(path, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table)
    whole = read_table(path)
    assert list(whole) == table.column_names
    assert whole["view"].tolist() == table["view"].to_pylist()
    assert whole["list"].tolist() == [[1, 2], None] * 10_000 or whole["list"].isna().sum() == 10_000
    batches = pd.concat(list(table_batches(path, batch_rows=3000)), ignore_index=True)
    assert batches["plain"].tolist() == whole["plain"].tolist() == table["plain"].to_pylist()


@pytest.mark.slow
def test_texts_of_a_large_dictionary_come_as_they_are(tmp_path):
    """Where all rows could hold the longest text, they are read as places in the dictionary first."""
    path = tmp_path / "table.parquet"
    texts = [f"{place} {'x' * 2000}" for place in range(400)]
    column = pa.array([*texts, None] * 50)
    large = {"large": column.cast(pa.large_string()), "bytes": column.cast(pa.binary())}
    pq.write_table(pa.table({"x": column, "view": column.cast(pa.string_view()), **large}), path)
    found = pd.concat(list(table_batches(path)), ignore_index=True)
    expected = pd.Series(column.to_pylist())
    for name in ("x", "view", "large"):
        assert found[name].dropna().tolist() == expected.dropna().tolist()
        assert found[name].isna().tolist() == expected.isna().tolist()
        assert found[name].dtype == found["large"].dtype
    assert found["bytes"].dropna().str.decode("utf-8").tolist() == expected.dropna().tolist()
