"""The ledger: nearly the same rows twice are refused, whatever folder, project or columns they come with."""

import base64
import json
import math
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from datacollab.errors import ExchangeError
from datacollab.folder.ledger import Ledger, LedgerEntry, RowKeys, joint_noise
from datacollab.folder.table_codes import TableCoder
from datacollab.study import CategoryColumn, Counts
from datacollab.table._values import MISSING_WORDS
from party_world import refusal

KEY = bytes(range(32))
CONTEXTS = [f"{number:064x}" for number in range(9)]


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.json", KEY)


@pytest.fixture
def rows(rng):
    return rng.normal(size=(40, 3))


def coded(*tables, key=KEY):
    """Codes of tables below one another, arrays or frames."""
    coder = TableCoder(key)
    for table in tables:
        coder.add(pd.DataFrame(table))
    return coder.table()


def enter(ledger, table, number, noise=0.1, void=(), statistic="ridge regression", parties=("a key",), fewest=20):
    total = LedgerEntry(
        context=CONTEXTS[number],
        purpose=f"total {number}",
        statistic=statistic,
        noise=noise,
        agreement=f"run {number}",
        parties={f"party {place}": key for place, key in enumerate(parties)},
        table=coded(table, key=ledger.row_keys.key),
    )
    ledger.enter(total, fewest=fewest, void=void)


def noise_left(ledger, table):
    return joint_noise(ledger.earlier(coded(table)))


def different(first, second, fewest=20):
    return coded(second).n_different(coded(first), fewest)


@pytest.mark.parametrize("n_new", [0, 1, 19, 20])
@pytest.mark.parametrize("n_gone", [0, 4])
def test_totals_that_differ_by_few_rows_are_refused_in_any_order_of_rows(ledger, rows, rng, n_new, n_gone):
    enter(ledger, rows, 0)
    other = rng.permutation(np.vstack([rows[n_gone:], rng.normal(size=(n_new, 3))]))
    if n_new + n_gone < 20:
        said = refusal("ALREADY_SHARED", enter, ledger, other, 1)
        assert "'total 0'" in said
        assert "fewer than 20 differ" in said
        assert len(ledger.entries) == 1
    else:
        enter(ledger, other, 1)


def test_another_statistic_is_made_of_exactly_the_same_rows_alone(ledger, rows, rng):
    enter(ledger, rows, 0, statistic="class counts")
    refusal("ALREADY_SHARED", enter, ledger, rows[1:], 1)
    enter(ledger, rng.permutation(rows), 1)
    for statistic in ("class counts", "ridge regression"):
        refusal("ALREADY_SHARED", enter, ledger, rows, 2, statistic=statistic)


def test_no_party_repeats_a_total_in_which_another_party_has_new_rows(tmp_path, rng):
    """The attack: two totals of one kind, in which all but one party have the same rows, tell what that one added."""
    counts, words = Counts([CategoryColumn("course", ("mild", "fatal"))]), np.array(["mild", "fatal"], dtype=object)
    tables = [np.column_stack([rng.integers(0, 2, size=40), rng.normal(size=40)]) for _ in range(3)]
    added = np.column_stack([[0] * 19 + [1], rng.normal(size=20)])
    later = [*tables[:2], np.vstack([tables[2], added])]
    first, second = (
        sum(counts.add_up({"course": words[each[:, 0].astype(int)]}, bytes(32)) for each in run)
        for run in (tables, later)
    )
    assert (second - first).tolist() == [20, 0, 19, 1], "twenty people of one hospital, in the clear but for noise"
    repeats = []
    for place, (own, again) in enumerate(zip(tables, later, strict=True)):
        (tmp_path / str(place)).mkdir()
        ledger = Ledger(tmp_path / str(place) / "ledger.json", KEY)
        enter(ledger, own, 0, statistic="counts")
        try:
            enter(ledger, again, 1, statistic="counts")
        except ExchangeError:
            repeats.append(place)
    assert repeats == [0, 1], "its own ledger allows twenty new rows, and those of the others refuse the repeat"


@pytest.mark.parametrize("parties", [("a", "b", "c"), ("a", "b"), ("a", "b", "d")])
def test_another_statistic_among_other_parties_is_refused(ledger, rows, parties):
    """The difference of both totals would be what one party added."""
    enter(ledger, rows, 0, statistic="class counts", parties=("c", "b", "a"))
    if set(parties) == set("abc"):
        enter(ledger, rows, 1, parties=parties)
    else:
        refusal("ALREADY_SHARED", enter, ledger, rows, 1, parties=parties)


