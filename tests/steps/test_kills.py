"""A command that is killed leaves the old or the new state, wherever it was."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from anchor_predictions_world import predictions_file, world_of

from datacollab.bundle import unpack
from datacollab.by_rows.party._stored_party import load_party
from datacollab.errors import ExchangeError
from datacollab.steps.party import PartyFolder
from party_world import new_world
from suite import N_KILLS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="kills as POSIX has them")]

KILLED = -signal.SIGKILL


class Commands:
    """Commands in processes that can be killed."""

    def __init__(self, folder, table):
        script = Path(__file__).with_name("killable.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        self.run(folder, "warm", table)

    def run(self, folder, verb, file, *, step=0, kill_after=None, once_there=""):
        """How a command ended: 0, or the signal's number below zero."""
        command = {"folder": folder, "verb": verb, "file": file, "step": step}
        command |= {"kill_after": kill_after, "once_there": once_there}
        self.process.stdin.write(json.dumps(command, default=str) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self):
        self.process.communicate()


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    world = new_world(tmp_path_factory.mktemp("warm"))
    commands = Commands(world.join().path, world.root / "a.csv")
    yield commands
    commands.close()


def sent(world):
    """Digests of all whole bundles that somebody who watches the outbox may have taken from it, under any name."""
    digests = set()
    for path in (world.root / "a" / "outbox").iterdir():
        try:
            digests.add(unpack(path).digest)
        except ExchangeError:
            assert path.suffix == ".part"
    return digests


def check(world):
    """What holds after any kill; gives the digests of the share and the model that are there."""
    left = sent(world)
    folder = PartyFolder(world.root / "a")
    # Before the next command mends anything.
    assert left <= {entry["facts"]["digest"] for entry in folder.log.entries() if entry["event"] == "share"}
    folder.record("look")
    files = folder.files
    assert not [path for path in folder.path.rglob("*") if path.suffix in (".part", ".next")]
    folder.log.verify()
    logged = {"share": [], "install": []}
    for entry in folder.log.entries():
        if entry["event"] in logged:
            logged[entry["event"]].append(entry["facts"]["digest"])
    share_digest = model_digest = None
    assert files.state.exists() == files.share("a").exists()
    if files.state.exists():
        stored = load_party(folder)
        share, bundle = world.open_share(folder)
        share_digest = bundle.digest
        assert stored.share_digest == share_digest == logged["share"][-1]
        assert (stored.party.obfuscate(world.anchor.rows) == share.anchor_representation).all()
    assert len(set(logged["share"])) == len(logged["share"])
    if files.model.exists():
        model_digest = unpack(files.model, signed_by=world.keys["analyst"].public).digest
        assert model_digest == logged["install"][-1]
    return share_digest, model_digest, logged


def until_it_ends(run, least=0):
    """Numbers of the steps before which a command was killed, and of the one that it did not come to."""
    step, ending = 0, KILLED
    while ending == KILLED:
        step += 1
        ending = run(step)
        yield step
    assert ending == 0
    assert step > least


def test_a_share_that_kills_itself_at_every_step(commands, world):
    folder, table = world.join().path, world.root / "a.csv"
    outcomes, before = set(), None
    for _ in until_it_ends(lambda step: commands.run(folder, "share", table, step=step), least=10):
        after, _, logged = check(world)
        outcomes.add(after != before)
        before = after
    assert outcomes == {True, False}


def test_an_installation_that_kills_itself_at_every_step(commands, world):
    a, b = world.shared("a"), world.shared("b")
    models = [two_models(world, a, b, number) for number in range(2)]
    outcomes, before = set(), None
    for step in until_it_ends(lambda step: commands.run(a.path, "install", models[step % 2], step=step)):
        _, after, _ = check(world)
        assert after in (before, unpack(models[step % 2]).digest)
        outcomes.add(after != before)
        before = after
        if after is not None:
            assert a.evaluate(world.root / "new.csv")["n_rows"] == 80
    assert outcomes == {True, False}


def copied(world, folder):
    """A folder as it is, once more."""
    target = world.root / "copy" / "a"
    shutil.rmtree(target.parent, ignore_errors=True)
    shutil.copytree(folder.path, target)
    return PartyFolder(target)


def test_learning_that_kills_itself_at_every_step(commands, tmp_path):
    world = world_of(tmp_path)
    a, b = world.shared("a"), world.shared("b")
    files = [predictions_file(world, a, b).rename(world.root / f"{number}.dcanswers") for number in range(2)]
    a.distil(files[0])
    outcomes, before = set(), (a.path / "learned.dcstate").read_bytes()
    for _ in until_it_ends(lambda step: commands.run(a.path, "distil", files[step % 2], step=step), least=5):
        check(world)
        entries = [entry["facts"]["state"] for entry in a.log.entries() if entry["event"] == "learn"]
        after = (a.path / "learned.dcstate").read_bytes()
        assert a.read(a.path / "learned.dcstate").digest == entries[-1]
        outcomes.add(after == before)
        before = after
    assert outcomes == {True, False}
    assert a.evaluate(world.root / "new.csv")["using"] == "distilled"


@pytest.mark.nightly
def test_forgetting_that_kills_itself_at_every_step(commands, world):
    installed = world.installed()
    outcomes = set()
    for _ in until_it_ends(lambda step: commands.run(copied(world, installed).path, "forget", "", step=step), least=8):
        again = PartyFolder(world.root / "copy" / "a")
        again.record("look")
        forgotten = any(entry["event"] == "forget" for entry in again.log.entries())
        again.log.verify()
        left = [path.exists() for path in again.files.of_the_map("a")]
        assert not any(left) if forgotten else left[0]
        outcomes.add(forgotten)
    assert outcomes == {True, False}


def two_models(world, a, b, number):
    path = world.model_file(a, b, created="2026-01-01T00:00:00+00:00", n_rows=number)
    return path.rename(path.with_name(f"model-{number}.dcmodel"))


@pytest.mark.nightly
@pytest.mark.parametrize("verb", ["share", "install"])
def test_kills_at_random_moments(verb, commands, world):
    a, b = world.shared("a"), world.shared("b")
    if verb == "share":
        sources, coming = [world.root / "a.csv"] * 2, a.path / ".share.dcshare.next"
    else:
        sources, coming = [two_models(world, a, b, number) for number in range(2)], a.path / ".model.dcmodel.next"
    started = time.monotonic()
    assert commands.run(a.path, verb, sources[0]) == 0
    duration = time.monotonic() - started
    place = 0 if verb == "share" else 1
    before = check(world)[place]
    drawn = random.Random(0)
    for number in range(N_KILLS):
        # Half of the kills come while files are written, which is a small part of the time.
        if number % 2:
            moment = {"kill_after": drawn.uniform(0, 0.01), "once_there": coming}
        else:
            moment = {"kill_after": drawn.uniform(0, duration)}
        ending = commands.run(a.path, verb, sources[(number + 1) % 2], **moment)
        assert ending in (0, KILLED)
        after = check(world)[place]
        if ending == 0:
            assert after != before or verb == "install"
        before = after
    assert commands.run(a.path, verb, sources[0]) == 0
