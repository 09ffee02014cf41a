"""What a draft notices in each column, and that parties' tables are read alike."""

import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from datacollab.agreement import draft_project, load_project, project_text
from datacollab.bundle import KeyPair
from datacollab.errors import ExchangeError
from datacollab.table import Column, column_questions, encode_table
from party_world import refusal

OWNER, OTHER, ANALYST = (KeyPair.generate() for _ in range(3))
N = 120


def draft(found=None, **options):
    """Draft a project on some columns beside a plain one, and return its columns and what was told, by kind."""
    told = []
    table = pd.DataFrame(found | {"age": found.get("age", np.tile([41, 53, 67.5, 72], N // 4))})
    project = draft_project(
        table,
        name="x",
        purpose="x",
        task="none",
        owner=OWNER.public,
        analyst=ANALYST.public,
        parties={"a": OWNER.public, "b": OTHER.public},
        **({"tell": told.append} | options),
    )
    return project, {each.kind: each.sentence for each in told}


def text(*entries, rest, n=N):
    """Some entries first, then others in turn."""
    return [*entries, *(rest[row % len(rest)] for row in range(n - len(entries)))]


NUMBERS = [str(round(2 + row * 0.37, 2)) for row in range(40)]


@pytest.mark.parametrize("word", ["None", "NA", "null"])
def test_a_word_in_most_entries_is_a_category(word):
    project, told = draft({"stage": text(*[word] * 86, rest=["II", "III"])})
    assert project.columns[0].categories == tuple(sorted([word, "II", "III"]))
    assert project.columns[0].missing_words == ()
    assert told["words"] == (
        f"Column 'stage' has '{word}' (86 times): taken as a category (--missing 'stage={word}' as missing)."
    )
    project, told = draft({"stage": text(*[word] * 86, rest=["II", "III"])}, missing={"stage": [word]})
    assert (project.columns[0].categories, project.columns[0].missing_words) == (("II", "III"), (word,))
    assert project.columns[0].flag_missing, "parties have as many gaps"
    assert "86 of 120 rows" in told["gaps"]


def test_a_word_in_few_entries_is_missing_unless_it_is_kept():
    entries = {"stage": text("NA", "NA", rest=["II", "III"])}
    project, told = draft(entries)
    assert (project.columns[0].categories, project.columns[0].missing_words) == (("II", "III"), ("NA",))
    assert "read as missing (--keep 'stage=NA' takes it as a category)" in told["words"]
    assert draft(entries, keep={"": ["NA"]})[0].columns[0].categories == ("II", "III", "NA")


@settings(max_examples=15, deadline=None)
@given(
    words=st.lists(st.sampled_from(["?", "unk", "-", ".", "#DIV/0!", "NA", "n/a", "None"]), min_size=1, max_size=6),
    places=st.permutations(range(N)),
)
def test_words_among_numbers_are_as_if_nothing_stood_there(words, places):
    plain = np.array(text(rest=NUMBERS), dtype=object)
    entries, gaps = plain.copy(), plain.astype(float)
    entries[list(places[: len(words)])], gaps[list(places[: len(words)])] = words, np.nan
    project, told = draft({"dose": entries})
    dose = project.columns[0]
    assert (dose.kind, set(dose.missing_words)) == ("number", set(words))
    expected, _ = draft({"dose": gaps})
    assert (dose.minimum, dose.maximum, dose.fill) == tuple(
        getattr(expected.columns[0], name) for name in ("minimum", "maximum", "fill")
    )
    assert all(f"'{word}' ({words.count(word)} times)" in told["words"] for word in words)
    table, empty = ({"dose": each, "age": [50.0] * N} for each in (entries, gaps))
    found = encode_table(project, pd.DataFrame(table), where="a.csv")
    assert_array_equal(found.X, encode_table(project, pd.DataFrame(empty), where="a.csv").X)
    # A project whose column names no words says what these are.
    bare = draft({"dose": plain.astype(float)})[0]
    assert "words for missing entries" in refusal("SCHEMA_DTYPE", encode_table, bare, pd.DataFrame(table), where="a")


@settings(max_examples=25, deadline=None)
@given(
    code=st.sampled_from([999, 9999, -9, -99, -1, 9998, 888]),
    count=st.integers(1, 5),
    low=st.integers(0, 30),
    width=st.integers(5, 70),
)
def test_codes_far_outside_are_missing_and_not_in_the_range(code, count, low, width):
    """So that a mix-up of units is still found."""
    entries = np.array([float(low + row % (width + 1)) for row in range(N)])
    plain = draft({"x": entries}, kinds={"x": "number"})[0].columns[0]
    entries[:count] = code
    project, told = draft({"x": entries}, kinds={"x": "number"})
    column = project.columns[0]
    assert column.missing_words == (str(code),)
    assert f"'{code}' ({count} times)" in told["sentinels"]
    assert not column.minimum <= code <= column.maximum
    assert column.maximum <= plain.maximum + 1
    X = encode_table(project, pd.DataFrame({"x": entries, "age": 50.0}), where="a.csv").X
    assert_array_equal(X[:count, 0], column.fill)
    kept = draft({"x": entries}, kinds={"x": "number"}, keep={"x": [str(code)]})[0].columns[0]
    assert kept.minimum <= code <= kept.maximum
    question = column_questions(pd.DataFrame({"x": entries}), ["x"], "leave it out")
    assert any(f"if {count} of {N} entries that lie far outside all others" in each for each in question)
    assert str(code) not in "".join(question).replace("120", "")


def test_a_number_is_missing_where_the_owner_says_so_inside_the_range_too():
    entries = np.where(np.arange(N) < 3, 99.0, 20.0 + np.arange(N) % 79)
    assert "sentinels" not in draft({"x": entries}, kinds={"x": "number"})[1]
    project, _ = draft({"x": entries}, kinds={"x": "number"}, missing={"x": ["99"]})
    x = project.columns[0]
    assert (x.missing_words, x.minimum <= 99 <= x.maximum) == (("99",), True)
    X = encode_table(project, pd.DataFrame({"x": entries, "age": 50.0}), where="a.csv").X
    assert_array_equal(X[:3, 0], x.fill)


def test_numbers_at_the_end_of_a_scale_are_no_codes():
    for entries in (np.arange(N) % 10, np.arange(N) % 100, -(np.arange(N) % 12), np.array([1.0, 2.0] * (N // 2))):
        assert "sentinels" not in draft({"x": entries.astype(float)}, kinds={"x": "number"})[1]


@pytest.mark.parametrize(("number", "said"), [("1005", True), ("-400", True), ("60", False)])
def test_a_number_far_off_is_kept_and_said(number, said):
    """As a sum below the table, or a decimal comma that was read as a mark of thousands."""
    entries = {"dose": np.array(text(number, rest=NUMBERS), dtype=float)}
    project, told = draft(entries)
    assert ("far off" in told) == said
    assert project.columns[0].minimum <= float(number) <= project.columns[0].maximum
    if said:
        assert f"--missing dose={number} takes it as missing" in told["far off"]
        assert abs(draft(entries, missing={"dose": [number]})[0].columns[0].maximum) < 50


def test_codes_with_leading_zeros_are_text():
    project, told = draft({"code": text(rest=["001", "010", "100"])})
    assert project.columns[0].categories == ("001", "010", "100")
    assert "never as a number" in told["codes"]
    assert draft({"code": [*text(rest=["0.5", "0", "10"])[:-1], "?"]})[0].columns[0].kind == "number"


DAY = pd.date_range("2024-01-01", periods=N, freq="31h")
ORDER = np.random.default_rng(0).permutation(N)
LEFT_OUT = {
    "in every row another": np.arange(500, 500 + N)[ORDER],
    "with gaps": np.cumsum(1 + ORDER % 7),
    "of a sample": np.random.default_rng(1).choice(20 * N, N, replace=False),
    "names": [f"Smith, {chr(97 + row % 26)}{row}" for row in ORDER],
    "remarks": [f"seen on ward {row}" if row % 9 else "none" for row in ORDER],
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_record_numbers_and_free_text_are_left_out_and_said(case):
    project, told = draft({"when": LEFT_OUT[case]})
    assert [each.name for each in project.columns] == ["age"]
    (said,) = told.values()
    assert "left out (--as when=number or category takes it)" in said
    kind = "number" if isinstance(LEFT_OUT[case], np.ndarray) else "category"
    columns = draft({"when": LEFT_OUT[case]}, kinds={"when": kind})[0].columns
    assert {each.name: each.kind for each in columns}["when"] == kind


def test_whole_numbers_that_all_differ_are_a_quantity_unless_their_name_or_spread_says_otherwise():
    squares = np.arange(N)[ORDER] ** 2
    project, told = draft({"paid": squares})
    assert [each.name for each in project.columns] == ["paid", "age"]
    assert "taken as a number; if it is a record number, --without paid leaves it out" in told["records"]
    # Several rows of one person have one number, too.
    for entries in (squares, np.repeat(squares[: N // 2], 2)):
        project, told = draft({"patient_id": entries})
        assert [each.name for each in project.columns] == ["age"]
        assert "it is a record number, and left out" in told["records"]


def test_the_most_frequent_of_many_categories_are_kept():
    """Of 51 towns the one most seldom counts as other, at the parties as well; so do all that few rows have."""
    n_rows_of = {f"town {place}": 40 for place in range(50)} | {"hamlet": 28}
    towns = [name for name, n in n_rows_of.items() for _ in range(n)]
    age = {"age": np.arange(len(towns)) % 70}
    project, told = draft({"town": towns} | age)
    town = project.columns[0]
    assert (len(town.categories), town.unknown, town.most_unknown) == (50, "other", 0.05)
    assert "hamlet" not in town.categories
    assert "the 50 most frequent are kept, and all others count as other (1 % of entries;" in told["many"]
    some = [*towns[:800], *(f"farm {row // 3}" for row in range(1228))]
    project, told = draft({"town": some} | age)
    town = project.columns[0]
    assert (len(town.categories), town.most_unknown) == (20, 0.85)
    assert "the 20 most frequent are kept, and all others count as other (61 % of entries;" in told["many"]


def test_a_column_of_rare_categories_alone_is_left_out_unless_it_is_asked_for():
    towns = [f"town {row // 2:02}" for row in range(120)]
    project, told = draft({"town": towns})
    assert [each.name for each in project.columns] == ["age"]
    assert "has 60 categories, hardly any of them in 10 rows: it is left out; put broader ones in" in told["many"]
    project, _ = draft({"town": towns}, kinds={"town": "category"})
    assert len(project.columns[0].categories) == 50


ASKED = {
    "with repeats": np.sort(np.cumsum(1 + ORDER % 7) // 2),
    "twice each": np.repeat(np.arange(N // 2), 2)[ORDER],
    "by name": np.where(ORDER == 0, 4, ORDER * 3 + 1),
    "days as whole numbers": [int(day.strftime("%Y%m%d")) for day in DAY[ORDER]],
    "ISO": [day.strftime("%Y-%m-%d") for day in DAY],
    "German": [day.strftime("%d.%m.%Y") for day in DAY],
    "short German": [f"{day.day}.{day.month}.{day.year % 100:02}" for day in DAY],
    "with a time": [day.isoformat() for day in DAY],
    "of pandas": DAY,
    "of Python": [day.date() for day in DAY],
    "few days": ["2024-01-01", "2024-01-02", None] * (N // 3),
    "months of Stata": ["2024m1", "2024m11", None] * (N // 3),
}


@pytest.mark.parametrize("case", ASKED)
def test_record_numbers_and_dates_are_asked_about(case):
    name = "case_nr" if case == "by name" else "when"
    told = refusal("SPEC_INVALID", draft, {name: ASKED[case]})
    assert f"Column '{name}' h" in told
    assert f"--without {name}" in told
    assert [each.name for each in draft({name: ASKED[case]}, without=[name])[0].columns] == ["age"]
    if "--as" in told:
        assert draft({name: ASKED[case]}, kinds={name: "number"})[0].columns[0].kind == "number"


def test_measurements_are_not_asked_about(rng):
    columns = {"kg": rng.normal(70, 9, N).round(1), "bpm": rng.integers(50, 99, N), "n": rng.poisson(3, N)}
    assert draft(columns | {"year": rng.integers(1990, 2024, N)})[1] == {}


def test_unnamed_and_constant_columns_are_left_out():
    found = {"Unnamed: 0": range(N), "site": ["north"] * N, "one": 1.0, "nothing": None}
    project, told = draft(found)
    assert [each.name for each in project.columns] == ["age"]
    assert set(told) == {"unnamed", "constant", "empty"}
    taken = draft({"one": 1.0}, kinds={"one": "number"})[0].columns[0]
    assert (taken.name, taken.kind) == ("one", "number")
    assert [each.name for each in draft({"pixel": 0.0}, valid_range=(0, 99))[0].columns] == ["pixel", "age"]


def test_one_level_in_several_spellings_is_one():
    nfd = unicodedata.normalize("NFD", "größe")
    project, told = draft({"kind": text("Größe", nfd, " größe ", rest=["größe", "x"])})
    assert project.columns[0].categories == ("größe", "x")
    assert "differ by capital letters, blanks or Unicode alone" in told["spellings"]
    apart = draft({"kind": text("Größe", rest=["größe", "x"])}, keep={"kind": ["größe"]})[0]
    assert apart.columns[0].categories == ("Größe", "größe", "x")
    table = pd.DataFrame({"kind": ["Größe", "größe"], "age": 50.0})
    assert_array_equal(encode_table(apart, table, where="x").X[:, :2], np.eye(2))


@settings(max_examples=20, deadline=None)
@given(
    change=st.sampled_from([str.upper, str.title, lambda text: f" {text}  ", lambda text: text.replace(" ", "  ")]),
    form=st.sampled_from(["NFC", "NFD"]),
    level=st.sampled_from(["über 60", "unter 60"]),
)
def test_a_partys_spelling_is_read_as_the_agreed_one(change, form, level):
    project, _ = draft({"kind": text(rest=["über 60", "unter 60"])})
    spelt = unicodedata.normalize(form, change(level))
    tables = [pd.DataFrame({"kind": [each] * 30, "age": 50.0}) for each in (spelt, level)]
    found, expected = (encode_table(project, table, where="a.csv") for table in tables)
    assert_array_equal(found.X, expected.X)
    n_respelt = 30 * (unicodedata.normalize("NFC", spelt) != level)
    assert found.adjusted.columns["kind"]["respelt"] == n_respelt
    assert ("kind" in found.adjusted.to_dict()["columns"]) == bool(n_respelt)


def test_rare_levels_are_said():
    told = draft({"ward": text("west", rest=["north", "south"])})[1]
    assert "categories in fewer than 10 rows, 'west' (1 times): kept; if you remove it" in told["rare"]


WHOLE = [str(number) for number in range(300, 340)]


@pytest.mark.parametrize(
    ("entry", "rest"), [("1,005", WHOLE), ("1.005", WHOLE), ("1,5", NUMBERS), ("1.5", ["1,5", "2"])]
)
def test_a_mark_with_two_readings_is_asked_about(entry, rest):
    """Beside a word the reader leaves the column as text, so the draft asks for itself."""
    told = refusal("SPEC_INVALID", draft, {"dose": text(entry, "?", rest=rest)})
    assert "has numbers whose mark may separate decimals or thousands: " in told


def test_numbers_beside_a_word_are_read_as_the_reader_reads_them():
    for entry, rest, expected in (
        ("1,005", NUMBERS, 1005),
        ("1.234,5", ["1,5", "2"], 1234.5),
        ("1,005", ["1,5"], 1.005),
    ):
        dose = draft({"dose": text(entry, "#DIV/0!", rest=rest)})[0].columns[0]
        assert dose.missing_words == ("#DIV/0!",)
        assert dose.minimum <= expected <= dose.maximum
        assert (dose.maximum > 1000) == (expected > 1000)


def test_text_among_numbers_is_asked_about():
    said = refusal("SPEC_INVALID", draft, {"dose": text("Huber", rest=NUMBERS)}, tell=None)
    assert "Huber" not in said, "a table may be a party's own, as in a trial"
    assert "--without" in said
    told = refusal("SPEC_INVALID", draft, {"dose": text("low", rest=NUMBERS)})
    assert "no numbers: 'low' (1 times): --missing 'dose=WORD' takes a word as missing" in told
    assert draft({"dose": text("low", rest=NUMBERS)}, missing={"": ["LOW"]})[0].columns[0].missing_words == ("low",)


def test_options_name_columns_that_there_are():
    for option in ("kinds", "missing", "keep"):
        assert "no column height" in refusal("SPEC_INVALID", draft, {}, **{option: {"height": ["number"]}})
    assert "number or category" in refusal("SPEC_INVALID", draft, {}, kinds={"age": "date"})


def test_a_word_cannot_be_a_category(write):
    entries = {"name": "ward", "kind": "category", "categories": ("north", "NA")}
    with pytest.raises(ExchangeError, match="NA would be an entry, too"):
        Column(**entries, missing_words=("NA",))
    project, _ = draft({"ward": text("NA", "?", rest=["north", "south"])})
    assert load_project(write("project.toml", project_text(project, OWNER))) == project
    assert 'missing_words = [\n    "?",\n    "NA",\n]' in project_text(project, OWNER)


@pytest.mark.parametrize("n_gaps", [12, 13])
def test_filling_has_the_limit_of_unknown_entries(n_gaps):
    """With targets, 12 of 120 by chance, unless a further column says where; predictions are for whoever comes."""
    project, _ = draft({"dose": text(rest=[1.5, 2.5, 4.0])})
    table = pd.DataFrame({"dose": text(*[np.nan] * n_gaps, rest=[1.5, 2.5]), "age": 50.0})
    assert encode_table(project, table, where="a.csv", with_target=False).adjusted.columns["dose"]["filled"] == n_gaps
    if n_gaps == 12:
        assert encode_table(project, table, where="a.csv").adjusted.columns["dose"]["filled"] == n_gaps
        return
    told = refusal("SCHEMA_MISSING_ENTRY", encode_table, project, table, where="a.csv")
    assert "in 13 of 120 rows" in told
    assert "flag_missing = true" in told
    flagged = draft({"dose": table["dose"]})[0]
    assert encode_table(flagged, table, where="a.csv").X[:13, 1].tolist() == [1] * 13


@pytest.mark.parametrize(("n_gaps", "is_flagged"), [(0, False), (1, False), (2, True), (7, True)])
def test_a_column_says_where_gaps_are_before_a_small_table_has_too_many_by_chance(n_gaps, is_flagged):
    """Gaps beyond chance are refused where no column says where they are."""
    project, told = draft({"dose": text(*[np.nan] * n_gaps, rest=[1.5, 2.5, 4.0])})
    assert project.columns[0].flag_missing == is_flagged
    assert ("gaps" in told) == is_flagged
    table = pd.DataFrame({"dose": text(*[np.nan] * 13, rest=[1.5, 2.5]), "age": 50.0})
    if is_flagged:
        assert encode_table(project, table, where="a.csv").X[:, 1].sum() == 13
    else:
        assert "in 13 of 120 rows" in refusal("SCHEMA_MISSING_ENTRY", encode_table, project, table, where="a.csv")
