"""Tables in and out: to the last digit, in batches as in one piece, and nothing quoted where they cannot be read."""

import csv
import os
from datetime import date, time
from decimal import Decimal

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from python_calamine import CalamineWorkbook

from datacollab.errors import ExchangeError
from datacollab.folder.log import locked
from datacollab.table import Column, encode_table, read_table, table_batches, write_table

SECRET = "Anna Huber"
LIMITS = {"columns": 16_384, "rows": 1_048_575, "letters in a cell": 32_767, "bytes": 2**31}
SUFFIXES = ["csv", "parquet", "pq", "arrow", "feather"]


@pytest.fixture(autouse=True)
def limit_of_quotations():
    """As Python has it; SciPy's reader of another format raises it for the whole process."""
    before = csv.field_size_limit(131_072)
    yield
    csv.field_size_limit(before)


def refusal(path, *, batches=None, project=None):
    with pytest.raises(ExchangeError) as caught:
        read_table(path, schema=project)
    assert caught.value.code == "TABLE_UNREADABLE"
    with pytest.raises(ExchangeError) as of_batches:
        list(table_batches(path, batch_rows=batches or 2, schema=project))
    assert of_batches.value.code == "TABLE_UNREADABLE"
    message = str(caught.value)
    assert str(path) in message
    assert "Huber" not in message
    assert "Huber" not in str(of_batches.value)
    return message


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_comes_back_from_its_file(table, project, tmp_path, suffix):
    path = tmp_path / f"table.{suffix}"
    assert write_table(path, [table.iloc[:7], table.iloc[7:8], table.iloc[8:]]) == 60
    assert os.listdir(tmp_path) == [path.name]
    pd.testing.assert_frame_equal(read_table(path), table)
    whole = read_table(path, schema=project)
    batches = list(table_batches(path, batch_rows=13, schema=project))
    assert len(batches) >= 5
    assert max(map(len, batches)) <= 13
    pd.testing.assert_frame_equal(pd.concat(batches, ignore_index=True), whole)
    assert len({tuple(batch.dtypes) for batch in batches}) == 1
    assert_array_equal(encode_table(project, whole, where="x").X, encode_table(project, table, where="x").X)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
    suffix=st.sampled_from(["csv", "parquet", "arrow"]),
    batch_rows=st.integers(1, 7),
)
def test_numbers_survive_to_the_last_bit(tmp_path, numbers, suffix, batch_rows):
    path = tmp_path / f"numbers.{suffix}"
    frame = pd.DataFrame({"x": np.array(numbers, dtype=np.float64)})
    write_table(path, [frame[start : start + batch_rows] for start in range(0, len(frame), batch_rows)])
    for back in (read_table(path), pd.concat(list(table_batches(path, batch_rows=batch_rows)))):
        assert back["x"].to_numpy(dtype=np.float64).tobytes() == frame["x"].to_numpy().tobytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_table_without_rows_is_one_empty_batch(table, project, tmp_path, suffix):
    path = tmp_path / f"empty.{suffix}"
    assert write_table(path, [table.iloc[:0]]) == 0
    (batch,) = table_batches(path, schema=project)
    assert list(batch) == list(table)
    assert encode_table(project, batch, where="x").X.shape == (0, project.n_features)
    assert read_table(path, schema=project).shape == (0, 7)


def test_types_do_not_change_between_batches_of_csv(project, write):
    """The first batch looks whole, the second broken; the first identifier like a number, the last not."""
    rows = ["001,40,1,2,f,no", "002,41,1,3,m,no", "x3,41.5,north,,,yes", "004,42,south,2.5,f,unclear"]
    path = write("t.csv", "\n".join(["id,age,ward,dose,sex,ill", *rows]) + "\n")
    batches = list(table_batches(path, batch_rows=2, schema=project))
    assert [tuple(batch.dtypes) for batch in batches] == [tuple(batches[0].dtypes)] * 2
    table = pd.concat(batches)
    assert list(table["id"]) == ["001", "002", "x3", "004"]
    encoded = encode_table(project, table, where="x")
    assert encoded.X.tolist() == [
        [40, 0, 0, 1, 2, 0, 1, 0],
        [41, 0, 0, 1, 3, 0, 0, 1],
        [41.5, 1, 0, 0, 2, 1, 0, 1],
        [42, 0, 1, 0, 2.5, 0, 1, 0],
    ]
    assert encoded.target.tolist() == ["no", "no", "yes", "unclear"]


