"""What a draft makes of a public table."""

import functools
import itertools
import math
import re
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from datacollab.agreement import STUDY, draft_project, load_project, make_anchor, parse_project, project_text
from datacollab.bundle import KeyPair
from datacollab.by_sums.plan import study_statistics
from datacollab.errors import ExchangeError
from datacollab.sums import MaskKey, mask_card
from datacollab.table import encode_table, read_table
from party_world import refusal

refused = functools.partial(refusal, "SPEC_INVALID")
PUBLIC = [KeyPair.generate().public for _ in range(3)]


@pytest.fixture
def draft(keys):
    def make(table, target="ill", **options):
        members = {"owner": keys["a"].public, "analyst": keys["analyst"].public}
        parties = {name: keys[name].public for name in ("a", "b")}
        return draft_project(
            table,
            name="heart",
            purpose="Who?",
            target=target,
            **members,
            parties=parties,
            **({"without": ["name"]} | options),
        )

    return make


@pytest.mark.slow
@settings(max_examples=200)
@given(
    scale=st.integers(-9, 9),
    start=st.floats(-99, 99).filter(lambda x: x == 0 or abs(x) > 1e-3),
    steps=st.lists(st.floats(0, 1).filter(lambda x: x == 0 or x > 1e-3), max_size=6),
)
def test_ranges_are_wide_enough_and_round(scale, start, steps):
    """At least half the width more on each side, at most a tenth of the new width beyond that, and two digits of it.

    Nothing below 0 where no number is, and whole bounds where all numbers are whole.
    """
    numbers = [(start + step) * 10.0**scale for step in (0, *steps)]
    assume(not set(numbers) <= {0.0, 1.0})
    a, b, analyst = PUBLIC
    members = {"owner": a, "analyst": analyst, "parties": {"a": a, "b": b}}
    (column,) = draft_project(pd.DataFrame({"x": numbers}), name="x", purpose="x", task="none", **members).columns
    low, high = column.minimum, column.maximum
    width = (max(numbers) - min(numbers)) or abs(max(numbers)) or 1.0
    wanted_low, wanted_high = min(numbers) - width / 2, max(numbers) + width / 2
    step = Decimal(10) ** (math.floor(math.log10(wanted_high - wanted_low)) - 1)
    if all(number.is_integer() for number in numbers):
        step = max(step, Decimal(1))
        assert low.is_integer()
        assert high.is_integer()
    if min(numbers) >= 0:
        assert low >= 0
        wanted_low = max(0.0, wanted_low)
    slack = 1e-9 * max(abs(wanted_low), abs(wanted_high))
    assert low <= wanted_low + slack
    assert high >= wanted_high - slack
    assert wanted_low - low <= float(step) + slack
    assert high - wanted_high <= float(step) + slack
    for bound in (low, high):
        assert abs(Decimal(repr(bound)) % step) in (0, step) or abs(bound) > 1e15 * float(step)


def test_a_draft_fits_the_table_it_was_made_from(draft, table, keys, write):
    project = draft(table)
    assert project.feature_names[:2] == ("age", "ward=1")
    assert [column.kind for column in project.columns] == ["number", "category", "number", "category", "number"]
    assert project.task.kind == "classification"
    assert project.task.classes == ("no", "yes")
    # Of two categories a column is told by the others; twelve doses and three sexes are missing, as two columns say.
    assert (project.n_free, project.n_features) == (project.max_components + 1, 12)
    assert encode_table(project, table, where="public.csv").n_rows == 60
    assert make_anchor(project, table, where="public.csv").rows.shape == (1000, 12)
    text = project_text(project, keys["a"], drafted=True)
    assert text.count("CHECK") == len(project.columns) + 1
    # Of ranges that were told nothing has to be checked; the two categories and the classes were found.
    assert project_text(project, keys["a"], drafted=True, ranges_given=True).count("CHECK") == 3
    assert project_text(project, keys["a"]).count("CHECK") == 0
    assert load_project(write("project.toml", text)) == project


