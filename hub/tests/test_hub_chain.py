"""The hub's log: what does not follow from what was seen is noticed."""

import copy

import pytest

from datacollab.bundle import canonical_json, digest
from datacollab.errors import ExchangeError
from datacollab_hub.requests import LOG_START, check_hub_log, hub_entry

PROJECT = "0" * 32


def chain(n_entries, project=PROJECT):
    entries, previous = [], LOG_START
    for seq in range(1, n_entries + 1):
        entries.append(
            hub_entry(project, seq, f"2027-01-{seq:02}T00:00:00Z", "me", "received", {"n": seq, "s": "é"}, previous)
        )
        previous = entries[-1]["digest"]
    return entries


def broken(*args, **kwargs):
    with pytest.raises(ExchangeError) as caught:
        check_hub_log(*args, **kwargs)
    assert caught.value.code == "LOG_BROKEN"
    return str(caught.value)


def test_a_log_and_its_continuation_are_checked():
    entries = chain(5)
    head = check_hub_log(PROJECT, entries)
    assert head == entries[-1]["digest"]
    assert check_hub_log(PROJECT, entries[2:], after=2, previous=entries[1]["digest"]) == head
    assert check_hub_log(PROJECT, [], after=5, previous=head) == head


def test_the_digest_is_what_the_page_says():
    entry = chain(1)[0]
    said = {"project": PROJECT, **{name: value for name, value in entry.items() if name != "digest"}}
    assert entry["digest"] == digest(b"datacollab hub log 1\n" + canonical_json(said))


@pytest.mark.parametrize(
    ("name", "value"),
    [("seq", 3), ("time", "later"), ("who", "you"), ("action", "fetched"), ("facts", {}), ("facts", []),
     ("previous", LOG_START), ("digest", LOG_START), ("time", 3), ("facts", {1: 2})],
)  # fmt: skip
def test_a_changed_entry_is_named(name, value):
    entries = copy.deepcopy(chain(4))
    entries[1][name] = value
    told = broken(PROJECT, entries)
    assert "Entry 2 " in told
    assert f"in the project {PROJECT}" in told


def test_what_is_left_out_moved_or_added_is_noticed():
    entries = chain(4)
    assert "Entry 2 " in broken(PROJECT, [entries[0], *entries[2:]])
    assert "Entry 2 " in broken(PROJECT, [entries[0], entries[2], entries[1], entries[3]])
    assert "Entry 3 " in broken(PROJECT, [*entries[:2], entries[1]])
    assert "Entry 1 " in broken(PROJECT, [{**entries[0], "more": 1}])
    assert "Entry 1 " in broken(PROJECT, [["no", "entry"]])


def test_another_history_does_not_continue_the_one_that_was_seen():
    entries, other = chain(4), chain(6)
    other[1] = hub_entry(PROJECT, 2, "2027-01-02T00:00:00Z", "me", "other", {}, other[0]["digest"])
    for place in range(2, 6):
        old = other[place]
        other[place] = hub_entry(
            PROJECT, old["seq"], old["time"], old["who"], old["action"], old["facts"], other[place - 1]["digest"]
        )
    check_hub_log(PROJECT, other)
    assert "Entry 5 " in broken(PROJECT, other[4:], after=4, previous=entries[-1]["digest"])


def test_another_projects_log_is_none():
    assert "Entry 1 " in broken(PROJECT, chain(2, project="1" * 32))