def test_the_same_sum_is_entered_once_whatever_its_rows(ledger, rows, rng):
    enter(ledger, rows, 0)
    refusal("ALREADY_SHARED", enter, ledger, rng.normal(size=(50, 3)), 0)


def test_it_outlasts_the_program_and_a_copy_from_a_backup_knows_what_it_knew(ledger, rows, tmp_path):
    enter(ledger, rows, 0)
    again = Ledger(ledger.path, KEY)
    assert [entry.purpose for entry in again.entries] == ["total 0"]
    refusal("ALREADY_SHARED", enter, again, rows[:35], 1)
    # Another program has the ledger open from before, and sees what came since.
    other = Ledger(ledger.path, KEY)
    enter(again, rows + 1, 1)
    refusal("ALREADY_SHARED", enter, other, rows[:35] + 1, 2)


def test_the_noise_of_several_totals_adds_up(ledger, rows, rng):
    assert noise_left(ledger, rows) == math.inf
    enter(ledger, rows, 0, noise=0.1)
    enter(ledger, np.vstack([rows[:20], rng.normal(size=(30, 3))]), 1, noise=0.3)
    enter(ledger, rng.normal(size=(30, 3)), 2, noise=0.01)
    assert noise_left(ledger, rows[:20]) == pytest.approx(1 / math.sqrt(1 / 0.1**2 + 1 / 0.3**2))
    assert noise_left(ledger, rows[20:]) == pytest.approx(0.1)


def test_rows_are_not_in_it_and_cannot_be_guessed_without_the_key(ledger, rows, tmp_path):
    enter(ledger, rows, 0)
    data = ledger.path.read_bytes()
    kept = b"".join(map(base64.b64decode, json.loads(data)["entries"][0]["table"]["columns"].values()))
    for number in rows.ravel():
        assert number.tobytes() not in data + kept
        assert repr(float(number)).encode() not in data
    other = Ledger(tmp_path / "other.json", bytes(32))
    enter(other, rows, 0)
    assert coded(rows).n_different(ledger.entries[0].table, 20) == 0
    assert coded(rows).n_different(other.entries[0].table, 20) is None
    assert len(kept) == 2 * rows.size, "two bytes each: no code names its entry, not even with the key"
    assert ledger.path.stat().st_mode & 0o077 == 0


def test_rows_have_one_hash_if_they_are_equal_and_with_another_key_another(rng):
    # Whole numbers end in zeros, which a product alone would keep.
    table = np.unique(rng.integers(-5, 6, size=(5000, 4)), axis=0).astype(float)
    keys = RowKeys(bytes(32))
    hashes = keys.fingerprints(table)
    assert len(np.unique(hashes)) == len(table)
    assert_array_equal(keys.fingerprints(np.where(table == 0, -0.0, table)[::-1]), hashes[::-1])
    assert not np.isin(hashes, RowKeys(bytes([1] * 32)).fingerprints(table)).any()


@pytest.mark.parametrize("power", [-200, -3, 1, 200])
def test_digits_have_one_code_wherever_their_point_is(rng, power):
    numbers = [Decimal(int(each)) for each in [*rng.integers(1, 10**12, size=300), 999999999999, 10**12, 1, 3]]
    moved = [float(each.scaleb(power)) for each in numbers]
    assert coded({"a": [float(each) for each in numbers]}).n_different(coded({"a": moved}), 1) == 0


WRITINGS = {
    "numbers": [[1, 0, 2.5, math.nan], [1.0, -0.0, 2.50, None], ["1", "0.0", " 2,5", "NA"], ["01", "0", "2.50", ""]],
    "marks": [[1.234, 1e30, -7], ["1,234", "1E30", "-7.0"], [1234.0, 1e30, -7]],
    "short": [[0.1, 0.7], np.array([0.1, 0.7], dtype=np.float32), ["0.1", "0.7"]],
    "texts": [["Night", "day"], [" night ", "DAY"], pd.Categorical(["night", "day"])],
    "truth": [[True, False], ["True", "false"], [1.0, 0.0], ["1", "0"], pd.array([True, False], dtype="boolean")],
    "accents": [["M\u00fcller", "x"], ["Mu\u0308ller", "x"]],
    "missing": [[*sorted(MISSING_WORDS), "x"], [None] * len(MISSING_WORDS) + ["x"]],
    "odd": [[[1, 2], {"a": 3}, "x"], ["[1, 2]", "{'a': 3}", "X"]],
    "whole": [[3, 4], pd.array([3, 4], dtype="Int64"), ["3.0", "4"], np.array([3, 4], dtype=np.uint8)],
}