def test_missing_public_entries_are_filled_with_public_ones(draft, table):
    project = draft(table)
    dose, sex = project.columns[2], project.columns[3]
    assert (dose.missing, dose.fill) == ("fill", pytest.approx(table["dose"].median(), rel=1e-9))
    assert (sex.missing, sex.fill) == ("fill", table["sex"].value_counts().idxmax())


def test_no_single_row_of_a_party_asks_for_another_agreement(draft, table):
    """Whatever one row holds that the public table had not, it is taken; and each column says what became of it."""
    project = draft(table.dropna())
    table["dose"] = table["dose"].fillna(4.0)
    rules = {column.kind: (column.outside, column.unknown, column.missing) for column in project.columns}
    assert rules == {"number": ("clip", "refuse", "fill"), "category": ("refuse", "other", "fill")}
    rows = table.astype(object)
    rows.loc[3, ["age", "ward", "dose", "sex"]] = [1e9, "elsewhere", None, "x"]
    rows.loc[4, ["age", "ward", "dose"]] = [None, None, -1e9]
    encoded = encode_table(project, rows.infer_objects(), where="a.csv")
    X = pd.DataFrame(encoded.X, columns=project.feature_names)
    age, dose = project.columns[0], project.columns[2]
    assert X.loc[3, ["age", "ward=other", "dose", "sex=other"]].tolist() == [age.maximum, 1, dose.fill, 1]
    assert X.loc[4, ["age", "ward=other", "dose"]].tolist() == [age.fill, 0, dose.minimum]
    assert encoded.adjusted.n_rows_outside == 2


@pytest.mark.parametrize("marks", [[".", ".a"], [".A", "._"], ["T"], ["UNK", "NASK"], ["NA", "T"], ["?"]])
def test_gaps_of_a_draft_are_gaps_where_its_project_is_agreed(draft, write, marks):
    """The file that a project was drafted from is read alike by the project; the letters of marks are told."""
    cells = [*marks * 3, *(f"{row / 4:.2f}" for row in range(60))]
    lines = [f"{cell},{'yes' if row % 3 else 'no'}" for row, cell in enumerate(cells)]
    file = write("public.csv", "\n".join(["rain,ill", *lines]))
    told = []
    project = draft(file, without=(), tell=told.append)
    letters = {mark for mark in marks if mark.isalpha() and mark != "NA"}
    assert {*project.columns[0].missing_words} - {"?"} == letters
    assert all(f"'{mark}' (3 times)" in str([each.sentence for each in told]) for mark in letters)
    encoded = encode_table(project, read_table(file, schema=project), where="public.csv")
    assert encoded.adjusted.columns["rain"]["filled"] == 3 * len(marks)


@pytest.mark.parametrize("mark", ["A", "UNK", ".A"])
def test_marks_in_a_target_are_gaps_where_its_project_is_agreed(draft, write, keys, mark):
    """Rows with a mark make the anchor without a label; parties leave theirs out as any without a target."""
    lines = [f"{row % 7 + 0.5},{mark if row < 3 else row / 4:.5}" for row in range(60)]
    told = []
    file = write("public.csv", "\n".join(["age,cost", *lines]))
    drafted = draft(file, without=(), target="cost", tell=told.append)
    project, _ = parse_project(project_text(drafted, keys["a"]))
    assert project.task.missing_words == tuple(each for each in [mark] if each.isalpha())
    assert any(f"has '{mark}' (3 times) among numbers" in each.sentence for each in told) == mark.isalpha()
    table = read_table(file, schema=project)
    encoded = encode_table(project, table, where="public.csv", partly=True)
    assert encoded.labelled.tolist() == [row >= 3 for row in range(60)]
    assert encoded.target.tolist() == [row / 4 for row in range(3, 60)]
    assert make_anchor(project, table, where="public.csv").rows.shape[1] == project.n_features
    with pytest.raises(ExchangeError, match="no entry in 3 of 60 rows"):
        encode_table(project, table, where="a.csv")


