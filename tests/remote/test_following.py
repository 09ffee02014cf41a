"""A regression by rounds over a folder that all reach, unattended: each in a process of its own."""

import csv
import io
import os
import signal
import subprocess
import sys
import time

import pytest

from datacollab.folder.ledger import Ledger
from datacollab.steps.analyst import STUDY_FILES
from playing import done
from sums_world import PARTIES, make_rows, new_sums_world

NAMES = PARTIES[:4]
PROGRAM = (sys.executable, "-m", "datacollab")


def new_world(root, n_rounds=3):
    """Four parties and an analyst with a folder between them; nobody has shared."""
    sharing = {"statistics": ("logistic regression",), "rounds": n_rounds}
    world = new_sums_world(root, parties=NAMES, sharing=sharing)
    (root / "between").mkdir()
    for place, name in enumerate(NAMES):
        make_rows(place).to_csv(world.table(name), index=False)
    for name in (*NAMES, "analyst"):
        done("remote", "add", "here", root / "between", "-C", root / name)
    return world


def begin(world, name):
    """Begin the command that follows, of a party or of the analyst."""
    words = ["analyst", "follow"]
    if name != "analyst":
        words = ["party", "follow", str(world.table(name))]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*PROGRAM, *words, "-C", str(world.root / name)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


def end(processes):
    """Return what each said, once all have ended well."""
    said = {}
    for name, process in processes.items():
        said[name], _ = process.communicate(timeout=240)
        assert process.returncode == 0, said[name]
    return said


def check_results(world):
    text = (world.root / "analyst" / STUDY_FILES[0]).read_text(encoding="utf-8")
    lines = [line for line in csv.reader(io.StringIO(text)) if line[0] == "logistic regression"]
    assert [line[1] for line in lines[:3]] == ["age", "pulse", "ward=night"]
    for name in NAMES:
        entries = Ledger(world.root / name / "ledger" / "ledger.json", key=bytes(32)).entries
        assert [each.round for each in entries] == [1, 2, 3]
        assert not (world.root / name / "mask.dcstate").exists()


@pytest.mark.slow
def test_three_rounds_among_five_processes_need_two_commands_each(tmp_path):
    world = new_world(tmp_path)
    for name in NAMES:
        world.share(name)
    said = end({name: begin(world, name) for name in (*NAMES, "analyst")})
    assert "All rounds are answered." in said["north"]
    assert "odds ratio" in said["analyst"]
    check_results(world)


@pytest.mark.nightly
def test_processes_that_are_killed_again_and_again_send_nothing_twice(tmp_path):
    world = new_world(tmp_path)
    for name in NAMES:
        world.share(name)
    processes = {name: begin(world, name) for name in (*NAMES, "analyst")}
    for place in range(12):
        time.sleep(0.7 + 0.45 * (place % 4))
        name = (*NAMES, "analyst")[place % 5]
        if processes[name].poll() is None:
            processes[name].send_signal(signal.SIGKILL)
            processes[name].communicate()
            processes[name] = begin(world, name)
    end(processes)
    check_results(world)


@pytest.mark.slow
def test_who_has_not_shared_is_told_to_and_a_changed_table_ends_it(tmp_path):
    world = new_world(tmp_path, n_rounds=2)
    refusal = done("party", "follow", world.table("north"), "-C", tmp_path / "north", code=14)
    assert "NOT_SHARED" in refusal.stderr
    assert "datacollab party share TABLE" in refusal.stderr
    world.analyst.add(world.share_all())
    world.analyst.integrate()
    done("remote", "push", "-C", tmp_path / "analyst")
    make_rows(9).to_csv(world.table("north"), index=False)
    assert "ROWS_CHANGED" in done("party", "follow", world.table("north"), "-C", tmp_path / "north", code=14).stderr
    policy = tmp_path / "south" / "policy.toml"
    policy.write_text(policy.read_text().replace("min_rows = 20", "min_rows = 30"))
    # Nobody is there to be asked about the new policy.
    assert "NOT_APPROVED" in done("party", "follow", world.table("south"), "-C", tmp_path / "south", code=12).stderr
    said = done("party", "follow", world.table("east"), "-C", tmp_path / "east").output
    assert "A round was answered; 0 to go." in said
    assert "outbox/east.dcsum: sent" in said
    again = done("party", "follow", world.table("east"), "-C", tmp_path / "east").output
    assert "was answered;" not in again


def test_rounds_are_for_studies(tmp_path):
    world = new_sums_world(tmp_path, parties=NAMES[:3])
    assert "Only studies have rounds" in done("analyst", "follow", "-C", world.root / "analyst", code=1).stderr
    world.share("north")
    (tmp_path / "between").mkdir()
    done("remote", "add", "here", tmp_path / "between", "-C", tmp_path / "north")
    # A model has one round, which is over once it was shared.
    assert "All rounds" in done("party", "follow", world.table("north"), "-C", tmp_path / "north").output


@pytest.mark.slow
def test_a_remote_that_is_away_is_asked_again(tmp_path, monkeypatch):
    from datacollab import remote
    from datacollab.cli import _remote_commands
    from datacollab.errors import ExchangeError

    world = new_world(tmp_path, n_rounds=2)
    world.analyst.add(world.share_all())
    world.analyst.integrate()
    done("remote", "push", "-C", tmp_path / "analyst")
    pull, calls = remote.pull, []

    def fail_first(*args, **options):
        calls.append(args)
        if len(calls) == 1:
            raise ExchangeError("REMOTE_UNREACHABLE", "It is away.")
        return pull(*args, **options)

    monkeypatch.setattr(remote, "pull", fail_first)
    monkeypatch.setattr(_remote_commands.time, "sleep", lambda seconds: None)
    result = done("party", "follow", world.table("north"), "-C", tmp_path / "north")
    assert "It is away. Trying again." in result.stderr
    assert len(calls) == 2
