"""What a hospital's engineer is told of a table that does not fit, and that no entry is told along with it."""

from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from datacollab.agreement import Task
from datacollab.errors import ExchangeError
from datacollab.table import Adjustments, Column, encode_table

SECRET = "Anna Huber"


def refusal(project, table, code, **options):
    with pytest.raises(ExchangeError) as caught:
        encode_table(project, table, where="patients.csv", **options)
    assert caught.value.code == code, caught.value
    message = str(caught.value)
    assert message.startswith("patients.csv")
    assert SECRET not in message
    return message


def test_all_missing_columns_are_named_with_what_they_might_be_called(project, table):
    renamed = table.rename(columns={"age": " Age", "dose": "doses", "ward": "Station"})
    message = refusal(project, renamed, "SCHEMA_MISSING_COLUMN")
    assert "lacks 3 of 5 columns" in message
    assert "'age' (there is ' Age')" in message
    assert "'dose' (there is 'doses')" in message
    assert "'ward'" in message
    assert "Station" not in message


def test_a_column_that_is_there_twice(project, table):
    doubled = pd.concat([table, table[["age"]]], axis=1)
    assert "more than one column named age" in refusal(project, doubled, "TABLE_UNREADABLE")


NOT_NUMBERS = {
    "text": ([SECRET, "12"], "text in 1 of 60 rows"),
    "decimal commas": (["1,5", "1.234,5"], "decimal commas instead of points in 60 of 60 rows"),
    "saved as text": (["12.5", "13"], "numbers that were saved as text in 60 of 60 rows"),
    "dates": ([datetime(2026, 1, 1)] * 2, "dates"),
    "lists": ([[1], [2]], "something other than numbers in 60 of 60 rows"),
    "complex": ([1j, 2j], "complex"),
    "durations": ([pd.Timedelta(1)] * 2, "durations"),
    "half of them": ([3, SECRET], "text in 30 of 60 rows"),
}


@pytest.mark.parametrize("kind", NOT_NUMBERS)
def test_what_is_no_number_is_counted_not_quoted(project, table, kind):
    pair, words = NOT_NUMBERS[kind]
    entries = pair * 30 if kind != "text" else [pair[0]] + [pair[1]] * 59
    message = refusal(project, table.assign(age=entries), "SCHEMA_DTYPE")
    assert "column 'age'" in message
    assert words in message


def test_numbers_of_every_make_are_numbers(project, table):
    for entries in (
        [Decimal("40.5")] * 60,
        np.full(60, 40.5, dtype=np.float32),
        pd.array([40.5] * 60, dtype="Float64"),
        [40.5, *[np.float64(40.5)] * 59],
    ):
        assert (encode_table(project, table.assign(age=entries), where="x").X[:, 0] == 40.5).all()


def heights(project_of, low, high, unit="m"):
    column = Column(name="height", kind="number", unit=unit, minimum=low, maximum=high)
    return project_of(columns=(column,), max_components=1)


@pytest.mark.parametrize(
    ("low", "high", "unit", "found", "words"),
    [
        (1.0, 2.5, "m", [150, 160, 170, 190], "multiplied by 0.01."),
        (100, 250, "cm", [1.5, 1.6, 1.7, 1.9], "multiplied by 100."),
        (30, 250, "", [1500, 1600, 1700, 1900], "multiplied by 0.1."),
        (100, 250, "cm", [59, 63, 67, 75], "multiplied by 2.54 (inches to centimetres)."),
        (1, 33, "mmol/L", [80, 100, 300, 126], "divided by 18.0182 (glucose, mg/dL to mmol/L)."),
        (30, 600, "mg/dL", [4.4, 5.5, 16.6, 7.0], "multiplied by 18.0182 (glucose, mmol/L to mg/dL)."),
        (2, 300, "kg", [330, 400, 500], "multiplied by 0.4536 (pounds to kilograms)."),
        (1, 15, "mmol/L", [150, 190, 230, 300], "divided by 38.67 (cholesterol, mg/dL to mmol/L)."),
        (50, 600, "mg/dL", [3.9, 5.2, 7.8], "multiplied by 38.67 (cholesterol, mmol/L to mg/dL)."),
        (20, 2000, "\u00b5mol/L", [0.6, 0.9, 1.2, 3.7], "multiplied by 88.4 (creatinine, mg/dL to umol/L)."),
        (20, 2000, "\u03bcmol/l", [0.6, 0.9, 1.2, 3.7], "multiplied by 88.4 (creatinine, mg/dL to umol/L)."),
        (20, 2000, "umol/L", [0.6, 0.9, 1.2, 3.7], "multiplied by 88.4 (creatinine, mg/dL to umol/L)."),
        (0.2, 20, "mg/dL", [53, 80, 106, 350], "divided by 88.4 (creatinine, umol/L to mg/dL)."),
        (34, 43, "°C", [97.0, 98.6, 101.3, 99.5], "taken from Fahrenheit to Celsius."),
        (93, 110, "F", [36.5, 37.0, 38.5, 37.5], "taken from Celsius to Fahrenheit."),
    ],
)
def test_a_mix_up_of_units_is_recognised(make_project, low, high, unit, found, words):
    project = heights(make_project, low, high, unit)
    message = refusal(project, pd.DataFrame({"height": found * 10}), "SCHEMA_RANGE", with_target=False)
    n_rows = 10 * len(found)
    shown = f"{low:g} to {high:g}{unit and ' ' + unit}"
    assert f"has numbers outside the agreed range, {shown}, in {n_rows} of {n_rows} rows." in message
    is_of_substance = any(each in words for each in ("glucose", "cholesterol", "creatinine"))
    # The column's name tells no substance, so that others which fit are named, too.
    assert f"Nearly all would fit if they were {words[:-1] if is_of_substance else words}" in message
    assert message.count("convert only if that is your unit") == 1
    for entry in found:
        assert f" {entry:g}" not in message.replace(f"{low:g} to {high:g}", "")


