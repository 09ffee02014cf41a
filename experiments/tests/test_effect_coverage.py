"""The coverage study of an effect, in a few draws."""

import pytest

from datacollab_experiments.study.effect_coverage import WORLDS, EffectStudyWorld, measure


def test_few_studies_find_the_effect_of_each_kind():
    assert {world.kind for world in WORLDS} >= {"linear", "nonlinear", "clustered", "heterogeneous"}
    for kind in ("clustered", "heterogeneous"):
        found, without = measure(EffectStudyWorld(1200, kind), 0, n_studies=6)
        assert without["bias"] == pytest.approx(0, abs=0.15)
        assert without["of noise"] == found["refused"] == 0
        assert found["of noise"] > 0.02


def test_few_studies_find_that_an_effect_differs():
    _, without = measure(EffectStudyWorld(1200, difference=2.0), 0, n_studies=6)
    assert without["found"] == 1
    assert without["not given"] == 0
