"""The ledger: nearly the same rows twice are refused, whatever folder, project or target they come with."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.errors import ExchangeError
from datacollab.exchange.ledger import Ledger
from datacollab.study import CategoryColumn, Counts
from party_world import refusal

KEY = bytes(range(32))
CONTEXTS = [f"{number:064x}" for number in range(9)]


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.json", KEY)


@pytest.fixture
def rows(rng):
    return rng.normal(size=(40, 3))


def enter(ledger, table, number, noise=0.1, void=(), statistic="ridge regression", parties=("a key",)):
    rows = ledger.fingerprints(table)
    facts = {
        "statistic": statistic,
        "purpose": f"total {number}",
        "agreement": f"run {number}",
        "parties": {f"party {place}": key for place, key in enumerate(parties)},
    }
    ledger.enter(rows, context=CONTEXTS[number], noise=noise, void=void, **facts)


def noise_left(ledger, table):
    return ledger.noise_left(ledger.fingerprints(table))


@pytest.mark.parametrize("n_new", [0, 1, 9])
@pytest.mark.parametrize("n_gone", [0, 4])
def test_totals_that_differ_by_few_rows_are_refused_in_any_order_of_rows(ledger, rows, rng, n_new, n_gone):
    enter(ledger, rows, 0)
    other = rng.permutation(np.vstack([rows[n_gone:], rng.normal(size=(n_new, 3))]))
    if n_new + n_gone < 10:
        said = refusal("ALREADY_SHARED", enter, ledger, other, 1)
        assert "'total 0'" in said
        assert "fewer than 10 differ" in said
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
    tables = [rng.integers(0, 2, size=(40, 1)) for _ in range(3)]
    added = np.array([[0]] * 9 + [[1]])
    later = [*tables[:2], np.vstack([tables[2], added])]
    first, second = (
        sum(counts.add_up({"course": words[each[:, 0]]}, bytes(32)) for each in run) for run in (tables, later)
    )
    assert (second - first).tolist() == [10, 0, 9, 1], "ten people of one hospital, in the clear but for noise"
    repeats = []
    for place, (own, again) in enumerate(zip(tables, later, strict=True)):
        (tmp_path / str(place)).mkdir()
        ledger = Ledger(tmp_path / str(place) / "ledger.json", KEY)
        enter(ledger, own, 0, statistic="counts")
        try:
            enter(ledger, again, 1, statistic="counts")
        except ExchangeError:
            repeats.append(place)
    assert repeats == [0, 1], "its own ledger allows ten new rows, and those of the others refuse the repeat"


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
    assert all(row.tobytes() not in data for row in rows)
    other = Ledger(tmp_path / "other.json", bytes(32))
    enter(other, rows, 0)
    assert not set(ledger.entries[0].rows) & set(other.entries[0].rows)
    assert ledger.path.stat().st_mode & 0o077 == 0


def test_minus_zero_is_zero_and_integers_are_numbers(ledger):
    table = np.arange(40).reshape(20, 2) - 20
    enter(ledger, table, 0)
    refusal("ALREADY_SHARED", enter, ledger, np.where(table == 0, -0.0, table), 1)


small = st.lists(st.integers(0, 4), min_size=1, max_size=12)


@given(small, small)
def test_differences_are_those_of_multisets(tmp_path_factory, first, second):
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.json", KEY)
    enter(ledger, np.array(first)[:, None], 0)
    (entry,) = ledger.entries
    a, b = Counter(first), Counter(second)
    found = entry.n_different(ledger.fingerprints(np.array(second)[:, None]))
    assert found == sum(((a - b) + (b - a)).values())


@pytest.mark.parametrize("data", [b"", b"{}", b'{"format":"datacollab.ledger","format_version":2,"entries":[]}', b"[1"])
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
