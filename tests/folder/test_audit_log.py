import csv
import functools
import json
import os
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.bundle import canonical_json, digest, parse_json
from datacollab.folder.log import AuditLog
from party_world import refusal as refused

refusal = functools.partial(refused, "LOG_BROKEN")
START = "0" * 64
EVENTS = [
    ("joined", {"project": "heart", "digest": "ab" * 32}),
    ("shared", {"rows": 100, "share": None, "risk": 0.25, "kept": ["x", True]}),
    ("installed", {}),
    ("predicted", {"rows": 7}),
]


def written(path):
    log = AuditLog(path)
    for event, facts in EVENTS:
        log.append(event, **facts)
    return log


@pytest.fixture
def log(tmp_path):
    return written(tmp_path / "log.jsonl")


def facts_of(entry):
    """Facts without the random number of the first entry."""
    return {name: value for name, value in entry["facts"].items() if (entry["number"], name) != (1, "nonce")}


def lines(log):
    return log.path.read_bytes().splitlines(keepends=True)


def rehashed(entry):
    """An entry by somebody who knows how its hash is made."""
    rest = {key: value for key, value in entry.items() if key != "hash"}
    return canonical_json({**rest, "hash": digest(b"datacollab log 1\n" + canonical_json(rest))}) + b"\n"


def test_entries(log):
    entries = log.entries()
    assert [(entry["event"], facts_of(entry)) for entry in entries] == EVENTS
    assert [entry["number"] for entry in entries] == [1, 2, 3, 4]
    assert [entry["previous"] for entry in entries] == [START, *(entry["hash"] for entry in entries[:-1])]
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry["time"]) for entry in entries)
    assert log.verify() == log.head == entries[-1]["hash"]
    assert AuditLog(log.path).verify() == log.head


def test_the_hash_is_of_what_the_documentation_says(log):
    for line in lines(log):
        entry = json.loads(line)
        found = entry.pop("hash")
        text = json.dumps(entry, sort_keys=True, separators=(",", ":"))
        assert digest(b"datacollab log 1\n" + text.encode()) == found


def test_a_log_that_was_not_begun(tmp_path):
    log = AuditLog(tmp_path / "log.jsonl")
    assert (log.entries(), log.head, log.verify()) == ([], START, START)
    assert log.contains(START)
    assert not log.path.exists()


def test_it_is_closed_to_others(tmp_path):
    before = os.umask(0)
    try:
        log = written(tmp_path / "log.jsonl")
    finally:
        os.umask(before)
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600


def test_a_head_tells_nothing_of_entries_that_can_be_guessed(tmp_path):
    heads, nonces = set(), set()
    for name in "ab":
        log = AuditLog(tmp_path / f"{name}.jsonl")
        log.append("join", project="heart")
        log.append("predict", rows=7)
        first, second = log.entries()
        assert re.fullmatch("[0-9a-f]{32}", first["facts"]["nonce"])
        assert second["facts"] == {"rows": 7}
        heads.add(log.head)
        nonces.add(first["facts"]["nonce"])
    assert len(heads) == len(nonces) == 2


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
def test_it_is_not_written_through_a_link(log, tmp_path):
    link = tmp_path / "link.jsonl"
    link.symlink_to(log.path)
    before = log.path.read_bytes()
    assert "link" in refusal(AuditLog(link).append, "shared")
    assert log.path.read_bytes() == before


def test_every_head_that_was_one_is_found(tmp_path):
    log, heads = AuditLog(tmp_path / "log.jsonl"), [START]
    for event, facts in EVENTS:
        log.append(event, **facts)
        heads.append(log.head)
    assert all(log.contains(head) for head in heads)
    log.path.write_bytes(b"".join(lines(log)[:-1]))
    assert log.verify() == heads[-2], "a cut at the end is not seen in the log itself"
    assert not log.contains(heads[-1]), "but against a head that others have"
    assert not log.contains("f" * 64)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("key", "hashed_again"),
    [
        *((key, False) for key in ("number", "time", "event", "facts", "previous", "hash")),
        *((key, True) for key in ("number", "time", "event", "facts", "previous")),
    ],
)
def test_edits_are_found(log, number, key, hashed_again):
    changed = lines(log)
    entry = json.loads(changed[number - 1])
    entry[key] = {"facts": {"rows": 1}, "number": 9}.get(key, "f" * 64)
    changed[number - 1] = rehashed(entry) if hashed_again else canonical_json(entry) + b"\n"
    log.path.write_bytes(b"".join(changed))
    if number == 4 and hashed_again and key in ("time", "event", "facts"):
        # As with a cut at the end: the chain is whole, but the head is another.
        assert log.verify() != entry["hash"]
    else:
        message = refusal(log.verify)
        assert f"Entry {number} " in message or f"Entry {number + 1} " in message


