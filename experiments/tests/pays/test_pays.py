"""Does collaborating pay: statistics, synthetic rows, draws, and a small run."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge
from sklearn.neighbors import NearestCentroid

from datacollab.party import fit_own_model
from datacollab.sums import CommonMap, RidgeSums, recommended
from datacollab_experiments.harness import ResultStore, read_outcomes, run_tasks
from datacollab_experiments.pays import library, tables, trial
from datacollab_experiments.pays.__main__ import main
from datacollab_experiments.pays.draws import draw, losses, score
from datacollab_experiments.pays.results import Measured, collect, pair_differences, rows_of
from datacollab_experiments.pays.settings import PRESETS, Preset, Setting
from datacollab_experiments.pays.tasks import MEASURES, tasks_of
from datacollab_experiments.pays.trial import copula_rows, noisy_marginal_rows

SMALL = Setting(dataset="digits", n_parties=4, n_per_party=50)


# statistics


@pytest.mark.parametrize("relative", [False, True])
def test_paired_interval_is_that_of_a_naive_computation(relative):
    random = np.random.default_rng(0)
    left = {seed: {f"p{k}": random.uniform(1, 2) for k in range(3)} for seed in range(5)}
    right = {seed: {f"p{k}": random.uniform(1, 2) for k in range(3)} for seed in range(5)}
    means = []
    for seed in range(5):
        total = 0.0
        for party in ("p0", "p1", "p2"):
            difference = left[seed][party] - right[seed][party]
            total += difference / right[seed][party] if relative else difference
        means.append(total / 3)
    wanted = stats.ttest_1samp(means, 0.0).confidence_interval(0.95)
    found = pair_differences(left, right, relative=relative)
    assert_allclose([found.mean, found.low, found.high], [np.mean(means), wanted.low, wanted.high])


# scores


def test_scores_are_those_of_a_naive_computation():
    y = np.array([0, 1, 1, 0])
    p = np.array([[0.8, 0.2], [0.6, 0.4], [0.1, 0.9], [0.5, 0.5]])
    pairs = [(p[i, 1] > p[j, 1]) for i in (1, 2) for j in (0, 3)]
    assert score("AUC", y, p) == np.mean(pairs)
    assert score("accuracy", y, p) == 0.75
    assert_allclose(losses(y, p), -np.log([0.8, 0.4, 0.9, 0.5]))
    numbers = np.array([1.0, 2.0, 4.0, 0.0])
    assert_allclose(score("RMSE", y, numbers), np.sqrt(np.mean((y - numbers) ** 2)))


# tables


def test_declared_columns_are_those_of_the_tables():
    table = tables.load_table("breast-cancer")
    assert [column.name for column in table.columns] == load_breast_cancer().feature_names.tolist()
    every = np.arange(len(table.y))
    assert table.matrix(every, every[:0]).shape == (569, 30)
    assert set(tables.UNSEEN) <= {setting.dataset for setting in PRESETS["quick"].settings}


@pytest.mark.parametrize("name", ["whas500", "flchain", "gbsg2", *tables.UNSEEN])
def test_tables_of_packages_are_as_declared(name):
    try:
        table = tables.load_table(name)
    except ImportError:
        pytest.skip("needs the packages of the extra `pays`")
    every = np.arange(len(table.y))
    matrix = table.matrix(every, every[:100])
    low, high = table.bounds
    assert matrix.shape == (len(table.y), table.width)
    assert ((matrix >= low) & (matrix <= high)).all()
    # A range that half of the rows run against would be one that parties had to correct.
    assert all(np.isin(matrix[:, k], (-2.0, 2.0)).mean() < 0.75 for k in np.flatnonzero(low == -2))


# synthetic rows


def test_copula_reproduces_marginals_and_correlations():
    random = np.random.default_rng(0)
    Z = random.multivariate_normal(np.zeros(3), [[1, 0.8, 0], [0.8, 1, -0.5], [0, -0.5, 1]], 2000)
    X = np.column_stack([np.exp(Z[:, 0]), Z[:, 1], Z[:, 2] > 0.5])
    made = copula_rows(X, 4000, random)
    for column in range(2):
        assert stats.ks_2samp(X[:, column], made[:, column]).statistic < 0.04
    assert set(made[:, 2]) == {0.0, 1.0}
    assert_allclose(made[:, 2].mean(), X[:, 2].mean(), atol=0.03)
    found, wanted = stats.spearmanr(made).statistic, stats.spearmanr(X).statistic
    assert_allclose(found[:2, :2], wanted[:2, :2], atol=0.05)
    assert_allclose(found[0, 2], wanted[0, 2], atol=0.05)
    # A category's ties hide a part of its correlations.
    assert 0.7 < found[1, 2] / wanted[1, 2] < 1


def test_noisy_marginals_have_the_noise_of_their_sensitivity():
    bounds_of = np.array([[0.0, 0.0], [1.0, 1.0]])
    X = np.full((100_000, 2), 0.06)
    made = noisy_marginal_rows(X, 5000, bounds_of, 0.0, np.random.default_rng(0))
    assert made.max() < 1 / 8
    # Counts beside a full bin are noise alone, with standard deviation noise * sqrt(2 * 2): a mean of s * 0.4 above 0.
    noise = 2000.0
    made = noisy_marginal_rows(X, 40_000, bounds_of, noise, np.random.default_rng(1))
    beside = [
        (noisy_marginal_rows(X, 4000, bounds_of, noise, np.random.default_rng(seed)) > 1 / 8).mean()
        for seed in range(60)
    ]
    empty = 7 * noise * 2 * stats.norm.pdf(0)
    assert_allclose(np.mean(beside), empty / (empty + len(X)), rtol=0.15)


# draws


def test_draws_have_the_sizes_asked_for_and_no_row_twice():
    table = tables.load_table("digits")
    drawn = draw(table, SMALL, 3)
    assert [len(rows) for rows in drawn.parties.values()] == [50] * 4
    assert len(drawn.public) == 100
    assert len(drawn.test) == 1000
    known = np.unique(table.rows, axis=0, return_counts=True)[1].max() == 1
    everyone = np.vstack([*(rows.X for rows in drawn.parties.values()), drawn.public.X, drawn.test.X, drawn.held.X])
    assert known
    assert len(np.unique(everyone, axis=0)) == len(everyone) == len(table.y)
    again = draw(table, SMALL, 3)
    assert_array_equal(again.anchor, drawn.anchor)
    assert not np.array_equal(draw(table, SMALL, 4).test.X, drawn.test.X)


@pytest.mark.parametrize(("n_public", "labelled"), [(0, False), (50, True), (50, False), (500, True)])
def test_anchor_holds_the_public_rows_or_is_made_from_ranges(n_public, labelled):
    table = tables.load_table("digits")
    drawn = draw(table, replace(SMALL, n_public=n_public, labelled=labelled), 0)
    public = {row.tobytes() for row in drawn.public.X}
    assert public <= {row.tobytes() for row in drawn.anchor}
    assert (drawn.anchor_target is not None) == labelled
    assert len(drawn.anchor) == max(300, n_public)
    low, high = drawn.bounds
    assert ((drawn.anchor >= low) & (drawn.anchor <= high)).all()


# models from sums


@pytest.fixture(scope="module")
def summed():
    setting = Setting(dataset="breast-cancer", n_parties=4, n_per_party=40, defence="sums")
    return draw(tables.load_table("breast-cancer"), setting, 0)


def in_the_map(drawn):
    """The common map, and all rows in it with their targets: private ones, and public ones with targets."""
    settings = recommended()
    secret = library.secrets(drawn, "sums").bytes(32)
    common = CommonMap.from_anchor(drawn.public.X, secret, n_components=settings.n_components)
    rows = library.pooled({**drawn.parties, "public": drawn.labelled})
    return common, common.transform(rows.X), rows.y


def test_sums_without_noise_are_ridge_regression_on_all_rows(summed):
    common, v, y = in_the_map(summed)
    statistic = RidgeSums(common.n_components, classes=range(2), noise=0.0)
    fit = statistic.solve(statistic.part(v, y))
    expected = Ridge(alpha=fit.alpha).fit(v, np.eye(2)[y]).predict(common.transform(summed.test.X))
    shares = np.bincount(y) / len(y)
    assert min(fit.reliability) > 0.9
    kept = shares + (expected - shares) * fit.reliability
    found = library.by_exact_sums(summed)(summed.test.X)
    assert_allclose(found, fit.link.probabilities(kept), atol=1e-6)


@pytest.mark.slow
def test_sums_and_own_are_the_mean_of_both(summed):
    common, v, _ = in_the_map(summed)
    assert v.shape[1] == common.n_components
    found = library.by_sums_and_own(summed, ["party-1"])["party-1"](summed.test.X)
    own = summed.parties["party-1"]
    statistic = RidgeSums(common.n_components, classes=range(2))
    alone = fit_own_model(statistic, (own.X, own.y), (summed.labelled.X, summed.labelled.y))
    # Half the root of the part of all rows that it learnt from.
    weight = 0.5 * np.sqrt((len(own) + len(summed.labelled)) / len(v))
    expected = (1 - weight) * library.by_sums(summed)(summed.test.X) + weight * alone.outputs(summed.test.X)
    # The common model says how many rows there are with noise.
    assert_allclose(found, expected, atol=0.01)


@pytest.mark.slow
def test_class_sums_are_the_nearest_class_mean_and_noise_costs(summed):
    common, v, y = in_the_map(summed)
    nearest = NearestCentroid().fit(v, y).predict(common.transform(summed.test.X))
    exact = library.by_class_sums(summed, noise=0.0)(summed.test.X)
    assert_allclose(exact.sum(axis=1), 1.0)
    assert_array_equal(exact.argmax(axis=1), nearest)
    noisy = [library.by_class_sums(summed, noise=s)(summed.test.X) for s in (0.1, 100.0)]
    assert_array_equal(noisy[0], library.by_class_sums(summed)(summed.test.X))
    assert (noisy[0].argmax(axis=1) == nearest).mean() > 0.95 > (noisy[1].argmax(axis=1) == nearest).mean()


# tasks


def test_parts_are_scored_and_failures_reported(tmp_path, monkeypatch):
    def measure(setting, seed, *, data_dir):
        if seed == 1:
            raise ValueError("no such luck")
        return {"score|Local|party-0": 0.5, "loss|Local|party-0": 1.0}, {"Local": 0.1}

    monkeypatch.setitem(MEASURES, "main", measure)
    tasks = tasks_of(Preset((SMALL,), (0, 1)), ("main",))
    with ResultStore(tmp_path / "results.sqlite") as store:
        assert run_tasks(tasks, store) == 1
    (measured,) = collect(list(read_outcomes(tmp_path / "results.sqlite", tasks)))
    assert measured.errors == [f"main: {SMALL.label}, seed 1: ValueError: no such luck"]
    assert measured.seconds == [0.1]
    assert [(row["score"], row["loss"], row["seed"]) for row in rows_of([measured])] == [(0.5, 1.0, 0)]


# the report


def test_gains_are_better_when_above_zero_for_errors_too():
    by_seed = {
        "Local": {0: {"a": 10.0}, 1: {"a": 20.0}},
        "Local+Public": {0: {"a": 8.0}, 1: {"a": 10.0}},
        "pool": {0: {"a": 6.0}, 1: {"a": 8.0}},
    }
    error = Measured(SMALL, "RMSE", scores=by_seed)
    assert error.own == "Local+Public"
    assert_allclose(error.gain("pool", "Local+Public").mean, (2 / 8 + 2 / 10) / 2)
    assert error.gain("pool", "Local").low < error.gain("pool", "Local").mean < error.gain("pool", "Local").high
    accuracy = Measured(SMALL, "accuracy", scores=by_seed)
    assert accuracy.own == "Local"
    assert accuracy.gain("pool", "Local").mean == -8.0


@pytest.mark.nightly
def test_a_small_run_makes_its_report(tmp_path, capsys, monkeypatch):
    sums = Setting(dataset="breast-cancer", n_parties=3, n_per_party=40, defence="sums")
    numbers = Setting(dataset="diabetes", n_parties=2, n_per_party=40, split="feature-shift", labelled=False)
    monkeypatch.setitem(PRESETS, "smoke", Preset((sums, numbers), (0,)))
    command = ["--preset", "smoke", "--output", str(tmp_path / "run"), "--copy-to", str(tmp_path / "docs")]
    assert main(command) == 0
    text = (tmp_path / "docs" / "README.md").read_text(encoding="utf-8")
    assert (tmp_path / "docs" / "differences.png").stat().st_size > 10_000
    table = pd.read_csv(tmp_path / "docs" / "scores.csv.gz")
    assert set(table.method) == set(trial.METHODS)
    assert table.groupby("method").size()[["pool", "sums"]].eq(trial.N_SCORED).all()
    assert "## What failed" not in text
    assert "breast-cancer 3×40, iid, 100 with targets, sums" in text
    assert "| all | 2 |" in text
    # Nothing is left to do, and the same report comes out.
    capsys.readouterr()
    assert main(command) == 0
    assert "seed" not in capsys.readouterr().out
    assert (tmp_path / "docs" / "README.md").read_text(encoding="utf-8") == text
