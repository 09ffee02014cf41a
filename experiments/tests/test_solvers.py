"""Studies of KTI's solvers: what they measure against, how they measure, and that the commands run."""

import json
import statistics
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from datacollab import KTI
from datacollab_experiments.solvers import __main__ as solvers
from datacollab_experiments.solvers import cases, measuring, mnist_parties, oracles, parts, tables

PROBLEM = {"alpha": 1.0, "gamma": 1 / 16}
MIB = 2**20


@pytest.fixture(scope="module")
def digits():
    return mnist_parties.load_table("digits", None)


@pytest.fixture(scope="module")
def anchors(digits):
    return mnist_parties.draw_parties(*digits, n_anchors=200, n_parties=3).anchors


@pytest.fixture(scope="module")
def reference(anchors):
    return oracles.naive(anchors, 16, **PROBLEM)


@pytest.fixture
def quick_rates(monkeypatch):
    monkeypatch.setattr(cases, "gemm_rate", lambda dtype: measuring.gemm_rate(dtype, size=64, repeats=1))


def row(method, n_anchors, cpu, **entries):
    case = {name: entries.pop(name) for name in ("n_parties", "n_columns") if name in entries}
    return {
        "case": asdict(cases.Case(method, n_anchors, **case)),
        "cpu": cpu,
        "wall": 2 * cpu,
        "memory": 10 * MIB,
        "objective": 1.0,
        "load": 0.1,
        "dgemm": 1e9,
        "sgemm": 2e9,
        "n_landmarks": None,
        **entries,
    }


