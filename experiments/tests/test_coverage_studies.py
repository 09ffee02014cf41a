"""Coverage studies: worlds are as they say, whole answers are those of statsmodels, and intervals are counted."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import stats

from datacollab_experiments.study import coding
from datacollab_experiments.study import effect_coverage as effects
from datacollab_experiments.study import ratio_coverage as ratios
from datacollab_experiments.study import regression_coverage as regression
from datacollab_experiments.study import rounds_coverage as rounds
from datacollab_experiments.study import survival_coverage as survival
from datacollab_experiments.study import validation_coverage as validation
from datacollab_experiments.sums.playing import noise_factor


def test_few_studies_find_the_effect_of_each_kind():
    assert {world.kind for world in effects.WORLDS} >= {"linear", "nonlinear", "clustered", "heterogeneous"}
    for kind in ("clustered", "heterogeneous"):
        found, without = effects.measure(effects.EffectStudyWorld(1200, kind), 0, n_studies=6)
        assert without["bias"] == pytest.approx(0, abs=0.15)
        assert without["of noise"] == found["refused"] == 0
        assert found["of noise"] > 0.02


def test_few_studies_find_that_an_effect_differs():
    _, without = effects.measure(effects.EffectStudyWorld(1200, difference=2.0), 0, n_studies=6)
    assert without["found"] == 1
    assert without["not given"] == 0


@pytest.mark.parametrize("kind", ["logistic", "events"])
def test_a_world_has_the_ratios_that_it_says(kind):
    world = ratios.RatioWorld(kind, 60_000, (2, 3))
    statistic = world.statistic
    found = statistic.result(statistic.part(world.table(np.random.default_rng(0))), n_parties=5, noise=0.0)
    assert np.abs(found.params - world.true).max() < 0.1


def test_figures_of_a_few_studies_of_ratios():
    found = ratios.measure(ratios.RatioWorld("logistic", 1000, (2, 2)), 0, n_studies=20)
    assert found["answered"] == 1
    assert found["coverage"] > 0.8
    assert 1 < found["width"] < 1.5


@pytest.mark.parametrize("kind", ["logistic", "events"])
def test_a_world_has_the_ratios_and_the_outcomes_that_it_says(kind):
    world = rounds.RoundsWorld(kind, (2000,) * 10, 0.3)
    random = np.random.default_rng(0)
    tables = [world.table(n, random) for n in world.sizes]
    assert np.mean([each["seen"] for each in tables]) == pytest.approx(0.3, abs=0.06)
    for found in (rounds.pool(world, tables), rounds.average_own(world, tables)):
        assert np.abs(found.params[:3] - world.true).max() < 0.1


@pytest.mark.parametrize("kind", ["logistic", "events"])
def test_the_likelihood_is_that_of_statsmodels(kind):
    world = rounds.RoundsWorld(kind, (120, 50), 0.3)
    random = np.random.default_rng(1)
    # A party without an outcome says nothing: its indicator has no limit.
    tables = [world.table(n, random) for n in world.sizes]
    silent = world.table(20, random)
    silent["seen"][:] = 0
    design = np.vstack([world.design(each) for each in tables])
    X = np.hstack([design, np.eye(2)[np.repeat([0, 1], world.sizes)]])
    y = np.concatenate([each["seen"] for each in tables])
    family = sm.families.Binomial()
    exposure = None
    if kind == "events":
        family = sm.families.Poisson()
        exposure = np.concatenate([each["time"] for each in tables])
    expected = sm.GLM(y, X, family=family, exposure=exposure).fit(tol=1e-14)
    for found in (rounds.fit_likelihood(X, y, exposure), rounds.pool(world, [*tables, silent])):
        assert_allclose(found.params, expected.params, rtol=1e-6)
        assert_allclose(found.errors, expected.bse, rtol=1e-5)


def test_parties_without_a_maximum_are_left_out_of_the_mean():
    world = rounds.RoundsWorld("logistic", (150, 150), 0.3)
    random = np.random.default_rng(2)
    first, second, separated = (world.table(150, random) for _ in range(3))
    separated["seen"] = (separated["number 0"] > 0).astype(int)
    found = rounds.average_own(world, [first, second, separated])
    assert_allclose(found.params, rounds.average_own(world, [first, second]).params)
    each = [rounds.pool(world, [table]) for table in (first, second)]
    weights = np.array([own.errors[:3] ** -2 for own in each])
    mean = np.average([own.params[:3] for own in each], axis=0, weights=weights)
    assert_allclose(found.params[:3], mean)
    assert_allclose(found.errors[:3], weights.sum(axis=0) ** -0.5)
    assert rounds.average_own(world, [separated]) is None


def test_figures_of_a_few_studies_of_rounds():
    found = rounds.measure(rounds.RoundsWorld("logistic", (300,) * 4, 0.3), 0, n_studies=4)
    assert found["pooled"]["width"] == 1
    assert found["pooled"]["from pooled"] == found["pooled"]["refused"] == 0
    assert found["rounds"]["refused"] == 0
    assert found["rounds"]["coverage"] > 0.8
    assert 0 < found["rounds"]["from pooled"] < found["one round"]["from pooled"] < 2
    # Patterns tell only the category's ratio, with more noise.
    assert found["by pattern"]["width"] > found["rounds"]["width"]
    # Too many patterns: no study is answered.
    eight = rounds.measure(rounds.RoundsWorld("logistic", (300,) * 4, 0.3, n_numbers=5, n_categories=3), 0, n_studies=1)
    assert eight["by pattern"]["refused"] == 1


@pytest.mark.parametrize(("world", "options"), [("unequal", {"cov_type": "HC3"}), ("clustered", {})])
def test_intervals_of_all_rows_in_one_place(world, options):
    rows = regression.simulate(world, 400, 3, 4, np.random.default_rng(0))
    model = sm.OLS(rows.y, np.column_stack([rows.X, rows.party[:, None] == np.arange(4)]).astype(float))
    expected = model.fit(**options or {"cov_type": "cluster", "cov_kwds": {"groups": rows.doctor}})
    df = model.df_resid if options else len(np.unique(rows.doctor)) - 1
    found = regression.in_one_place(rows, world)
    assert_allclose(found.coefficients, expected.params[:3], rtol=1e-9)
    assert_allclose(found.half, stats.t.ppf(0.975, df) * expected.bse[:3], rtol=1e-8)


def test_figures_of_each_noise_and_method(monkeypatch):
    monkeypatch.setattr(regression, "settings", lambda: iter([("unequal", 900, 3, 5), ("clustered", 900, 3, 3)]))
    rows = [*regression.figures(20, regression.WORLDS)]
    assert len(rows) == 2 * 2 + 2 * 2
    assert all(each["answered"] == 1 and each["coverage"] > 0.75 for each in rows)
    width = {(each["residuals"], each["noise"], each["errors"]): each["width"] for each in rows}
    assert width["unequal", 0.1, "robust"] > width["unequal", 0.1, "classical"] > 1
    assert width["unequal", 0.1, "robust"] < 2


def test_a_world_has_the_survival_that_it_says():
    world = survival.SurvivalWorld(4, 40_000, 0.3, 1.2, ratio=0.5)
    tables = [*world.tables(np.random.default_rng(0), grouped=False)]
    time, seen = (np.concatenate([table[name] for table in tables]) for name in ("time", "seen"))
    for t in (0.5, 2.5, 7.5):
        order = np.sort(time[(seen == 1) & (time <= t)])
        at_risk = len(time) - np.searchsorted(np.sort(time), order)
        assert math.exp(np.log1p(-1 / at_risk).sum()) == pytest.approx(world.survival(t), abs=0.01)


def test_figures_of_a_few_studies_of_survival():
    found = survival.measure(survival.SurvivalWorld(3, 1500, 0.3, 1.2), 0, n_studies=12)
    rejects, n_tests = found.pop("log-rank test rejects")
    assert rejects < 0.5
    assert n_tests == 12
    assert {"hazard ratio 1", "additive hazards, x", "additive hazards, sex=m"} < found.keys()
    assert np.mean([part for part, _ in found.values()]) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("world", validation.WORLDS)
def test_the_truth_is_that_of_a_logistic_regression_on_many_rows(world):
    true = validation.truth(world, 300_000)
    x, y = validation.simulate(world, 100_000, np.random.default_rng(2))
    fit = sm.GLM(y, sm.add_constant(x), family=sm.families.Binomial()).fit()
    alone = sm.GLM(y, np.ones(len(y)), offset=x, family=sm.families.Binomial()).fit()
    assert abs(true["slope"] - fit.params[1]) < 4 * fit.bse[1]
    assert abs(true["intercept"] - alone.params[0]) < 4 * alone.bse[0]


def test_figures_of_a_few_studies_of_validation(monkeypatch):
    monkeypatch.setattr(validation, "WORLDS", {"calibrated": (0.0, 1.0)})
    monkeypatch.setattr(validation, "truth", lambda world, of=validation.truth: of(world, 100_000))
    rows = [*validation.figures(12, rows=(800, 3000))]
    assert [each["figure"] for each in rows] == [*validation.FIGURES] * 2
    assert all(each["given"] == 1 for each in rows)
    assert np.mean([each["held"] for each in rows]) > 0.85
    few, many = rows[: len(validation.FIGURES)], rows[len(validation.FIGURES) :]
    assert all(1 < more["width"] < less["width"] for less, more in zip(few, many, strict=True))


@pytest.mark.parametrize("name", [name for name in coding.CASES if "0.45" not in name and "0 %" not in name])
def test_another_unit_is_named_and_the_same_is_not(name):
    draw, convert = coding.CASES[name]
    random, noise = np.random.default_rng(0), noise_factor(3)
    parts = [draw(random, 600, shift) for shift in (-0.3, 0.0, 0.3)]
    assert not coding.names_column(random, parts, noise)
    assert coding.names_column(random, [convert(parts[0]), *parts[1:]], noise)


@pytest.mark.nightly
def test_the_table_has_a_row_for_each_case():
    assert [row["case"] for row in coding.rows(3, 0)] == list(coding.CASES)
