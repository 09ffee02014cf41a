"""A share of sums that is killed before any step: nothing happened, or the same bytes are sent again."""

import os
import random
import shutil
import signal
import time
from contextlib import closing

import pytest
from test_kills import Commands

from datacollab.bundle import unpack
from datacollab.by_sums.party._own_model import read_own_model
from datacollab.folder.ledger import Ledger
from datacollab.steps.party import PartyFolder, read_withdrawal
from party_world import refused
from suite import N_KILLS
from sums_world import make_rows, new_sums_world

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills as POSIX has them")

KILLED = -signal.SIGKILL


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return new_sums_world(tmp_path_factory.mktemp("sums"), parties=("north", "south", "east"))


def kept_bytes(place):
    """The message of a command that the ledger knows."""
    path = place / ".sum.dcstate.next"
    return unpack(path if path.exists() else place / "sum.dcstate").members["message.bin"]


@pytest.mark.nightly
def test_killed_before_any_step(world, tmp_path):
    shutil.copytree(world.root / "north", tmp_path / "warm")
    with closing(Commands(tmp_path / "warm", world.table("north"))) as commands:
        n_steps, outcomes = killed_at_each_step(commands, world, tmp_path)
    assert n_steps > 20
    assert outcomes == {(False, False), (True, False), (True, True)}


def killed_at_each_step(commands, world, tmp_path):
    """How many steps a share has, and what was found after each: whether it was released, whether a file lay there."""
    joined = world.root / "north"
    ended, step, outcomes = KILLED, 0, set()
    while ended == KILLED:
        step += 1
        place = tmp_path / f"step-{step}"
        shutil.copytree(joined, place)
        ended = commands.run(place, "share", world.table("north"), step=step)
        sent = [path.read_bytes() for path in (place / "outbox").glob("*.dcsum")]
        log = [entry["facts"].get("digest") for entry in PartyFolder(place).log.entries()]
        assert {unpack(data).digest for data in sent} <= set(log)
        ledger = place / "ledger" / "ledger.json"
        released = ledger.exists() and len(Ledger(ledger, key=bytes(32)).entries) == 1
        outcomes.add((released, bool(sent)))
        before = kept_bytes(place) if released else None
        if sent:
            assert sent == [before]
        # Any command mends the folder: the own model is there if the message is, and only then.
        folder = PartyFolder(place)
        folder.record("look")
        assert not (place / ".sum.dcstate.next").exists()
        assert not (place / ".own.dcstate.next").exists()
        assert (place / "own.dcstate").exists() is released
        own = (place / "own.dcstate").read_bytes() if released else None
        assert (place / "mask.dcstate").exists() is not released
        again = folder.share(
            world.table("north"), approve=lambda summary: "me", heard=world.heard("north")
        ).read_bytes()
        if released:
            assert again == before
            assert (place / "own.dcstate").read_bytes() == own
        assert read_own_model(folder)[0] is not None
        assert len(Ledger(ledger, key=bytes(32)).entries) == 1
        assert not (place / "mask.dcstate").exists()
        assert [entry["event"] for entry in folder.log.entries()].count("share") == 1
        assert "dcmask1-" not in (place / "public.key").read_text()
        shutil.rmtree(place)
    assert ended == 0
    return step, outcomes


@pytest.mark.nightly
def test_a_study_killed_at_random_moments_and_then_its_withdrawal(tmp_path):
    """Whatever leaves in a run is one message, and a withdrawal tells whether it left."""
    world = new_sums_world(tmp_path, parties=("north", "south", "east"), sharing={"statistics": ("counts",)})
    joined, place, table = tmp_path / "north", tmp_path / "place", world.table("north")
    shutil.copytree(joined, tmp_path / "warm")
    with closing(Commands(tmp_path / "warm", table)) as commands:
        shutil.copytree(joined, place)
        started = time.monotonic()
        assert commands.run(place, "share", table) == 0
        duration, drawn, outcomes = time.monotonic() - started, random.Random(0), set()
        for _ in range(N_KILLS):
            shutil.rmtree(place)
            shutil.copytree(joined, place)
            left = set()
            for number, verb in enumerate(("share", "share", "withdraw")):
                if number == 2 and drawn.random() < 0.5:
                    left.add(PartyFolder(place).share(table, approve=lambda summary: "me").read_bytes())
                moment = {"kill_after": drawn.uniform(0, 1.2 * duration)}
                # Half of the first kills come while files are written, which is a small part of the time.
                if number == 0 and drawn.random() < 0.5:
                    moment = {"kill_after": drawn.uniform(0, 0.01), "once_there": place / ".sum.dcstate.next"}
                assert commands.run(place, verb, table, **moment) in (0, KILLED)
                left |= {path.read_bytes() for path in (place / "outbox").glob("*.dcsum")}
            folder = PartyFolder(place)
            word = read_withdrawal(folder.withdraw().read_bytes(), where="word")
            assert len(left) <= 1
            assert word.had_shared or not left
            folder.log.verify()
            assert [path.name for path in folder.outbox.iterdir()] == ["north.dcwithdrawal"]
            with refused("KEY_MISSING"):
                folder.share(table, approve=lambda summary: "me")
            outcomes.add((word.had_shared, bool(left)))
    assert (True, True) in outcomes


@pytest.mark.nightly
def test_a_second_round_killed_at_random_moments_leaves_one_message(tmp_path):
    """The rounds of a regression leave once each, whatever is killed, and the first one's message is not sent again."""
    sharing = {"statistics": ("logistic regression",), "rounds": 2}
    names = ("north", "south", "east")
    world = new_sums_world(tmp_path, parties=names, sharing=sharing)
    for number, name in enumerate(names):
        make_rows(number).to_csv(world.table(name), index=False)
    joined, place, table = tmp_path / "north", tmp_path / "place", world.table("north")
    shutil.copytree(joined, tmp_path / "warm")
    world.analyst.add(world.share_all())
    world.analyst.integrate()
    (joined / "inbox").mkdir()
    shutil.copy(tmp_path / "analyst" / "outbox" / "round.dcround", joined / "inbox")
    first = (joined / "outbox" / "north.dcsum").read_bytes()
    drawn, outcomes = random.Random(0), set()
    with closing(Commands(tmp_path / "warm", table)) as commands:
        shutil.copytree(joined, place)
        started = time.monotonic()
        assert commands.run(place, "answer", table) == 0
        duration = time.monotonic() - started
        for _ in range(N_KILLS):
            shutil.rmtree(place)
            shutil.copytree(joined, place)
            left = set()
            for _ in range(2):
                moment = {"kill_after": drawn.uniform(0, 1.2 * duration)}
                if drawn.random() < 0.5:
                    moment = {"kill_after": drawn.uniform(0, 0.01), "once_there": place / ".sum.dcstate.next"}
                assert commands.run(place, "answer", table, **moment) in (0, KILLED)
                left |= {path.read_bytes() for path in (place / "outbox").glob("*.dcsum")} - {first}
            outcomes.add(len(left))
            folder = PartyFolder(place)
            request = place / "inbox" / "round.dcround"
            left.add(folder.share(table, approve=lambda summary: None, round_file=request).read_bytes())
            assert len(left) == 1
            folder.log.verify()
            assert [entry["event"] for entry in folder.log.entries()].count("share") == 2
            assert [each.round for each in Ledger(place / "ledger" / "ledger.json", key=bytes(32)).entries] == [1, 2]
            assert not (place / "mask.dcstate").exists()
    assert outcomes == {0, 1}