@pytest.mark.parametrize("n_codes", [30, 60, 144, 2000])
@pytest.mark.parametrize("n_public", [100, 300, 1000])
def test_what_is_drafted_from_many_codes_is_read_at_all_parties(draft, n_codes, n_public):
    """Few codes are frequent and most are rare, as of diagnoses; other tables of the kind have some that are new."""
    for seed in range(5):
        random = np.random.default_rng([seed, n_codes, n_public])
        shares = 1 / np.arange(1, n_codes + 1)

        def table_of(n_rows, random=random, shares=shares):
            codes = random.choice(len(shares), n_rows, p=shares / shares.sum())
            facts = {"age": random.integers(20, 90, n_rows), "ill": random.choice(["no", "yes"], n_rows)}
            return pd.DataFrame({"code": [f"C{code}" for code in codes], **facts})

        public = table_of(n_public)
        project = draft(public, without=())
        for table in (public, *(table_of(n_rows) for n_rows in (80, 400, 2000))):
            assert encode_table(project, table, where="a.csv").n_rows == len(table)


def test_a_range_that_was_told_holds_what_is_filled_in(draft):
    table = pd.DataFrame({"age": [30, 60, 90], "ill": ["no", "yes", "no"]})
    (age,) = draft(table, without=[], valid_range=(0.0, 50.0)).columns
    assert (age.minimum, age.maximum, age.fill) == (0, 50, 50)


TARGETS = {
    "text": (["a", "b", "c"] * 20, "classification", ("a", "b", "c")),
    "digits": (list(range(10)) * 6, "classification", tuple(range(10))),
    "whole floats": ([0.0, 1.0] * 30, "classification", (0, 1)),
    "truth values": ([True, False] * 30, "classification", ("False", "True")),
    "many whole numbers": (list(range(60)), "regression", ()),
    "broken numbers": ([0.5, 1.5] * 30, "regression", ()),
}


@pytest.mark.parametrize("case", TARGETS)
def test_the_target_says_which_task_it_is(draft, table, case):
    entries, kind, classes = TARGETS[case]
    task = draft(table.assign(ill=entries)).task
    assert (task.kind, task.classes) == (kind, classes)
    assert encode_table(draft(table.assign(ill=entries)), table.assign(ill=entries), where="x").target is not None


def test_truth_values_are_classes_by_their_words(draft, table):
    """Predictions then have the words of the file, whatever a party writes for them."""
    said = []
    truths = [row < 3 for row in range(60)]
    project = draft(table.assign(ill=truths), tell=lambda finding: said.append(finding.found))
    assert project.task.positive == "True"
    assert "has few rows of class 'True' (3 times)" in said
    for others in (truths, [int(each) for each in truths], [str(each).upper() for each in truths]):
        target = encode_table(project, table.assign(ill=others), where="x").target
        assert target.tolist() == list(map(str, truths))
    with_gaps = draft(table.assign(ill=[True, False, None] * 20))
    assert with_gaps.task.classes == ("False", "True")
    assert draft(table.assign(ill=truths), task="regression").task.maximum == 1


def test_the_task_can_be_told(draft, table):
    digits = table.assign(ill=list(range(10)) * 6)
    task = draft(digits, task="regression").task
    assert (task.kind, task.minimum, task.maximum) == ("regression", 0, 14)
    broken = draft(table.assign(ill=[0.5, 1.5] * 30), task="classification", positive="1.5").task
    assert broken.classes == ("0.5", "1.5")
    assert "numbers" in refused(draft, table, task="regression")
    assert "60 classes" in refused(draft, table.assign(ill=range(60)), task="classification")
    assert "expected classification, regression" in refused(draft, table, task="ranking")


