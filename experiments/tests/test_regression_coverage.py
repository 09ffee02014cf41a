"""The coverage study of a regression: its answer for all rows in one place is that of statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import stats

from datacollab_experiments.study import regression_coverage as study


@pytest.mark.parametrize(("world", "options"), [("unequal", {"cov_type": "HC3"}), ("clustered", {})])
def test_intervals_of_all_rows_in_one_place(world, options):
    rows = study.simulate(world, 400, 3, 4, np.random.default_rng(0))
    model = sm.OLS(rows.y, np.column_stack([rows.X, rows.party[:, None] == np.arange(4)]).astype(float))
    expected = model.fit(**options or {"cov_type": "cluster", "cov_kwds": {"groups": rows.doctor}})
    df = model.df_resid if options else len(np.unique(rows.doctor)) - 1
    found = study.in_one_place(rows, world)
    assert_allclose(found.coefficients, expected.params[:3], rtol=1e-9)
    assert_allclose(found.half, stats.t.ppf(0.975, df) * expected.bse[:3], rtol=1e-8)


def test_figures_of_each_noise_and_method(monkeypatch):
    monkeypatch.setattr(study, "settings", lambda: iter([("unequal", 900, 3, 5), ("clustered", 900, 3, 3)]))
    rows = [*study.figures(20, study.WORLDS)]
    assert len(rows) == 2 * 2 + 2 * 2
    assert all(each["answered"] == 1 and each["coverage"] > 0.75 for each in rows)
    width = {(each["residuals"], each["noise"], each["errors"]): each["width"] for each in rows}
    assert width["unequal", 0.1, "robust"] > width["unequal", 0.1, "classical"] > 1
    assert width["unequal", 0.1, "robust"] < 2
