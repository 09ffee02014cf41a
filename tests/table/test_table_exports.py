"""Tables as other programs export them: each is read right, or asked about, and what was understood is said."""

import csv
import datetime
import io
import re
import unicodedata
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datacollab._notices import notices_to
from datacollab.errors import ExchangeError
from datacollab.table import Column, encode_table, read_table, table_batches, write_table

HERE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)


def understood(path, **options):
    lines = []
    with notices_to(lambda line, is_plain: lines.append((line, is_plain))):
        table = read_table(path, **options)
    ((line, is_plain),) = lines
    return table, line, is_plain


def asked(path, **options):
    with pytest.raises(ExchangeError) as caught:
        read_table(path, **options)
    assert caught.value.code == "TABLE_AMBIGUOUS"
    with pytest.raises(ExchangeError, match=re.escape(str(caught.value))):
        list(table_batches(path, batch_rows=2, **options))
    return str(caught.value)


WARDS = ["north", "süd", "a;b", "a,b", 'say "so"', "two\nlines", "x|y\tz", "NA", "None", ""]


@st.composite
def exports(draw):
    """Rows, and a file of them as some program would write it."""
    n_rows, separator = draw(st.integers(3, 8)), draw(st.sampled_from(",;\t|"))
    decimal, n_digits = draw(st.sampled_from(".,")), draw(st.integers(1, 4))
    each = {"min_size": n_rows, "max_size": n_rows}
    table = {
        "Größe": draw(st.lists(st.integers(0, 1999), **each)),
        "dose": [number / 10**n_digits for number in draw(st.lists(st.integers(-9999, 99999), **each))],
        "code": [f"{number:03}" for number in draw(st.lists(st.integers(0, 999), **each))],
        "ward": draw(st.lists(st.sampled_from(WARDS), **each)),
    }
    texts = {name: list(map(str, entries)) for name, entries in table.items()}
    texts["dose"] = [f"{number:.{n_digits}f}".replace(".", decimal) for number in table["dose"]]
    index = draw(st.sampled_from([None, 0, 1]))
    if index is not None:
        texts = {"": [str(row + index) for row in range(n_rows)], **texts}
    form = draw(st.sampled_from(["NFC", "NFD"]))
    header = [unicodedata.normalize(form, name) for name in texts]
    titles = draw(st.sampled_from([[], [["Export"]], [["Klinik"], [], ["Stand:", "1.1.2026"]], [["Liste", *[""] * 4]]]))
    hollow = [[""] * len(header)] * draw(st.integers(0, 1))
    file = io.StringIO()
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    if not titles and draw(st.booleans()):
        file.write(f"sep={separator}{line_end}")
    writer = csv.writer(file, delimiter=separator, quoting=quoting, lineterminator=line_end)
    writer.writerows([*titles, header, *zip(*texts.values(), strict=True), *hollow])
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]))
    if encoding == "cp1252" and form == "NFD":
        encoding = "utf-8"  # it has no letters of two parts
    return table, texts, file.getvalue().encode(encoding)


@pytest.fixture(scope="module")
def of_exports(make_project):
    columns = (
        Column(name="Größe", kind="number", minimum=0, maximum=1999),
        Column(name="dose", kind="number", minimum=-9999, maximum=99999),
        Column(
            name="ward", kind="category", categories=("north", "None"), unknown="other", missing="fill", fill="None"
        ),
    )
    return make_project(columns=columns, max_components=1)