def test_types_do_not_change_between_batches_of_parquet(project, table, tmp_path):
    """Columns of whole numbers, with and without missing entries; beyond 2**53 a float would lose the last digits."""
    identifiers = pd.array([None, *(2**60 + row for row in range(59))], dtype="Int64")
    ages = pd.array([40] * 30 + [41] * 30, dtype="Int64")
    frame = table.assign(id=identifiers, age=ages)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_pandas(frame).replace_schema_metadata(None), path)
    batches = list(table_batches(path, batch_rows=20, schema=project))
    assert len({tuple(map(str, batch.dtypes)) for batch in batches}) == 1
    assert batches[2]["id"].iloc[-1] == 2**60 + 58
    out = tmp_path / "out.parquet"
    write_table(out, batches)
    assert pq.read_table(out)["id"].to_pylist()[1:] == [2**60 + row for row in range(59)]


def test_categories_may_be_called_as_what_is_missing_elsewhere(make_project, write):
    """NA is Namibia where it was declared, and no entry elsewhere."""
    project = make_project(
        columns=(
            Column(name="country", kind="category", categories=("DE", "NA")),
            Column(name="age", kind="number", minimum=0, maximum=99, missing="fill", fill=50),
            Column(name="ward", kind="category", categories=("1", "2"), missing="fill", fill="2"),
        ),
        max_components=1,
    )
    path = write("t.csv", "country,age,ward,ill\nNA,NA,NA,no\nDE,7,1,yes\n")
    for table in (read_table(path, schema=project), *table_batches(path, schema=project)):
        assert encode_table(project, table, where="x").X.tolist() == [[0, 1, 50, 0, 1], [1, 0, 7, 1, 0]]


@pytest.mark.parametrize("stored", ["csv", "csv of floats", "parquet of text", "parquet of numbers", "arrow"])
def test_whole_numbers_as_labels_work_from_every_file(make_project, tmp_path, write, stored):
    project = make_project(
        columns=(Column(name="stage", kind="category", categories=("1", "2", "3"), missing="fill", fill="3"),),
        max_components=1,
    )
    stages = [2, 1, None, 3]
    frame = {
        "parquet of text": pd.DataFrame({"stage": [None if s is None else str(s) for s in stages]}),
        "parquet of numbers": pd.DataFrame({"stage": pd.array(stages, dtype="Int64")}),
        "arrow": pd.DataFrame({"stage": [np.nan if s is None else float(s) for s in stages]}),
    }
    if stored in frame:
        path = tmp_path / f"t.{stored.partition(' ')[0]}"
        write_table(path, [frame[stored]])
    else:
        point = ".0" if "floats" in stored else ""
        lines = ["" if s is None else f"{s}{point}" for s in stages]
        path = write("t.csv", "stage,other\n" + "".join(f"{line},x\n" for line in lines))
    for known in (project, None):
        table = read_table(path, schema=known)
        X = encode_table(project, table, where="x", with_target=False).X
        assert X.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]]


WORDS = {
    "cut off in the last row": ("a,b,c\n1,2,3\n4,5", "line 3 has 2 of 3 entries; the file may be cut off"),
    "cut off in a quotation": ('a,b,c\n1,"x\ny",3\n4,"5', "line 4 has 2 of 3 entries; the file may be cut off"),
    "cut off in the last quotation": (
        'a,b\n\n1,2\n4,"Huber',
        "quotation mark in line 4 that is not closed; the file may",
    ),
    "short far down": ("a,b\n" + "1,2\n" * 40 + "1\n" + "1,2\n" * 9, "line 42 has 1 of 2 entries"),
    "short after a line break": ('a,b\r\n"1,\r\n,""",2\r\n\r\n3\r\n', "line 5 has 1 of 2 entries"),
    "a second header": ("a,b\nx,y\na,b\nz,x\n", "line 3 repeats the header"),
    "a quoted nothing": ('a,b\n1,2\n""\n', "line 3 has 1 of 2 entries"),
    "long": (f"a,b\n1,2\n3,4,{SECRET}\n", "line 3 has 3 entries, and the header names 2 columns"),
    "all long": ("a,b\n1,2,\n3,4,\n", "line 2 has 3 entries"),
    "quotation without end": ('a,b\n1,2\n3,"' + "4,5\n" * 50_000, "a quotation mark in line 3 is not closed within"),
    "Excel": (b"PK\x03\x04\x14\x00" + SECRET.encode(), "Let the name of a workbook end in .xlsx"),
    "old Excel": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 16, "a workbook of an old Excel"),
    "Parquet": (b"PAR1\x15\x04", "is a Parquet file by its contents. Let its name end in .parquet"),
    "Arrow": (b"ARROW1\0\0", "Let its name end in .arrow"),
    "a web page": (b"<html>" + SECRET.encode(), "is a web page or XML"),
    "compressed": (b"\x1f\x8b\x08\0", "is compressed. Unpack it first; in R"),
    "UTF-16 cut off": ("a,b\n1,2\n".encode("utf-16")[:-1], "begins as UTF-16 and is something else"),
    "UTF-32": ("a,b\n1,2\n".encode("utf-32"), ""),
    "empty": ("", "is empty."),
    "blank": ("\n \n" * 4000, "is empty."),
    "binary": (b"\x89PNG\r\n\x1a\n" + SECRET.encode() + b"\xff\xfe", "is no text"),
    "unknown separator": (f"sep=:\nage:dose\n1:{SECRET}\n", "names a separator in line 1"),
    "no header": (f"1,2\n3,{SECRET}\n", ""),
    "twice": (f"age,dose,age\n1,2,{SECRET}\n", ""),
    "text for a number": (f"age,dose\n1,2\n{SECRET},4,5\n", "line 3 has 3 entries"),
}


