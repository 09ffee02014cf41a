import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from datacollab import anchor as anchor_room
from playing import assert_one_line, interrupted, runs

run = runs("anchor")


FEATURES = ["age", "dose", "weight"]
SECRET = "Xaver Huber"


@pytest.fixture
def table(rng):
    return pd.DataFrame(rng.normal(size=(60, 3)), columns=FEATURES)


@pytest.mark.parametrize("method", ["smote", "uniform", "gaussian", "sample"])
def test_an_anchor_of_numbers_alone(table, write, tmp_path, method):
    source, output = write("public.csv", table), tmp_path / "anchor.csv"
    result = run("make", source, output, "--method", method, "--rows", 40, "--seed", 3)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{output}: 40 rows, 3 columns\n"
    made = pd.read_csv(output)
    assert list(made) == FEATURES
    samplers = {
        "smote": anchor_room.SMOTEAnchor,
        "uniform": anchor_room.UniformAnchor,
        "gaussian": anchor_room.GaussianAnchor,
        "sample": anchor_room.SampleAnchor,
    }
    expected, _ = samplers[method](40).sample(table.to_numpy(), random_state=3)
    assert_allclose(made.to_numpy(), expected, rtol=1e-14)


@pytest.mark.parametrize("method", ["smote", "sample"])
def test_an_anchor_with_classes(table, write, tmp_path, method):
    labels = np.where(table["age"] > 0, "ill", "well")
    source, output = write("public.csv", table.assign(diagnosis=labels)), tmp_path / "anchor.csv"
    result = run("make", source, output, "--method", method, "--rows", 40, "--target", "diagnosis")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{output}: 40 rows, 3 columns, target diagnosis\n"
    made = pd.read_csv(output)
    assert list(made) == [*FEATURES, "diagnosis"]
    assert set(made["diagnosis"]) == {"ill", "well"}
    # Both classes are half-spaces, so what lies between their rows belongs to them as well.
    assert_array_equal(made["diagnosis"] == "ill", made["age"] > 0)


@pytest.mark.parametrize("method", ["uniform", "gaussian"])
def test_a_method_without_targets_does_not_claim_one(table, write, tmp_path, method):
    source, output = write("public.csv", table.assign(diagnosis="ill")), tmp_path / "anchor.csv"
    result = run("make", source, output, "--method", method, "--rows", 40, "--target", "diagnosis")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{output}: 40 rows, 3 columns, without a target\n"
    assert list(pd.read_csv(output)) == FEATURES


def test_an_unknown_method_lists_the_known_ones(table, write, tmp_path):
    result = run("make", write("public.csv", table), tmp_path / "anchor.csv", "--method", "gan")
    assert_one_line(result, "gan", "smote, uniform, gaussian, sample")
    assert not (tmp_path / "anchor.csv").exists()


def test_a_missing_column_is_named_with_those_there_are(table, write, tmp_path):
    result = run("make", write("public.csv", table), tmp_path / "anchor.csv", "--target", "outcome")
    assert_one_line(result, "'outcome'", "age, dose, weight")


