"""Peers of KTI's solvers solve the same problem, landmarks' gaps are the objective's, and commands print them."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from datacollab import KTI
from datacollab_experiments.solvers import gap, oracles, peers


@pytest.fixture(scope="module")
def bent():
    """Representations of two parties: tanh of combinations of four latent columns."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(400, 4))
    return {party: np.tanh(latent @ rng.normal(size=(4, 16))) for party in ("a", "b")}


def test_the_gaps_are_those_of_the_objective(tmp_path, bent):
    """What is returned attains what the fit reports; the best functions of this target are nearer to the minimum."""
    row = gap.fit(bent, 50, tmp_path / "result.npz")
    found = dict(np.load(tmp_path / "result.npz"))
    exact = KTI(gap.COMPONENTS, solver="exact").fit(bent)
    assert row["landmarks"] == 50
    assert row["gammas"] == pytest.approx(exact.gammas_)
    attained = oracles.attained(bent, found["target"], alpha=0.1, gamma=row["gammas"])
    returned = gap.objective_of(bent, found, alpha=0.1, gammas=row["gammas"])
    assert returned == pytest.approx(row["objective"], rel=1e-5)
    assert exact.objective_ < attained < returned
    of_exact = oracles.attained(bent, exact.target_, alpha=0.1, gamma=row["gammas"])
    assert of_exact == pytest.approx(exact.objective_, rel=1e-9)


def test_one_fit_is_printed(tmp_path, bent, capsys):
    np.savez(tmp_path / "anchors.npz", allow_pickle=False, **bent)
    assert gap.main(["--fit", str(tmp_path / "anchors.npz"), "--landmarks", "40"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["landmarks"] == 40
    assert told["cpu"] > 0


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
