"""Does collaborating pay: statistics, synthetic rows, draws, and a small run."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge
from sklearn.neighbors import NearestCentroid

from datacollab.own._combined_model import own_weight
from datacollab.party import fit_own_model
from datacollab.sums import CommonMap, RidgeSums, recommended
from datacollab_experiments.harness import ResultStore, read_outcomes, run_tasks, write_rows
from datacollab_experiments.pays import library, tables, trial
from datacollab_experiments.pays.__main__ import main
from datacollab_experiments.pays.columns import Column, bounds, encode, fills, uniform
from datacollab_experiments.pays.draws import draw
from datacollab_experiments.pays.intervals import coverage, pair_differences, student
from datacollab_experiments.pays.results import Measured, collect, merge_earlier, rows_of
from datacollab_experiments.pays.scoring import losses, score, spread
from datacollab_experiments.pays.settings import PRESETS, Preset, Setting
from datacollab_experiments.pays.synthetic import _shrinkage, bins_of, copula_rows, noisy_marginal_rows
from datacollab_experiments.pays.tasks import MEASURES, tasks_of

SMALL = Setting(dataset="digits", n_parties=4, n_per_party=50)
COLUMNS = (
    Column(name="age", low=0.0, high=100.0),
    Column(name="dose", low=0.0, high=1000.0, log=True, missing=True),
    Column(name="sex", levels=("f", "m")),
    Column(name="ward", levels=("a", "b", "c"), missing=True),
)


@pytest.fixture
def rows():
    return pd.DataFrame(
        {"age": [0.0, 50.0, 130.0], "dose": [0.0, None, 1000.0], "sex": ["f", "m", "m"], "ward": ["a", None, "c"]}
    )


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


def test_pairs_that_one_side_lacks_are_left_out():
    left = {0: {"a": 1.0, "b": 9.0}, 1: {"a": 2.0}, 2: {"a": 5.0}}
    right = {0: {"a": 0.0}, 1: {"a": 0.0}}
    assert pair_differences(left, right).mean == 1.5


def test_interval_of_clustered_differences_holds_the_truth_as_often_as_it_says():
    random = np.random.default_rng(1)
    held = naive = 0
    for _ in range(1000):
        # Parties of one seed have much in common: an interval that took them for independent would be too narrow.
        values = 0.3 + random.normal(size=(5, 1)) + 0.3 * random.normal(size=(5, 4))
        left = {seed: {str(k): values[seed, k] for k in range(4)} for seed in range(5)}
        zero = {seed: {str(k): 0.0 for k in range(4)} for seed in range(5)}
        found, flat = pair_differences(left, zero), student(values.ravel().tolist())
        held += found.low <= 0.3 <= found.high
        naive += flat.low <= 0.3 <= flat.high
    assert 0.93 < held / 1000 < 0.97
    assert naive / 1000 < 0.8


def test_coverage_counts_intervals_that_hold_the_truth():
    random = np.random.default_rng(2)
    truth = random.normal(size=4000)
    seen = truth + random.normal(size=4000)
    clusters = [str(number // 4) for number in range(4000)]
    found, n = coverage(seen - 1.96, seen + 1.96, truth, clusters)
    assert n == 4000
    assert found.low < 0.95 < found.high
    assert found.high - found.low < 0.03
    found, _ = coverage(seen - 0.5, seen + 0.5, truth, clusters)
    assert found.high < 0.5


def test_verdict_says_on_which_side_of_zero_the_interval_is():
    assert [student(values).verdict for values in ([1.0, 1.1], [-1.0, -1.1], [-1.0, 1.2], [1.0])] == [
        "+",
        "-",
        "0",
        "0",
    ]


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


def test_spread_puts_probabilities_into_the_columns_of_their_classes():
    assert_array_equal(spread(np.array([[0.3, 0.7]]), np.array([1, 3]), 4), [[0, 0.3, 0, 0.7]])


# tables


def test_encoding_needs_the_declaration_and_public_rows_alone(rows):
    matrix = encode(COLUMNS, rows, {"dose": 1.0})
    middle = np.log1p(1000) / 2
    expected = [
        [-2, -2, 0, 0, 1, 0, 0, 0],
        [0, (np.log(2) - middle) / (middle / 2), 1, 1, 0, 0, 0, 1],
        [2, 2, 0, 1, 0, 0, 1, 0],
    ]
    assert_allclose(matrix, expected)
    low, high = np.concatenate([bounds(column) for column in COLUMNS], axis=1)
    assert (matrix >= low).all()
    assert (matrix <= high).all()


def test_missing_numbers_are_the_public_rows_median_and_the_middle_without_any(rows):
    assert fills(COLUMNS, rows)["dose"] == 500.0
    assert_allclose(fills(COLUMNS, rows.iloc[:0])["dose"], np.sqrt(1001) - 1)


def test_what_was_not_declared_is_refused_without_showing_it(rows):
    with pytest.raises(ValueError, match="1 levels that were not declared") as refused:
        encode(COLUMNS, rows.assign(sex=["f", "m", "secret"]), {})
    assert "secret" not in str(refused.value)
    with pytest.raises(ValueError, match="1 missing entries"):
        encode(COLUMNS, rows.assign(age=[1.0, None, 2.0]), {})


def test_rows_from_the_declaration_stay_in_it():
    made = uniform(COLUMNS, 2000, np.random.default_rng(0))
    matrix = encode(COLUMNS, made, {})
    assert np.abs(matrix[:, :2]).max() <= 2
    assert_allclose(matrix[:, 0].mean(), 0, atol=0.1)
    assert_allclose(made.ward.value_counts(normalize=True), 1 / 3, atol=0.05)
    assert_allclose(made.dose.isna().mean(), 0.1, atol=0.03)


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


def test_copula_rows_are_nobodys_and_stay_between_the_observed():
    X = np.random.default_rng(0).normal(size=(40, 5))
    made = copula_rows(X, 200, np.random.default_rng(1))
    assert not {row.tobytes() for row in X} & {row.tobytes() for row in made}
    assert (made.min(axis=0) >= X.min(axis=0)).all()
    assert (made.max(axis=0) <= X.max(axis=0)).all()


def test_shrinkage_is_that_of_the_formula_over_pairs_of_columns():
    random = np.random.default_rng(3)
    scores = stats.zscore(random.normal(size=(12, 4)) + random.normal(size=(12, 1)))
    n, above, below = 12, 0.0, 0.0
    for i in range(4):
        for j in range(4):
            if i != j:
                w = scores[:, i] * scores[:, j]
                above += n / (n - 1) ** 3 * np.sum((w - w.mean()) ** 2)
                below += (n / (n - 1) * w.mean()) ** 2
    assert_allclose(_shrinkage(scores), above / below)


def test_one_row_of_a_class_can_only_be_repeated():
    assert_array_equal(copula_rows(np.array([[1.0, 2.0]]), 3, np.random.default_rng(0)), [[1.0, 2.0]] * 3)


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


def test_numbers_as_classes_are_equal_parts_of_the_declared_range():
    assert_array_equal(bins_of(np.array([0.0, 2.4, 2.6, 10.0]), (0.0, 10.0)), [0, 0, 1, 3])


def test_made_up_rows_keep_sizes_and_classes():
    drawn = draw(tables.load_table("digits"), SMALL, 0)
    own = drawn.parties["party-0"]
    for noisy in (False, True):
        made = trial.make_rows(own, drawn, noisy, "party-0")
        assert_array_equal(np.bincount(made.y), np.bincount(own.y))
        assert made.X.shape == own.X.shape
        assert not np.array_equal(made.X, trial.make_rows(own, drawn, noisy, "party-1").X)


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


def test_skewed_parties_are_less_alike():
    table = tables.load_table("digits")

    def spread_of_mixes(split):
        mixes = [
            np.bincount(rows.y, minlength=10) / len(rows)
            for seed in range(3)
            for rows in draw(table, replace(SMALL, split=split), seed).parties.values()
        ]
        return np.std(mixes, axis=0).mean()

    assert spread_of_mixes("label-skew") > 2 * spread_of_mixes("iid")


def test_feature_shift_moves_parties_apart():
    table = tables.load_table("breast-cancer")
    settings = [
        Setting(dataset="breast-cancer", n_parties=5, n_per_party=30, split=s) for s in ("iid", "feature-shift")
    ]

    def distance(setting):
        parties = [rows for seed in range(3) for rows in draw(table, setting, seed).parties.values()]
        return np.std([rows.X.mean(axis=0) for rows in parties], axis=0).mean()

    assert distance(settings[1]) > 1.5 * distance(settings[0])


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


def test_too_few_rows_are_an_error_with_the_setting():
    with pytest.raises(ValueError, match="diabetes 9×40"):
        draw(tables.load_table("diabetes"), Setting(dataset="diabetes", n_parties=9, n_per_party=40), 0)


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


def test_sums_and_own_are_the_mean_of_both(summed):
    common, v, _ = in_the_map(summed)
    assert v.shape[1] == common.n_components
    found = library.by_sums_and_own(summed, ["party-1"])["party-1"](summed.test.X)
    own = summed.parties["party-1"]
    statistic = RidgeSums(common.n_components, classes=range(2))
    alone = fit_own_model(statistic, (own.X, own.y), (summed.labelled.X, summed.labelled.y))
    weight = own_weight(len(own) + len(summed.labelled), len(v))
    expected = (1 - weight) * library.by_sums(summed)(summed.test.X) + weight * alone.outputs(summed.test.X)
    # The common model says how many rows there are with noise.
    assert_allclose(found, expected, atol=0.01)


def test_class_sums_are_the_nearest_class_mean_and_noise_costs(summed):
    common, v, y = in_the_map(summed)
    nearest = NearestCentroid().fit(v, y).predict(common.transform(summed.test.X))
    exact = library.by_class_sums(summed, noise=0.0)(summed.test.X)
    assert_allclose(exact.sum(axis=1), 1.0)
    assert_array_equal(exact.argmax(axis=1), nearest)
    noisy = [library.by_class_sums(summed, noise=s)(summed.test.X) for s in (0.1, 100.0)]
    assert_array_equal(noisy[0], library.by_class_sums(summed)(summed.test.X))
    assert (noisy[0].argmax(axis=1) == nearest).mean() > 0.95 > (noisy[1].argmax(axis=1) == nearest).mean()


def test_sums_are_a_part_of_their_own_and_numbers_have_no_class_sums():
    both = Preset((SMALL, replace(SMALL, defence="sums")), (0,))
    assert [task.setting.defence for task in tasks_of(both, ("sums",))] == ["sums"]
    numbers = Setting(dataset="diabetes", n_parties=3, n_per_party=40, defence="sums", labelled=False)
    scores, seconds = trial.measure_sums(numbers, 0)
    assert set(seconds) == {trial.SUMS, trial.COMBINED, trial.EXACT_SUMS}
    assert {name.split("|")[1] for name in scores} == set(seconds)


def test_scores_of_sums_take_the_places_of_earlier_ones(tmp_path):
    """What is computed anew is, and all else of the earlier run stays as it was."""
    sums = replace(SMALL, defence="sums")
    by_seed = {0: {"party-0": 0.5}, 1: {"party-0": 0.25}}
    both = dict.fromkeys((trial.LOCAL, trial.SUMS), by_seed)
    earlier = [Measured(each, "accuracy", scores=both, losses=both) for each in (SMALL, sums)]
    path = tmp_path / "scores.csv.gz"
    write_rows(rows_of(earlier), path)
    new = {0: {"party-0": 0.75}}
    methods = dict.fromkeys((trial.SUMS, trial.EXACT_SUMS), new)
    merged = merge_earlier([Measured(sums, "accuracy", scores=methods, losses=methods)], path)
    assert [each.setting for each in merged] == [SMALL, sums]
    assert merged[0].scores == earlier[0].scores
    assert merged[1].scores == {trial.LOCAL: by_seed, trial.SUMS: new, trial.EXACT_SUMS: new}
    assert merged[1].losses == merged[1].scores


# settings


def test_presets_hold_every_setting_once_and_none_impossible():
    quick = PRESETS["quick"].settings
    assert 55 <= len(quick) <= 70
    for preset in PRESETS.values():
        cells = [setting.cell("main") for setting in preset.settings]
        assert len(set(cells)) == len(cells)
    with pytest.raises(ValueError, match="labelled=False"):
        Setting(dataset="digits", n_parties=2, n_per_party=9, n_public=0)


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


def test_seeds_come_one_after_the_other():
    preset = SimpleNamespace(settings=(SMALL, replace(SMALL, n_public=50)), seeds=(0, 1))
    tasks = tasks_of(preset, ("main",))
    assert [task.seed for task in tasks] == [0, 0, 1, 1]


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
