"""The script that tries readings of the paper's protocol: restricted accuracies, halves, and distances."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trials import DIGITS, distinct_digits

from datacollab.analyst import KTI
from datacollab_experiments.paper import Condition, draw_trial, load_experiment, score_method
from datacollab_experiments.readings import protocol

ROOT = Path(__file__).resolve().parents[2]


class ByFirstColumn:
    """Predicts what stands in the first column."""

    def predict(self, rows):
        return rows[:, 0]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_accuracy_on_some_labels_is_that_of_a_loop(predicted_and_true):
    predicted = np.array([[a, b] for a, b, _ in predicted_and_true])
    y = np.array([true for _, _, true in predicted_and_true])
    represented = {"a": predicted[:, :1], "b": predicted[:, 1:]}
    if not (y >= 3).any():
        y[0] = 3
    by_party = []
    for rows in represented.values():
        right = counted = 0
        for row, true in zip(rows, y, strict=True):
            if true >= 3:
                counted += 1
                right += row[0] == true
        by_party.append(right / counted)
    restricted = protocol.accuracy_on(ByFirstColumn(), represented, y, lambda y: y >= 3)
    assert restricted == pytest.approx(sum(by_party) / 2)
    whole = protocol.accuracy_on(ByFirstColumn(), represented, y)
    assert whole == pytest.approx(np.mean([np.mean(rows[:, 0] == y) for rows in represented.values()]))


@given(st.integers(0, 200), st.integers(0, 50))
def test_a_half_is_the_same_again_and_without_repetition(n_rows, seed):
    half = protocol.half_of(n_rows, seed)
    assert len(half) == len(set(half)) == n_rows // 2
    assert set(half) <= set(range(n_rows))
    assert np.array_equal(half, protocol.half_of(n_rows, seed))


def test_halves_differ_between_seeds():
    assert set(protocol.half_of(100, 0)) != set(protocol.half_of(100, 1))


def test_representations_on_another_scale():
    """As they are: what experiments score.  By anchors: KTI sees anchors of mean 0 and variance 1, LTI their span."""
    data = distinct_digits()
    condition = replace(DIGITS, obfuscator="pca", hyperparameters="paper")
    trial = draw_trial(condition, data, 1)
    integrator = KTI(n_components=condition.n_components, gamma=1.0, alpha=1.0)
    as_they_are = protocol._scaled_accuracy(trial, integrator, by_anchors=False, raw=False)
    assert as_they_are == pytest.approx(score_method(trial, "KTI", condition, "classification").value, abs=1e-12)
    anchors = {}

    class Watched(KTI):
        def fit(self, A, y=None):
            anchors.update(A)
            return super().fit(A, y)

    watched = Watched(n_components=condition.n_components, gamma=1.0, alpha=1.0)
    scaled = protocol._scaled_accuracy(trial, watched, by_anchors=True, raw=False)
    assert len(anchors) == len(trial.shares)
    for A in anchors.values():
        np.testing.assert_allclose(A.mean(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(A.std(axis=0), 1, atol=1e-9)
    assert scaled != as_they_are


def test_the_distances_of_the_committed_results(capsys):
    """Once more from the file by hand, for LTI under PCA: published values as the paper prints them."""
    protocol.main(["cells", str(ROOT / "docs" / "results")])
    printed = capsys.readouterr().out
    published = {
        ("mnist", "4"): 0.408, ("mnist", "16"): 0.755, ("mnist", "64"): 0.751,
        ("fashion-mnist", "4"): 0.538, ("fashion-mnist", "16"): 0.721, ("fashion-mnist", "64"): 0.725,
    }  # fmt: skip
    with (ROOT / "docs" / "results" / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    differences = []
    for (dataset, width), value in published.items():
        scores = [
            float(row["accuracy"])
            for row in rows
            if (row["experiment"], row["dataset"], row["obfuscator"], row["n_components"], row["name"])
            == ("rq4", dataset, "pca", width, "LTI")
            and row["hyperparameters"] == "paper"
        ]
        assert len(scores) == 5
        differences.append(abs(sum(scores) / 5 - value))
    assert f"LTI, pca: mean absolute difference {sum(differences) / 6:.3f}, 0 of 6 inside" in printed


def test_the_definition_has_the_reading_of_the_paper_preset():
    tried = load_experiment(Path(protocol.__file__).with_name("protocol.toml"), "quick")
    (paper,) = {
        (c.split, c.concentration, c.kernel_width, c.n_sources) for c in load_experiment("rq4", "paper").conditions
    }
    assert {(c.split, c.concentration, c.kernel_width, c.n_sources) for c in tried.conditions} == {paper}
    assert {c.hyperparameters for c in tried.conditions} == {"paper"}
    assert paper[0] != Condition().split
