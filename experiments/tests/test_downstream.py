"""Bounds of figures, the benchmark of survival, and Brier scores beside naive ones."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sksurv import metrics
from sksurv.datasets import load_whas500

import datacollab_experiments.downstream.__main__ as runner
from datacollab.survival import CoxRegression, kaplan_meier
from datacollab.targets import survival_target
from datacollab_experiments.downstream import survival
from datacollab_experiments.downstream.report import Datum, Wanted, judge_figures, report_text
from datacollab_experiments.downstream.tables import brier_score, censoring_weights, mean_brier_score
from datacollab_experiments.harness import _run


def row(method, seed, value):
    return Datum(section="s", data="d", method=method, measure="m", seed=seed, value=value)


ROWS = [row("DC", 0, 0.8), row("DC", 1, 0.9), row("Local", 0, 0.7), row("Local", 1, 0.72)]


def wanted(**bounds):
    return Wanted(section="s", data="d", method="DC", measure="m", **bounds)


@pytest.mark.parametrize(
    ("bounds", "found", "held"),
    [
        ({"at_least": 0.84}, 0.85, True),
        ({"at_least": 0.86}, 0.85, False),
        ({"at_most": 0.86, "at_least": 0.84}, 0.85, True),
        ({"at_least": 0.13, "beside": "Local"}, 0.14, True),
        ({"at_most": 0.13, "beside": "Local"}, 0.14, False),
    ],
)
def test_means_over_seeds_are_judged(bounds, found, held):
    (verdict,) = judge_figures(ROWS, [wanted(**bounds)])
    np.testing.assert_allclose(verdict.found, found)
    assert verdict.held is held
    assert ("**not held**" in report_text(ROWS, [wanted(**bounds)])) is not held


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    made = []

    def measure(seed):
        made.append(seed)
        return [("d", "DC", "m", seed / 10), ("d", "Local", "m", np.nan)]

    module = SimpleNamespace(WANTED=(wanted(at_most=0.25),), SECTION="s", measure=measure)
    for place in (runner, _run):
        monkeypatch.setattr(place, "import_module", lambda *name: module)
    options = ["--section", "clusters", "--output", str(tmp_path)]
    assert runner.main([*options, "--seeds", "2"]) == 0
    assert runner.main([*options, "--seeds", "3", "--copy-to", str(tmp_path / "copy")]) == 0
    assert made == [0, 1, 2]
    assert "1 of 1 wanted figures held" in capsys.readouterr().out
    page = (tmp_path / "copy" / "README.md").read_text(encoding="utf-8")
    assert "| d | m | DC | 0.100 ± 0.082 | at most 0.25 |" in page
    assert "| d | m | Local | – |  |" in page
    assert runner.main([*options, "--seeds", "7"]) == 1
    assert "not held: s, d, DC, m: 0.300" in capsys.readouterr().out


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


@st.composite
def targets(draw):
    """Few rows, times on a grid so coarse that events and ends of observations share them."""
    n = draw(st.integers(4, 25))
    event = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return survival_target(event, draw(st.lists(st.integers(1, 6), min_size=n, max_size=n)))


def untied(n=150, seed=0):
    """Real rows with no two times alike, for training and for a test."""
    rows, target = load_whas500()
    X = rows.to_numpy(dtype=float)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), survival_target(target["fstat"], target["lenfol"])
    chosen = np.random.default_rng(seed).permutation(np.unique(y["time"], return_index=True)[1])[: 2 * n]
    return y[chosen[:n]], y[chosen[n:]], X[chosen[:n]], X[chosen[n:]]


@pytest.mark.parametrize("seed", range(3))
def test_brier_scores_are_those_of_scikit_survival(seed):
    train, test, X_train, X_test = untied(seed=seed)
    times = np.quantile(train["time"], [0.1, 0.3, 0.5, 0.7])
    survival = CoxRegression(1.0).fit(X_train, train).predict_survival(X_test, times)
    np.testing.assert_allclose(
        brier_score(train, test, survival, times), metrics.brier_score(train, test, survival, times)[1], atol=1e-12
    )
    theirs = metrics.integrated_brier_score(train, test, survival, times)
    assert mean_brier_score(train, test, survival, times) == pytest.approx(theirs, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(targets())
def test_weighted_events_give_kaplan_and_meiers_curve(y):
    """Σ 1(t_i ≤ t, δ_i) / G(t_i-) / n = 1 - S(t), and S(t) G(t) = #{t_i > t} / n, ties or not."""
    curve = kaplan_meier(y)
    for t, alive in zip(curve.times, curve.survival, strict=True):
        seen = y["event"] & (y["time"] <= t)
        weights = censoring_weights(y, y["time"][seen])
        assert weights.sum() / len(y) == pytest.approx(1 - alive, abs=1e-12)
        if (y["time"] > t).any():
            G = 1 / censoring_weights(y, np.array([t]), beyond=True)[0]
            assert alive * G == pytest.approx(np.mean(y["time"] > t), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(targets(), st.sampled_from([0.0, 0.3, 1.0]))
def test_the_brier_score_of_one_curve_for_all(y, survival):
    """With S for everybody it is S² (1 - KM) + (1 - S)² KM: what unbiased weights must give."""
    t = float(y["time"].max()) - 1
    if t <= 0:
        return
    S, (km,) = np.full((len(y), 1), survival), kaplan_meier(y)([t])
    expected = survival**2 * (1 - km) + (1 - survival) ** 2 * km
    assert brier_score(y, y, S, [t])[0] == pytest.approx(expected, abs=1e-12)