@pytest.mark.parametrize(
    "kept", [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 2, 1, 3], [0, 0, 1, 2, 3], [3, 0, 1, 2], [0, 1, 2, 2, 3]]
)
def test_deletions_insertions_and_reorderings_are_found(log, kept):
    before = lines(log)
    log.path.write_bytes(b"".join(before[index] for index in kept))
    refusal(log.verify)


@pytest.mark.slow
def test_every_byte_counts(log):
    original = log.path.read_bytes()
    end = original.rindex(b"\n")
    for position in range(end):
        changed = bytearray(original)
        changed[position] ^= 1 << position % 8
        log.path.write_bytes(changed)
        refusal(log.verify)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(tmp_path_factory, data):
    log = AuditLog(tmp_path_factory.mktemp("log") / "log.jsonl")
    log.path.write_bytes(data + b"\n")
    refusal(log.verify)
    refusal(log.entries)
    refusal(log.append, "shared")
    assert log.path.read_bytes() == data + b"\n"


@pytest.mark.parametrize("line", [b"{}", b"[]", b"1", b'{"number":1}', b"{" * 100])
def test_lines_that_are_no_entries(log, line):
    log.path.write_bytes(line + b"\n" + log.path.read_bytes())
    assert "Entry 1 " in refusal(log.entries)


@pytest.mark.parametrize("cut", [1, 10, 150])
def test_a_line_that_a_kill_cut_off(log, cut):
    whole = log.path.read_bytes()
    log.path.write_bytes(whole[:-cut])
    assert len(log.entries()) == 3
    assert log.verify() == log.head == log.entries()[-1]["hash"]
    log.append("predicted", rows=8)
    assert log.verify() == log.head
    *first, note, last = log.entries()
    left = len(whole.splitlines(keepends=True)[-1]) - cut
    assert [entry["event"] for entry in first] == ["joined", "shared", "installed"]
    assert (note["event"], note["facts"]) == ("log-repaired", {"bytes_cut": left})
    assert (last["event"], last["facts"]) == ("predicted", {"rows": 8})


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), st.floats(allow_nan=False, allow_infinity=False))
)
def test_any_facts_can_be_verified(tmp_path_factory, facts):
    log = AuditLog(tmp_path_factory.mktemp("log") / "log.jsonl")
    log.append("shared", risk=facts)
    log.append("shared", risk=[facts])
    assert log.verify() == log.head
    assert [facts_of(entry) for entry in log.entries()] == [{"risk": facts}, {"risk": [facts]}]


def deep(levels):
    return [deep(levels - 1)] if levels else 0


@pytest.mark.parametrize("fact", [float("nan"), object(), b"", deep(40), 10**50])
def test_facts_that_could_not_be_read_again_are_not_written(log, fact):
    before = log.path.read_bytes()
    with pytest.raises((TypeError, ValueError)):
        log.append("shared", fact=fact)
    assert log.path.read_bytes() == before


def test_export(log, tmp_path):
    log.export(tmp_path / "copy.jsonl")
    assert (tmp_path / "copy.jsonl").read_bytes() == log.path.read_bytes()
    log.export(tmp_path / "copy.csv")
    with open(tmp_path / "copy.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["event"] for row in rows] == [event for event, _ in EVENTS]
    found = [parse_json(row["facts"].encode(), what="x") for row in rows]
    assert found == [entry["facts"] for entry in log.entries()]
    assert rows[-1]["hash"] == log.head
    with pytest.raises(ValueError, match=r"\.jsonl or \.csv"):
        log.export(tmp_path / "copy.txt")


def test_what_is_exported_is_closed_to_others(log, tmp_path):
    before = os.umask(0)
    try:
        for name in ("copy.jsonl", "copy.csv"):
            log.export(tmp_path / name)
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_broken_log_is_not_exported(log, tmp_path):
    log.path.write_bytes(b"".join(lines(log)[1:]))
    refusal(log.export, tmp_path / "copy.csv")
    assert not (tmp_path / "copy.csv").exists()


def test_a_held_log_is_read_once_and_knows_what_it_appends(tmp_path, monkeypatch):
    log = AuditLog(tmp_path / "log.jsonl")
    log.append("first", rows=1)
    reads, read = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: reads.append(path) or read(path))
    with log.held():
        log.append("second", rows=2)
        log.append("third", rows=3)
        assert [entry["event"] for entry in log.entries()] == ["first", "second", "third"]
        head = log.head
    assert len(reads) == 1
    assert log.verify() == head
