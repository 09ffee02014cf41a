"""Shapes of research exports: several rows a person, forms nobody began, concept 0, codes as numbers, marks of gaps."""

import contextlib
import json
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datacollab._frames import MISSING
from datacollab._notices import notices_to
from datacollab.errors import ExchangeError
from datacollab.table import Column, Query, Schema, as_numbers, label_codes, read_table, table_batches

GAP = None


def understood(path, **options):
    lines = []
    with notices_to(lambda line, is_plain: lines.append(line)):
        table = read_table(path, **options)
    (line,) = lines
    batches = list(table_batches(path, batch_rows=1, **options))
    joined = pd.concat(batches, ignore_index=True)
    assert plain(joined) == plain(table)
    return plain(table), line


def plain(table):
    return {name: [GAP if pd.isna(each) else each for each in table[name].tolist()] for name in table}


def refusal(path, code, **options):
    with pytest.raises(ExchangeError) as caught:
        read_table(path, **options)
    assert caught.value.code == code
    return str(caught.value)


@pytest.fixture
def write(tmp_path):
    def make(contents, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return path

    return make


REPEATED = {
    "an instrument": (
        "record_id,redcap_repeat_instrument,redcap_repeat_instance,age\n1,,,40\n1,labs,1,\n",
        "instrument",
    ),
    "an instance": ("record_id,redcap_repeat_instance,age\n1,1,40\n1,2,41\n", "redcap_repeat_instance"),
    "events": ("record_id,redcap_event_name,age\n1,base,40\n1,visit,41\n", "redcap_event_name"),
}


@pytest.mark.parametrize("case", REPEATED)
@pytest.mark.parametrize("has_schema", [False, True])
def test_several_rows_of_a_person_are_refused(write, case, has_schema):
    contents, words = REPEATED[case]
    schema = Schema(columns=(Column(name="age", kind="number", minimum=0, maximum=99),)) if has_schema else None
    message = refusal(write(contents), "TABLE_AMBIGUOUS", schema=schema)
    assert words in message
    assert "Export one instrument and one event" in message


def test_one_row_a_person_of_redcap_is_read(write):
    found, _ = understood(write("record_id,redcap_event_name,redcap_repeat_instance,age\n1,base,,40\n2,base,,41\n"))
    assert found["age"] == [40, 41]


FORMS = """record_id,age,base_complete,sym___1,sym___2,note,sym_complete
1,40,2,0,0,,0
2,41,2,0,0,x,0
3,42,2,0,1,,0
4,43,2,0,0,,2
5,44,2,0,0,,
"""


def test_boxes_of_a_form_that_nobody_began_are_gaps(write):
    """A form with any entry, or that somebody finished, has boxes that are not ticked."""
    found, line = understood(write(FORMS))
    assert found["sym___1"] == [GAP, 0, 0, 0, GAP]
    assert found["sym___2"] == [GAP, 0, 1, 0, GAP]
    assert "boxes of forms that nobody began are gaps in 'sym___1', 'sym___2'" in line
    labels = FORMS.replace(",0,0,", ",Unchecked,Unchecked,").replace(",0\n", ",Incomplete\n")
    assert understood(write(labels))[0]["sym___1"] == [GAP, "Unchecked", "0", "Unchecked", GAP]


def test_boxes_without_the_state_of_their_form_are_pointed_out(write):
    found, line = understood(write("record_id,sym___1,age\n1,0,40\n2,1,41\n"))
    assert found["sym___1"] == [0, 1]
    assert "no column says so, in 'sym___1'" in line


def test_questions_as_the_header_are_refused(write):
    for header in ("Record ID,Symptoms (choice=Cough),Complete?", "Record ID,Repeat Instrument,Age"):
        assert "Export it as raw data" in refusal(write(f"{header}\n1,a,b\n"), "TABLE_UNREADABLE")


def test_concept_0_is_a_gap_and_concepts_are_codes(write):
    contents = "person_id,gender_concept_id,n\n1,8507,1\n2,0,0\n3,8532,2\n"
    found, line = understood(write(contents))
    assert found == {"person_id": [1, 2, 3], "gender_concept_id": ["8507", GAP, "8532"], "n": [1, 0, 2]}
    assert "concept 0 (none matches) is a gap in 'gender_concept_id'" in line
    levels = ("0", "8507", "8532")
    schema = Schema(columns=(Column(name="gender_concept_id", kind="category", categories=levels),))
    assert understood(write(contents), schema=schema)[0]["gender_concept_id"] == ["8507", "0", "8532"]


def concepts_in(tmp_path, kind, dtype):
    """Return a source with OMOP's table of persons; `kind` is a file, a stream or a database."""
    table = pa.table(
        {
            "person_id": pa.array([1, 2, 3, 4]),
            "gender_concept_id": pa.array([8507, 0, 8532, None]).cast(dtype),
            "n": pa.array([1, 0, 2, 0]),
        }
    )
    if kind == "parquet":
        pq.write_table(table, tmp_path / "t.parquet")
    elif kind == "arrow":
        with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as file:
            file.write_table(table)
    elif kind == "stream":
        return table.to_reader()
    elif kind == "sqlite":
        with contextlib.closing(sqlite3.connect(tmp_path / "t.sqlite")) as database:
            database.execute("CREATE TABLE person (person_id, gender_concept_id, n)")
            database.executemany(
                "INSERT INTO person VALUES (?, ?, ?)", [tuple(row.values()) for row in table.to_pylist()]
            )
            database.commit()
        return Query(tmp_path / "t.sqlite", "SELECT * FROM person")
    else:
        with contextlib.closing(duckdb.connect(str(tmp_path / "t.duckdb"))) as database:
            database.register("rows", table)
            database.sql("CREATE TABLE person AS SELECT * FROM rows")
        return Query(tmp_path / "t.duckdb", "SELECT * FROM person")
    return tmp_path / f"t.{kind}"


@pytest.mark.parametrize("dtype", [pa.int64(), pa.float64(), pa.string()], ids=str)
@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream", "sqlite", "duckdb"])
def test_concept_0_is_a_gap_and_concepts_are_codes_without_text_as_well(tmp_path, kind, dtype):
    lines = []
    with notices_to(lambda line, is_plain: lines.append(line)):
        table = read_table(concepts_in(tmp_path, kind, dtype))
    codes = ["8507", GAP, "8532", GAP]
    assert plain(table) == {"person_id": [1, 2, 3, 4], "gender_concept_id": codes, "n": [1, 0, 2, 0]}
    (line,) = lines
    assert "concept 0 (none matches) counts as a gap in 'gender_concept_id'" in line
    for levels, expected in ((("8507", "8532"), MISSING), (("0", "8507", "8532"), 0)):
        column = Column(name="gender_concept_id", kind="category", categories=levels)
        (tmp_path / str(len(levels))).mkdir()
        source = concepts_in(tmp_path / str(len(levels)), kind, dtype)
        found = label_codes(read_table(source, schema=Schema(columns=(column,)))["gender_concept_id"], levels)
        assert found[[1, 3]].tolist() == [expected, MISSING]
        assert min(found[[0, 2]]) >= 0
    column = Column(name="gender_concept_id", kind="number", minimum=1, maximum=9999, missing="fill", fill=1)
    (tmp_path / "number").mkdir()
    source = concepts_in(tmp_path / "number", kind, dtype if dtype != pa.string() else pa.int64())
    found = read_table(source, schema=Schema(columns=(column,)))["gender_concept_id"]
    assert as_numbers(found)[[0, 2]].tolist() == [8507, 8532]
    assert np.isnan(as_numbers(found)[[1, 3]]).all()


MARKED = {
    "a point": ("a,b\n1.5,x\n.,y\n2,z\n", [1.5, GAP, 2]),
    "Stata": ("a,b\n1,x\n.a,y\n.z,z\n", [1, GAP, GAP]),
    "SAS": ("a,b\n1.5,x\n.A,y\n._,z\n", [1.5, GAP, GAP]),
    "letters beside what was measured": ("a,b\n1.5,x\nA,y\nE,z\n", [1.5, GAP, GAP]),
    "REDCap": ("a,b\n1200,x\nUNK,y\nNASK,z\n", [1200, GAP, GAP]),
}


@pytest.mark.parametrize("case", MARKED)
def test_marks_of_gaps_beside_nothing_but_numbers_are_gaps(write, case):
    contents, expected = MARKED[case]
    found, line = understood(write(contents))
    assert found["a"] == expected
    assert "marks such as .a are gaps in 'a'" in line


KEPT = {
    "blood groups": ("a,b\nA,1\n0,2\nB,3\n", ["A", "0", "B"]),
    "stages": ("a,b\n1,1\n2,2\nX,3\n", ["1", "2", "X"]),
    "beside a text": ("a,b\n1.5,1\n.,2\nlow,3\n", ["1.5", ".", "low"]),
    "nothing but marks": ("a,b\n.,1\n.a,2\n.b,3\n", [".", ".a", ".b"]),
    "letters": ("a,b\nM,1\nF,2\nM,3\n", ["M", "F", "M"]),
}


@pytest.mark.parametrize("case", KEPT)
def test_what_may_be_a_category_stays_text(write, case):
    contents, expected = KEPT[case]
    assert understood(write(contents))[0]["a"] == expected


def test_marks_in_a_number_of_a_project_are_gaps(write):
    schema = Schema(columns=(Column(name="a", kind="number", minimum=0, maximum=9),))
    found, line = understood(write("a,b\n1,x\n.,y\n.b,z\n"), schema=schema)
    assert found["a"] == [1, GAP, GAP]
    assert "marks such as .a are gaps in 'a'" in line
    assert understood(write("a,b\n1,x\nlow,y\n.b,z\n"), schema=schema)[0]["a"] == [1, "low", GAP]


CODES = {
    "ICD-11": ("a,b\n1E30,1\n1E51,2\n", ["1E30", "1E51"]),
    "with a gap": ("a,b\n5E0,1\n,2\n7e1,2\n", ["5E0", GAP, "7e1"]),
    "among codes": ("a,b\n1E30,1\n1A00,2\n", ["1E30", "1A00"]),
    "powers with a sign": ("a,b\n1e-05,1\n2E+10,2\n", [1e-05, 2e10]),
    "powers with a point": ("a,b\n1.5e-3,1\n1.5E3,2\n", [0.0015, 1500]),
    "among numbers": ("a,b\n1e5,1\n120.5,2\n", [1e5, 120.5]),
}


@pytest.mark.parametrize("case", CODES)
def test_codes_in_the_form_of_numbers_stay_codes(write, case):
    contents, expected = CODES[case]
    assert understood(write(contents))[0]["a"] == expected


def test_codes_or_powers_are_asked_about(write):
    path = write("a,b\n1E30,1\n5E0,2\n")
    message = refusal(path, "TABLE_AMBIGUOUS")
    assert "column 'a' has nothing but digits, an E and digits" in message
    assert "1E51" not in message
    category = Schema(columns=(Column(name="a", kind="category", categories=("1E30", "5E0")),))
    assert understood(path, schema=category)[0]["a"] == ["1E30", "5E0"]
    number = Schema(columns=(Column(name="a", kind="number", minimum=0, maximum=9),))
    assert understood(path, schema=number)[0]["a"] == [1e30, 5]


THOUSANDS = {
    "Swiss": ("a,b\n1'234.5,x\n12'000,y\n7,z\n", [1234.5, 12000, 7]),
    "typographic": ("a,b\n1\u2019234.5,x\n12\u2019000,y\n7,z\n", [1234.5, 12000, 7]),
    "no-break spaces": ("a;b\n1\xa0234,5;x\n12\xa0000;y\n7;z\n", [1234.5, 12000, 7]),
    "thin spaces": ('a,b\n"1\u2009234,5",x\n12\u202f000,y\n7,z\n', [1234.5, 12000, 7]),
    "three digits": ("a;b\n1'234'567;x\n1'234;y\n-2'000,25;z\n", [1234567, 1234, -2000.25]),
}


@pytest.mark.parametrize("case", THOUSANDS)
@pytest.mark.parametrize("has_schema", [False, True])
def test_apostrophes_and_spaces_between_thousands(write, case, has_schema):
    contents, expected = THOUSANDS[case]
    schema = Schema(columns=(Column(name="a", kind="number", minimum=0, maximum=9),)) if has_schema else None
    found, line = understood(write(contents), schema=schema)
    assert found["a"] == expected
    assert has_schema or "thousands marks" in line


def test_other_spaces_are_no_thousands_marks(write):
    for text in ("1 234", "1'23", "12'3456", "0'123", "1\xa0234'5"):
        assert understood(write(f"a;b\n{text};x\n"))[0]["a"] == [text]


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_json_lines_are_read_as_their_csv(write):
    rows = {"id": "00123", "a": 1.234, "b": True}, {"id": "00124", "a": 2, "b": False, "c": None}
    found, line = understood(write(lines(*rows, {"b": None, "late": 7, "id": "9"}) + "\n", "t.jsonl"))
    assert found["id"] == ["00123", "00124", "9"]
    assert found["a"] == [1.234, 2, GAP]
    assert found["b"] == [True, False, GAP]
    assert (found["c"], found["late"]) == ([GAP] * 3, [GAP, GAP, 7])
    assert "3 rows, 5 columns; JSON lines" in line
    assert understood(write(lines(*rows), "t.ndjson"))[0]["a"] == [1.234, 2]


WRONG = {
    "nested": (
        lines({"id": 1, "labs": {"crp": "Huber"}}, {"id": 2, "tags": ["Huber"]}),
        "column 'labs', 'tags' holds lists",
    ),
    "a list": ('{"a": 1}\n["Huber"]\n', "line 2 is no JSON object"),
    "no JSON": ('{"a": 1}\n{"a": "Huber\n', "line 2 is no JSON object"),
    "a key twice": ('{"a": 1, "a": "Huber"}\n', "line 1 is no JSON object with one entry for each name"),
    "deep": ("[" * 100_000, "line 1 is no JSON object"),
    "nothing": ("\n", "has no entries"),
    "another encoding": ('{"a": "ü"}'.encode("cp1252"), "is not UTF-8"),
    "two names": ('{"a": 1, "a\u0308": 2, "\u00e4": 3}', "columns 2, 3 share names"),
}


@pytest.mark.parametrize("case", WRONG)
def test_other_json_is_refused(write, case):
    contents, words = WRONG[case]
    message = refusal(write(contents, "t.jsonl"), "TABLE_UNREADABLE")
    assert words in message
    assert "Huber" not in message


def test_json_lines_that_ask_for_much_memory_are_refused(write, monkeypatch):
    monkeypatch.setattr("datacollab.table._limits._LEAST_MEMORY", 10_000)
    path = write(lines(*({f"k{row}": 1} for row in range(2000))), "t.jsonl")
    assert "would take at least" in refusal(path, "TOO_LARGE")
