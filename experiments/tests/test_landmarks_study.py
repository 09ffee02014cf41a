"""The benchmark of landmarks: its data, what it measures, and that its command goes on where it was stopped."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression

from datacollab_experiments.harness import read_outcomes, results_file
from datacollab_experiments.solvers import landmark_data, landmarks


@pytest.fixture(scope="module")
def parties():
    return landmark_data.draw("tanh-4", n_anchors=400, n_parties=2, n_test=200)


def test_parties_see_features_of_one_latent(parties):
    """Of the same rows, one party's columns are nearly a linear function of any other's."""
    for party, A in parties.anchors.items():
        assert A.shape == (400, 16)
        assert_allclose(A.mean(axis=0), 0, atol=1e-9)
        assert_allclose(A.std(axis=0), 1, atol=1e-9)
        assert parties.rows[party].shape == (100, 16)
        assert set(parties.targets[party]) <= set(range(10))
    assert len(set(parties.test_target)) > 3
    for both in (parties.anchors, parties.test):
        first, second = both.values()
        assert LinearRegression().fit(first, second).score(first, second) > 0.9


def test_a_draw_is_the_same_again_and_another_seed_another(parties):
    again = landmark_data.draw("tanh-4", n_anchors=400, n_parties=2, n_test=200)
    other = landmark_data.draw("tanh-4", n_anchors=400, n_parties=2, n_test=200, seed=1)
    for party, A in parties.anchors.items():
        assert_allclose(again.anchors[party], A, rtol=0)
        assert not np.allclose(other.anchors[party], A)


def test_alignment_is_that_of_spaces():
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 4)))[0]
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(2, 2)))[0]
    assert landmarks.alignment(Q[:, :2] @ turn, Q[:, :2]) == pytest.approx(1)
    assert landmarks.alignment(Q[:, :2], Q[:, 2:]) == pytest.approx(0, abs=1e-12)
    assert landmarks.alignment(Q[:, :2], Q[:, 1:3]) == pytest.approx(0.5)
    assert landmarks.alignment(Q[:, :2], Q[:20, :2]) is None
    assert landmarks.alignment(Q[:, :2], None) is None


def rows(command):
    """What a command's results hold, by method."""
    options = landmarks.parser().parse_args(command)
    found = list(read_outcomes(results_file(options.output), landmarks.tasks_of(options)))
    return {row["method"]: row for row in landmarks.rows_of(found)}


@pytest.mark.slow
def test_command_measures_each_method_once(monkeypatch, tmp_path, capsys):
    command = ["--data", "digits-pca", "--seeds", "1", "--n-anchors", "300", "--n-parties", "3", "--n-test", "100"]
    command += ["--n-components", "4", "--forests", "1", "--output", str(tmp_path), "--methods", "exact", "40"]
    assert landmarks.main(command) == 0
    # The exact target is found again for methods that come later.
    command += ["80", "exact-150"]
    assert landmarks.main(command) == 0
    found = rows(command)
    exact, few, more, some = (found[method] for method in ("exact", "40", "80", "exact-150"))
    assert [few["n_landmarks"], more["n_landmarks"], exact.get("n_landmarks")] == [40, 80, None]
    assert exact["missed"] < more["missed"] < few["missed"] < 1
    assert "alignment" not in exact
    assert few["alignment"] < more["alignment"] <= 1
    assert "alignment" not in some
    assert all(0.5 < row["forest"] <= 1 and 0.5 < row["logistic"] <= 1 for row in (exact, few, more, some))
    table = capsys.readouterr().out
    assert f"| digits-pca | 300 | 40 | 1 | 40 | {few['missed']:.4f} |" in table
    assert f"| {few['forest'] - exact['forest']:+.3f} |" in table
    monkeypatch.setattr(landmarks, "measure", None)
    assert landmarks.main(command) == 0
    assert rows(command) == found


def test_a_tolerance_not_reached_is_marked():
    row = {"data": "tanh-12", "n_anchors": 10, "method": "auto", "n_landmarks": 1024, "missed": 0.1, "error": 0.01}
    row |= {"forest": 0.5, "logistic": 0.5, "cpu": 1.0, "memory": 2**20, "warned": True}
    table = landmarks.render([row | {"seed": 0}, row | {"seed": 1, "forest": 0.7}])
    assert "| auto | 2 | 1024! | 0.1000 | 0.0100 |  | 0.600 |  | 0.500 |  | 1.0 | 1 |" in table