UNREADABLE = {
    "ragged": (f"age,dose\n1,2\n3,4,{SECRET}\n", "line 3"),
    "empty": ("", "empty"),
    "binary": (b"\x89PNG\r\n\x1a\n" + SECRET.encode() + b"\xff\xfe", "UTF-8"),
    "latin-1": (f"age,name\n1,{SECRET} M\xfcller\n".encode("latin-1"), "UTF-8"),
    "quote": (f'age,dose\n1,"{SECRET}\n', "quotation mark"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("command", ["make", "check"])
def test_an_unreadable_file_is_one_line_without_entries(write, tmp_path, command, kind):
    content, what = UNREADABLE[kind]
    result = run(command, write("table.csv", content), write("second.csv", content))
    assert_one_line(result, "table.csv", what)
    assert not (tmp_path / "anchor.csv").exists()


def test_columns_without_numbers_are_named_and_not_quoted(table, write, tmp_path):
    result = run("make", write("bad.csv", table.assign(name=SECRET, city="Ulm")), tmp_path / "anchor.csv")
    assert_one_line(result, "2 of 5 columns", "name, city")
    assert "Ulm" not in result.output
    private = write("patients.csv", table.assign(dose=SECRET))
    assert_one_line(run("check", write("anchor.csv", table), private), "patients.csv: 1 of 3 columns", "(dose)")


@pytest.mark.parametrize("command", ["make", "check"])
def test_missing_values_are_counted(table, write, tmp_path, command):
    table.loc[[3, 7], "dose"] = np.nan
    bad = write("bad.csv", table)
    assert_one_line(run(command, bad, bad if command == "check" else tmp_path / "anchor.csv"), "2 of 60 rows")


@pytest.mark.parametrize("command", ["make", "check"])
def test_a_table_without_a_header_does_not_show_its_first_row(table, write, tmp_path, command):
    bad = write("bad.csv", table.to_csv(index=False, header=False))
    result = run(
        command,
        bad,
        bad if command == "check" else tmp_path / "anchor.csv",
        *("--target", "y")[: 2 * (command == "make")],
    )
    assert_one_line(result, "no header")
    assert str(table.iloc[0, 0])[:5] not in result.stderr


def test_columns_may_be_numbered(table, write, tmp_path):
    numbered = write("numbered.csv", table.set_axis(range(3), axis=1))
    assert run("make", numbered, tmp_path / "anchor.csv", "--rows", 30).exit_code == 0
    assert run("check", tmp_path / "anchor.csv", numbered).exit_code == 0


def test_the_source_is_not_overwritten(table, write):
    source = write("public.csv", table)
    before = source.read_bytes()
    assert_one_line(run("make", source, source), "the source itself")
    assert source.read_bytes() == before


def test_an_output_that_cannot_be_written_is_one_line(table, write, tmp_path):
    source = write("public.csv", table)
    assert_one_line(run("make", source, tmp_path / "absent" / "anchor.csv"), "absent")
    assert_one_line(run("make", source, tmp_path), str(tmp_path))


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path):
    assert run("make", tmp_path / "absent.csv", tmp_path / "anchor.csv").exit_code == 2
    assert run("check", tmp_path, tmp_path / "absent.csv").exit_code == 2


def test_an_interruption_leaves_no_anchor(table, write, tmp_path, monkeypatch):
    monkeypatch.setattr(anchor_room.SMOTEAnchor, "sample", interrupted)
    result = run("make", write("public.csv", table), tmp_path / "anchor.csv")
    assert result.exit_code == 130
    assert "interrupted. No anchor was written." in result.stderr
    assert not (tmp_path / "anchor.csv").exists()


def test_an_anchor_without_private_rows_passes(table, write, rng):
    anchor = write("anchor.csv", pd.DataFrame(rng.normal(size=(20, 3)), columns=FEATURES))
    result = run("check", anchor, write("patients.csv", table))
    assert result.exit_code == 0, result.output
    assert result.stdout == f"No private row among the 20 anchor rows. Compared: {', '.join(FEATURES)}.\n"


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


def test_near_copies_are_found_with_a_tolerance(table, write):
    anchor = write("anchor.csv", table.head(5) + 1e-9)
    private = write("patients.csv", table)
    assert run("check", anchor, private).exit_code == 0
    assert_one_line(run("check", anchor, private, "--tolerance", "1e-6"), "5 rows of the anchor", code=3)


def test_a_copy_is_one_whatever_way_it_took(write, tmp_path):
    """Numbers of 17 digits, which pandas before 3.1 reads inexactly by default, through `make` and back."""
    rows = np.random.default_rng(0).normal(size=(2000, 3)) * 10.0 ** np.arange(-12, 24, 12)
    private, output = write("patients.csv", pd.DataFrame(rows, columns=FEATURES)), tmp_path / "anchor.csv"
    assert run("make", private, output, "--method", "sample", "--rows", 2000).exit_code == 0
    assert_one_line(run("check", output, private), "2000 rows of the anchor", code=3)


def test_tables_with_nothing_in_common_cannot_be_compared(table, write):
    private = write("patients.csv", table.set_axis(["a", "b", "c"], axis=1))
    assert_one_line(run("check", write("anchor.csv", table), private), "no column of numbers with the same name")
