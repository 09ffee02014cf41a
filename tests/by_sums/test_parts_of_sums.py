"""Sums made in parts where the rows are: the numbers of one table, whatever the parts, also on a Dask cluster."""

import functools
import itertools
import operator
import pickle

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

from datacollab.agreement import Task
from datacollab.errors import AgreementError, ExchangeError
from datacollab.table import Column
from sums_world import new_sums_world, rows_of

PARTIES = ("north", "south", "east")
TABLE = rows_of(600, 11)


def split(table, n_parts=4):
    """Parts of a table, of different lengths."""
    ends = [0, *np.sort(np.random.default_rng(0).choice(np.arange(1, len(table)), n_parts - 1)), len(table)]
    return [table.iloc[start:end].reset_index(drop=True) for start, end in itertools.pairwise(ends)]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return new_sums_world(tmp_path_factory.mktemp("parts"), parties=PARTIES)


def same(found, expected):
    """Both messages that have not left have the same numbers, and the same rows for the ledger."""
    assert_allclose(found.part, expected.part, rtol=0, atol=1e-9)
    assert found.summary.n_rows == expected.summary.n_rows
    assert found.summary.adjusted == expected.summary.adjusted
    assert found.total.table.columns.keys() == expected.total.table.columns.keys()
    assert found.total.table.n_different(expected.total.table, 10) == 0


def test_parts_add_up_to_the_table(world):
    folder = world.folder("north")
    maker = folder.part_maker()
    parts = [maker.part(each) for each in split(TABLE)]
    # In any order, after a journey, and from Arrow.
    parts.append(maker.part(pa.Table.from_pandas(TABLE.iloc[:0])))
    total = pickle.loads(pickle.dumps(functools.reduce(operator.add, parts[::-1])))
    same(folder.prepare(total), folder.prepare(TABLE))


def test_counts_are_those_of_all_parts(tmp_path):
    world = new_sums_world(tmp_path, parties=PARTIES, sharing={"statistics": ("counts",)})
    folder = world.folder("south")
    maker = folder.part_maker()
    prepared = folder.prepare(functools.reduce(operator.add, map(maker.part, split(TABLE))))
    assert_allclose(prepared.part, folder.prepare(TABLE).part, rtol=0, atol=1e-9)


def test_robust_regression_deals_each_part_to_groups(tmp_path):
    """Moments of all rows are those of the table; each row is in one group, whatever the parts."""
    sharing = {"statistics": ("least squares",), "outcome": "pulse", "errors": "robust"}
    world = new_sums_world(tmp_path, parties=PARTIES, sharing=sharing)
    folder = world.folder("south")
    maker = folder.part_maker()
    prepared = folder.prepare(functools.reduce(operator.add, map(maker.part, split(TABLE))))
    found, expected = (each.part.reshape(11, -1) for each in (prepared, folder.prepare(TABLE)))
    assert_allclose(found[0], expected[0], rtol=0, atol=1e-9)
    assert (found[1:, 0] > 0).all()
    assert_allclose(found[1:, 0].sum(), expected[1:, 0].sum(), rtol=0.05)


@pytest.mark.slow
def test_a_shared_total_of_parts_is_in_the_ledger(tmp_path):
    world = new_sums_world(tmp_path, parties=PARTIES)
    maker = world.folder("east").part_maker()
    world.share("east", functools.reduce(operator.add, map(maker.part, split(TABLE))))
    world.next_run()
    with pytest.raises(ExchangeError, match="Nearly the same rows") as caught:
        world.share("east", TABLE.iloc[1:])
    assert caught.value.code == "ALREADY_SHARED"


def test_parts_of_two_messages_do_not_add_up(world, tmp_path):
    folder = world.folder("north")
    first, second = (folder.part_maker().part(TABLE) for _ in range(2))
    with pytest.raises(AgreementError, match="two messages"):
        first + second
    with pytest.raises(AgreementError, match="another version"):
        new_sums_world(tmp_path, parties=PARTIES).folder("north").prepare(first)


def test_survival_is_refused(tmp_path):
    task = Task(
        kind="survival",
        event="ward",
        seen=("day",),
        not_seen=("night",),
        time="age",
        unit="years",
        maximum=100.0,
        rounding=1.0,
    )
    pulse = Column(name="pulse", kind="number", minimum=0.0, maximum=100.0)
    sharing = {"statistics": ("survival",)}
    world = new_sums_world(
        tmp_path, parties=PARTIES, sharing=sharing, task_of_project=task, columns=(pulse,), max_components=1
    )
    with pytest.raises(AgreementError, match=r"survival cannot be made in parts"):
        world.folder("north").part_maker()


def test_workers_of_a_dask_cluster_make_the_parts(world):
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    folder = world.folder("north")
    maker = folder.part_maker()
    with (
        distributed.LocalCluster(n_workers=2, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        parts = [dask.delayed(maker.part)(each) for each in split(TABLE)]
        total = client.compute(dask.delayed(functools.reduce)(operator.add, parts)).result()
    same(folder.prepare(total), folder.prepare(TABLE))
