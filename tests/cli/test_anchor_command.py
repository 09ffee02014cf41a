import json

import numpy as np
import pandas as pd
import pytest

from playing import assert_one_line, runs

run = runs("anchor")


FEATURES = ["age", "dose", "weight"]
SECRET = "Xaver Huber"


@pytest.fixture
def table(rng):
    return pd.DataFrame(rng.normal(size=(60, 3)), columns=FEATURES)


def test_an_anchor_without_private_rows_passes_and_near_copies_are_found_with_a_tolerance(table, write, rng):
    anchor = write("anchor.csv", pd.DataFrame(rng.normal(size=(20, 3)), columns=FEATURES))
    result = run("check", anchor, write("patients.csv", table))
    assert result.exit_code == 0, result.output
    assert result.stdout == f"No private row among the 20 anchor rows. Compared: {', '.join(FEATURES)}.\n"
    anchor = write("anchor.csv", table.head(5) + 1e-9)
    private = write("patients.csv", table)
    assert run("check", anchor, private).exit_code == 0
    assert_one_line(run("check", anchor, private, "--tolerance", "1e-6"), "5 rows of the anchor", code=3)


@pytest.mark.parametrize("diagnosis", [1, "ill"])
def test_a_row_with_another_target_is_still_a_copy(table, write, diagnosis):
    """A copied patient whose diagnosis was changed is a copied patient."""
    anchor = write("anchor.csv", table.head(4).assign(diagnosis=diagnosis))
    private = write("patients.csv", table.assign(diagnosis=0 if diagnosis == 1 else "well"))
    result = run("check", anchor, private, "--target", "diagnosis")
    assert result.exit_code == 3
    assert "4 rows of the anchor are private rows (anchor positions 0, 1, 2, 3)" in result.output


def test_says_which_columns_were_not_compared(table, write):
    result = run("check", write("anchor.csv", (table + 1).assign(ward="north")), write("patients.csv", table))
    assert result.exit_code == 0, result.output
    assert "Not compared: ward. A row that differs in these alone counts as a copy." in result.output
    result = run("check", write("anchor.csv", table), write("patients.csv", table), "--target", "diagnosis")
    assert result.exit_code == 1
    assert "no column 'diagnosis'" in result.output


def test_private_rows_in_an_anchor_are_told_by_position_alone(table, write, rng):
    """Columns stand in another order there, and each side has one of its own."""
    anchor = pd.DataFrame(rng.normal(size=(20, 3)), columns=FEATURES)
    anchor.loc[[4, 11]] = table.loc[[30, 2]].to_numpy()
    private = write("patients.csv", table[FEATURES[::-1]].assign(name=SECRET))
    result = run("check", write("anchor.csv", anchor.assign(made="yes")), private)
    assert_one_line(result, "2 rows of the anchor are private rows (anchor positions 4, 11)", code=3)
    for value in [SECRET, *(str(entry)[:6] for entry in anchor.loc[[4, 11]].to_numpy().ravel())]:
        assert value not in result.output


def test_tables_that_cannot_be_compared_are_named_and_not_quoted(table, write):
    private = write("patients.csv", table.set_axis(["a", "b", "c"], axis=1))
    assert_one_line(run("check", write("anchor.csv", table), private), "no column of numbers with the same name")
    content = f"age,dose\n1,2\n3,4,{SECRET}\n"
    result = run("check", write("table.csv", content), write("second.csv", content))
    assert_one_line(result, "table.csv", "line 3", code=13)
    private = write("patients.csv", table.assign(dose=SECRET))
    assert_one_line(run("check", write("anchor.csv", table), private), "patients.csv: 1 of 3 columns", "(dose)")


def test_copies_are_found_by_their_gaps_too(table, write):
    table.loc[[3, 7], "dose"] = np.nan
    gaps = write("gaps.csv", table)
    assert_one_line(run("check", gaps, gaps), "60 rows of the anchor", code=3)
    others = run("check", write("others.csv", table + 1), gaps)
    assert others.exit_code == 0, others.output


def test_json_says_how_each_table_was_read(table, tmp_path, write):
    german = tmp_path / "german.csv"
    table.to_csv(german, index=False, sep=";", decimal=",")
    result = run("check", german, write("patients.csv", table), "--json")
    assert result.exit_code == 3
    read = "german.csv: 60 rows, 3 columns; semicolons, decimal commas, UTF-8"
    plain = "patients.csv: 60 rows, 3 columns; commas, UTF-8"
    assert json.loads(result.stdout)["tables"] == [read, plain]
    assert result.stderr.count(read) == 1
    assert plain not in result.stderr
