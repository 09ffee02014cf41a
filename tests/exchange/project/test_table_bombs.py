"""Small Parquet and Arrow files that ask for gigabytes are refused before anything of the kind is made."""

import os
import struct
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.errors import ExchangeError
from datacollab.exchange.project import read_table, table_batches
from datacollab.exchange.project._arrow_messages import unpacked_bytes
from datacollab.exchange.project._arrow_size import batch_bytes
from datacollab.exchange.project._parquet_pages import chunks, pages

MIB = 2**20
READER = """
import resource, sys
import pandas, pyarrow.parquet
from pathlib import Path
from datacollab.errors import ExchangeError
from datacollab.exchange.project import read_table, table_batches
from datacollab.exchange.project._table_budget import TableBudget

path = Path(sys.argv[1])
limit = TableBudget(path).limit
resource.setrlimit(resource.RLIMIT_AS, (16 * 2**30,) * 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for read in (lambda: read_table(path), lambda: list(map(len, table_batches(path)))):
    try:
        read()
    except ExchangeError as error:
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(error.code, grown // 1024, str(path) in str(error), f"{limit:,} are allowed" in str(error))
"""


def zeros(n_rows=70_000_000):
    return pa.array(np.zeros(n_rows))


def long_text(length=1_000_000, n_rows=20_000):
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, dtype=np.int32)), pa.array(["x" * length]))


def in_arrow(path, column, *, compression=None):
    schema = pa.schema([("x", column.type)])
    with ipc.new_file(path, schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(pa.record_batch([column], schema=schema))


def in_parquet(path, column, **options):
    pq.write_table(pa.table({"x": column}), path, row_group_size=len(column), **options)


def repeated_beginnings(path):
    """Each entry repeats all of the one before it, in a megabyte that is written once for a page."""
    in_parquet(
        path,
        pa.array(["x" * 1_000_000] * 600),
        use_dictionary=False,
        column_encoding={"x": "DELTA_BYTE_ARRAY"},
        compression="zstd",
        data_page_size=2**31 - 1,
    )


def many_columns(path):
    column = pa.array(np.zeros(100_000))
    pq.write_table(pa.table({f"x{place}": column for place in range(800)}), path)


def long_lists(path):
    values = zeros()
    in_parquet(path, pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values))


def lists_of_nothing(path):
    in_arrow(path, pa.FixedSizeListArray.from_arrays(pa.nulls(2_000_000_000), 1_000_000))


def views_of_one_text(path):
    text = b"x" * 1_000_000
    # Its length, its beginning, the number of the buffer that it is in, and its place there.
    view = struct.pack("<i4sii", len(text), text[:4], 0, 0)
    buffers = [None, pa.py_buffer(view * 20_000), pa.py_buffer(text)]
    in_arrow(path, pa.Array.from_buffers(pa.string_view(), 20_000, buffers))


BOMBS = {
    "arrow compressed": ("arrow", lambda path: in_arrow(path, zeros(), compression="zstd")),
    "arrow dictionary": ("arrow", lambda path: in_arrow(path, long_text())),
    "arrow nothing": ("arrow", lambda path: in_arrow(path, pa.nulls(2_000_000_000))),
    "arrow lists of nothing": ("arrow", lists_of_nothing),
    "arrow views": ("arrow", views_of_one_text),
    "parquet pages": (
        "parquet",
        lambda path: in_parquet(path, zeros(80_000_000), use_dictionary=False, compression="zstd"),
    ),
    "parquet dictionary": ("parquet", lambda path: in_parquet(path, long_text(), store_schema=False)),
    "parquet dictionary kept": ("parquet", lambda path: in_parquet(path, long_text())),
    "parquet columns": ("parquet", many_columns),
}
LONG_BOMBS = {
    "arrow compressed dictionary": ("arrow", lambda path: in_arrow(path, long_text(600 * MIB, 1), compression="zstd")),
    "parquet beginnings": ("parquet", repeated_beginnings),
    "parquet lists": ("parquet", long_lists),
}


@pytest.mark.skipif(os.name != "posix", reason="memory is measured as POSIX does")
@pytest.mark.parametrize("bomb", [*BOMBS, *(pytest.param(bomb, marks=pytest.mark.slow) for bomb in LONG_BOMBS)])
def test_small_files_that_ask_for_gigabytes_are_refused(tmp_path, bomb):
    suffix, write = (BOMBS | LONG_BOMBS)[bomb]
    path = tmp_path / f"table.{suffix}"
    write(path)
    assert path.stat().st_size < 5 * MIB
    done = subprocess.run([sys.executable, "-c", READER, path], capture_output=True, text=True, check=True)
    whole, in_batches = done.stdout.splitlines()
    for told in (whole, in_batches):
        code, grown, names_file, names_limit = told.split()
        assert (code, names_file, names_limit) == ("TOO_LARGE", "True", "True")
        assert int(grown) < 1024


def test_runs_of_one_entry_are_refused(tmp_path):
    path = tmp_path / "table.arrow"
    in_arrow(path, pa.RunEndEncodedArray.from_arrays(pa.array([1_000_000_000], pa.int32()), pa.array([1.0])))
    with pytest.raises(ExchangeError) as caught:
        read_table(path)
    assert caught.value.code == "TABLE_UNREADABLE"


