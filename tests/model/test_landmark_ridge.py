import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose
from scipy.special import logsumexp, softmax
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import check_estimator

from datacollab.model import LandmarkRidgeClassifier, LandmarkRidgeRegressor


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(90, 3))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.3 * rng.normal(size=90), [-0.5, 0.5])]
    return X, y


def naive_expansion(S, gamma, X, T, weights, alpha):
    """Normal equations of the penalised problem, intercept last."""
    K, G = rbf_kernel(X, S, gamma=gamma), rbf_kernel(S, S, gamma=gamma)
    design = np.column_stack([K, np.ones(len(X))])
    penalty = np.zeros((len(S) + 1, len(S) + 1))
    penalty[:-1, :-1] = alpha * G
    return np.linalg.solve(design.T @ (weights[:, None] * design) + penalty, (weights[:, None] * design).T @ T)


def test_regression_solves_the_stated_problem(rng, rows):
    X, _ = rows
    y, weights, S = np.sin(2 * X[:, 0]), rng.uniform(0.1, 2, size=90), X[:12]
    model = LandmarkRidgeRegressor(S, gamma=0.7, alphas=[0.3]).fit(X, y, weights)
    solution = naive_expansion(S, 0.7, X, y, weights, 0.3)
    new = rng.normal(size=(20, 3))
    assert_allclose(model.predict(new), rbf_kernel(new, S, gamma=0.7) @ solution[:-1] + solution[-1], atol=1e-7)


def test_the_penalty_is_the_one_with_the_least_error_on_rows_left_out(rng, rows):
    X, _ = rows
    y, alphas = X[:, 0] + rng.normal(size=90), (0.01, 1.0, 100.0)
    model = LandmarkRidgeRegressor(kernel="linear", alphas=alphas)
    left_out = model.fit_left_out(X, y)
    errors = {}
    for alpha in alphas:
        refits = [Ridge(alpha).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0] for i in range(90)]
        errors[alpha] = np.mean((np.array(refits) - y) ** 2)
    assert model.alpha_ == min(errors, key=errors.get)
    assert_allclose(np.mean((left_out - y) ** 2), errors[model.alpha_], rtol=1e-8)


def test_probabilities_left_out_are_those_of_a_fit_without_the_row(rows):
    X, y = rows
    model = LandmarkRidgeClassifier(X[:15], gamma=0.4, alphas=[0.1])
    left_out = model.fit_left_out(X, y)
    i = 7
    solution = naive_expansion(
        X[:15], 0.4, np.delete(X, i, 0), np.eye(3)[np.searchsorted(model.classes_, np.delete(y, i))], np.ones(89), 0.1
    )
    scores = rbf_kernel(X[i : i + 1], X[:15], gamma=0.4) @ solution[:-1] + solution[-1]
    assert_allclose(left_out[i], softmax(model.scale_ * scores + model.offsets_, axis=1)[0], atol=1e-6)
    assert_allclose(left_out.sum(axis=1), 1.0)


def test_calibration_is_the_optimum_a_generic_solver_finds(rng):
    X, weights = rng.normal(size=(200, 2)), rng.uniform(0.5, 2, size=200)
    codes = np.array([rng.choice(3, p=row) for row in softmax(X @ [[2, 0, -1], [0, 1, 0]] + [1, 0, -1], axis=1)])
    model = LandmarkRidgeClassifier(kernel="linear", alphas=[1.0])
    # Scores of rows left out, but for what is alike in all classes, which neither the loss nor its penalty looks at.
    scores = (np.log(model.fit_left_out(X, codes, judges=weights)) - model.offsets_) / model.scale_

    def objective(parameters):
        logits = parameters[0] * scores + parameters[1:]
        nll = weights @ (logsumexp(logits, axis=1) - logits[np.arange(200), codes])
        apart = (scores - scores.mean(axis=1, keepdims=True)) ** 2
        spread = np.sqrt(np.average(apart, weights=[[w] * 3 for w in weights]))
        return nll + 2 * spread * parameters[0] + np.sum(parameters[1:] ** 2) / 2

    options = {"maxiter": 5000, "xatol": 1e-8}
    best = scipy.optimize.minimize(objective, np.ones(4), method="Nelder-Mead", options=options)
    assert objective(np.r_[model.scale_, model.offsets_]) <= best.fun + 1e-4
    assert model.scale_ > 2
    assert model.offsets_[0] != model.offsets_[2]


def test_rare_classes_get_their_frequency(rng):
    X = rng.normal(size=(2000, 2))
    y = rng.random(2000) < 0.05
    model = LandmarkRidgeClassifier(X[:30], gamma=0.5)
    left_out = model.fit_left_out(X, y)
    assert abs(left_out[:, 1].mean() - 0.05) < 0.01
    assert log_loss(y, left_out) < log_loss(y, np.tile([0.95, 0.05], (2000, 1))) + 0.003


@pytest.mark.slow
def test_eight_rows_do_no_worse_than_a_coin(rng):
    """In the mean over draws: a few scores that happen to be right are no reason to be certain."""
    losses = []
    for _ in range(30):
        X, new = rng.normal(size=(8, 5)), rng.normal(size=(300, 5))
        y = np.arange(8) < 4
        X[:, 0] = abs(X[:, 0]) * np.where(y ^ (np.arange(8) % 4 == 0), 1, -1)
        model = LandmarkRidgeClassifier(rng.normal(size=(30, 5)), gamma=0.1).fit(X, y)
        losses.append(log_loss(new[:, 0] > 0, model.predict_proba(new)))
    assert np.mean(losses) < np.log(2) + 0.02


def test_the_model_keeps_landmarks_and_no_row(rows):
    X, y = rows
    model = LandmarkRidgeClassifier(X[:15], gamma=0.4).fit(X[15:], y[15:])
    held = [value for value in vars(model).values() if isinstance(value, np.ndarray)]
    assert all(75 not in value.shape for value in held)


@pytest.mark.parametrize("landmarks", [None, np.ones((4, 2))])
def test_landmarks_must_fit(rows, landmarks):
    with pytest.raises(ValueError, match="landmarks"):
        LandmarkRidgeClassifier(landmarks).fit(*rows)


BY_ROWS_LEFT_OUT = "a row of weight two is left out as one, two equal rows one by one"


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.SkipTestWarning", "ignore::sklearn.exceptions.EstimatorCheckFailedWarning"
)
@pytest.mark.parametrize("estimator", [LandmarkRidgeClassifier, LandmarkRidgeRegressor])
def test_scikit_learn_contract(estimator):
    check_estimator(
        estimator(kernel="linear"),
        expected_failed_checks={"check_sample_weight_equivalence_on_dense_data": BY_ROWS_LEFT_OUT},
    )
