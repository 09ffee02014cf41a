"""Faults around a real hub: the plan, disks that are full, and a few of each fault, played."""

import errno
import json
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

pytest.importorskip("fastapi", reason="the extra hub is not installed")
from hub_faults.__main__ import main, planned
from hub_faults.disk import FILE_SYSTEM, Disk, kind_of_disks
from hub_faults.faults import KILLS, OTHERS
from hub_faults.processes import find_programs
from hub_faults.report import page
from suite import IS_NIGHTLY


def test_a_plan_has_as_many_kills_as_wanted_and_each_other_fault():
    plan = planned(200, None, 0, sqlite=False)
    assert sum(fault in KILLS for fault in plan) == 200
    assert {fault: plan.count(fault) for fault in OTHERS} == dict.fromkeys(OTHERS, 4)
    assert plan == planned(200, None, 0, sqlite=False) != planned(200, None, 1, sqlite=False)
    assert not [fault for fault in planned(12, 1, 0, sqlite=True) if fault.startswith("database")]


def test_the_page_counts_what_happened():
    row = {"struck": True, "runs": 3, "whole": True, "copies": 4, "taken": 0, "seconds": 2.0}
    rows = [{**row, "fault": fault} for fault in (*KILLS, *OTHERS)]
    names = ("shares", "lost", "twice", "half", "unknown", "left over on the disk", "entries of the log")
    settings = {"command": "c", "machine": "m", "database": "d", "mebibytes": (1, 2), "seed": 0, "disks": "limit"}
    text = page(settings, rows, [dict.fromkeys(names, 1), dict.fromkeys(names, 2)])
    assert "| hub killed, upload | 1 | 1 | 0 | 1 | 1 | 4, 0 | 2.0 |" in text
    assert "| 3 | 3 | 3 | 3 | 3 | 3 | 3 |" in text


def test_a_disk_is_full_for_a_while_and_what_was_written_stays(tmp_path):
    if kind_of_disks(tmp_path / "place") != FILE_SYSTEM:
        pytest.skip("file systems may not be mounted here")
    disk = Disk(tmp_path / "disk", FILE_SYSTEM)
    kept, more = tmp_path / "disk" / "kept", tmp_path / "disk" / "more"
    try:
        kept.write_bytes(b"before")
        with disk.full(os.getpid()), pytest.raises(OSError, match="No space left") as refused:
            more.write_bytes(bytes(2**20))
        assert refused.value.errno == errno.ENOSPC
        more.write_bytes(bytes(2**20))
    finally:
        disk.close()
    assert not os.path.ismount(tmp_path / "disk")
    assert (kept.read_bytes(), more.read_bytes()) == (b"before", bytes(2**20))


@pytest.mark.nightly
def test_no_share_is_lost_taken_twice_or_half_there(tmp_path):
    database = "sqlite" if find_programs() is None else "postgresql"  # which can be killed by itself, too
    output = tmp_path / "faults.json"
    others = int(IS_NIGHTLY)
    words = ["--times", str(len(KILLS)), "--others", str(others), "--output", str(output), "--copy-to", str(tmp_path)]
    assert main([*words, *(["--sqlite"] if database == "sqlite" else [])]) == 0
    done = json.loads(output.read_text())
    assert len(done["rows"]) == len(KILLS) + others * len(OTHERS)
    assert all(row["whole"] and not row["taken"] for row in done["rows"])
    (found,) = done["found"]
    assert found["shares"] == len(done["rows"])
    assert [found[name] for name in ("lost", "twice", "half", "unknown")] == [0, 0, 0, 0]
    assert sum(row["struck"] for row in done["rows"]) > len(done["rows"]) / 2
    assert "kill -9" in (tmp_path / "README.md").read_text()
