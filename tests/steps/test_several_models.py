"""Several models among the same parties: what the ledger allows, and what the approver reads of earlier totals."""

from dataclasses import replace

import pandas as pd
import pytest

from datacollab.agreement import Task
from party_world import refused
from sums_world import PARTIES, new_sums_world, rows_of

NAMES = PARTIES[:3]
STAY = Task(kind="regression", target="stay", unit="days", minimum=0.0, maximum=60.0)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Everybody has shared sums for a model of who is ill; the tables also have the length of the stay."""
    world = new_sums_world(tmp_path_factory.mktemp("several"), parties=NAMES)
    for seed, name in enumerate(NAMES):
        with_stay(rows_of(60, 100 + seed)).to_csv(world.table(name), index=False)
    world.share_all()
    return world


@pytest.fixture
def world(shared, tmp_path):
    """The next run of the same parties, for a model of the stay."""
    world = shared.copied(tmp_path)
    world.project = replace(world.project, task=STAY)
    world.next_run()
    return world


def with_stay(table):
    return table.assign(stay=(table["age"] / 2).round().clip(0, 60))


def read_by_approver(world, table):
    """What `share` shows to whoever approves of it, and what speaks against it."""
    prepared = world.folder("north").prepare(table)
    return " ".join(prepared.summary.to_text().split()), prepared.reasons


@pytest.mark.slow
def test_another_target_of_the_same_rows_is_refused_and_a_study_is_the_way(world):
    """Two models' totals hold the same sums of columns: with another roster or row they would tell it."""
    with refused("ALREADY_SHARED", "Put all targets into one study"):
        world.share("north")


def test_nearly_the_same_rows_are_refused(world):
    table = pd.read_csv(world.table("north"))
    with refused("ALREADY_SHARED", "fewer than 60 differ"):
        world.share("north", pd.concat([table, with_stay(rows_of(59, 77))]))


def test_more_rows_are_allowed_and_the_approver_reads_the_joint_noise(world):
    table = pd.read_csv(world.table("north"))
    text, reasons = read_by_approver(world, pd.concat([table, with_stay(rows_of(60, 77))]))
    assert reasons == []
    assert "Totals with some of these rows, or rows that look alike, left before: 1" in text
    assert "as little noise as one total with noise of 0.071" in text


def test_of_other_rows_nothing_left_before(world):
    text, reasons = read_by_approver(world, with_stay(rows_of(60, 78)))
    assert reasons == []
    assert "left before" not in text


def test_a_study_of_the_same_rows_and_parties_is_allowed_once(world):
    """Another statistic is another total, whose noise the approver reads added to that of the first."""
    world.project = replace(world.project, sharing=replace(world.project.sharing, statistics=("least squares",)))
    world.next_run()
    text, reasons = read_by_approver(world, world.table("north"))
    assert reasons == []
    assert "Totals with some of these rows, or rows that look alike, left before: 1" in text
    world.share("north")
    world.next_run()
    with refused("ALREADY_SHARED"):
        world.share("north")
