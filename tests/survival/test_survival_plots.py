import numpy as np
import pytest
from survival_examples import made_up

from datacollab.errors import AgreementError
from datacollab.survival import (
    CoxRegression,
    calibration,
    kaplan_meier,
    plot_calibration,
    plot_kaplan_meier,
    plot_survival,
    risk_groups,
)

X, Y = made_up(200)
MODEL = CoxRegression().fit(X, Y)


def test_curves_of_groups():
    groups = risk_groups(MODEL.predict(X))
    axes = plot_kaplan_meier(Y, groups, unit="years")
    assert len(axes.lines) == 3
    curve = kaplan_meier(Y[groups == 2])
    np.testing.assert_allclose(axes.lines[2].get_ydata()[1:], curve.survival)
    assert axes.get_title(loc="left") == "log-rank test: p < 0.001"
    assert axes.get_legend().get_texts()[0].get_text() == "0 (n = 67)"
    assert axes.get_xlabel() == "time in years"


def test_predicted_curves():
    times = np.linspace(0, 2, 9)
    survival = MODEL.predict_survival(X[:3], times)
    axes = plot_survival(times, survival, labels=["a", "b", "c"], ax=plot_survival(times, survival))
    np.testing.assert_array_equal(axes.lines[5].get_ydata(), survival[2])
    with pytest.raises(AgreementError, match="9 times each"):
        plot_survival(times, survival[:, :3])


def test_calibration_axes():
    found = calibration(Y, MODEL.predict_survival(X, [1.0])[:, 0], 1.0)
    axes = plot_calibration(found, unit="years")
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), found.observed)
    assert axes.get_xlabel() == "predicted survival to 1 years"
