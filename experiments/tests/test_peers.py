"""Peers of the exact solver: they solve the same problem, and the command prints a line for each."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from datacollab import KTI
from datacollab_experiments.solvers import oracles, peers


@pytest.fixture(scope="module")
def anchors():
    rng = np.random.default_rng(1)
    return {party: rng.normal(size=(80, 16)) for party in ("a", "b", "c")}


@pytest.mark.parametrize("integrate", [oracles.naive, oracles.cholesky])
@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_the_formulas_have_the_minimum_of_the_exact_solver(anchors, integrate, alpha):
    minimum = KTI(peers.N_COMPONENTS, solver="exact", alpha=alpha, gamma=peers.GAMMA).fit(anchors).objective_
    found = integrate(anchors, peers.N_COMPONENTS, alpha=alpha, gamma=peers.GAMMA)
    assert found.objective == pytest.approx(minimum, rel=1e-9)
    attained = oracles.attained(anchors, found.target, alpha=alpha, gamma=peers.GAMMA)
    assert attained == pytest.approx(minimum, rel=1e-9)


def test_cca_zoo_solves_the_problem_of_centred_kernels(anchors):
    pytest.importorskip("cca_zoo")
    H = np.eye(80) - 1 / 80
    kernels = [H @ rbf_kernel(A, gamma=peers.GAMMA) @ H for A in anchors.values()]
    smoothers = sum(K @ np.linalg.inv(K + peers.ALPHA * np.eye(80)) for K in kernels)
    Z = np.linalg.eigh(smoothers)[1][:, -peers.N_COMPONENTS :]
    target = peers.METHODS["cca-zoo"](anchors).target
    assert np.linalg.norm(target - Z @ (Z.T @ target), 2) < 1e-4


@pytest.mark.nightly
def test_the_table_has_a_line_for_each_method(monkeypatch, capsys):
    monkeypatch.setattr(peers, "load_table", lambda name, data_dir: load_digits(return_X_y=True))
    monkeypatch.setattr(peers, "fit_in_fresh_process", lambda method, file: peers.fit(method, dict(np.load(file))))
    assert peers.main(["--sizes", "160", "--repeats", "1", "--methods", "cholesky", "exact"]) == 0
    lines = [line.split("|") for line in capsys.readouterr().out.splitlines() if line.startswith("| 160")]
    assert [line[2].strip() for line in lines] == ["cholesky", "exact"]
    assert float(lines[0][6]) < 1e-8