def test_public_rows_need_no_targets_where_these_are_told(draft, table, keys):
    """The project is then the one that is drafted where public rows have targets."""
    bare = table.drop(columns="ill")
    project = draft(bare, classes=["yes", "no"])
    assert project == draft(table)
    assert draft(table, classes=["yes", "no"]) == project
    assert draft(bare, classes=["10", "2", "1"]).task.classes == (1, 2, 10)
    assert draft(bare, classes=["10", "02", "1"]).task.classes == ("02", "1", "10")
    assert draft(bare, classes=["-1", "0", "10"]).task.classes == (-1, 0, 10)
    assert "formula" in refused(draft, bare, classes=["--1", "0"])
    numbers = draft(bare, target_range=(0.0, 14.0))
    assert numbers == draft(table.assign(ill=list(range(10)) * 6), task="regression")
    assert numbers == draft(table.assign(ill=14.0), target_range=(0.0, 14.0))
    assert make_anchor(project, bare, where="public.csv").rows.shape == (1000, 12)
    # Nothing of the target was guessed, so nothing of it has to be checked.
    text = project_text(project, keys["a"], drafted=True, target_given=True)
    assert text.count("CHECK") == len(project.columns)


def test_a_target_that_was_told_is_held_against_the_public_rows(draft, table):
    bare = table.drop(columns="ill")
    n_yes = int((table["ill"] == "yes").sum())
    assert f"{n_yes} of 60 public rows have a class" in refused(draft, table, classes=["no", "Yes"])
    far = table.assign(ill=[9.0] * 5 + [1.0] * 55)
    assert "5 of 60 public rows are out of" in refused(draft, far, target_range=(0.0, 2.0))
    assert "expected numbers" in refused(draft, table, target_range=(0.0, 2.0))
    assert "at least 2" in refused(draft, bare, classes=["no"])
    assert "twice" in refused(draft, bare, classes=["no", "no"])
    assert "one of the two" in refused(draft, bare, classes=["no", "yes"], target_range=(0.0, 1.0))
    assert "--class makes it a classification" in refused(draft, bare, classes=["no", "yes"], task="regression")
    assert "--target-range makes it a regression" in refused(
        draft, bare, target_range=(0.0, 1.0), task="classification"
    )
    assert "there is none" in refused(draft, bare, target=None, task="none", classes=["no", "yes"])
    assert "ill" in refused(draft, bare, classes=["no", "yes"], without=["name", "ill"])


def test_identifiers_are_left_out_and_dates_refused_with_what_to_do(draft, table):
    assert draft(table, without=[]).columns == draft(table).columns
    rows = pd.concat([table] * 3)
    of_51_wards = draft(rows.assign(ward=[f"w{row % 51}" for row in range(180)]))
    assert "ward" not in [each.name for each in of_51_wards.columns], "all are rare"
    assert draft(rows.assign(ward=[f"w{row % 50}" for row in range(180)])).n_features == 12 + 47
    assert "dates" in refused(draft, table.assign(age=datetime(2026, 1, 1)))
    assert "no column 'outcome'" in refused(draft, table, target="outcome").replace(
        "column outcome", "column 'outcome'"
    )
    assert "--class for each class, or by --target-range" in refused(draft, table.drop(columns="ill"))
    assert "--class" not in refused(draft, table, without=["outcome"])
    assert "besides the target" in refused(draft, table[["ill"]], without=[])


@pytest.mark.parametrize(("n_columns", "most"), [(1, 1), (2, 1), (3, 2), (16, 15), (17, 16), (18, 16)])
def test_something_is_reduced_by_default(draft, n_columns, most):
    numbers = pd.DataFrame(np.random.default_rng(0).normal(size=(30, n_columns))).assign(ill=[0, 1] * 15)
    assert draft(numbers, without=[]).max_components == most


def public(n_first, n_second, names=("ja", "nein")):
    """Public rows with so many of each of two classes."""
    return pd.DataFrame({"age": range(n_first + n_second), "ill": [names[0]] * n_first + [names[1]] * n_second})


