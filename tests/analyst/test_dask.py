"""KTI on the workers of a Dask cluster: the numbers of one process, whatever becomes of a worker."""

import contextlib
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from bent_views import nonlinear_views
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import LinAlgError, subspace_angles
from sklearn.base import clone
from sklearn.linear_model import Ridge

from datacollab import KTI, KTICV, Analyst, Share
from datacollab.analyst import Engine
from datacollab.errors import ClusterError

distributed = pytest.importorskip("distributed")
_dask = pytest.importorskip("datacollab.analyst._dask")
DaskEngine = _dask.DaskEngine

SOLVERS = [{"solver": "exact"}, {"solver": "nystroem", "n_landmarks": 60}]


@contextlib.contextmanager
def local_cluster(n_workers):
    cluster = distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    )
    try:
        yield cluster
    finally:
        # A worker that was killed may be taken off distributed's list twice, and the second time is a KeyError, when
        # all else is closed.
        with contextlib.suppress(KeyError):
            cluster.close()
        cluster.status = distributed.Status.closed


@pytest.fixture(scope="module")
def cluster():
    with local_cluster(2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    """Of workers that are processes, which take seconds to start: tests with it are slow."""
    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def threads():
    """A client of workers that are threads of this process."""
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        yield client


@pytest.fixture(autouse=True)
def _both_workers_are_there(request, monkeypatch):
    monkeypatch.setattr(_dask, "_PATIENCE", 4.0)
    if "client" in request.fixturenames:
        client = request.getfixturevalue("client")
        try:
            client.wait_for_workers(2, timeout=20)
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
    engine = DaskEngine(client)
    yield engine
    engine.close()


@pytest.fixture
def threaded(threads):
    engine = DaskEngine(threads)
    yield engine
    engine.close()


@pytest.fixture
def matrices(rng):
    return [rng.normal(size=(40, 40)) for _ in range(5)]


@pytest.fixture(scope="module", params=SOLVERS, ids=str)
def undisturbed(client, anchors, request):
    return KTI(4, engine=client, **request.param).fit(anchors)


def known_keys(dask_scheduler):
    return list(dask_scheduler.tasks)


def nothing_is_left(client):
    """Whether the cluster has let go of all, for which it may take a moment."""
    deadline = time.monotonic() + 20
    while (left := client.run_on_scheduler(known_keys)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left


def kill_a_worker(client):
    pid = next(iter(client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)


def kill_for_good(nanny):
    """Kill a worker whose nanny starts none in its place."""
    pid = nanny.pid
    nanny.close_gracefully()
    os.kill(pid, signal.SIGKILL)


def disturb(monkeypatch, happen):
    """Let something happen before the third sum of a fit; return the list of the sums begun."""
    plain, calls = DaskEngine.total, []

    def total(self, *arguments):
        calls.append(1)
        if len(calls) == 3:
            happen()
        return plain(self, *arguments)

    monkeypatch.setattr(DaskEngine, "total", total)
    return calls


def doubled(A, factor):
    return factor * A


def shifted(A, shift):
    return A + shift


def product(A, X):
    return A @ X


def smoothed(A, X):
    return A @ (A.T @ X)


def dies_once(A, flag):
    """Takes the worker down with it, the first time that any worker gets here."""
    try:
        Path(flag).touch(exist_ok=False)
    except FileExistsError:
        return A.copy()
    os.kill(os.getpid(), signal.SIGKILL)


def dies(A):
    os.kill(os.getpid(), signal.SIGKILL)


def fails(A):
    raise LinAlgError("not positive definite")


@pytest.mark.parametrize("n_parties", [1, 2, 5])
def test_equals_the_local_engine_in_every_call(threaded, matrices, n_parties):
    X = np.ones((40, 3))
    results = []
    for each in (Engine(), threaded):
        states = each.place(doubled, [(A, 2.0) for A in matrices[:n_parties]])
        assert len(states) == n_parties
        moved = each.update(shifted, states, 1.0)
        results.append((each.total(product, moved, X), each.gather(product, moved, X), each.gather(abs, states)))
    assert_allclose(results[1][0], results[0][0], rtol=1e-13)
    assert_array_equal(results[1][1], results[0][1])
    assert_array_equal(results[1][2], results[0][2])


def test_many_groups_are_added_up_in_their_order(threaded, matrices, monkeypatch):
    monkeypatch.setattr(_dask, "_FAN", 2)
    threaded._homes = threaded._homes * 3
    states = threaded.place(doubled, [(A, 1.0) for A in matrices])
    assert len(set(states)) == 5
    a, b, c, d, e = matrices
    assert_array_equal(threaded.total(product, states, np.eye(40)), ((a + b) + (c + d)) + e)


@pytest.mark.slow
def test_an_analyst_fits_on_the_client(threads, monkeypatch):
    calls = disturb(monkeypatch, lambda: None)
    target = np.linspace(0.0, 1.0, 300)
    shares = [
        Share(party=party, representation=A[:50], anchor_representation=A, target=target[:50], anchor_target=target)
        for party, A in nonlinear_views(300)[0].items()
    ]
    options = {"solver": "nystroem", "n_landmarks": 30}
    there = Analyst(KTI(4, engine=threads, **options), Ridge()).fit(shares)
    assert len(calls) > 3
    here = Analyst(KTI(4, engine=Engine(), **options), Ridge()).fit(shares)
    assert_allclose(there.integrator_.objective_, here.integrator_.objective_, rtol=1e-8)
    assert nothing_is_left(threads)


@pytest.mark.slow
@pytest.mark.parametrize("copy", [lambda fitted: pickle.loads(pickle.dumps(fitted)), deepcopy], ids=["pickle", "copy"])
def test_a_fit_is_kept_without_its_client(threads, views, copy):
    for fitted in (
        KTI(4, solver="nystroem", n_landmarks=30, engine=threads).fit(views),
        KTICV(4, kernels=("linear",), alphas=(0.1,), engine=threads).fit(views),
    ):
        kept = copy(fitted)
        assert fitted.engine is threads
        assert kept.engine is getattr(kept, "integrator_", kept).engine is None
        assert_array_equal(kept.transform(views)["a"], fitted.transform(views)["a"])
        assert_allclose(kept.fit(views).objective_, fitted.objective_, rtol=1e-6)


def test_memory_is_that_of_the_cluster(threads):
    limits = [worker.memory_manager.memory_limit for worker in threads.cluster.workers.values()]
    assert DaskEngine(threads).memory == pytest.approx(0.8 * sum(limits))
    assert KTI(4, engine=threads).estimate_cost(2000, 3).limit == pytest.approx(0.8 * sum(limits))


def test_a_machine_with_another_version_is_named(threads, views, monkeypatch):
    found = threads.get_versions(packages=["datacollab"])
    worker = list(found["workers"])[1]
    monkeypatch.setattr(threads, "get_versions", lambda packages: found)
    for version, named in ((None, "no datacollab"), ("0.0.1", "datacollab 0.0.1")):
        found["workers"][worker]["packages"]["datacollab"] = version
        with pytest.raises(ClusterError, match=rf"{re.escape(f'{worker} has {named}, ')}.*Install this version"):
            KTI(4, engine=threads).fit(views)


def test_what_is_no_client_is_named_before_any_work(threads, views):
    for integrator in (KTI(4, engine=threads.cluster), KTICV(4, engine="dask")):
        with pytest.raises(ValueError, match=r"'engine'.* a Dask client, such as distributed\.Client\(cluster\)"):
            integrator.fit(views)


def test_a_cluster_without_workers_is_an_error(views):
    with (
        distributed.Client(processes=False, n_workers=0, dashboard_address=":0") as client,
        pytest.raises(ClusterError, match=r"no workers\. Start some.*fit again"),
    ):
        KTI(4, engine=client).fit(views)


def test_a_scheduler_that_is_gone_is_an_error(matrices):
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster.scheduler_address, timeout=1) as client,
    ):
        engine = DaskEngine(client)
        states = engine.place(doubled, [(A, 1.0) for A in matrices])
        cluster.close()
        with pytest.raises(ClusterError, match="closed, or has lost its scheduler"):
            engine.total(product, states, np.eye(40))


@pytest.mark.slow
def test_dask_is_not_loaded_without_a_client():
    code = (
        "import sys, numpy as np; from datacollab import KTI, KTICV\n"
        "A = np.random.default_rng(0).normal(size=(60, 3))\n"
        "KTI(2).fit([A, A[:, ::-1]])\n"
        "KTICV(2, kernels=['linear']).fit([A, A[:, ::-1]])\n"
        "print([name for name in sys.modules if name.startswith(('dask', 'distributed'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_fit_on_a_client_equals_one_process(client, undisturbed, anchors):
    here = KTI(4, solver=undisturbed.solver, n_landmarks=undisturbed.n_landmarks, engine=Engine()).fit(anchors)
    assert undisturbed.objective_ == pytest.approx(here.objective_, rel=1e-10)
    assert subspace_angles(undisturbed.target_, here.target_).max() < 1e-6
    for party, A in anchors.items():
        expected = here.integration_functions_[party](A)
        assert_allclose(undisturbed.integration_functions_[party](A), expected, atol=1e-6)
    assert nothing_is_left(client)


@pytest.mark.slow
def test_a_worker_killed_in_mid_fit_changes_no_number(client, undisturbed, anchors, monkeypatch):
    calls = disturb(monkeypatch, lambda: kill_a_worker(client))
    disturbed = clone(undisturbed).fit(anchors)
    assert len(calls) > 3
    assert_array_equal(disturbed.target_, undisturbed.target_)
    assert_array_equal(disturbed.eigenvalues_, undisturbed.eigenvalues_)
    for party, g in undisturbed.integration_functions_.items():
        assert_array_equal(disturbed.integration_functions_[party].coefficients, g.coefficients)
    assert nothing_is_left(client)


@pytest.mark.nightly
def test_nothing_is_left_on_the_cluster_of_a_fit_that_fails(client, anchors, monkeypatch):
    def fail():
        raise LinAlgError("not positive definite")

    disturb(monkeypatch, fail)
    with pytest.raises(LinAlgError) as kept:  # the traceback refers to what was there
        KTI(4, engine=client, **SOLVERS[1]).fit(anchors)
    assert kept.value.__traceback__
    assert nothing_is_left(client)


@pytest.mark.nightly
def test_only_what_is_shared_and_one_sum_per_worker_move(client, engine, rng):
    n, b, n_workers = 2000, 12, 2
    X = rng.normal(size=(n, b))
    states = engine.place(doubled, [(rng.normal(size=(n, 300)), 1.0) for _ in range(4)])

    def sent(dask_worker):
        return dask_worker.transfer_outgoing_bytes_total

    before = sum(client.run(sent).values())
    for _ in range(5):
        engine.total(smoothed, states, X)
    # Dask leaves out the way from here to the first worker.
    assert sum(client.run(sent).values()) - before == pytest.approx(5 * (2 * n_workers - 1) * n * b * 8, rel=0.01)


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_worker_lost_within_a_task_is_survived(engine, matrices, tmp_path):
    flag = str(tmp_path / "died")
    states = engine.place(doubled, [(A, 1.0) for A in matrices])
    states = engine.update(dies_once, states, flag)
    assert_array_equal(engine.gather(dies_once, states, flag), matrices)
    assert Path(flag).exists()
    assert_allclose(engine.total(product, states, np.eye(40)), sum(matrices))


@pytest.mark.nightly
def test_a_worker_that_dies_again_and_again_is_an_error(engine, matrices, monkeypatch):
    monkeypatch.setattr(_dask, "_ATTEMPTS", 2)
    states = engine.place(doubled, [(A, 1.0) for A in matrices[:1]])
    with pytest.raises(ClusterError, match=r"lost 2 times in one step of the fit\. Their logs say why.*more or larger"):
        engine.update(dies, states)


@pytest.mark.nightly
def test_goes_on_with_the_workers_that_are_left_until_there_is_none(matrices, monkeypatch):
    monkeypatch.setattr(_dask, "_PATIENCE", 0.5)
    with local_cluster(3) as cluster, distributed.Client(cluster) as client:
        engine = DaskEngine(client)
        states = engine.place(doubled, [(A, 1.0) for A in matrices])
        X = np.repeat(np.eye(40), 8, axis=1)  # large enough to be scattered
        before = engine.total(product, states, X)
        client.retire_workers([engine._homes[0]])
        # The same groups are summed, so nothing but the place has changed.
        assert_array_equal(engine.total(product, states, X), before)
        nannies = {nanny.worker_address: nanny for nanny in cluster.workers.values()}
        kill_for_good(nannies[engine._homes[1]])
        assert_array_equal(engine.total(product, states, X), before)
        [last] = client.nthreads()
        kill_for_good(nannies[last])
        with pytest.raises(ClusterError, match="no workers"):
            engine.total(product, states, X)