@pytest.mark.parametrize("case", WORDS)
@pytest.mark.parametrize("with_project", [False, True])
def test_what_is_wrong_with_a_file_is_said_with_its_line(write, project, case, with_project):
    contents, words = WORDS[case]
    assert words in refusal(write("patients.csv", contents), project=project if with_project else None)


def test_nothing_is_made_of_a_file_that_was_cut_off(write):
    """The first batch is whole, and is not handed out either."""
    batches = table_batches(write("t.csv", "a,b\n" + "1,2\n" * 100 + "3"), batch_rows=10)
    with pytest.raises(ExchangeError, match="line 102 has 1 of 2 entries"):
        next(batches)


WHOLE = {
    "no line break at the end": 'a,b\n1,2\n3,"4"',
    "blank lines": "\n\na,b\n\n1,2\n \t\n3,4\n\n\n",
    "quotations": '"a",b\n"1",2\n3,"4"\n',
    "old line ends": "a,b\r1,2\r3,4\r",
    "a mark": "\ufeffa,b\n1,2\n3,4\n",
}


@pytest.mark.parametrize("case", WHOLE)
def test_whole_files_are_read(write, case):
    path = write("t.csv", WHOLE[case])
    for table in (read_table(path), *table_batches(path)):
        assert table.to_dict("list") == {"a": [1, 3], "b": [2, 4]}


ENTRIES = st.text(st.sampled_from('ab", \n\r'), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(2, 4).flatmap(lambda n: st.lists(st.lists(ENTRIES, min_size=n, max_size=n), max_size=6)),
    line_end=st.sampled_from(["\n", "\r\n"]),
    data=st.data(),
)
def test_a_row_is_short_whatever_stands_in_it(tmp_path, rows, line_end, data):
    """Entries with commas, quotation marks and line breaks; then one entry is taken from one row."""
    path = tmp_path / "t.csv"

    def written(rows):
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator=line_end, quoting=csv.QUOTE_ALL)
            writer.writerows(rows)

    header = [f"x{column}" for column in range(len(rows[0]) if rows else 2)]
    written([header, *rows])
    # Rows without any entry are left out.
    assert read_table(path).shape == (sum(any(map(str.strip, row)) for row in rows), len(header))
    if rows:
        place = data.draw(st.integers(0, len(rows) - 1))
        before = path.read_bytes()
        written([header, *rows[:place]])
        line = len(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))
        path.write_bytes(before)
        written([header, *rows[:place], rows[place][:-1], *rows[place + 1 :]])
        assert f"line {line} has {len(header) - 1} of {len(header)} entries" in refusal(path)


def test_columns_with_one_name_are_told_by_their_places(write):
    """Without a header, names would be entries."""
    assert "columns 2, 4 share names" in refusal(write("t.csv", f"1,{SECRET},2,{SECRET}\n3,x,4,y\n"))