@pytest.mark.slow
@HERE
@given(export=exports(), batch_rows=st.integers(1, 4))
def test_every_export_is_read_right_or_asked_about(tmp_path, of_exports, export, batch_rows):
    table, texts, data = export
    path = tmp_path / "export.csv"
    path.write_bytes(data)
    is_number = [bool(re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}|\d+", text.lstrip("-"))) for text in texts["dose"]]
    try:
        found = read_table(path)
    except ExchangeError:
        assert "'dose' has a mark before three digits" in asked(path)
        assert all(is_number)
        return
    assert list(found) == list(table)
    assert found["Größe"].tolist() == table["Größe"]
    assert found["dose"].tolist() == table["dose"]
    is_code = any(re.match(r"0\d", text) for text in table["code"])
    assert found["code"].tolist() == (table["code"] if is_code else list(map(int, table["code"])))
    assert found["ward"].fillna("").tolist() == table["ward"]
    batches = list(table_batches(path, batch_rows=batch_rows))
    pd.testing.assert_frame_equal(pd.concat(batches, ignore_index=True), found)
    whole = read_table(path, schema=of_exports)
    assert whole["code"].tolist() == table["code"]
    assert whole["dose"].tolist() == table["dose"]
    # Where it is expected as a category, NA is no entry.
    expected = ["" if ward == "NA" else ward for ward in table["ward"]]
    assert whole["ward"].fillna("").tolist() == expected
    batches = list(table_batches(path, batch_rows=batch_rows, schema=of_exports))
    pd.testing.assert_frame_equal(pd.concat(batches, ignore_index=True), whole)


NUMBERS = st.sampled_from(
    ["", "NA", "5", "-12", "+3", "0.5", " 7 ", "1e5", "1.234", "1234.5", "inf", "007", "True", "x"]
)


@HERE
@given(entries=st.lists(st.tuples(NUMBERS, NUMBERS), max_size=6), batch_rows=st.integers(1, 3))
def test_the_fast_reader_finds_the_types_of_the_careful_one(tmp_path, entries, batch_rows):
    """Plain tables are read by the C parser, and in batches from their text."""
    path = tmp_path / "plain.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in entries if a or b))
    whole, batches = read_table(path), table_batches(path, batch_rows=batch_rows)
    pd.testing.assert_frame_equal(pd.concat(list(batches), ignore_index=True), whole)


SAID = {
    "plain": ("a,b\n1,x\n2,y\n", "2 rows, 2 columns; commas, UTF-8", True),
    "one row": ("a\n1\n", "1 row, 1 column; one column, UTF-8", True),
    "german": ("a;b\n1,5;é\n2;y\n".encode("cp1252"), "semicolons, decimal commas, Windows-1252", False),
    "separator line": ("sep=;\na;b\n1;x\n", "semicolons, UTF-8; header in line 2", False),
    "padded titles": ("Stand:;1.1.;;\na;b;c;d\n1;x;y;z\n", "semicolons, UTF-8; header in line 2", False),
    "titles": ("Klinik\n\na,b\n1,x\n", "commas, UTF-8; header in line 3", False),
    "thousands": ('a,b\n"1,005",1.5\n37,2.5\n', "commas, thousands marks, UTF-8", False),
    "german thousands": ("a;b\n1.005,50;x\n37;y\n", "semicolons, decimal commas, thousands marks, UTF-8", False),
    "index": (",a\n0,x\n1,y\n", "1 column; commas, UTF-8; the first column, which counts the rows, is left out", False),
    "saved twice": ("Unnamed: 0,a\n0,x\n1,y\n", "which counts the rows, is left out", False),
    "empty rows": ("a;b\n1;x\n;\n;\n", "1 row, 2 columns; semicolons, UTF-8; 2 empty rows left out", False),
    "UTF-16": ("a\tb\n1\tx\n".encode("utf-16"), "tabs, UTF-16", False),
    "NFD": ("gro\u0308\u00dfe\n1\n", "one column, UTF-8; names in another Unicode form", False),
}


@pytest.mark.parametrize("case", SAID)
def test_what_was_understood_is_said_in_one_line(write, case):
    contents, words, is_usual = SAID[case]
    _, line, is_plain = understood(write("patients.csv", contents))
    assert line.startswith("patients.csv: ")
    assert words in line
    assert is_plain == is_usual


ASKED = {
    "decimals or thousands": ("a;b\n1,234;x\n2,500;y\n", "column 'a' has a mark before three digits"),
    "quoted": ('a,b\n"1,234",x\n', "column 'a' has a mark before three digits"),
    "points": ("a;b\n1.234;x\n", "column 'a' has a mark before three digits"),
    "thousands here and not there": ('a,b\n"1,234",1.5\n5678,2\n', "column 'a' has a mark"),
    "one column of decimals": ("a\n1,5\n2,5\n", "line 1 has fewer entries than line 2, which holds numbers"),
    "two separators": ("a, b;c, d\n1,5;2,5\n", "can be read with commas or semicolons"),
    "rows with a number": (",a\n17,x\n4,y\n", "column 1 has no name and holds entries"),
    "rows with a name": (",a\nHuber,1\nMaier,2\n", "column 1 has no name"),
    "an unnamed column": ("a,,b\n1,x,2\n", "column 2 has no name"),
    "a title, or a name of two": ("a;\nb;c\nd;e\n", "column 2 has no name"),
    "cyrillic": ("имя;a\nАнна;1\n".encode("cp1251"), "may be Windows-1252 or a code page of other letters"),
    "polish": ("a;b\nMiłosz;1\n".encode("iso8859-2"), "a code page of other letters"),
    "cyrillic entries": ("ill;a\nда;1\nне;2\n".encode("cp1251"), "a code page of other letters"),
    "polish capital": ("a;b\nŁukasz;1\n".encode("cp1250"), "a code page of other letters"),
    "one broken letter": ("a;b\nMüller;1\n".encode() + b"\xff;2\n", "a code page of other letters"),
    "old code page": ("a;b\nMüller;1\n".encode("cp850"), "a code page of other letters"),
}


@pytest.mark.parametrize("case", ASKED)
def test_two_readings_are_asked_about(write, case):
    contents, words = ASKED[case]
    assert words in asked(write("patients.csv", contents))


def test_other_columns_decide_what_stands_before_three_digits(write):
    """The rest of the column, or else other columns."""
    for contents, expected in (
        ("a;b\n1,234;0,5\n", 1.234),
        ("a;b\n1,234;0.5\n", 1234),
        ("a;b\n1.234;0.5\n", 1.234),
        ("a;b\n1.234;0,5\n", 1234),
        ("a;b\n1,234;x\n2,5;x\n", 1.234),
        ("a,b\n1.234,x\n", 1.234),
    ):
        assert read_table(write("t.csv", contents))["a"][0] == expected


def test_one_entry_that_is_no_number_is_left_for_the_project_to_refuse(write, project):
    path = write("t.csv", "age;ward;dose;sex;ill\n40;south;2,5;f;no\n41;north;#DIV/0!;m;no\n")
    for table in (read_table(path, schema=project), *table_batches(path, schema=project)):
        assert table["dose"][0] == 2.5
        with pytest.raises(ExchangeError, match="'dose' holds words for missing entries in 1 of 2 rows"):
            encode_table(project, table, where="t.csv")


def test_names_match_in_every_unicode_form(write, make_project):
    composed, decomposed = (unicodedata.normalize(form, "größe") for form in ("NFC", "NFD"))
    for of_project, of_file in ((composed, decomposed), (decomposed, composed)):
        columns = (Column(name=of_project, kind="number", minimum=0, maximum=250),)
        project = make_project(columns=columns, max_components=1)
        path = write("t.csv", f"{of_file};ill\n180,5;no\n")
        assert encode_table(project, read_table(path, schema=project), where="t.csv").X.tolist() == [[180.5]]
    with pytest.raises(ExchangeError, match="columns 1, 2 share names"):
        read_table(write("t.csv", f"{composed},{decomposed}\n1,2\n"))


CELLS = [
    ["id", "age", "dose", "day", "smoker", "code"],
    ["NA", 40, 2.5, datetime.date(2026, 1, 2), True, "007"],
    ["None", 41, None, datetime.datetime(2026, 1, 2, 3, 4), False, "1,5"],
    ["x", 42, 12, None, True, "010"],
]


@pytest.fixture
def workbook(tmp_path):
    """Write cells with another library, and return the file."""

    def make(cells=CELLS, change=lambda book: None):
        book = openpyxl.Workbook()
        for row in cells:
            book.active.append(row)
        change(book)
        book.save(path := tmp_path / "patients.xlsx")
        return path

    return make


def test_a_workbook_is_read_as_its_text_would_be(workbook, tmp_path, make_project):
    path = workbook()
    table, line, is_plain = understood(path)
    assert (line, is_plain) == ("patients.xlsx: 3 rows, 6 columns; Excel workbook", False)
    expected = pd.DataFrame(
        {
            "id": ["NA", "None", "x"],
            "age": [40, 41, 42],
            "dose": [2.5, np.nan, 12],
            "day": ["2026-01-02", "2026-01-02T03:04:00", np.nan],
            "smoker": [True, False, True],
            "code": ["007", "1,5", "010"],
        }
    )
    pd.testing.assert_frame_equal(table, expected)
    pd.testing.assert_frame_equal(pd.concat(list(table_batches(path, batch_rows=2)), ignore_index=True), expected)
    write_table(csv_file := tmp_path / "patients.csv", [expected])
    pd.testing.assert_frame_equal(read_table(csv_file), expected)
    columns = (Column(name="dose", kind="number", minimum=0, maximum=20, missing="fill", fill=1),)
    project = make_project(columns=columns, max_components=1)
    assert encode_table(project, read_table(path, schema=project), where="x", with_target=False).X.sum() == 15.5


def test_titles_hidden_sheets_and_an_index_of_a_workbook(workbook):
    def hide(book):
        book.create_sheet("notes").append(["nothing of interest"])
        book["notes"].sheet_state = "hidden"
        book.create_sheet("empty")
        book.active.merge_cells("A1:C1")

    cells = [["Klinik"], [], ["Stand:", "1.1.2026"], ["", "age", "ward", "x"], [0, 40, "n", 1], [1, 41, "s", 2]]
    table, line, _ = understood(workbook(cells, hide))
    assert table.to_dict("list") == {"age": [40, 41], "ward": ["n", "s"], "x": [1, 2]}
    assert "Excel workbook; header in line 4; the first column, which counts the rows, is left out" in line


def test_numbers_of_a_workbook_are_what_they_are_whatever_marks_its_texts_have(workbook):
    """A cell with the number 1.234 is no 1234 because texts in another column have decimal commas."""
    for number, text, expected in ((1.234, "1,5", 1.5), (0.5, "1,5", 1.5), (1.234, "1.234,5", 1234.5)):
        table = read_table(workbook([["a", "b"], [number, text], [2.345, "2,5"]]))
        assert table.to_dict("list") == {"a": [number, 2.345], "b": [expected, 2.5]}
    for number, text in ((0.5, "1,234"), (1.5, "1.234"), (7, "1,234")):
        assert "column 'b' has a mark" in asked(workbook([["a", "b"], [number, text], [number, "2" + text[1:]]]))
    assert read_table(workbook([["a"], [0.5], ["1,234"]]))["a"].tolist() == ["0.5", "1,234"], "for a draft to ask"


def test_hidden_rows_of_a_workbook_are_said(workbook):
    def hide(book):
        book.active.row_dimensions[3].hidden = True

    table, line, is_plain = understood(workbook(change=hide))
    assert (len(table), is_plain) == (3, False)
    assert "hidden rows or columns are read, too" in line


def test_workbooks_with_two_readings_are_asked_about(workbook):
    found = asked(workbook(change=lambda book: book.create_sheet("2025").append(["age"])))
    assert "2 sheets with contents: 'Sheet', '2025'" in found
    assert "merged cells in the table" in asked(workbook(change=lambda book: book.active.merge_cells("B3:B4")))


def test_formulas_need_their_results(workbook):
    path = workbook([["a", "b"], ["=1+1", 2], ["#DIV/0!", 3]])
    with pytest.raises(ExchangeError, match="has formulas without results") as caught:
        read_table(path)
    assert caught.value.code == "TABLE_UNREADABLE"
    repacked(path, b"<v></v>" if b"<v></v>" in cell_of(path) else b"<v />", b"<v>2</v>")
    table, line, _ = understood(path)
    assert table["a"].fillna(-1).tolist() == [2, -1]
    assert "cells with an error count as empty" in line


def cell_of(path):
    with zipfile.ZipFile(path) as packed:
        return packed.read("xl/worksheets/sheet1.xml")


def repacked(path, old, new, member="xl/worksheets/sheet1.xml"):
    with zipfile.ZipFile(path) as packed:
        contents = {name: packed.read(name) for name in packed.namelist()}
    assert contents[member].count(old) >= 1
    contents[member] = contents[member].replace(old, new)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in contents.items():
            packed.writestr(name, content)


BOMBS = {
    "unpacked": (b"<sheetData>", b"<sheetData>" + b" " * 3_000_000),
    "far away": (b'r="F4"', b'r="XFD1048576"'),
    "repeated text": (b"<v>1</v>", b"<v>1</v></c><c r='G2' t='s'><v>1</v>" * 40_000),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_small_workbooks_that_ask_for_much_memory_are_refused(workbook, monkeypatch, bomb):
    path = workbook([*CELLS, ["long" * 50] * 2])
    repacked(path, *BOMBS[bomb])
    monkeypatch.setattr("datacollab.table._limits._LEAST_MEMORY", 2_000_000)
    monkeypatch.setattr("datacollab.table._limits._MOST_UNPACKED", 1)
    with pytest.raises(ExchangeError, match="would take at least") as caught:
        read_table(path)
    assert caught.value.code == "TOO_LARGE"


def test_damaged_workbooks_are_refused(workbook, tmp_path):
    path = workbook()
    data = path.read_bytes()
    repacked(path, b'r="B2"', b"")
    damaged = [data[: len(data) // 2], b"", b"PK\x03\x04", data[:200] + b"\xff" * 60 + data[260:], path.read_bytes()]
    for each in damaged:
        path.write_bytes(each)
        with pytest.raises(ExchangeError) as caught:
            read_table(path)
        assert caught.value.code == "TABLE_UNREADABLE"
        assert "None" not in str(caught.value)
    with pytest.raises(ExchangeError, match="no visible sheet with contents"):
        read_table(workbook([]))


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_an_index_with_a_name_is_a_column_and_another_is_left_out(table, project, tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    indexed = table.set_index(pd.Index([datetime.date(2026, 1, 1)] * len(table), name="day"))
    feather.write_feather(pa.Table.from_pandas(indexed), path) if suffix == "feather" else indexed.to_parquet(path)
    assert list(read_table(path, schema=project)) == ["day", *table]
    shuffled = table.iloc[[3, 1, 2]]
    for metadata in (pa.Table.from_pandas(shuffled).schema.metadata, None):
        stored = pa.Table.from_pandas(shuffled).replace_schema_metadata(metadata)
        assert "__index_level_0__" in stored.column_names
        feather.write_feather(stored, path) if suffix == "feather" else pq.write_table(stored, path)
        read, line, _ = understood(path)
        pd.testing.assert_frame_equal(read, shuffled.reset_index(drop=True))
        assert "an index without a name is left out" in line
