"""Linear models with covariances, against formulas, simulation and another library."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import check_estimator

from datacollab.errors import AgreementError, NumericalError
from datacollab.model import LeastSquaresInference, LogisticInference


def table(seed, n_rows=120):
    """Columns of very different scales, far from zero, and correlated."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3)) @ rng.normal(size=(3, 3)) * [1.0, 1e-3, 100.0] + [5.0, 0.0, -300.0]
    scores = (X - X.mean(axis=0)) / X.std(axis=0) @ [1.0, -0.5, 0.0]
    return X, scores, rng


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("robust", [False, True])
def test_least_squares_is_that_of_statsmodels(seed, robust):
    models = pytest.importorskip("statsmodels.api")
    X, scores, rng = table(seed)
    y = scores + rng.normal(size=len(X)) * np.exp(scores / 2)
    theirs = models.OLS(y, models.add_constant(X)).fit(cov_type="HC1" if robust else "nonrobust")
    ours = LeastSquaresInference(robust=robust).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.params[1:], rtol=1e-8)
    np.testing.assert_allclose(ours.intercept_, theirs.params[0], rtol=1e-8)
    np.testing.assert_allclose(ours.covariance_, theirs.cov_params()[1:, 1:], rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(ours.predict(X), LinearRegression().fit(X, y).predict(X))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("robust", [False, True])
def test_logistic_regression_is_that_of_statsmodels(seed, robust):
    models = pytest.importorskip("statsmodels.api")
    X, scores, rng = table(seed)
    y = np.where(scores + rng.logistic(size=len(X)) > 0, "yes", "no")
    # Standardised for their optimiser; ours has to do without.
    centre, scale = X.mean(axis=0), X.std(axis=0)
    design = models.add_constant((X - centre) / scale)
    theirs = models.GLM(y == "yes", design, family=models.families.Binomial()).fit(
        tol=1e-14, cov_type="HC0" if robust else "nonrobust"
    )
    # For few rows theirs is corrected in least squares alone.
    correction = len(X) / (len(X) - 4) if robust else 1.0
    ours = LogisticInference(robust=robust).fit(X, y)
    np.testing.assert_allclose(ours.coef_[0], theirs.params[1:] / scale, rtol=1e-7)
    expected = correction * theirs.cov_params()[1:, 1:] / np.outer(scale, scale)
    np.testing.assert_allclose(ours.covariance_, expected, rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(ours.predict_proba(X)[:, 1], theirs.fittedvalues, rtol=1e-7)
    assert (ours.predict(X) == np.where(theirs.fittedvalues > 0.5, "yes", "no")).all()


def test_classical_covariance_is_the_inverse_of_the_information():
    X, scores, rng = table(7)
    y = scores + rng.logistic(size=len(X)) > 0
    fitted = LogisticInference().fit(X, y)
    said = fitted.predict_proba(X)[:, 1]
    design = np.column_stack([np.ones(len(X)), X - X.mean(axis=0)])
    information = design.T @ (design * (said * (1 - said))[:, None])
    np.testing.assert_allclose(fitted.covariance_, np.linalg.inv(information)[1:, 1:], rtol=1e-6, atol=1e-300)


@pytest.mark.parametrize("model", [LeastSquaresInference, LogisticInference])
@pytest.mark.parametrize("robust", [False, True])
def test_a_linear_map_of_the_columns_changes_neither_predictions_nor_errors(model, robust):
    X, scores, rng = table(3)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = scores + rng.logistic(size=len(X))
    y = y > 0 if model is LogisticInference else y
    A = rng.normal(size=(3, 3))
    before = model(robust=robust).fit(X, y)
    after = model(robust=robust).fit(X @ A + 1.0, y)
    np.testing.assert_allclose(A @ np.ravel(after.coef_), np.ravel(before.coef_), rtol=1e-6)
    np.testing.assert_allclose(A @ after.covariance_ @ A.T, before.covariance_, rtol=1e-6)


def test_standard_errors_are_the_spread_of_estimates():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    spread = np.exp(X[:, 0])
    estimates, classical, robust = [], [], []
    for _ in range(300):
        y = X @ [1.0, 2.0] + spread * rng.normal(size=len(X))
        estimates.append(LeastSquaresInference().fit(X, y).coef_[0])
        classical.append(LeastSquaresInference().fit(X, y).covariance_[0, 0])
        robust.append(LeastSquaresInference(robust=True).fit(X, y).covariance_[0, 0])
    assert np.mean(robust) / np.var(estimates) == pytest.approx(1.0, abs=0.2)
    assert np.mean(classical) / np.var(estimates) < 0.7


@pytest.mark.parametrize("model", [LeastSquaresInference, LogisticInference])
def test_what_has_no_covariance_is_refused(model):
    X, scores, rng = table(1, 30)
    y = scores > 0
    with pytest.raises(NumericalError, match="linear in others"):
        model().fit(np.column_stack([X, X[:, 0] + X[:, 1]]), y)
    with pytest.raises(NumericalError, match="constant"):
        model().fit(np.column_stack([X, np.full(len(X), 0.1)]), y)
    with pytest.raises(NumericalError, match="at least 5 rows; got 4"):
        model().fit(X[:4], [0, 1, 0, 1])


def test_separated_classes_and_others_than_two_are_refused():
    X, scores, rng = table(1)
    with pytest.raises(NumericalError, match="separates the classes"):
        LogisticInference().fit(X, X[:, 0] > X[:, 0].mean())
    with pytest.raises(AgreementError, match="two classes are wanted; got 3"):
        LogisticInference().fit(X, np.arange(len(X)) % 3)


@pytest.mark.parametrize("estimator", [LeastSquaresInference(), LogisticInference()])
def test_scikit_learn_takes_it(estimator):
    # Too few rows, constant columns and separated classes have no covariance, and these checks are full of them.
    found = check_estimator(estimator, on_fail=None, on_skip=None)
    errors = [(each["check_name"], each["exception"]) for each in found if each["status"] == "failed"]
    others = {name for name, error in errors if not isinstance(error, NumericalError)}
    # This one puts the error into words of its own.
    assert others <= {"check_positive_only_tag_during_fit"}
    assert sum(each["status"] == "passed" for each in found) > 30