def test_columns_without_a_name_are_let_pass(write, project):
    """Spreadsheets add empty columns at the right."""
    path = write("t.csv", "age,ward,dose,sex,ill,,\n40,NA,2,f,no,,\n40,north,2,f,no,,\n")
    (batch,) = table_batches(path, schema=project)
    for table in (batch, read_table(path, schema=project)):
        assert encode_table(project, table.iloc[1:], where="x").X[0, 0] == 40


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_damaged_files_are_refused(table, tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    write_table(path, [table])
    data = path.read_bytes()
    for damaged in (b"", b"PAR1", data[: len(data) // 2], data[:-1], SECRET.encode() * 20, data[:8] + b"\xff" * 60):
        path.write_bytes(damaged)
        refusal(path)


def test_a_file_damaged_far_down_is_refused_after_the_first_batches(tmp_path):
    path = tmp_path / "t.arrow"
    schema = pa.schema([("x", pa.string())])
    with ipc.new_file(path, schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        for _ in range(3):
            writer.write_table(pa.table({"x": [SECRET * 100] * 50}, schema))
    data = bytearray(path.read_bytes())
    place = data.rindex(b"\x28\xb5\x2f\xfd")
    data[place : place + 30] = b"\xff" * 30
    path.write_bytes(data)
    batches = table_batches(path, batch_rows=50)
    assert len(next(batches)) == 50
    refusal(path, batches=50)


def test_the_end_of_the_name_says_what_is_written(table, tmp_path):
    with pytest.raises(ExchangeError) as caught:
        write_table(tmp_path / "predictions.xls", [table])
    assert caught.value.code == "TABLE_UNREADABLE"
    assert ".csv, .xlsx, .parquet" in str(caught.value)
    assert not list(tmp_path.iterdir())


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20) | st.sampled_from(
    ["00123", "=1+1", "+1", "-1", "@A1", "1e5", "TRUE", " a ", "a\nb", "a\r\nb", "<&>\"'", "2026-01-31", "", "1" * 20]
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    rows=st.lists(
        st.tuples(TEXTS, st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**62), 2**62), st.booleans()),
        min_size=1,
        max_size=8,
    ),
    batch_rows=st.integers(1, 4),
)
def test_a_workbook_has_texts_as_texts_and_numbers_to_the_last_bit(tmp_path, rows, batch_rows):
    """Whatever a text begins with it is one, so that nothing computes it; other programs read it alike."""
    path = tmp_path / "t.xlsx"
    frame = pd.DataFrame(rows, columns=["=text", "number", "whole", "is"])
    write_table(path, [frame[at : at + batch_rows] for at in range(0, len(frame), batch_rows)], mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    header, *cells = openpyxl.load_workbook(path).active.iter_rows()
    assert [(each.value, each.data_type) for each in header] == [(name, "s") for name in frame]
    read = [[each.value for each in row] for row in cells]
    kept = [[text, number, whole if abs(whole) < 10**15 else str(whole), it] for text, number, whole, it in rows]
    assert [[row[0] or "", *row[1:]] for row in read] == kept
    assert all(row[0].data_type == "s" or not row[0].value for row in cells)
    with CalamineWorkbook.from_path(str(path)) as book:
        said = book.get_sheet_by_index(0).to_python()[1:]
        assert [(row[0], row[3]) for row in said] == [(row[0], row[3]) for row in rows]


def test_a_workbook_leaves_missing_entries_empty_and_writes_nothing_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    columns = {"x": [1.5, np.nan], "n": pd.array([1, None], dtype="Int64"), "t": ["a", None]}
    columns["day"] = pd.to_datetime(["2026-01-31", None])
    write_table(tmp_path / "t.xlsx", [pd.DataFrame(columns | {"c\x07": [np.inf, 1]})])
    _, *rows = openpyxl.load_workbook(tmp_path / "t.xlsx").active.iter_rows(values_only=True)
    assert rows == [(1.5, 1, "a", "2026-01-31 00:00:00", "inf"), (None, None, None, None, 1)]
    assert [each.name for each in tmp_path.iterdir()] == ["t.xlsx"]


@pytest.mark.parametrize(
    ("what", "most", "table"),
    [
        ("rows", 3, pd.DataFrame({"x": range(4)})),
        ("columns", 2, pd.DataFrame({"x": [1], "y": [1], "z": [1]})),
        ("letters in a cell", 5, pd.DataFrame({"x": ["secret"]})),
        ("bytes", 100, pd.DataFrame({"x": range(9)})),
    ],
)
def test_what_a_sheet_does_not_hold_is_refused_with_the_way_on(monkeypatch, tmp_path, what, most, table):
    monkeypatch.setattr("datacollab.table._workbook._MOST_HELD", LIMITS | {what: most})
    with pytest.raises(ExchangeError, match=rf"holds {most} {what} at most, .* ending in \.csv") as caught:
        write_table(tmp_path / "t.xlsx", [table[:2], table[2:]])
    assert caught.value.code == "TOO_LARGE"
    assert "secret" not in str(caught.value)
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    write_table(tmp_path / "t.xlsx", [table])


def test_columns_beyond_z_have_two_letters_and_more(tmp_path):
    wide = pd.DataFrame([range(800)], columns=[f"c{place}" for place in range(800)])
    write_table(tmp_path / "t.xlsx", [wide])
    assert read_table(tmp_path / "t.xlsx").iloc[0].tolist() == list(range(800))


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet", "arrow"])
def test_what_was_there_stays_until_the_new_one_is_whole(table, tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    write_table(path, [table.iloc[:5]])
    before = path.read_bytes()

    def broken():
        yield table
        assert path.read_bytes() == before
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_table(path, broken())
    with pytest.raises(ValueError, match="nothing to write"):
        write_table(path, [])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_a_folder_that_is_tidied_up_meanwhile_keeps_what_is_being_written(table, tmp_path):
    """Every command removes what killed ones left in a folder; a long prediction must survive that."""
    path = tmp_path / "predictions.csv"

    def slow():
        yield table
        with locked(tmp_path):
            pass
        yield table

    assert write_table(path, slow()) == 120
    assert len(read_table(path)) == 120


def test_a_large_table_goes_through_batch_by_batch(tmp_path):
    """A batch is read when the one before has been written."""
    path, out, order = tmp_path / "large.csv", tmp_path / "out.csv", []
    write_table(path, [pd.DataFrame({"x": np.arange(20_000), "y": 0.5})])

    def watched():
        for batch in table_batches(path, batch_rows=5000):
            order.append(int(batch["x"].iloc[0]))
            yield batch
            order.append(-1)

    assert write_table(out, watched()) == 20_000
    assert order == [0, -1, 5000, -1, 10_000, -1, 15_000, -1]
    assert out.read_bytes() == path.read_bytes()


CARRIED = {
    "dates": ([None, date(2026, 1, 2)], lambda: pa.date32()),
    "times": ([None, time(1, 2)], lambda: pa.time64("us")),
    "decimals": ([Decimal("1.25"), Decimal("12345.25")], lambda: pa.decimal128(12, 2)),
    "bytes": ([None, b"ab"], lambda: pa.binary()),
    "lists": ([None, [1, 2]], lambda: pa.list_(pa.int64())),
    "records": ([None, {"a": 1}], lambda: pa.struct([("a", pa.int64())])),
    "nothing": ([None, None], lambda: pa.date32()),
}


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("kind", CARRIED)
def test_what_the_project_does_not_name_is_carried_as_it_is(project, tmp_path, kind, suffix):
    """Also where a first batch has no entry that would tell the type."""
    (first, later), type_of = CARRIED[kind]
    column = pa.array([first] * 3 + [later] * 3, type_of())
    source, output = tmp_path / "in.parquet", tmp_path / f"out.{suffix}"
    for n_rows in (6, 0):
        pq.write_table(pa.table({"visit": column[:n_rows]}), source)
        write_table(output, table_batches(source, batch_rows=3, schema=project))
        found = pq.read_table(output) if suffix == "parquet" else feather.read_table(output)
        assert found.schema.field("visit").type == type_of()
        assert found.column("visit").to_pylist() == column[:n_rows].to_pylist()


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64"])
def test_kept_whole_numbers_beside_gaps_have_no_point_in_a_csv_file(tmp_path, dtype):
    table = pd.DataFrame({"pid": pd.Series([60, None, 7.5, -0.0], dtype=dtype), "p": [0.5, 1.0, 0.25, 0.0]})
    table.attrs["kept"] = ["pid"]
    write_table(path := tmp_path / "t.csv", [table, table])
    rows = "60,0.5\n,1.0\n7.5,0.25\n0,0.0\n"
    assert path.read_text() == "pid,p\n" + 2 * rows


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_lists_where_the_project_has_an_entry_are_refused(project, table, tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    write_table(path, [table.assign(dose=[[1.5]] * len(table))])
    with pytest.raises(ExchangeError, match="'dose' holds lists or records") as caught:
        read_table(path, schema=project)
    assert caught.value.code == "SCHEMA_DTYPE"
    assert str(path) in str(caught.value)


def test_texts_that_point_to_nowhere_are_refused(tmp_path):
    """An Arrow file says where each text begins; beyond its end lies other memory, or the end of the process."""
    path = tmp_path / "table.arrow"
    table = pa.table({"name": ["ab", "cd", "ef"]})
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    good, bad = (np.array(offsets, dtype="<i4").tobytes() for offsets in ([0, 2, 4, 6], [0, 2, 2**30, 6]))
    assert path.read_bytes().count(good) == 1
    path.write_bytes(path.read_bytes().replace(good, bad))
    refusal(path)


def test_a_data_frame_was_read_already():
    frame = pd.DataFrame({"age": [1.5, 2.5]}, index=["a", "b"])
    assert read_table(frame) is frame
