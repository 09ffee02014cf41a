"""The coverage study of an effect, in a few draws."""

import pytest

from datacollab_experiments.study.effect_coverage import WORLDS, World, measured


def test_few_studies_find_the_effect_of_each_kind():
    assert {world.kind for world in WORLDS} >= {"linear", "nonlinear", "clustered", "heterogeneous"}
    for kind in ("clustered", "heterogeneous"):
        found = measured(World(1200, kind), 0, noise=False, n_studies=6)
        assert found["bias"] == pytest.approx(0, abs=0.15)
        assert found["of noise"] == found["refused"] == 0
    assert measured(World(1200), 0, n_studies=4)["of noise"] > 0.02
