"""The coverage study of rounds: worlds have the ratios that they say, and the likelihood is that of statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm

from datacollab_experiments.study.rounds_coverage import RoundsWorld, average_own, fit_likelihood, measure, pool


@pytest.mark.parametrize("kind", ["logistic", "events"])
def test_a_world_has_the_ratios_and_the_outcomes_that_it_says(kind):
    world = RoundsWorld(kind, (2000,) * 10, 0.3)
    random = np.random.default_rng(0)
    tables = [world.table(n, random) for n in world.sizes]
    assert np.mean([each["seen"] for each in tables]) == pytest.approx(0.3, abs=0.06)
    for found in (pool(world, tables), average_own(world, tables)):
        assert np.abs(found.params[:3] - world.true).max() < 0.1


@pytest.mark.parametrize("kind", ["logistic", "events"])
def test_the_likelihood_is_that_of_statsmodels(kind):
    world = RoundsWorld(kind, (120, 50), 0.3)
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
    for found in (fit_likelihood(X, y, exposure), pool(world, [*tables, silent])):
        np.testing.assert_allclose(found.params, expected.params, rtol=1e-6)
        np.testing.assert_allclose(found.errors, expected.bse, rtol=1e-5)


def test_parties_without_a_maximum_are_left_out_of_the_mean():
    world = RoundsWorld("logistic", (150, 150), 0.3)
    random = np.random.default_rng(2)
    first, second, separated = (world.table(150, random) for _ in range(3))
    separated["seen"] = (separated["number 0"] > 0).astype(int)
    found = average_own(world, [first, second, separated])
    np.testing.assert_allclose(found.params, average_own(world, [first, second]).params)
    each = [pool(world, [table]) for table in (first, second)]
    weights = np.array([own.errors[:3] ** -2 for own in each])
    mean = np.average([own.params[:3] for own in each], axis=0, weights=weights)
    np.testing.assert_allclose(found.params[:3], mean)
    np.testing.assert_allclose(found.errors[:3], weights.sum(axis=0) ** -0.5)
    assert average_own(world, [separated]) is None


def test_figures_of_a_few_studies():
    found = measure(RoundsWorld("logistic", (300,) * 4, 0.3), 0, n_studies=4)
    assert found["pooled"]["width"] == 1
    assert found["pooled"]["from pooled"] == found["pooled"]["refused"] == 0
    assert found["rounds"]["refused"] == 0
    assert found["rounds"]["coverage"] > 0.8
    assert 0 < found["rounds"]["from pooled"] < found["one round"]["from pooled"] < 2
    # Patterns tell only the category's ratio, with more noise.
    assert found["by pattern"]["width"] > found["rounds"]["width"]
    # Too many patterns: no study is answered.
    eight = measure(RoundsWorld("logistic", (300,) * 4, 0.3, n_numbers=5, n_categories=3), 0, n_studies=1)
    assert eight["by pattern"]["refused"] == 1
