"""The coverage study of ratios: its worlds have the ratios that they say, and it counts intervals that hold."""

import numpy as np
import pytest

from datacollab_experiments.study.ratio_coverage import RatioWorld, measure


@pytest.mark.parametrize("kind", ["logistic", "events"])
def test_a_world_has_the_ratios_that_it_says(kind):
    world = RatioWorld(kind, 60_000, (2, 3))
    statistic = world.statistic
    found = statistic.result(statistic.part(world.table(np.random.default_rng(0))), n_parties=5, noise=0.0)
    assert np.abs(found.params - world.true).max() < 0.1


def test_figures_of_a_few_studies():
    found = measure(RatioWorld("logistic", 1000, (2, 2)), 0, n_studies=20)
    assert found["answered"] == 1
    assert found["coverage"] > 0.8
    assert 1 < found["width"] < 1.5
