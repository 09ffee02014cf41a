"""The benchmark of landmarks beside the exact solver: its two gaps, and its command."""

import json

import numpy as np
import pytest

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


def test_one_fit_is_printed(tmp_path, anchors, capsys):
    np.savez(tmp_path / "anchors.npz", allow_pickle=False, **anchors)
    assert gap.main(["--fit", str(tmp_path / "anchors.npz"), "--landmarks", "40"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["landmarks"] == 40
    assert told["cpu"] > 0