UMOL = "divided by 88.4 (creatinine, umol/L to mg/dL)"


@pytest.mark.parametrize(
    ("name", "low", "high", "numbers", "words"),
    [
        ("creatinine", 0.2, 20.0, [53.0, 80.0, 106.0, 350.0], UMOL),
        ("S-Kreatinin", 0.2, 20.0, [53.0, 80.0, 106.0, 350.0], UMOL),
        ("Cholesterin_total", 0.2, 20.0, [53.0, 80.0, 106.0, 350.0], "divided by 38.67 (cholesterol, mg/dL to mmol/L)"),
        # Multiplied by 0.01 the median would be at the middle of the range.
        ("creatinine", 0.1, 1.5, [53.0, 80.0, 106.0], UMOL),
        # Divided by cholesterol's 38.67 these would fit; creatinine they are not by any unit that is known.
        ("creatinine", 15.0, 40.0, [800.0, 1000.0, 1200.0], None),
    ],
)
def test_the_columns_own_conversion_is_named_and_none_of_another_substance(
    make_project, name, low, high, numbers, words
):
    column = Column(name=name, kind="number", minimum=low, maximum=high)
    project = make_project(columns=(column,), max_components=1)
    message = refusal(project, pd.DataFrame({name: numbers * 10}), "SCHEMA_RANGE", with_target=False)
    named = [each for each in ("(glucose", "(cholesterol", "(creatinine") if each in message]
    if words is None:
        assert "may be in another unit" in message
        assert "would fit" not in message
    else:
        assert f"would fit if they were {words}. That is" in message
        assert named == [words[words.index("(") :].split(",")[0]]


def test_a_few_outliers_are_no_mix_up_of_units(make_project):
    project = heights(make_project, 1.0, 2.5)
    message = refusal(project, pd.DataFrame({"height": [1.7] * 30 + [170.0] * 3}), "SCHEMA_RANGE", with_target=False)
    assert "in 3 of 33 rows (the first: row 31). Check" in message
    assert "units" not in message


def test_the_bounds_are_inside(make_project):
    project = heights(make_project, 1.1, 2.5)
    bounds = pd.DataFrame({"height": [1.1, 2.5]})
    assert encode_table(project, bounds, where="x", with_target=False).X[:, 0].tolist() == [1.1, 2.5]
    for outside in (np.nextafter(1.1, 0), np.nextafter(2.5, 3)):
        table = pd.DataFrame({"height": [1.7, outside]})
        assert "1 of 2 rows" in refusal(project, table, "SCHEMA_RANGE", with_target=False)


def test_unknown_categories_are_counted_not_quoted(project, table):
    message = refusal(project, table.assign(ward=[SECRET] * 7 + ["north"] * 53), "SCHEMA_CATEGORY_UNKNOWN")
    assert "in 7 of 60 rows" in message
    assert "Agreed: north, south, 1." in message
    assert "capital" not in message


def test_unknown_categories_may_be_a_matter_of_spelling(project, table):
    message = refusal(project, table.assign(ward=["North "] * 7 + ["soth"] * 4 + ["1"] * 49), "SCHEMA_CATEGORY_UNKNOWN")
    assert "in 4 of 60 rows (the first: row 8). Nearest to them: south. Agreed" in message
    targets = refusal(project, table.assign(ill=["Yes "] * 7 + ["no"] * 53), "TARGET_INVALID")
    assert "7 of them differ from agreed ones by capital letters or spaces alone." in targets