@pytest.mark.parametrize("name", WRITINGS)
def test_one_entry_has_one_code_however_it_is_written(name):
    first, *others = (coded(pd.DataFrame({name: each})).columns[name].tolist() for each in WRITINGS[name])
    assert all(each == first for each in others)
    n_meant = {"missing": 2}.get(name, len(first))
    assert len(set(first)) == n_meant, "different entries have different codes"


@pytest.mark.slow
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32).map(float), min_size=1, max_size=9))
def test_a_number_and_its_text_have_one_code(numbers):
    texts = [repr(each) for each in numbers]
    assert coded({"x": numbers}).columns["x"].tolist() == coded({"x": texts}).columns["x"].tolist()


small = st.lists(st.integers(0, 4), min_size=1, max_size=12)


@given(small, small)
@settings(max_examples=40)
def test_differences_are_those_of_multisets(first, second):
    """Beside a hundred people who are in both tables."""
    both = np.random.default_rng(0).normal(size=(100, 2))
    people = np.random.default_rng(1).normal(size=(5, 2))
    a, b = Counter(first), Counter(second)
    expected = sum(((a - b) + (b - a)).values())
    found = different(np.vstack([both, people[first]]), np.vstack([people[second], both]), fewest=60)
    assert found == expected


@pytest.fixture
def people(rng):
    """A table of 200 people."""
    return people_of(rng, 200)


def people_of(rng, n_rows):
    age = rng.integers(20, 90, size=n_rows)
    return pd.DataFrame(
        {
            "id": np.arange(1, n_rows + 1),
            "record": [f"P{number:04d}" for number in range(n_rows)],
            "age": age,
            "pulse": rng.normal(70, 9, size=n_rows).round(1),
            "lab": rng.normal(size=n_rows),
            "sex": rng.choice(["f", "m"], size=n_rows),
            "ward": rng.choice(["day", "night"], size=n_rows),
            "ill": np.where(age + rng.normal(0, 20, size=n_rows) > 55, "yes", "no"),
        }
    )


def shuffle(rng, table, column):
    return table.assign(**{column: rng.permutation(table[column].to_numpy())})


CHANGED = {
    "nothing": lambda table, rng: table,
    "rows in another order": lambda table, rng: table.sample(frac=1.0, random_state=3),
    "columns in another order": lambda table, rng: table[table.columns[::-1]],
    "columns left out": lambda table, rng: table[["pulse", "age"]],
    "columns renamed": lambda table, rng: table.rename(columns=lambda name: f"{name}_2"),
    "one year later": lambda table, rng: table.assign(age=table["age"] + 1),
    "targets flipped": lambda table, rng: table.assign(ill=table["ill"].map({"yes": "no", "no": "yes"})),
    "other words": lambda table, rng: table.assign(sex=table["sex"].map({"f": "1", "m": "2"}), ward="x"),
    "another unit": lambda table, rng: table.assign(pulse=table["pulse"] * 1000),
    "rounded": lambda table, rng: table.assign(lab=table["lab"].round(1)),
    "shuffled lab": lambda table, rng: shuffle(rng, table, "lab"),
    "numbered anew": lambda table, rng: shuffle(rng, shuffle(rng, table, "id"), "record"),
    "dealt anew": lambda table, rng: shuffle(rng, table, "ward"),
    "two at once": lambda table, rng: shuffle(rng, table.assign(age=table["age"] + 1), "lab").drop(columns="sex"),
}


@pytest.mark.parametrize("n_new", [0, 1, 59])
@pytest.mark.parametrize("change", CHANGED)
def test_no_change_of_columns_makes_old_rows_new(people, rng, change, n_new):
    changed = CHANGED[change](people, rng)
    later = pd.concat([changed, CHANGED[change](people_of(rng, 60), rng)[:n_new][changed.columns]])
    assert different(people, later, fewest=60) == n_new


