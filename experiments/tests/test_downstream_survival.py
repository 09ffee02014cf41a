"""The benchmark of survival runs, and what it is held to are figures that it measures."""

import numpy as np
import pytest

from datacollab_experiments.downstream import survival


def test_rows_are_nobodys_twice():
    split = survival.split_of("whas500", 2, 50, 0)
    rows = np.concatenate([*(X for X, _ in split.parties.values()), split.anchor, split.test])
    times = np.concatenate([split.test_target["time"], *(y["time"] for _, y in split.parties.values())])
    assert len(np.unique(rows, axis=0)) >= 0.99 * len(rows)
    assert split.label == "whas500 2x50"
    # What is shared is whole months; what is judged is exact.
    assert np.allclose(times[len(split.test) :], np.round(times[len(split.test) :]))
    assert not np.allclose(split.test_target["time"], np.round(split.test_target["time"]))
    assert split.times[-1] <= min(y["time"].max() for _, y in split.parties.values())


def test_without_a_penalty_affine_maps_give_the_model_of_all_rows():
    """PCA of full rank and affine maps are one affine map of the columns, which a Cox regression does not see."""
    split = survival.split_of("flchain", 3, 60, 0)
    d = split.test.shape[1]
    plain = lambda: survival.cox(0.0)  # noqa: E731
    whole = survival.central(split, plain)
    said = survival.collaboration(split, plain, "pca", survival.dc.LTI(d, fit_intercept=True), n_components=d)
    for k in split.parties:
        np.testing.assert_allclose(said[k].risk, whole[k].risk, atol=1e-6)
        np.testing.assert_allclose(said[k].survival, whole[k].survival, atol=1e-6)
    assert survival.scores(split, said, whole)["kappa of risk groups with Central"] == pytest.approx(1.0)


def test_a_party_without_a_model_guesses():
    split = survival.split_of("whas500", 2, 50, 0)
    whole = survival.central(split, survival.cox)
    assert survival.scores(split, {0: None, 1: None}, whole) == {"C-index": 0.5}


@pytest.mark.nightly
def test_what_is_wanted_is_measured():
    found = {(data, method, measure) for data, method, measure, _ in survival.measure(0)}
    for one in survival.WANTED:
        assert (one.data, one.method, one.measure) in found
        assert one.beside is None or (one.data, one.beside, one.measure) in found