def made(table, **options):
    a, b, analyst = PUBLIC
    members = {"owner": a, "analyst": analyst, "parties": {"a": a, "b": b}}
    return draft_project(table, name="x", purpose="x", target="ill", **members, **options)


NAMED = st.text("bejosy", min_size=1, max_size=3)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    names=st.lists(NAMED, min_size=2, max_size=2, unique=True).filter(lambda names: set(names) != {"no", "yes"}),
    counts=st.lists(st.integers(1, 9), min_size=2, max_size=2, unique=True),
    are_named=st.booleans(),
)
def test_the_rarer_of_two_classes_is_sought_whatever_the_order_and_spelling(names, counts, are_named):
    said = []
    options = {"classes": names} if are_named else {}
    task = made(public(*counts, names), tell=lambda finding: said.append(finding.sentence), **options).task
    rarer = names[int(np.argmin(counts))]
    assert task.positive == rarer
    assert [each for each in said if "sought" in each] == [
        f"Column 'ill' is the target: the sought class is {rarer} (the rarer one in the public rows); change it with "
        "--positive."
    ]
    for name in names:
        assert made(public(*counts, names), positive=name, **options).task.positive == name


@pytest.mark.parametrize("pair", [("0", "1"), ("no", "yes"), ("False", "True"), ("FALSE", "TRUE"), (0, 1)])
def test_yes_is_sought_even_if_it_is_the_more_frequent_one(pair):
    assert str(made(public(2, 7, pair)).task.positive) == str(pair[1])
    assert str(made(public(7, 2, pair)).task.positive) == str(pair[1])


def test_where_neither_class_is_proposed_it_is_asked_and_a_wrong_answer_refused():
    for options in ({}, {"classes": ["nein", "ja"]}):
        assert "--positive" in refused(made, public(4, 4), **options)
        assert made(public(4, 4), positive="nein", **options).task.positive == "nein"
    assert "--positive" in refused(made, pd.DataFrame({"age": [1, 2]}), classes=["nein", "ja"])
    assert "not of ja, nein" in refused(made, public(4, 5), positive="jein")
    three = public(4, 5).assign(ill=["a", "b", "c"] * 3)
    assert "one of two classes" in refused(made, three, positive="a")
    assert made(three).task.positive is None
    numbers = public(4, 5).assign(ill=np.linspace(0, 1, 9))
    assert "Remove it" in refused(made, numbers, positive="1")


NUMBERS = {"0 and 1": [0, 1] * 5, "few": [1, 2, 3, 4, 5] * 2, "many": np.linspace(0.1, 5, 10)}


@pytest.mark.parametrize("entries", NUMBERS)
def test_how_a_target_of_numbers_was_taken_is_said_with_what_changes_it(entries):
    table = pd.DataFrame({"age": range(10), "ill": NUMBERS[entries]})
    said = []
    task = made(table, tell=lambda finding: said.append(finding.sentence)).task
    (line,) = [each for each in said if "number" in each]
    assert ("--task regression" if task.classes else "--class for each") in line
    for options in ({"task": task.kind}, {"task": "regression"}):
        said.clear()
        made(table, tell=lambda finding: said.append(finding.sentence), **options)
        assert not [each for each in said if "number" in each]
    assert (made(table, task="regression").task.minimum, made(table, task="regression").task.maximum)[0] == 0


def test_more_than_ten_whole_numbers_are_an_amount_unless_it_is_said():
    for n_different, kind in ((10, "classification"), (11, "regression")):
        table = pd.DataFrame(
            {"age": [row % 7 + 0.5 for row in range(66)], "ill": [5 + row % n_different for row in range(66)]}
        )
        assert made(table).task.kind == kind
        assert made(table, task="classification").task.classes == tuple(range(5, 5 + n_different))