def refused_as_too_large(path):
    with pytest.raises(ExchangeError) as caught:
        read_table(path)
    assert caught.value.code == "TOO_LARGE"


def test_a_buffer_that_says_it_is_longer_than_it_is_is_refused(tmp_path):
    path = tmp_path / "table.arrow"
    in_arrow(path, zeros(1000), compression="zstd")
    length = struct.pack("<q", 8000) + b"\x28\xb5\x2f\xfd"
    assert path.read_bytes().count(length) == 1
    path.write_bytes(path.read_bytes().replace(length, struct.pack("<q", 2**40) + length[8:]))
    refused_as_too_large(path)


def test_a_page_that_says_it_is_longer_than_the_end_of_the_file_says_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    in_parquet(path, zeros(1000), use_dictionary=False)
    data = path.read_bytes()
    # The type of page, 0, then its length unpacked, as a number that begins with the letters of 2 * 8000 and a bit.
    assert data[4:7] == b"\x15\x00\x15"
    n_letters = next(n for n in range(1, 6) if data[6 + n] < 0x80)
    path.write_bytes(data[:7] + b"\xfe\xff\xff\xff\x0f" + data[7 + n_letters :])
    refused_as_too_large(path)


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


@given(
    n_rows=st.integers(1, 3000),
    compression=st.sampled_from(["zstd", "snappy", "none"]),
    version=st.sampled_from(["1.0", "2.0"]),
    page_size=st.sampled_from([100, 10_000]),
    group=st.integers(1, 2000),
    seed=st.integers(0, 99),
)
def test_pages_are_found_as_their_writer_counts_them(
    tmp_path_factory, n_rows, compression, version, page_size, group, seed
):
    path = tmp_path_factory.mktemp("pages") / "table.parquet"
    random = np.random.default_rng(seed)
    table = pa.table(
        {
            "number": random.normal(size=n_rows),
            "few": random.integers(0, 3, n_rows),
            "text": pa.array([None if place % 7 == 0 else "x" * (place % 50) for place in range(n_rows)]),
            "list": pa.array([list(range(place % 4)) for place in range(n_rows)]),
        }
    )
    pq.write_table(
        table,
        path,
        compression=compression,
        data_page_version=version,
        data_page_size=page_size,
        write_batch_size=64,
        row_group_size=group,
    )
    metadata = pq.read_metadata(path)
    with open(path, "rb") as file:
        listed = chunks(file)
        assert len(listed) == metadata.num_row_groups
        for place in range(metadata.num_row_groups):
            for number in range(metadata.num_columns):
                column, chunk = metadata.row_group(place).column(number), listed[place][number]
                for name in ("num_values", "data_page_offset", "dictionary_page_offset", "has_dictionary_page"):
                    assert getattr(chunk, name) == getattr(column, name)
                found = list(pages(file, chunk))
                assert sum(page.n_entries for page in found) == column.num_values
                assert sum(page.is_dictionary for page in found) == column.has_dictionary_page
                # What the end of the file counts are pages with their headers, of up to a hundred bytes here.
                headers = column.total_uncompressed_size - sum(page.n_bytes for page in found)
                assert 0 < headers < 150 * len(found)


@given(
    n_rows=st.integers(0, 500),
    compression=st.sampled_from([None, "zstd", "lz4"]),
    n_batches=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_messages_are_as_long_as_what_is_in_them(tmp_path_factory, n_rows, compression, n_batches, seed):
    path = tmp_path_factory.mktemp("messages") / "table.arrow"
    batch = pa.record_batch(
        {
            "number": np.random.default_rng(seed).normal(size=n_rows),
            "text": pa.array(["ab" * (place % 9) for place in range(n_rows)], pa.string()),
        }
    )
    with ipc.new_file(path, batch.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        for _ in range(n_batches):
            writer.write_batch(batch)
    with open(path, "rb") as file:
        schema, *found = unpacked_bytes(file)
    assert schema == 0
    assert len(found) == n_batches
    for n_bytes in found:
        assert batch.nbytes <= n_bytes + 64
        # Buffers that are not compressed are padded to 64 bytes; a text's offsets begin with one more than there are.
        assert n_bytes <= batch.nbytes + (4 if compression else 5 * 64)
    letters = sum(2 * (place % 9) for place in range(n_rows))
    assert batch_bytes(batch) == n_rows * (1 + 8 + 8) + letters


def test_what_stands_for_itself_is_counted_once_for_each_row():
    text = pa.array(["four", None, "sixsix"])
    assert batch_bytes(pa.record_batch({"x": text})) == 3 * (1 + 8) + 10
    assert batch_bytes(pa.record_batch({"x": text.dictionary_encode()})) == 3 + 2 * 8 + 10
    assert batch_bytes(pa.record_batch({"x": text.cast(pa.string_view())})) == 3 * (1 + 8) + 10
    assert batch_bytes(pa.record_batch({"x": text.slice(2)})) == 1 + 8 + 6
    assert batch_bytes(pa.record_batch({"x": pa.array([True, False])})) == 2 * (1 + 1)
    assert batch_bytes(pa.record_batch({"x": pa.array([[1, 2, 3], []], pa.list_(pa.int64()))})) == 2 * 2 + 3 * 8
