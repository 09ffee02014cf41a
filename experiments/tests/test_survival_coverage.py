"""The coverage study of survival: its worlds have the survival that they say, and it counts intervals that hold."""

import math

import numpy as np
import pytest

from datacollab_experiments.study import survival_coverage as study


def test_a_world_has_the_survival_that_it_says():
    world = study.SurvivalWorld(4, 40_000, 0.3, 1.2, ratio=0.5)
    tables = [*world.tables(np.random.default_rng(0), grouped=False)]
    time, seen = (np.concatenate([table[name] for table in tables]) for name in ("time", "seen"))
    for t in (0.5, 2.5, 7.5):
        order = np.sort(time[(seen == 1) & (time <= t)])
        at_risk = len(time) - np.searchsorted(np.sort(time), order)
        assert math.exp(np.log1p(-1 / at_risk).sum()) == pytest.approx(world.survival(t), abs=0.01)


def test_figures_of_a_few_studies():
    found = study.measure(study.SurvivalWorld(3, 1500, 0.3, 1.2), 0, n_studies=12)
    rejects, n_tests = found.pop("log-rank test rejects")
    assert rejects < 0.5
    assert n_tests == 12
    assert {"hazard ratio 1", "additive hazards, x", "additive hazards, sex=m"} < found.keys()
    assert np.mean([part for part, _ in found.values()]) > 0.85