FEW_NUMBERS = {
    "visits": ([0] * 30 + [1] * 12 + [2] * 5 + [4] * 3 + [7, 34], "regression"),
    "days in hospital": ([1] * 9 + [2] * 8 + [3] * 4 + [5, 5, 6, 8, 21, 34], "regression"),
    "drinks of ten grams": ([0] * 30 + [10] * 8 + [20] * 3 + [40, 40, 90, 200], "regression"),
    "a few that once did not occur": ([0] * 30 + [1] * 12 + [2] * 5 + [3] * 3 + [5, 6], "classification"),
    "no and yes": ([1, 2, 1] * 20, "classification"),
    "grades": ([1, 2, 3, 4, 5] * 10, "classification"),
    "tens": ([10, 20, 30, 40, 50] * 10, "classification"),
    "a survey with 9, 88 and 99 for no answer": ([1] * 20 + [2] * 15 + [3] * 9 + [9, 88, 99], "classification"),
    "codes in blocks": ([1, 2, 10, 11, 20, 21, 30] * 8, "classification"),
    "codes from 101": ([101] * 30 + [102] * 12 + [201, 202, 301, 401], "classification"),
    "four codes": ([0] * 20 + [1] * 9 + [3, 20], "classification"),
}


@pytest.mark.parametrize("case", FEW_NUMBERS)
def test_few_whole_numbers_that_thin_out_from_the_first_on_are_an_amount(case):
    entries, kind = FEW_NUMBERS[case]
    table = pd.DataFrame({"age": [row % 7 + 0.5 for row in range(len(entries))], "ill": entries})
    said = []
    assert made(table, tell=lambda finding: said.append(finding.sentence)).task.kind == kind
    way_back = "as classes with --class for each" if kind == "regression" else "a number with --task regression"
    assert way_back in " ".join(said)
    for task in ("classification", "regression"):
        assert made(table, task=task).task.kind == task


@pytest.mark.parametrize(("values", "asks"), [((0, 1), True), ((0, 0.5), False), ((0, 1, 2), False)])
def test_a_number_of_zero_and_one_alone_is_asked_about_before_counts_are_spent(keys, study_cards, values, asks):
    """No count tells how rare a number's 1 is; as classes both are counted, once the entries are as the draft says."""
    table = pd.DataFrame({"age": np.arange(12.0), "ill": np.resize(values, 12)})
    options = {"target": "ill", "statistics": ["counts", "least squares"], **study_cards}
    project = draft_project(table, name="x", purpose="x", **options)
    assert project.task.kind == "regression"
    text = project_text(project, keys["a"], drafted=True)
    assert ("# CHECK: public rows have 0 and 1 alone." in text) is asks
    if asks:
        # What the comment says, in place of the number's entries.
        said = 'kind = "classification", classes = [0, 1]'
        assert said in text
        task = re.search(r'kind = "regression"\n.*?(?=\n\n)', text, re.DOTALL)[0]
        text = text.replace(task, f'target = "ill"\n{said.replace(", ", chr(10), 1)}').replace('"least squares",', "")
        assert parse_project(text, what="x")[0].task.classes == (0, 1)


@pytest.mark.parametrize(
    "outcome", [[0, 1] * 6, ["no", "yes"] * 6, np.linspace(0.1, 9, 12)], ids=["01", "text", "number"]
)
@pytest.mark.parametrize("given", ["target", "outcome", "target, outcome", "treatment, outcome", "event, time"])
def test_a_study_is_drafted_in_the_kind_that_its_statistics_need_or_refused_at_once(keys, study_cards, given, outcome):
    """Every pair of statistics: a project comes out that computes them, or a refusal that names the way on."""
    named = ("event", "time", "treatment", "outcome", "target")
    columns = {"age": np.arange(12.0), "event": [0, 1] * 6, "time": np.arange(1.0, 13), "treatment": [0, 1] * 6}
    table = pd.DataFrame(columns | {"outcome": outcome, "target": outcome})
    parts, refusals = given.split(", "), []
    without = [each for each in named if each not in parts]
    for pair in itertools.combinations_with_replacement(STUDY, 2):
        statistics = list(dict.fromkeys(pair))
        options = {each: each for each in parts} | {"statistics": statistics, "without": without}
        try:
            project = draft_project(table, name="x", purpose="x", **study_cards, **options)
        except ExchangeError as error:
            refusals.append(error)
            continue
        made = study_statistics(project, n_components=2 if project.sharing.has_map else 0)
        assert len(made) == len(statistics)
    assert all(each.code == "SPEC_INVALID" for each in refusals)
    assert all(re.search(r"--|Name one|Write|Remove", str(each)) for each in refusals)


