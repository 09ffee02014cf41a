"""LTI with intercepts: its oracle, what it does not depend on, and that it loses nothing where nothing is reduced."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, LogisticRegression

import datacollab as dc
from datacollab.steps.analyst import make_integrator
from datacollab.testing import check_integrator

COLUMNS = {"a": 4, "b": 5, "c": 3}


def representations(seed, n_rows=40, scale=3.0):
    """Noisy linear views of one table, each with a shift of its own."""
    generator = np.random.default_rng(seed)
    latent = generator.normal(size=(n_rows, 4))
    return {
        party: latent @ generator.normal(size=(4, d))
        + 0.1 * generator.normal(size=(n_rows, d))
        + scale * generator.normal(size=d)
        for party, d in COLUMNS.items()
    }


def naive(anchors, n_components):
    """Append a column of ones to every representation, and take the constant out of the target."""
    n = len(next(iter(anchors.values())))
    ones, J = np.ones((n, 1)), np.full((n, n), 1 / n)
    M = sum(W @ np.linalg.pinv(W) for W in (np.hstack([A, ones]) for A in anchors.values()))
    values, vectors = np.linalg.eigh((np.eye(n) - J) @ M @ (np.eye(n) - J))
    return values[::-1][:n_components], vectors[:, ::-1][:, :n_components]


@given(seed=st.integers(0, 1000), n_components=st.integers(1, 4))
def test_is_the_formula(seed, n_components):
    anchors = representations(seed)
    fitted = dc.LTI(n_components, fit_intercept=True).fit(anchors)
    values, Z = naive(anchors, n_components)
    assert_allclose(fitted.eigenvalues_, values, rtol=1e-8)
    assert_allclose(fitted.target_ @ fitted.target_.T, Z @ Z.T, atol=1e-6)
    assert_allclose(fitted.target_.sum(axis=0), 0, atol=1e-9)
    for party, A in anchors.items():
        W = np.hstack([A, np.ones((len(A), 1))])
        # The best affine map onto this target, by least squares.
        assert_allclose(fitted.transform({party: A})[party], W @ np.linalg.pinv(W) @ fitted.target_, atol=1e-8)
    residuals = sum(np.sum((rows - fitted.target_) ** 2) for rows in fitted.transform(anchors).values())
    assert_allclose(fitted.objective_, residuals, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_shifts_of_representations_change_nothing(seed):
    anchors = representations(seed)
    generator = np.random.default_rng(seed + 100)
    shifts = {party: 10 * generator.normal(size=d) for party, d in COLUMNS.items()}
    moved = {party: A + shifts[party] for party, A in anchors.items()}
    before = dc.LTI(3, fit_intercept=True).fit(anchors)
    after = dc.LTI(3, fit_intercept=True).fit(moved)
    for party in anchors:
        rows = np.random.default_rng(seed).normal(size=(7, COLUMNS[party]))
        assert_allclose(
            after.transform({party: rows + shifts[party]})[party], before.transform({party: rows})[party], atol=1e-8
        )
    plain, plain_after = dc.LTI(3).fit(anchors), dc.LTI(3).fit(moved)
    assert abs(plain.objective_ - plain_after.objective_) > 1e-4  # without intercepts they do


@pytest.mark.parametrize("constant", [0.1, 1000.1, 1e6 + 0.1, -1e8 - 0.1])
def test_a_constant_column_is_no_direction(constant):
    """What rounding leaves of it after centring is not scaled up."""
    latent = np.random.default_rng(0).normal(size=(60, 3))
    anchors = {"a": np.column_stack([latent, np.full(60, constant)]), "b": latent}
    with pytest.raises(ValueError, match="at most 3"):
        dc.LTI(4, fit_intercept=True).fit(anchors)
    g = dc.LTI(3, fit_intercept=True).fit(anchors).integration_functions_["a"]
    assert_allclose(g.coefficients[3], 0, atol=1e-12)
    assert_allclose(g(anchors["a"] + [0, 0, 0, 1.0]), g(anchors["a"]), atol=1e-9)


def test_keeps_the_contract():
    check_integrator(dc.LTI(4, fit_intercept=True))


def made_up(n_rows=240, n_columns=6):
    generator = np.random.default_rng(5)
    X = generator.normal(size=(n_rows, n_columns)) @ generator.normal(size=(n_columns, n_columns)) + 4
    y = X @ generator.normal(size=n_columns) + generator.normal(size=n_rows)
    return X, y, np.arange(n_rows) % 4, X[:80] + generator.normal(size=(80, n_columns))


def test_full_rank_loses_nothing_to_rows_in_one_place():
    """Every party centres and turns its columns as its own rows have it; a linear model on the pool is that of all."""
    X, y, groups, anchor = made_up()
    central = dc.Central(LinearRegression()).fit(X, y, groups=groups)
    pca = dc.obfuscator("pca", 6)

    def predicted(integrator):
        model = dc.DataCollaborationRegressor(pca, integrator, LinearRegression())
        return model.fit(X, y, groups=groups, anchor=anchor).predict(X, groups=groups)

    assert_allclose(predicted(dc.LTI(6, fit_intercept=True)), central.predict(X), rtol=1e-8)
    assert np.abs(predicted(dc.LTI(6)) - central.predict(X)).max() > 1e-3


def test_the_command_takes_it_by_name():
    shares = [
        dc.Share(party=party, representation=A, anchor_representation=A, target=np.arange(40) % 2)
        for party, A in representations(1).items()
    ]
    method = make_integrator("lti-affine", shares)
    assert (method.fit_intercept, method.n_components) == (True, 5)
    model = dc.Analyst(method.set_params(n_components=3), LogisticRegression()).fit(shares)
    assert model.party_model("a").integration_function.intercept.shape == (3,)
