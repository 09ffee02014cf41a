"""Entries outside of what was agreed: what the project's rules make of them, how many, and when they are refused."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import binom

from datacollab.agreement import load_project, project_content, project_text
from datacollab.errors import ExchangeError
from datacollab.table import Adjustments, Column, adjustments_lines, adjustments_text, encode_table

SECRET = 98765.4321
FROM_FIXTURES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def number(outside="clip", low=0.0, high=10.0, **entries):
    return Column(name="dose", kind="number", unit="mg", minimum=low, maximum=high, outside=outside, **entries)


def category(unknown="other", categories=("north", "south"), **entries):
    return Column(name="ward", kind="category", categories=categories, unknown=unknown, **entries)


@pytest.fixture(scope="session")
def encode(make_project):
    def encode(entries, *columns, **options):
        project = make_project(columns=columns, max_components=1)
        return encode_table(project, pd.DataFrame(entries), where="a.csv", with_target=False, **options)

    return encode


def refusal(code, call, *args, **kwargs):
    with pytest.raises(ExchangeError) as caught:
        call(*args, **kwargs)
    assert caught.value.code == code, caught.value
    assert "98765" not in str(caught.value)
    return str(caught.value)


def exceptions(n_inside=30):
    """A column of numbers from 0 to 10, most of them inside, as a strategy."""
    inside = st.lists(st.floats(0, 10), min_size=n_inside, max_size=2 * n_inside)
    return st.tuples(inside, st.sampled_from([-3.0, -1e-9, 10.0001, 14.0, 1e300, np.inf, -np.inf]), st.integers(0, 30))


@FROM_FIXTURES
@given(drawn=exceptions())
def test_to_clip_and_to_encode_is_to_encode_what_was_clipped(encode, drawn):
    inside, outside, at = drawn
    entries = np.insert(np.array(inside), at, outside)
    encoded = encode({"dose": entries}, number())
    clipped = np.clip(entries, 0, 10)
    assert_array_equal(encoded.X, encode({"dose": clipped}, number("refuse")).X)
    counts = encoded.adjusted.columns["dose"]
    assert (counts["clipped_below"], counts["clipped_above"]) == (int(outside < 0), int(outside > 10))
    assert counts["far_outside"] == int(outside > 20 or outside < -10)


@FROM_FIXTURES
@given(at=st.lists(st.integers(0, 79), min_size=1, max_size=20), batch=st.integers(1, 80))
def test_a_row_becomes_the_same_in_any_company(encode, at, batch):
    """Alone, among others, and in batches, which count together as the whole does."""
    dose = np.linspace(0, 10, 80)
    dose[[7, 50]] = [-1, 12]
    ward = np.array(["north", "south"] * 40, dtype=object)
    ward[[7, 20]] = ["elsewhere", None]
    table = pd.DataFrame({"dose": dose, "ward": ward})
    columns = number(), category(missing="fill", fill="south", flag_missing=True)
    whole = encode(table, *columns)
    for row in at:
        assert_array_equal(encode(table.iloc[[row]], *columns).X, whole.X[[row]])
    before, parts = Adjustments(), []
    for start in range(0, 80, batch):
        part = encode(table.iloc[start : start + batch], *columns, before=before)
        before = part.adjusted
        parts.append(part.X)
    assert_array_equal(np.vstack(parts), whole.X)
    assert before == whole.adjusted
    assert before.n_rows_outside == 2


def test_set_missing_is_as_if_nothing_had_been_there(encode):
    column = number("missing", missing="fill", fill=4, flag_missing=True)
    dose = np.array([1.0, 11, np.nan, *[5] * 40])
    encoded = encode({"dose": dose}, column)
    assert_array_equal(encoded.X, encode({"dose": np.where(dose > 10, np.nan, dose)}, column).X)
    assert encoded.X[:3].tolist() == [[1, 0], [4, 1], [4, 1]]
    assert encoded.adjusted.to_dict()["columns"]["dose"] == {"n_entries": 42, "set_missing": 1, "filled": 2}
    ward = ["north", "elsewhere", None, *["south"] * 40]
    column = category("missing", missing="fill", fill="south", flag_missing=True)
    encoded = encode({"ward": ward}, column)
    assert encoded.X[:3].tolist() == [[1, 0, 0], [0, 1, 1], [0, 1, 1]]
    assert encoded.adjusted.to_dict()["columns"]["ward"] == {"n_entries": 42, "set_missing": 1, "filled": 2}


def test_unknown_categories_have_a_column_of_their_own(encode):
    column = category()
    assert column.feature_names == ("ward=north", "ward=south", "ward=other")
    encoded = encode({"ward": ["north", "elsewhere", *["south"] * 30]}, column)
    assert encoded.X[:3].tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert encoded.adjusted.to_dict()["columns"]["ward"] == {"n_entries": 32, "to_other": 1}
    # Whoever wrote "other" wrote what was agreed, however often.
    assert encode({"ward": ["other"] * 9}, column).adjusted.n_rows_outside == 0
    assert category(missing="fill", fill="other").fill == "other"


def test_a_category_that_means_other_already_takes_them(encode):
    column = category(categories=("Other", "north"))
    assert column.feature_names == ("ward=Other", "ward=north")
    encoded = encode({"ward": ["elsewhere", "north", "Other", *["north"] * 30]}, column)
    assert encoded.X[:3].tolist() == [[1, 0], [0, 1], [1, 0]]
    assert encoded.adjusted.columns["ward"]["to_other"] == 1


@pytest.mark.parametrize(("n_outside", "n_rows"), [(1, 2), (4, 20), (6, 40), (11, 100), (67, 1000)])
def test_one_in_twenty_are_exceptions_and_more_beyond_chance_are_refused(encode, n_outside, n_rows):
    """Where one in twenty is outside, one of a hundred tables has more."""
    assert binom.cdf(n_outside, n_rows, 0.05) >= 0.99 > binom.cdf(n_outside - 1, n_rows, 0.05)
    dose = np.full(n_rows + 1, 5.0)
    ward = np.full(n_rows + 1, "north", dtype=object)
    dose[:n_outside], ward[:n_outside] = 15, "elsewhere"
    assert encode({"dose": dose[:-1]}, number()).adjusted.n_rows_outside == n_outside
    assert encode({"ward": ward[:-1]}, category()).adjusted.n_rows_outside == n_outside
    dose[-1], ward[-1] = 11, "nowhere"
    more = n_outside + 1
    told = refusal("SCHEMA_RANGE", encode, {"dose": dose}, number())
    assert f"outside the agreed range, 0 to 10 mg, in {more} of {n_rows + 1} rows (the first: row 1)." in told
    assert "More than 5 % of a column are no exceptions that could be clipped. Check the unit" in told
    assert "If they are possible, ask the owner for a wider range (minimum and maximum)." in told
    told = refusal("SCHEMA_CATEGORY_UNKNOWN", encode, {"ward": ward}, category())
    assert f"in {more} of {n_rows + 1} rows" in told
    assert "no exceptions that could be counted as other. If they are new, ask the owner" in told
    assert "elsewhere" not in told


def test_a_project_may_say_that_more_categories_are_others(encode):
    """As where the draft kept the most frequent of many, or the owner took rare ones out of the list."""
    column = category(most_unknown=0.4)
    assert encode({"ward": ["elsewhere"] * 40 + ["north"] * 60}, column).adjusted.n_rows_outside == 40
    told = refusal("SCHEMA_CATEGORY_UNKNOWN", encode, {"ward": ["elsewhere"] * 60 + ["north"] * 40}, column)
    assert "More than 40 % of a column are no exceptions" in told
    assert "ask the owner to add them to the project or raise most_unknown of the column; if" in told
    told = refusal("SCHEMA_CATEGORY_UNKNOWN", encode, {"ward": ["elsewhere"]}, category(unknown="refuse"))
    assert "most_unknown" not in told


def test_missing_entries_do_not_dilute_the_share(encode):
    dose = np.full(100, np.nan)
    dose[:10], dose[:4] = 5, 11
    refusal("SCHEMA_RANGE", encode, {"dose": dose}, number(missing="fill", fill=1))


def test_the_share_is_of_all_batches_so_far(encode):
    first = encode({"dose": [11.0] * 11 + [5.0] * 89}, number(), before=Adjustments())
    told = refusal("SCHEMA_RANGE", encode, {"dose": [5.0] * 9 + [11.0]}, number(), before=first.adjusted)
    assert "in 12 of the first 110 rows. More than 5 %" in told
    second = encode({"dose": [5.0] * 19 + [11.0]}, number(), before=first.adjusted)
    assert second.adjusted.columns["dose"]["clipped_above"] == 12


@pytest.mark.parametrize("factor", [10, 100, 1000])
@pytest.mark.parametrize("rule", ["clip", "missing"])
def test_another_unit_is_never_clipped(encode, factor, rule, rng):
    """Of many rows or of one: it is refused, and the conversion is named."""
    column = number(rule, low=2.0, high=10.0, missing="fill", fill=5)
    dose = rng.uniform(4, 9, 60) * factor
    told = refusal("SCHEMA_RANGE", encode, {"dose": dose}, column)
    assert "a mix-up of units? Nearly all would fit" in told
    assert f"multiplied by {1 / factor:g}" in told
    told = refusal("SCHEMA_RANGE", encode, {"dose": dose[:1]}, column)
    assert "among fewer than 20 entries nobody can tell" in told


def test_one_of_few_numbers_may_be_an_exception_that_is_not_far(encode):
    assert encode({"dose": [19.0]}, number()).X.tolist() == [[10]]
    told = refusal("SCHEMA_RANGE", encode, {"dose": [5.0, 21.0]}, number())
    assert "in 1 of 2 rows (the first: row 2). It is farther outside than the range is wide" in told
    assert encode({"dose": [5.0] * 19 + [21.0]}, number()).adjusted.columns["dose"]["far_outside"] == 1


def test_no_entry_is_in_what_is_told(encode):
    dose = np.full(100, 5.0)
    dose[3] = SECRET
    ward = np.full(100, "north", dtype=object)
    ward[3] = "98765 Huber"
    encoded = encode({"dose": dose, "ward": ward}, number(), category())
    told = encoded.adjusted.to_dict()
    words = " ".join([json.dumps(told), adjustments_text(told), *adjustments_lines(told), repr(encoded)])
    assert "98765" not in words
    line = "1 of 100 rows in 2 columns: 1 number clipped, 1 counted as other; 1 number far outside"
    assert adjustments_text(told) == line
    dose[:50], ward[:50] = SECRET, "98765 Huber"
    refusal("SCHEMA_RANGE", encode, {"dose": dose, "ward": ward}, number(), category())
    refusal("SCHEMA_CATEGORY_UNKNOWN", encode, {"ward": ward}, category())


def test_what_is_told_counts_each_kind():
    table = {
        "dose": {"n_entries": 108, "clipped_below": 1, "clipped_above": 2, "far_outside": 1, "filled": 2},
        "ward": {"n_entries": 110, "to_other": 3},
        "age": {"n_entries": 110, "set_missing": 4, "filled": 4},
        "sex": {"n_entries": 109, "filled": 1},
    }
    told = {"n_rows": 110, "n_rows_outside": 8, "columns": table}
    assert adjustments_text(Adjustments(n_rows=110).to_dict()) == "none"
    assert adjustments_text(told) == (
        "8 of 110 rows in 3 columns: 3 numbers clipped, 4 set missing, 3 counted as other; 1 number far outside; "
        "3 missing entries filled in, in 2 columns"
    )
    assert adjustments_lines(told) == [
        "dose: of 108 entries 1 clipped below, 2 clipped above; 1 far outside; 2 missing filled in",
        "ward: of 110 entries 3 counted as other",
        "age: of 110 entries 4 set missing",
        "sex: 1 missing filled in",
    ]


def test_entries_that_a_study_leaves_missing_are_not_said_to_be_filled_in():
    counts = Counter(n_entries=7, set_missing=1, filled=4)
    told = Adjustments(n_rows=10, n_rows_outside=1, columns={"dose": counts}).to_dict(fills=False)
    assert adjustments_text(told) == (
        "1 of 10 rows in 1 column: 1 set missing; 3 missing entries left missing, in 1 column"
    )
    assert adjustments_lines(told) == ["dose: of 7 entries 1 set missing; 3 missing"]


IMPOSSIBLE = {
    "a number to be missing where that is refused": (number, {"outside": "missing"}, 'missing = "fill"'),
    "a category to be missing where that is refused": (category, {"unknown": "missing"}, 'missing = "fill"'),
    "a rule that there is not for numbers": (number, {"outside": "other"}, "refuse, clip or missing"),
    "a rule that there is not for categories": (category, {"unknown": "clip"}, "refuse, other or missing"),
    "a rule of numbers for a category": (category, {"outside": "clip"}, "has no outside"),
    "a rule of categories for a number": (number, {"unknown": "other"}, "has no unknown"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_rules_that_cannot_be_are_refused_with_the_reason(case):
    make, entries, words = IMPOSSIBLE[case]
    assert words in refusal("SPEC_INVALID", make, **entries)


def test_rules_come_back_from_the_file_and_those_that_refuse_are_not_in_it(make_project, keys, write):
    columns = (number(), category())
    ruled = make_project(columns=columns, max_components=2)
    assert load_project(write("project.toml", project_text(ruled, keys["a"], drafted=True))) == ruled
    rules = [(each.get("outside"), each.get("unknown")) for each in project_content(ruled)["columns"]]
    assert rules == [("clip", None), (None, "other")]
    strict = make_project(columns=(number("refuse"), category("refuse")), max_components=2)
    for column in project_content(strict)["columns"]:
        assert {"outside", "unknown"}.isdisjoint(column)
    assert ruled.digest != strict.digest
