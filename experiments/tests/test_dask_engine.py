"""KTI on the workers of a Dask cluster: the numbers of one process, whatever becomes of a worker."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from bent_views import nonlinear_views
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import LinAlgError, subspace_angles
from sklearn.base import clone

from datacollab import KTI, GeometricGraph
from datacollab.analyst import Engine

pytestmark = pytest.mark.slow
distributed = pytest.importorskip("distributed")
dask_engine = pytest.importorskip("datacollab_experiments.solvers.dask_engine")
ClusterError, DaskEngine = dask_engine.ClusterError, dask_engine.DaskEngine


def local_cluster(n_workers):
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    )


@pytest.fixture(scope="module")
def cluster():
    with local_cluster(2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def _both_workers_are_there(request, monkeypatch):
    monkeypatch.setattr(dask_engine, "_PATIENCE", 4.0)
    if "client" in request.fixturenames:
        client = request.getfixturevalue("client")
        try:
            client.wait_for_workers(2, timeout=4)
        except TimeoutError:
            # Once in some thirty times, a local cluster does not start a killed worker again.
            request.getfixturevalue("cluster").scale(2)
            client.wait_for_workers(2, timeout=60)


@pytest.fixture(scope="module")
def anchors():
    # So many rows that the exact solver is the streamed one.
    return nonlinear_views(1250)[0]


@pytest.fixture
def engine(client):
    with DaskEngine(client) as engine:
        yield engine


def kill_a_worker(client):
    pid = next(iter(client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)


def doubled(A, factor):
    return factor * A


def shifted(A, shift):
    return A + shift


def product(A, X):
    return A @ X


def dies_once(A, flag):
    """Takes the worker down with it, the first time that any worker gets here."""
    if not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return A.copy()


def fails(A):
    raise LinAlgError("not positive definite")


@pytest.fixture
def matrices(rng):
    return [rng.normal(size=(40, 40)) for _ in range(5)]


@pytest.fixture(scope="module", params=[{"solver": "exact"}, {"solver": "nystroem", "n_landmarks": 60}], ids=str)
def undisturbed(client, anchors, request):
    with DaskEngine() as engine:
        return KTI(4, engine=engine, **request.param).fit(anchors)


def test_equals_one_process(undisturbed, anchors):
    here = KTI(4, solver=undisturbed.solver, n_landmarks=undisturbed.n_landmarks, engine=Engine()).fit(anchors)
    assert undisturbed.objective_ == pytest.approx(here.objective_, rel=1e-10)
    assert subspace_angles(undisturbed.target_, here.target_).max() < 1e-6
    for party, A in anchors.items():
        expected = here.integration_functions_[party](A)
        assert_allclose(undisturbed.integration_functions_[party](A), expected, atol=1e-6)


def test_a_worker_killed_in_mid_fit_changes_no_number(client, undisturbed, anchors, monkeypatch):
    plain, calls = DaskEngine.total, []

    def total(self, *arguments):
        calls.append(1)
        if len(calls) == 3:
            kill_a_worker(client)
        return plain(self, *arguments)

    monkeypatch.setattr(DaskEngine, "total", total)
    with DaskEngine(client) as engine:
        disturbed = KTI(4, engine=engine, solver=undisturbed.solver, n_landmarks=undisturbed.n_landmarks).fit(anchors)
    assert len(calls) > 3
    assert_allclose(disturbed.target_, undisturbed.target_, rtol=0, atol=1e-8)
    assert_allclose(disturbed.eigenvalues_, undisturbed.eigenvalues_, rtol=1e-8)
    for party, g in undisturbed.integration_functions_.items():
        other = disturbed.integration_functions_[party]
        assert_allclose(other.coefficients, g.coefficients, rtol=0, atol=1e-8 * abs(g.coefficients).max())


def test_equals_the_local_engine_in_every_call(engine, matrices):
    X = np.ones((40, 3))
    results = []
    for each in (Engine(), engine):
        states = each.place(doubled, [(A, 2.0) for A in matrices])
        assert len(states) == len(matrices)
        moved = each.update(shifted, states, 1.0)
        results.append((each.total(product, moved, X), each.gather(product, moved, X), each.gather(abs, states)))
    assert_allclose(results[1][0], results[0][0], rtol=1e-13)
    assert_array_equal(results[1][1], results[0][1])
    assert_array_equal(results[1][2], results[0][2])


@pytest.mark.parametrize("step", ["place", "update", "total", "gather"])
def test_a_worker_lost_within_a_task_is_survived(engine, matrices, step, tmp_path):
    flag = str(tmp_path / "died")
    if step == "place":
        states = engine.place(dies_once, [(A, flag) for A in matrices])
    else:
        states = engine.place(doubled, [(A, 1.0) for A in matrices])
    if step == "update":
        states = engine.update(dies_once, states, flag)
    if step == "total":
        assert_allclose(engine.total(dies_once, states, flag), sum(matrices))
    else:
        assert_array_equal(engine.gather(dies_once, states, flag), matrices)
    assert Path(flag).exists()
    assert_allclose(engine.total(product, states, np.eye(40)), sum(matrices))


def test_goes_on_with_the_workers_that_are_left(matrices, monkeypatch):
    monkeypatch.setattr(dask_engine, "_PATIENCE", 0.5)
    with local_cluster(3) as cluster, distributed.Client(cluster) as client:
        engine = DaskEngine(client)
        states = engine.place(doubled, [(A, 1.0) for A in matrices])
        X = np.repeat(np.eye(40), 8, axis=1)  # large enough to be scattered
        before = engine.total(product, states, X)
        client.retire_workers([engine._homes[0]])
        # The same groups are summed, so nothing but the place has changed.
        assert_array_equal(engine.total(product, states, X), before)
        nanny = next(each for each in cluster.workers.values() if each.worker_address == engine._homes[1])
        nanny.close_gracefully()  # starts no worker in the place of the one that is killed
        os.kill(nanny.pid, signal.SIGKILL)
        assert_array_equal(engine.total(product, states, X), before)
        assert len(client.nthreads()) == 1
        engine.close()


def test_only_what_is_shared_and_one_sum_per_worker_move(client, engine, rng):
    n, b, n_workers = 2000, 12, 2
    X = rng.normal(size=(n, b))
    states = engine.place(doubled, [(rng.normal(size=(n, 300)), 1.0) for _ in range(4)])

    def sent(dask_worker):
        return dask_worker.transfer_outgoing_bytes_total

    counted, before = engine.bytes_moved, sum(client.run(sent).values())
    for _ in range(5):
        engine.total(smoothed, states, X)
    assert engine.bytes_moved - counted == 5 * 2 * n_workers * n * b * 8
    # By Dask's own count, which leaves out the way from here to the first worker.
    assert sum(client.run(sent).values()) - before == pytest.approx(5 * (2 * n_workers - 1) * n * b * 8, rel=0.01)


def smoothed(A, X):
    return A @ (A.T @ X)


def test_many_groups_are_added_up_in_their_order(engine, matrices, monkeypatch):
    monkeypatch.setattr(dask_engine, "_FAN", 2)
    engine._homes = engine._homes * 3
    states = engine.place(doubled, [(A, 1.0) for A in matrices])
    assert len(set(states)) == 5
    a, b, c, d, e = matrices
    assert_array_equal(engine.total(product, states, np.eye(40)), ((a + b) + (c + d)) + e)


def test_an_error_arrives_as_it_was_raised_and_no_log_shows_data(client, engine):
    secret = np.full((3, 3), 123.4375)
    with pytest.raises(LinAlgError, match="not positive definite"):
        engine.place(fails, [(secret,)] * 2)
    states = engine.place(doubled, [(secret, 1.0)] * 2)
    with pytest.raises(LinAlgError, match="not positive definite"):
        engine.total(fails, states)
    logs = str(client.get_worker_logs())
    assert "not positive definite" in logs
    assert "123.4" not in logs


def test_nothing_is_left_on_the_cluster(client, anchors):
    with DaskEngine(client) as engine:
        KTI(4, engine=engine, solver="nystroem", n_landmarks=60).fit(anchors)
    deadline = time.monotonic() + 10
    while (left := client.run_on_scheduler(known_keys)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def known_keys(dask_scheduler):
    return list(dask_scheduler.tasks)


def test_gives_up_when_workers_are_lost_again_and_again(engine, matrices, monkeypatch):
    monkeypatch.setattr(dask_engine, "_PAUSE", 0.0)

    def no_such_worker(carried, home):
        raise dask_engine._WorkerLostError

    monkeypatch.setattr(engine, "_scattered", no_such_worker)
    with pytest.raises(ClusterError, match="workers were lost 6 times"):
        engine.place(doubled, [(A, 1.0) for A in matrices])


def test_memory_of_the_cluster(client):
    limits = [worker["memory_limit"] for worker in client.scheduler_info()["workers"].values()]
    assert DaskEngine(client).memory == pytest.approx(0.8 * sum(limits))


def test_a_cluster_without_workers_is_an_error():
    with (
        local_cluster(0) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(ClusterError, match="no workers"),
    ):
        DaskEngine(client)


def test_without_a_client_there_is_no_current_one(monkeypatch):
    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "default_client", none)
    with pytest.raises(ClusterError, match="there is none"):
        DaskEngine()


def test_a_clone_has_the_same_engine(engine):
    integrator = KTI(3, alpha=0.5, graph=GeometricGraph(4), engine=engine)
    cloned = clone(integrator)
    assert cloned.engine is engine
    assert cloned.graph is not integrator.graph
    assert cloned.get_params(deep=False) | {"graph": None} == integrator.get_params(deep=False) | {"graph": None}
