"""The benchmark of landmarks beside the exact solver: its two gaps, and its command."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

from datacollab import KTI
from datacollab_experiments.solvers import gap, oracles


@pytest.fixture(scope="module")
def anchors():
    """Representations of two parties: tanh of combinations of four latent columns."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(400, 4))
    return {party: np.tanh(latent @ rng.normal(size=(4, 16))) for party in ("a", "b")}


def test_the_gaps_are_those_of_the_objective(tmp_path, anchors):
    """What is returned attains what the fit reports; the best functions of this target are nearer to the minimum."""
    row = gap.fit(anchors, 50, tmp_path / "result.npz")
    found = dict(np.load(tmp_path / "result.npz"))
    exact = KTI(gap.COMPONENTS, solver="exact").fit(anchors)
    assert row["landmarks"] == 50
    assert row["gammas"] == pytest.approx(exact.gammas_)
    attained = oracles.attained(anchors, found["target"], alpha=0.1, gamma=row["gammas"])
    returned = gap.objective_of(anchors, found, alpha=0.1, gammas=row["gammas"])
    assert returned == pytest.approx(row["objective"], rel=1e-5)
    assert exact.objective_ < attained < returned
    of_exact = oracles.attained(anchors, exact.target_, alpha=0.1, gamma=row["gammas"])
    assert of_exact == pytest.approx(exact.objective_, rel=1e-9)


def test_fits_are_named_by_their_landmarks():
    assert gap.integrator(None).solver == "exact"
    assert gap.integrator(gap.AUTO).n_landmarks is None
    assert gap.integrator(50).n_landmarks == 50


def test_one_fit_is_printed(tmp_path, anchors, capsys):
    np.savez(tmp_path / "anchors.npz", allow_pickle=False, **anchors)
    assert gap.main(["--fit", str(tmp_path / "anchors.npz"), "--landmarks", "40"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["landmarks"] == 40
    assert told["cpu"] > 0


@pytest.mark.nightly
def test_the_table_has_a_line_for_each_number_of_landmarks(monkeypatch, capsys):
    monkeypatch.setattr(gap, "load_table", lambda name, data_dir: load_digits(return_X_y=True))
    command = ["--kinds", "pca", "--n-anchors", "350", "--pairs", "1", "--landmarks", "60", "350"]
    assert gap.main(command) == 0
    table = capsys.readouterr().out.split("Medians of 1 pairs, 1 thread(s) of BLAS.")[1]
    few, all_rows = (line.split("|") for line in table.splitlines() if line.startswith("| pca"))
    assert float(few[5]) > 1e-3 > 1e-4 > abs(float(all_rows[5]))
    assert float(few[6]) > 1e-3 > 1e-4 > abs(float(all_rows[6]))
