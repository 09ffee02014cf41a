"""What processes of a hub remember together, against a bucket written naively."""

import sqlite3
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.errors import ExchangeError
from datacollab_hub.service import Seen
from party_world import refusal


@pytest.fixture(params=["memory", "file"])
def place(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "seen.sqlite"


def may_ask(seen, key, now):
    try:
        seen.count(key, now)
    except ExchangeError as error:
        if error.code != "TOO_MANY_REQUESTS":
            raise
        return False
    return True


def test_a_request_is_taken_once_until_it_has_expired(place):
    seen = Seen(1.0, place)
    seen.take("north", "nonce", 0.0, 10.0)
    refusal("REPLAYED", seen.take, "north", "nonce", 5.0, 10.0)
    refusal("REPLAYED", seen.take, "north", "nonce", 10.0, 10.0)
    seen.take("south", "nonce", 5.0, 10.0)
    # One that waited, and was overtaken by others that cleared away.
    seen.take("south", "later", 14.0, 20.0)
    refusal("REPLAYED", seen.take, "north", "nonce", 9.5, 10.0)
    seen.take("north", "nonce", 75.0, 80.0)
    refusal("REPLAYED", seen.take, "north", "nonce", 80.0, 80.0)


@given(
    rate=st.sampled_from([0.1, 0.5, 1.0, 3.0, 50.0]),
    asked=st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 3, width=16)), max_size=60),
)
def test_a_key_asks_as_often_as_a_bucket_allows(rate, asked):
    """Clearing away, which `take` does all the time here, changes nothing."""
    seen, most, now, left = Seen(rate), max(1.0, 4 * rate), 0.0, {}
    for number, (key, later) in enumerate(asked):
        now += later
        seen.take(key, str(number), now, now)
        there, then = left.get(key, (most, now))
        there = min(most, there + (now - then) * rate)
        if abs(there - 1) < 1e-9:
            return  # Rounding decides.
        assert may_ask(seen, key, now) == (there >= 1)
        left[key] = (there - 1, now) if there >= 1 else left.get(key, (most, now))


@pytest.mark.parametrize("back", [50.0, 50_000.0])
def test_a_clock_that_is_set_back_gives_nobody_more(place, back):
    seen, now = Seen(1.0, place), 100_000.0
    assert [may_ask(seen, "north", each) for each in [now] * 4 + [now - back, now - back + 0.5]] == [True] * 4 + [
        False
    ] * 2


def test_a_clock_that_was_a_day_ahead_keeps_nobody_out(place):
    seen = Seen(1.0, place)
    assert may_ask(seen, "north", 86_400.0)
    assert [may_ask(seen, "north", now) for now in (0.0, 0.0, 0.0, 0.0, 1.0)] == [True] * 3 + [False, True]


def test_requests_that_overtake_one_another_give_nobody_more(place):
    seen, rate, seconds = Seen(50.0, place), 50.0, 2.0
    times = [late for number in range(2000) for late in (number * 0.001, number * 0.001 - 0.04)]
    assert sum(may_ask(seen, "north", 100.0 + now) for now in times) <= 4 * rate + seconds * rate


@pytest.mark.slow
def test_what_has_expired_takes_no_room(tmp_path):
    """Also where all of it expires at once, and whoever is not let in asks alone."""
    seen, place = Seen(1.0, tmp_path / "seen.sqlite"), tmp_path / "seen.sqlite"
    for number in range(40_000):
        seen.take("north", str(number), 0.0, 10.0)
    for now in range(100, 300):
        for number in range(20):
            assert may_ask(seen, f"stranger-{now}-{number}", now)
    with sqlite3.connect(place) as database:
        assert database.execute("SELECT count(*) FROM requests").fetchone() == (0,)
        assert database.execute("SELECT count(*) FROM keys").fetchone()[0] <= 20 * 6
    assert (tmp_path / "seen.sqlite-wal").stat().st_size < 6 * 2**20


def test_many_keys_do_not_make_one_forget_how_often_it_asked(place):
    seen = Seen(1.0, place)
    for number in range(4):
        assert may_ask(seen, "often", 0.0)
        for other in range(100):
            assert may_ask(seen, f"other-{number}-{other}", 0.0)
        seen.take("often", str(number), 0.0, 10.0)
    assert not may_ask(seen, "often", 0.0)


def test_several_that_share_a_file_take_a_request_once_and_count_together(tmp_path):
    """As many at a time as one hub's processes and threads."""
    both = [Seen(2.0, tmp_path / "seen.sqlite") for _ in range(2)]
    taken, counted = [], []

    def work(seen):
        for number in range(50):
            try:
                seen.take("north", str(number), 0.0, 10.0)
            except ExchangeError:
                continue
            taken.append(number)
        counted.extend(may_ask(seen, "north", 0.0) for _ in range(10))

    threads = [threading.Thread(target=work, args=(seen,)) for seen in both for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(50))
    assert sum(counted) == 8
    for seen in both:
        seen.close()
