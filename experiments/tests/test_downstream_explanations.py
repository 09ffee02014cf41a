"""Every bound of the benchmark is on a figure that it measures, and the made-up worlds are what they are said to be."""

import numpy as np
import pytest

from datacollab_experiments.downstream import column_coverage, explanations


def names_of(bounds_or_figures):
    return {(each.section, each.data, each.method, each.measure) for each in bounds_or_figures}


def check_bounds(section):
    found = names_of(section.measured(0))
    assert names_of(section.WANTED) <= found
    assert {(each.section, each.data, each.beside, each.measure) for each in section.WANTED if each.beside} <= found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::datacollab.errors.UnidentifiedColumnsWarning")
def test_each_bound_on_explanations_has_its_figure(monkeypatch):
    monkeypatch.setattr(explanations, "N_EXPLAINED", 2)
    monkeypatch.setattr(explanations, "N_BACKGROUND", 3)
    check_bounds(explanations)


@pytest.mark.slow
def test_each_bound_on_coverage_has_its_figure(monkeypatch):
    monkeypatch.setattr(column_coverage, "N_WORLDS", 2)
    check_bounds(column_coverage)


def test_made_up_outcomes_have_the_effects_that_they_are_made_with():
    worlds = [column_coverage.world(np.random.default_rng(seed)) for seed in range(12)]
    X = np.concatenate([np.concatenate(world.rows) for world in worlds])
    for name, h in column_coverage._H.items():
        y = np.concatenate([world.outcomes[name] for world in worlds])
        fitted = h().fit(X, y)
        off = (fitted.coef_ - worlds[0].effects) / np.sqrt(np.diag(fitted.covariance_))
        assert np.abs(off).max() < 4
    rows = [row.tobytes() for row in (*np.concatenate(worlds[0].rows), *worlds[0].anchor)]
    assert len(set(rows)) == len(rows)
