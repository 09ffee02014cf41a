"""The coverage study of a validation: its truth is that of the worlds, and it counts intervals that hold."""

import numpy as np
import pytest
import statsmodels.api as sm

from datacollab_experiments.study import validation_coverage as study


@pytest.mark.parametrize("world", study.WORLDS)
def test_the_truth_is_that_of_a_logistic_regression_on_many_rows(world):
    true = study.truth(world, 300_000)
    x, y = study.simulate(world, 100_000, np.random.default_rng(2))
    fit = sm.GLM(y, sm.add_constant(x), family=sm.families.Binomial()).fit()
    alone = sm.GLM(y, np.ones(len(y)), offset=x, family=sm.families.Binomial()).fit()
    assert abs(true["slope"] - fit.params[1]) < 4 * fit.bse[1]
    assert abs(true["intercept"] - alone.params[0]) < 4 * alone.bse[0]


def test_figures_of_a_few_studies(monkeypatch):
    monkeypatch.setattr(study, "WORLDS", {"calibrated": (0.0, 1.0)})
    monkeypatch.setattr(study, "truth", lambda world, of=study.truth: of(world, 100_000))
    rows = [*study.figures(12, rows=(800, 3000))]
    assert [each["figure"] for each in rows] == [*study.FIGURES] * 2
    assert all(each["given"] == 1 for each in rows)
    assert np.mean([each["held"] for each in rows]) > 0.85
    few, many = rows[: len(study.FIGURES)], rows[len(study.FIGURES) :]
    assert all(1 < more["width"] < less["width"] for less, more in zip(few, many, strict=True))