@pytest.mark.parametrize("change", CHANGED)
def test_a_table_that_grew_by_more_is_said(people, rng, change):
    changed = CHANGED[change](people, rng)
    later = pd.concat([changed, CHANGED[change](people_of(rng, 150), rng)[changed.columns]])
    assert different(people, later, fewest=60) is None
    assert coded(later).shares_rows(coded(people))


def test_entries_of_few_rows_count(people):
    """A corrected entry is an old row and a new one."""
    later = people.copy()
    later.loc[:4, "pulse"] += 0.35
    later.loc[3:7, "lab"] += 1.0
    assert different(people, later, fewest=60) == 16


def of_a_population(number, n_rows, random):
    """A table of people who are drawn from a population: columns of all kinds, some of which depend on each other."""
    kinds = np.random.default_rng(number)
    latent, columns = random.normal(size=(n_rows, 2)), {}
    for place in range(kinds.integers(2, 31)):
        raw = latent @ (kinds.normal(size=2) * kinds.integers(2)) + random.normal(size=n_rows)
        rare = kinds.uniform(0.02, 0.5)
        columns[f"c{place}"] = {
            0: raw,
            1: np.round(50 + 15 * raw),
            2: np.round(raw, 1),
            3: np.floor(np.clip(2 + raw, 0, 5)),
            4: np.arange(n_rows) + 1,
            5: np.full(n_rows, "here"),
        }.get(kinds.integers(12), np.where(raw > 2 - 4 * rare, "yes", "no"))
    return pd.DataFrame(columns)


@given(st.integers(0, 10**6), st.sampled_from([50, 60, 90, 200, 2000]), st.sampled_from([60, 200]))
@settings(max_examples=60, deadline=None)
@pytest.mark.nightly
def test_other_people_of_the_same_population_are_never_refused(number, n_rows, fewest):
    random = np.random.default_rng([number, 1])
    first, second = (of_a_population(number, n_rows, random) for _ in range(2))
    assert different(first, second, min(fewest, n_rows)) is None


@pytest.mark.parametrize("shared", [["sex"], ["sex", "ward", "ill"], ["id", "record", "sex"], ["id"]])
def test_columns_that_tell_nobody_apart_are_no_evidence(people, rng, shared):
    """Another project's table, of other people, has a few columns in common with this one."""
    other = people_of(rng, 200)[shared].assign(height=rng.normal(size=200), weight=rng.normal(size=200))
    assert different(people, other, fewest=60) is None
    assert not coded(other).shares_rows(coded(people))


def test_a_table_in_batches_is_the_same_table(people, rng):
    parts = coded(people[:90], people[90:])
    assert parts.n_rows == 200
    assert parts.n_different(coded(people), 60) == 0
    assert not {"id", "record"} & set(parts.columns), "numbers of rows are no entries"


def test_all_tables_with_the_rows_are_found_and_no_other(ledger, people, rng):
    for number, table in enumerate((people, people_of(rng, 200), pd.concat([people[:100], people_of(rng, 90)]))):
        enter(ledger, table, number)
    assert [each.purpose for each in ledger.earlier(coded(people))] == ["total 0", "total 2"]


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"format":"datacollab.ledger","format_version":2,"entries":[],"closed":[]}', b"[1"]
)
def test_what_is_no_ledger_is_refused(tmp_path, data):
    (tmp_path / "ledger.json").write_bytes(data)
    refusal("STATE_DAMAGED", Ledger, tmp_path / "ledger.json", KEY)


@pytest.mark.parametrize("noise", [0.0, -1.0, math.inf, math.nan])
def test_totals_without_noise_are_not_entered(ledger, rows, noise):
    with pytest.raises(ValueError, match="noise"):
        enter(ledger, rows, 0, noise=noise)
    assert not ledger.path.exists()


def test_a_total_that_is_never_made_hinders_no_other_and_its_agreement_is_closed(ledger, rows):
    enter(ledger, rows, 0)
    enter(ledger, rows, 1, void={"run 0"})
    assert Ledger(ledger.path, KEY).closed == ("run 0",)
    refusal("ALREADY_SHARED", enter, ledger, rows + 1, 0)
    refusal("ALREADY_SHARED", enter, ledger, rows, 2)
    # What both have together is still accounted for.
    assert noise_left(ledger, rows) == pytest.approx(0.1 / math.sqrt(2))


def test_a_closed_agreement_takes_no_sum_whatever_the_rows(ledger, rows):
    ledger.close("run 0")
    assert "left this run" in refusal("ALREADY_SHARED", enter, ledger, rows, 0)