def cells(table, *start):
    """Cells of the table's line that starts with these."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    (found,) = (line for line in lines if line[: len(start)] == list(start))
    return found


def render(rows):
    return tables.render(rows, machine={"processor": "one", "cores": 1}, code="abc")


def section(text, title):
    return text.split(f"### {title}\n")[1].split("\n###")[0]


def rbf(X, A, gamma):
    return np.exp(-gamma * ((X[:, None] - A[None]) ** 2).sum(axis=2))


def kti_objective(kernels, Z, alpha):
    """What the paper minimises, at the best coefficients for a target."""
    found = 0.0
    for K in kernels.values():
        coefficients = np.linalg.solve(K + alpha * np.eye(len(K)), Z)
        residuals = Z - K @ coefficients
        found += np.sum(residuals**2) + alpha * np.trace(coefficients.T @ K @ coefficients)
    return found


class TestParties:
    def test_anchors_are_standardised_and_rows_are_on_their_scale(self, digits):
        parties = mnist_parties.draw_parties(*digits, n_anchors=150, n_parties=2, n_columns=5, n_test=40)
        for party, A in parties.anchors.items():
            assert A.shape == (150, 5)
            assert_allclose(A.mean(axis=0), 0, atol=1e-12)
            assert_allclose(A.std(axis=0), 1)
            assert parties.rows[party].shape == (mnist_parties.ROWS_PER_PARTY, 5)
            assert parties.test[party].shape == (40, 5)
        assert parties.test_target.shape == (40,)

    @pytest.mark.parametrize("kind", ["pca", "kernel-pca"])
    def test_the_same_seed_draws_the_same(self, digits, kind):
        first, again, other = (
            mnist_parties.draw_parties(*digits, n_anchors=60, n_parties=2, kind=kind, seed=seed).anchors["party-1"]
            for seed in (1, 1, 2)
        )
        assert_array_equal(first, again)
        assert not np.allclose(first, other)

    @given(n_anchors=st.integers(1, 200), n_free=st.integers(10, 80), seed=st.integers(0, 99))
    def test_rows_come_first_and_then_points_between_two_of_a_class(self, n_anchors, n_free, seed):
        y = np.resize(np.arange(3), 100)
        rng = np.random.default_rng(seed)
        free = rng.permutation(100)[:n_free]
        first, second, weight = mnist_parties._anchor_pairs(y, free, n_anchors, rng)
        plain = min(n_free, n_anchors)
        assert_array_equal(first[:plain], free[:plain])
        assert_array_equal(weight[:plain], 0)
        assert len(first) == len(second) == len(weight) == n_anchors
        assert set(first) | set(second) <= set(free)
        assert_array_equal(y[first], y[second])
        assert np.all((weight >= 0) & (weight < 1))


class TestOracles:
    def test_naive_attains_the_papers_objective(self, anchors, reference):
        kernels = {party: rbf(A, A, 1 / 16) for party, A in anchors.items()}
        assert_allclose(reference.objective, kti_objective(kernels, reference.target, 1.0), rtol=1e-10)

    def test_naive_is_kti(self, anchors, reference):
        kti = KTI(16, solver="exact", **PROBLEM).fit(anchors)
        assert oracles.largest_sine(kti.target_, reference.target) < 1e-8
        assert_allclose(kti.objective_, reference.objective, rtol=1e-12)
        for party, A in anchors.items():
            ours = kti.integration_functions_[party](A)
            naive = rbf(A, A, 1 / 16) @ reference.coefficients[party]
            assert_allclose(ours @ ours.T, naive @ naive.T, atol=1e-6)

    def test_cholesky_is_naive(self, anchors, reference):
        found = oracles.cholesky(anchors, 16, **PROBLEM)
        assert oracles.largest_sine(found.target, reference.target) < 1e-8
        assert_allclose(found.objective, reference.objective, rtol=1e-12)
        for party in anchors:
            ours, naive = found.coefficients[party], reference.coefficients[party]
            assert_allclose(ours @ ours.T, naive @ naive.T, atol=1e-9)

    def test_attained_is_the_objective(self, anchors, reference):
        assert_allclose(oracles.attained(anchors, reference.target, **PROBLEM), reference.objective, rtol=1e-12)

    @given(seed=st.integers(0, 99))
    def test_no_other_target_attains_less(self, anchors, reference, seed):
        Z = np.linalg.qr(np.random.default_rng(seed).normal(size=(200, 16)))[0]
        assert oracles.attained(anchors, Z, **PROBLEM) > reference.objective

    def test_published_minimises_the_squared_residuals(self, anchors, reference):
        identity = np.eye(200)
        residuals = []
        for A in anchors.values():
            K = rbf(A, A, 1 / 16)
            K /= np.linalg.norm(K, 2)
            # I - P = lambda (K + lambda I)^-1
            residuals.append(np.linalg.solve(K + identity, identity))

        def value(Z):
            return sum(np.linalg.norm(R @ Z, "fro") ** 2 for R in residuals)

        target = oracles.published(anchors, 16, **PROBLEM).target
        least = np.linalg.eigvalsh(sum(R @ R for R in residuals))[:16].sum()
        assert_allclose(value(target), least, rtol=1e-10)
        assert value(reference.target) > 1.0001 * least

    @pytest.mark.parametrize("alpha", [0.1, 1.0])
    def test_kgcca_is_kti_on_centred_kernels(self, anchors, alpha):
        options = {"alpha": alpha, "gamma": 1 / 16}
        wanted = oracles.kti_on_centred_kernels(anchors, 8, **options)
        assert oracles.largest_sine(oracles.kgcca(anchors, 8, **options).target, wanted) < 1e-6

    @given(angle=st.floats(0, np.pi / 2))
    def test_largest_sine(self, angle):
        Z, W = np.zeros((2, 4, 2))
        Z[:2] = np.eye(2)
        W[0, 0] = 1
        W[1:3, 1] = np.cos(angle), np.sin(angle)
        assert_allclose(oracles.largest_sine(Z, W), np.sin(angle), atol=1e-15)


class TestMeasuring:
    @pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak is reset where Linux lets one")
    def test_memory_is_what_was_taken_in_between(self):
        np.ones(200 * MIB // 8).sum()
        with measuring.measured() as measurement:
            np.ones(64 * MIB // 8).sum()
        assert 60 * MIB < measurement.memory < 80 * MIB

    def test_times(self):
        with measuring.measured() as measurement:
            np.linalg.eigvalsh(np.eye(200))
        assert measurement.cpu > 0
        assert measurement.wall > 0

    @pytest.mark.parametrize(("size", "taken"), [(300, "sum"), (1300, "correction")])
    def test_parts_of_a_fit_are_those_of_its_solver_and_no_part_is_counted_twice(self, digits, size, taken):
        anchors = mnist_parties.draw_parties(*digits, n_anchors=size, n_parties=2).anchors
        found = parts.seconds_by_part(lambda: KTI(8, solver="exact", **PROBLEM).fit(anchors))
        assert list(found) == [*parts.PARTS, "rest"]
        unused = {"sum": ["start", "solves", "correction"], "correction": ["sum"]}[taken]
        for part in (*parts.PARTS, "rest"):
            assert (found[part] == 0) if part in unused else (found[part] > 0), (part, found[part])

    def test_threads_are_pinned_in_the_environment(self):
        assert measuring.one_thread_environment(2)["OPENBLAS_NUM_THREADS"] == "2"


class TestSolvers:
    def test_every_method_gives_a_row(self, anchors, quick_rates, tmp_path):
        rows = {}
        for method in cases.METHODS:
            case = cases.Case(method, 200, n_parties=3, dataset="digits")
            rows[method] = cases.fit_once(case, anchors, tmp_path / "target.npy", check_up_to=200)
            assert json.loads(json.dumps(rows[method])) == rows[method]
            assert rows[method]["cpu"] > 0
        for method in ("cholesky", "exact", "exact-float32", "exact-two-matrices"):
            assert rows[method]["sine"] < 1e-3
            assert_allclose(rows[method]["objective"], rows["naive"]["objective"], rtol=1e-7)
        assert rows["nystroem"]["attained"] > rows["naive"]["attained"]
        assert rows["nystroem"]["sine"] > 1e-6
        assert rows["cca-zoo"]["sine"] < 1e-6
        assert "sine" not in rows["published"]

    def test_command_measures_once_and_goes_on(self, monkeypatch, tmp_path, capsys):
        started = []

        def fit(case, anchors, reference, check_up_to, timeout):
            started.append((case.method, check_up_to))
            with np.load(anchors) as file:
                assert file["party-0"].shape == (case.n_anchors, 16)
            if case.method == "published":
                return {"error": "MemoryError"}
            measured = row(case.method, case.n_anchors, 200.0 if case.method == "naive" else 1.0)
            return {name: value for name, value in measured.items() if name != "case"}

        monkeypatch.setattr(cases, "in_fresh_process", fit)
        command = ["--dataset", "digits", "--parts", "sizes", "--sizes", "100", "--repeats", "2"]
        command += ["--methods", "naive", "published", "exact", "--output", str(tmp_path)]
        assert solvers.main(command) == 1
        # Neither what took long nor what failed is repeated, and targets are compared once.
        assert started == [("naive", 6400), ("published", 6400), ("exact", 6400), ("exact", 0)]
        page = capsys.readouterr().out
        assert "published, 100 anchor rows, 10 parties: MemoryError" in page
        assert cells(section(page, "Time and exactness"), "100", "exact")[2:4] == ["1", "200.0"]
        solvers.main(command)
        assert len(started) == 4
        solvers.main([*command, "--retry-failed"])
        assert [method for method, _ in started[4:]] == ["published"]

    @pytest.mark.slow
    def test_a_fit_in_a_process_of_its_own(self, tmp_path):
        options = solvers.parser().parse_args(
            ["--dataset", "digits", "--parts", "sizes", "--sizes", "200", "--repeats", "1", "--methods", "exact"]
        )
        options.output, options.check_up_to = tmp_path, 0
        (task,) = solvers.tasks_of(solvers.plan(options), options)
        (outcome,) = task.measure()
        assert outcome.scores["dgemm"] > 0
        assert "attained" not in outcome.scores
        assert outcome.seconds["cpu"] > 0

    @pytest.mark.slow
    def test_what_goes_wrong_there_is_recorded(self, tmp_path):
        np.savez(tmp_path / "anchors.npz", a=np.zeros((300, 16)), b=np.ones((300, 16)))
        case = cases.Case("exact", 300, n_parties=2)
        found = cases.in_fresh_process(case, tmp_path / "anchors.npz", tmp_path / "target.npy", 0, 600)
        assert "RepresentationError" in found["error"]
        late = cases.in_fresh_process(case, tmp_path / "anchors.npz", tmp_path / "target.npy", 0, 0.01)
        assert late["error"] == "more than 0.01 s"
        assert cases.median_of("cell", [found]).error == found["error"]

    @given(cpu=st.lists(st.floats(0, 100), min_size=1, max_size=7))
    def test_the_median_time_and_the_most_memory_of_repeated_fits_count(self, cpu):
        rows = [{"cpu": each, "wall": 2 * each, "memory": i, "n_landmarks": None} for i, each in enumerate(cpu)]
        rows[0]["attained"] = 1.5
        found = cases.median_of("cell", rows)
        assert found.seconds["wall"] == 2 * found.seconds["cpu"]
        assert found.seconds["cpu"] == statistics.median_low(cpu)
        assert found.scores == {"memory": len(cpu) - 1, "attained": 1.5}

    def test_plan_keeps_slow_methods_to_small_sizes_and_fits_nothing_twice(self):
        planned = solvers.plan(solvers.parser().parse_args([]))
        assert len(set(planned)) == len(planned)
        largest = {method: max(case.n_anchors for case in planned if case.method == method) for method in cases.METHODS}
        assert largest["cca-zoo"] == largest["cholesky"] == 3200
        assert largest["naive"] == largest["exact"] == 6400
        assert largest["nystroem"] == 100_000
        assert {case.n_columns for case in planned} == {4, 16, 64}
        assert {case.gamma for case in planned} == {1 / 4, 1 / 16, 1 / 64}

    def test_cases_of_one_problem_are_one_task_with_one_reference(self):
        options = solvers.parser().parse_args([])
        case = cases.Case("naive", 400)
        same = replace(case, method="exact", threads=2, repeats=3)
        tasks = solvers.tasks_of([case, same, replace(case, n_columns=4)], options)
        assert [list(task.cells.values()) for task in tasks] == [[case, same], [replace(case, n_columns=4)]]
        assert tasks[0].reference != tasks[1].reference


class TestTables:
    def test_times_and_ratios(self):
        rows = [
            row("naive", 1600, 8.0, attained=1.0),
            row("exact", 1600, 2.0, objective=1.0 + 1e-9, attained=1.0 + 1e-11, sine=2e-9),
        ]
        text = render(rows)
        found = cells(section(text, "Time and exactness"), "1,600", "exact")
        assert found[2:] == ["2", "4.0", "", "", "", "1.0", "1.0e-09", "1.0e-11", "2.0e-09", ""]

    def test_bounds(self):
        # K n³/3 = 10 · 300³ / 3 = 9e7 operations take .09 s in float64 and .045 s in float32.
        text = section(render([row("exact", 300, 0.45)]), "Distance to the bound")
        assert cells(text, "300", "exact")[2:] == ["0.09", "0.45", "0.09", "5.0", "0.045", "10.0", "20.0%", "10.0%"]

    def test_memory_formula(self):
        text = section(render([row("exact", 1024, 1.0, memory=54 * MIB)]), "Memory")
        # 2 K n² + 16 n² = 36 MiB
        assert cells(text, "1,024", "exact")[-2:] == ["36", "1.50"]

    @given(exponent=st.floats(0.2, 3.5), factor=st.floats(0.01, 100))
    def test_slope_of_a_power_is_its_exponent(self, exponent, factor):
        x = np.array([10_000, 20_000, 100_000])
        assert_allclose(tables.slope(x, factor * x**exponent), exponent, rtol=1e-6)

    def test_slopes_are_taken_where_all_else_is_fixed(self):
        rows = [row("exact", 3200, 0.5 * K, n_parties=K) for K in (2, 4, 10)]
        rows += [row("exact", n, (n / 3200) ** 3 * 5.0) for n in (400, 1600)]
        rows += [row("nystroem", n, n / 1e4, n_landmarks=512) for n in (10_000, 20_000, 100_000)]
        text = section(render(rows), "Slopes")
        assert cells(text, "exact", "K")[2:4] == ["n_a = 3,200, d̃ = 16", "1.00"]
        assert cells(text, "exact", "n_a")[3] == "3.00"
        assert cells(text, "nystroem", "n_a")[3] == "1.00"

    def test_frozen_numbers_are_there(self):
        assert cells(tables.frozen(), "800") == ["800", "119"]

    def test_nothing_measured(self):
        assert render([]) == "Nothing measured yet."