def test_a_zero_and_one_outcome_is_a_number_where_least_squares_explain_it(study_cards):
    table = pd.DataFrame({"age": np.arange(12.0), "ill": [0, 1] * 6})
    for statistics in (["least squares"], ["counts", "least squares"]):
        for name in ("target", "outcome"):
            found = []
            options = {name: "ill", "statistics": statistics, "tell": found.append, **study_cards}
            project = draft_project(table, name="x", purpose="x", **options)
            assert (project.task.kind, project.task.minimum, project.task.maximum) == ("regression", 0.0, 1.0)
            assert any("taken as a number, as least squares" in each.sentence for each in found)
    counts = draft_project(table, name="x", purpose="x", statistics=["counts"], target="ill", **study_cards)
    assert counts.task.classes == (0, 1)
    with pytest.raises(ExchangeError, match='kind = "regression", minimum = 0.0 and maximum = 1.0'):
        replace(counts, sharing=replace(counts.sharing, statistics=("least squares",)))


@pytest.mark.parametrize(("codes", "limits"), [([0, 1], (0.0, 1.0)), ([1, 2], (0.0, 3.0)), ([0, 1, 2], (0.0, 3.0))])
def test_ones_and_zeros_have_no_room_beside_them(draft, codes, limits):
    """Noise is in proportion to the range, and nothing lies beyond yes and no."""
    table = pd.DataFrame({"age": np.arange(12.0), "drug": np.resize(codes, 12), "ill": ["no", "yes"] * 6})
    drug = draft(table, without=[]).columns[1]
    assert (drug.minimum, drug.maximum) == limits


@pytest.mark.parametrize(("n_columns", "rounds"), [(3, None), (4, 2)])
def test_categories_that_make_too_many_patterns_explain_by_rounds(study_cards, n_columns, rounds):
    """5 ** 3 patterns, and 5 ** 4."""
    levels = np.resize([f"level {n}" for n in range(5)], 60)
    table = pd.DataFrame({f"x{place}": np.roll(levels, place) for place in range(n_columns)})
    table["ill"] = np.resize(["no", "yes", "no"], 60)
    options = {"target": "ill", "statistics": ["logistic regression"], **study_cards}
    assert draft_project(table, name="x", purpose="x", **options).sharing.rounds == rounds


def test_times_of_zero_and_a_column_of_numbers_that_groups_are_refused_with_the_way_on(study_cards):
    table = pd.DataFrame({"drug": [0, 1] * 6, "died": [0, 1, 1, 0] * 3, "days": np.arange(12.0)})
    options = {"event": "died", "time": "days", "statistics": ["survival"], **study_cards}
    way_on = "Correct the public rows; all parties alike may count an event on the first day as half a day"
    with pytest.raises(ExchangeError, match=way_on):
        draft_project(table, name="x", purpose="x", **options)
    project = draft_project(table.assign(days=table["days"] + 1), name="x", purpose="x", **options)
    with pytest.raises(ExchangeError, match='or take it as a category: --as "drug=category" of a draft'):
        replace(project, sharing=replace(project.sharing, by="drug"))


@pytest.fixture
def study_cards(keys):
    names = {"a": "a", "b": "b", "c": "stranger"}
    cards = {name: mask_card(MaskKey.generate(), keys[key]) for name, key in names.items()}
    members = {"owner": keys["a"].public, "analyst": keys["analyst"].public}
    return members | {"parties": {name: keys[key].public for name, key in names.items()}, "mask_keys": cards}