@pytest.mark.parametrize(
    "entry", ["01", "1.5", "1e0", 2, 10, ["north"], datetime(2026, 1, 1), float("inf"), Decimal(3)]
)
def test_what_is_nearly_a_category_is_none(project, table, entry):
    refusal(project, table.assign(ward=[entry] * 60), "SCHEMA_CATEGORY_UNKNOWN")


def test_categories_that_are_one_number_are_told_apart_as_text_only(make_project):
    project = make_project(columns=(Column(name="x", kind="category", categories=("1", "1.0")),), max_components=1)
    X = encode_table(project, pd.DataFrame({"x": ["1.0", "1"]}), where="x", with_target=False).X
    assert X.tolist() == [[0, 1], [1, 0]]
    refusal(project, pd.DataFrame({"x": ["1.00"]}), "SCHEMA_CATEGORY_UNKNOWN", with_target=False)


@pytest.mark.parametrize("absent", [None, np.nan, pd.NA, "", "  ", pd.NaT])
@pytest.mark.parametrize("column", ["age", "ward"])
def test_missing_entries_are_refused_where_none_is_filled_in(project, table, column, absent):
    entries = table[column].astype(object)
    entries[[3, 9]] = absent
    message = refusal(project, table.assign(**{column: entries}), "SCHEMA_MISSING_ENTRY")
    assert f"column '{column}' has no entry in 2 of 60 rows" in message


@pytest.mark.parametrize("absent", [None, np.nan, ""])
def test_targets_that_are_missing_or_unknown(project, regression, table, absent):
    entries = table["ill"].astype(object)
    entries[5] = absent
    assert "no entry in 1 of 60 rows" in refusal(project, table.assign(ill=entries), "TARGET_INVALID")
    message = refusal(project, table.assign(ill=[SECRET] + ["no"] * 59), "TARGET_INVALID")
    assert "not agreed in 1 of 60 rows" in message
    assert "--task regression" not in message
    stays = table["stay"].astype(object)
    stays[5] = absent
    assert "no entry in 1 of 60 rows" in refusal(regression, table.assign(stay=stays), "TARGET_INVALID")
    assert "text in 60 of 60 rows" in refusal(regression, table.assign(stay=SECRET), "TARGET_INVALID")
    message = refusal(regression, table.assign(stay=table["stay"] * 1000 + 500), "TARGET_INVALID")
    assert "ask the owner for a wider range (minimum and maximum in [task])" in message
    assert "multiplied by 0.001" in message


ROWS = {
    "number": ("age", 999, "SCHEMA_RANGE"),
    "text": ("age", SECRET, "SCHEMA_DTYPE"),
    "nothing": ("age", None, "SCHEMA_MISSING_ENTRY"),
    "category": ("ward", SECRET, "SCHEMA_CATEGORY_UNKNOWN"),
    "class": ("ill", SECRET, "TARGET_INVALID"),
    "no class": ("ill", None, "TARGET_INVALID"),
    "target": ("stay", -1, "TARGET_INVALID"),
    "text for a target": ("stay", SECRET, "TARGET_INVALID"),
    "no target": ("stay", None, "TARGET_INVALID"),
}


@pytest.mark.parametrize("case", ROWS)
def test_rows_count_from_the_beginning_of_the_file(project, regression, table, case):
    """Also where the table is a batch of it."""
    name, entry, code = ROWS[case]
    entries = table[name].astype(object)
    entries[[41, 50]] = entry
    agreed, spoilt = (regression if name == "stay" else project), table.assign(**{name: entries})
    assert " 2 of 60 rows (the first: row 42)" in refusal(agreed, spoilt, code)
    assert " 2 of the first 60 rows (the first: row 42)" in refusal(agreed, spoilt, code, before=Adjustments())
    later = refusal(agreed, spoilt, code, before=Adjustments(n_rows=1000))
    assert " 2 of the first 1060 rows (the first: row 1042)" in later


def test_a_new_whole_number_among_classes_may_have_been_a_number(make_project):
    """As years of education are, of which public rows lack some."""
    columns = (Column(name="age", kind="number", minimum=0.0, maximum=120.0),)
    project = make_project(
        columns=columns, max_components=1, task=Task(kind="classification", target="educ", classes=(10, 11, 12, 13))
    )
    table = pd.DataFrame({"age": [40.0] * 30, "educ": [*range(10, 14), 14, *[12] * 25]})
    message = refusal(project, table, "TARGET_INVALID")
    assert "not agreed in 1 of 30 rows" in message
    assert "If it is a number, such as of years or visits, ask the owner to draft with --task regression." in message


def test_one_run_names_all_columns_that_do_not_fit(project, table):
    spoilt = table.assign(age=999, ward=SECRET, ill=SECRET)
    message = refusal(project, spoilt, "SCHEMA_RANGE")
    assert "column 'age'" in message
    assert message.endswith("Look at these columns too: ward, ill.")
