"""Columns that are kept beside predictions leave as their file has them."""

import sqlite3
from contextlib import closing

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from datacollab.table import Column, Query
from party_world import made_up_table, new_world

AGES = ["60", "", "7.50", "061", "NA"]
WARDS = ["north", "NA", "", "south", "north"]
IDS = ["007", "12345678901234567890", "1.0", "", "2020-01-01"]
KEPT = ["age", "ward", "id"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    number = {"kind": "number", "minimum": 0.0, "maximum": 100.0}
    age = Column(name="age", **number, missing="fill", fill=50.0)
    others = [Column(name=name, **number) for name in ("pulse", "weight")]
    ward = Column(name="ward", kind="category", categories=("north", "south"), missing="fill", fill="north")
    return new_world(tmp_path_factory.mktemp("kept"), columns=[age, *others, ward])


@pytest.fixture(scope="module")
def folder(world):
    return world.installed()


@pytest.mark.parametrize("batch_rows", [2, 100])
@pytest.mark.parametrize("separator", [",", ";"])
def test_text_leaves_letter_by_letter(world, folder, batch_rows, separator):
    source, output = world.root / "text.csv", world.root / "out.csv"
    rows = made_up_table(5).assign(age=AGES, ward=WARDS, id=IDS)
    rows.to_csv(source, index=False, sep=separator)
    folder.predict(source, output, keep=KEPT, batch_rows=batch_rows, force=True)
    written = pd.read_csv(output, dtype=str, keep_default_na=False, sep=separator, encoding="utf-8-sig")
    assert written[KEPT].to_dict("list") == {"age": AGES, "ward": WARDS, "id": IDS}
    # The copy leaves predictions as they are.
    assert written["prediction"].tolist() == next(folder.predict_batches(source))["prediction"].tolist()


def test_decimal_commas_stay_commas(world, folder):
    source, output = world.root / "comma.csv", world.root / "out.csv"
    ages = ["60", "7,50", "", "8", "9"]
    rows = made_up_table(5).assign(age=ages, id=IDS)
    rows.to_csv(source, index=False, sep=";", decimal=",")
    folder.predict(source, output, keep=["age"], force=True)
    assert [line.split(";")[0] for line in output.read_text("utf-8-sig").splitlines()[1:]] == ages


def test_a_workbook_s_numbers_stay_numbers(world, folder):
    source, output = world.root / "sheet.xlsx", world.root / "out.xlsx"
    rows = made_up_table(5).assign(age=[60, None, 200 / 3, 7.5, 8], id=["007", 10**10, "1.50", "9" * 12, "text"])
    rows.to_excel(source, index=False, engine="openpyxl")
    folder.predict(source, output, keep=["age", "id"])
    read = list(openpyxl.load_workbook(output).active.iter_rows(values_only=True))[1:]
    assert [row[0] for row in read] == [60, None, 200 / 3, 7.5, 8]
    assert [row[1] for row in read] == ["007", 10**10, "1.50", "9" * 12, "text"]
    folder.predict(source, world.root / "out.csv", keep=["age", "id"], force=True)
    written = pd.read_csv(world.root / "out.csv", dtype=str, keep_default_na=False)
    assert written["age"].tolist() == ["60", "", str(200 / 3), "7.5", "8"]
    assert written["id"].tolist() == ["007", str(10**10), "1.50", "9" * 12, "text"]


@pytest.mark.parametrize("batch_rows", [2, 100])
def test_parquet_keeps_its_types(world, folder, batch_rows):
    source, output = world.root / "table.parquet", world.root / "out.parquet"
    table = pa.Table.from_pandas(made_up_table(5).drop(columns=["age", "id"]), preserve_index=False)
    ages = pa.array([60, None, 7, 61, 8], pa.int16())
    numbers = pa.array([2**62 + 1, 1, None, 3, 4], pa.int64())
    table = table.append_column("age", ages).append_column("number", numbers)
    days = pa.array([18000, None, 18001, 18002, 18003], pa.date32())
    parquet.write_table(table.append_column("day", days), source)
    kept = ["age", "number", "day"]
    folder.predict(source, output, keep=kept, batch_rows=batch_rows, force=True)
    written = parquet.read_table(output)
    assert [written[name].type for name in kept] == [pa.int16(), pa.int64(), pa.date32()]
    expected = {"age": ages, "number": numbers, "day": days}
    assert written.select(kept).to_pydict() == {name: each.to_pylist() for name, each in expected.items()}
    folder.predict(source, world.root / "out.csv", keep=kept, batch_rows=batch_rows, force=True)
    lines = (world.root / "out.csv").read_text().splitlines()
    assert [line.split(",")[:3] for line in lines[1:3]] == [["60", str(2**62 + 1), "2019-04-14"], ["", "1", ""]]


def test_a_database_s_whole_numbers_stay_whole(world, folder):
    source, output = world.root / "table.sqlite", world.root / "out.csv"
    with closing(sqlite3.connect(source)) as connection:
        made_up_table(3).assign(age=pd.array([60, None, 61], dtype="Int64")).to_sql("rows", connection, index=False)
    folder.predict(Query(source, "SELECT * FROM rows"), output, keep=["age"], force=True)
    assert [line.split(",")[0] for line in output.read_text().splitlines()] == ["age", "60", "", "61"]
