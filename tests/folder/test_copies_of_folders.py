"""Folders that come back from a backup, or that two machines have: what leaves twice, and who notices."""

import shutil

import numpy as np
import pandas as pd
import pytest

from datacollab.bundle import unpack
from datacollab.steps.party import PartyFolder, read_withdrawal
from datacollab.sums import read_message
from party_world import refused
from sums_world import PARTIES, new_sums_world, rows_of

NAMES = PARTIES[:3]
NORTH = "north"


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """Three parties, and north's ledger lies outside of its folder."""
    world = new_sums_world(tmp_path_factory.mktemp("joined"), parties=NAMES, sharing={"statistics": ("counts",)})
    policy = world.root / NORTH / "policy.toml"
    policy.write_text(policy.read_text().replace('ledger = ""', 'ledger = "../institution"'))
    (world.root / "institution").mkdir()
    return world


@pytest.fixture
def world(joined, tmp_path):
    return joined.copied(tmp_path)


class Backup:
    """Copies of north's folder and ledger, taken when this is made."""

    def __init__(self, world):
        self.root = world.root
        for name in (NORTH, "institution"):
            shutil.copytree(self.root / name, self.root / "backup" / name)

    def restore(self, *names):
        for name in names:
            shutil.rmtree(self.root / name)
            shutil.copytree(self.root / "backup" / name, self.root / name)


def one_row_less(world):
    path = world.root / "one-row-less.csv"
    pd.read_csv(world.table(NORTH)).iloc[1:].to_csv(path, index=False)
    return path


def test_a_folder_without_its_ledger_makes_no_second_message(world):
    backup = Backup(world)
    world.share(NORTH)
    backup.restore(NORTH)
    for table in (world.table(NORTH), one_row_less(world)):
        with refused("ALREADY_SHARED"):
            world.share(NORTH, table)
    assert not list(world.folder(NORTH).outbox.iterdir())


@pytest.mark.parametrize("kept", ["ledger", "log"])
def test_a_withdrawal_from_a_restored_folder_says_that_a_message_left(world, kept):
    """Otherwise the others would be told that no total of the run can be made."""
    backup = Backup(world)
    world.share(NORTH)
    log = (world.root / NORTH / "log.jsonl").read_bytes()
    backup.restore(*[NORTH] if kept == "ledger" else [NORTH, "institution"])
    if kept == "log":
        (world.root / NORTH / "log.jsonl").write_bytes(log)
    assert read_withdrawal(world.folder(NORTH).withdraw().read_bytes(), where="word").had_shared


def test_a_mask_key_that_comes_back_alone_changes_nothing(world):
    backup = Backup(world)
    first = world.share(NORTH).read_bytes()
    shutil.copy(backup.root / "backup" / NORTH / "mask.dcstate", world.root / NORTH)
    assert world.share(NORTH, one_row_less(world)).read_bytes() == first
    (world.root / NORTH / "outbox" / "north.dcsum").unlink()
    assert world.share(NORTH, one_row_less(world)).read_bytes() == first


def test_the_analyst_takes_one_message_if_everything_came_back(world):
    """The party cannot know; whoever has its first message refuses the second, and adds up the first."""
    backup = Backup(world)
    first = world.share(NORTH).read_bytes()
    world.analyst.add([world.root / NORTH / "outbox" / "north.dcsum"])
    backup.restore(NORTH, "institution")
    second = world.share(NORTH, one_row_less(world))
    assert second.read_bytes() != first
    with refused("ALREADY_THERE", "another file"):
        world.analyst.add([second, world.share("south"), world.share("east")])
    assert [each.digest for each in world.analyst.shares()] == [unpack(first).digest]
    world.analyst.add([world.share("south"), world.share("east")])
    assert world.analyst.integrate().n_parties == 3


@pytest.mark.parametrize("first_sent", ["one", "other"])
def test_two_machines_with_one_key_make_two_messages_and_the_analyst_takes_one(world, first_sent):
    for machine in ("one", "other"):
        shutil.copytree(world.root / NORTH, world.root / machine / NORTH)
        (world.root / machine / "institution").mkdir()
    tables = {"one": world.table(NORTH), "other": one_row_less(world)}
    files = {
        machine: PartyFolder(world.root / machine / NORTH).share(
            table, approve=lambda summary: "me", heard=world.heard(NORTH)
        )
        for machine, table in tables.items()
    }
    second_sent = next(machine for machine in files if machine != first_sent)
    world.analyst.add([files[first_sent]])
    with refused("ALREADY_THERE", "tells rows"):
        world.analyst.add([files[second_sent]])
    # At once, too: neither is taken then, and the party says which one counts.
    other = world.copied(world.root / "once more")
    (other.root / "analyst" / "shares" / "north.dcsum").unlink()
    with refused("ALREADY_THERE"):
        other.analyst.add(files.values())
    assert other.analyst.shares() == []


def test_why_two_messages_of_one_run_must_not_be_read(world):
    """Their masks are the same, so that the difference is one row, under the party's own noise alone."""
    backup, messages, parts = Backup(world), [], []
    for table in (world.table(NORTH), one_row_less(world)):
        backup.restore(NORTH, "institution")
        prepared = world.folder(NORTH).prepare(table)
        parts.append(prepared.part)
        path = world.share(NORTH, table)
        messages.append(read_message(path, world.keys["analyst"], signed_by=world.keys[NORTH].public))
    agreed = prepared.plan.agreed
    difference = agreed.numbers.decode(agreed.numbers.add(messages[0].words, agreed.numbers.negate(messages[1].words)))
    # Two draws of what north adds to the noise; with three parties, one of which may collude.
    spread = np.asarray(agreed.noise) / np.sqrt(len(NAMES) - 1) * np.sqrt(2)
    assert difference[0] == 0
    np.testing.assert_array_less(np.abs(difference[1:] - (parts[0] - parts[1])), 6 * spread)


def test_two_machines_that_take_turns_tell_a_row_by_the_difference_of_two_totals(tmp_path):
    """A ledger for each machine knows one run each; which of two rows was added in between is read off."""
    world = new_sums_world(tmp_path, parties=NAMES, sharing={"n_components": 10})
    folder, table = world.folder(NORTH), rows_of(60, 100)
    candidates = pd.DataFrame(
        {"age": [20.0, 80.0], "pulse": [80.0, 20.0], "ward": ["day", "night"], "ill": ["no", "yes"]}
    )
    parts = []
    for extra in (candidates.iloc[:0], candidates.iloc[:1], candidates.iloc[1:]):
        prepared = folder.prepare(pd.concat([table, extra], ignore_index=True))
        parts.append(prepared.part)
    before, first, second = parts
    agreed, random, right = prepared.plan.agreed, np.random.default_rng(0), 0
    spread = np.asarray(agreed.noise) * agreed.excess * np.sqrt(2)
    n_times = 200
    for number in range(n_times):
        truth = (first, second)[number % 2]
        read = truth - before + spread * random.normal(size=len(spread))
        distances = [np.sum(((read - each + before) / spread) ** 2) for each in (first, second)]
        right += np.argmin(distances) == number % 2
    assert right / n_times > 0.95
