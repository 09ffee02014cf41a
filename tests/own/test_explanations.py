"""What packages such as shap are given to explain, and how far parties' explanations agree."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import datacollab as dc
from datacollab.errors import AgreementError, NumericalError, ObfuscationError
from datacollab.party import explanation_discrepancy, local_party, party_state

# To load shap takes seconds.
pytestmark = pytest.mark.slow

COEFFICIENTS = np.array([2.0, -1.0, 0.5, 0.0])


def rows_of(seed, n_rows=60, n_columns=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_columns)) @ rng.normal(size=(n_columns, n_columns))


def world(h, *, target=lambda X: X @ COEFFICIENTS, integrator=None, f="pca", n_components=4, as_frame=False):
    """Two parties, their models, and the anchor."""
    tables = [rows_of(1), rows_of(2), rows_of(3)]
    targets = [target(X) for X in tables]
    if as_frame:
        tables = [pd.DataFrame(X, columns=list("abcd")) for X in tables]
    anchor = tables.pop()
    parties = [
        dc.Party(k, dc.obfuscator(f, n_components=n_components)).fit(X, y)
        for k, (X, y) in enumerate(zip(tables, targets[:2], strict=True))
    ]
    integrator = dc.LTI(n_components, fit_intercept=True) if integrator is None else integrator
    together = dc.Analyst(integrator, h).fit([party.share(anchor) for party in parties])
    return parties, [together.party_model(party.name) for party in parties], anchor, tables


def explained(answer, X, background):
    """Exact Shapley values by shap."""
    import shap

    masker = shap.maskers.Independent(background, max_samples=len(background))
    return shap.explainers.Exact(answer, masker)(X)


@pytest.mark.slow
def test_values_of_a_linear_model_are_in_closed_form():
    parties, models, anchor, tables = world(LinearRegression())
    for party, model, X in zip(parties, models, tables, strict=True):
        found = explained(party.predictor(model), X, anchor)
        assert np.abs(found.values - (X - anchor.mean(axis=0)) * COEFFICIENTS).max() < 1e-8
        # A column that the model does not look at.
        assert np.abs(found.values[:, 3]).max() < 1e-8


@pytest.mark.slow
def test_classes_are_explained_by_probabilities_and_log_odds():
    def target(X):
        return np.array(["low", "middle", "high"])[np.digitize(X @ COEFFICIENTS, [-1.0, 1.0])]

    parties, models, anchor, tables = world(LogisticRegression(), target=target)
    party, model, X = parties[1], models[1], tables[1][:5]
    predictor = party.predictor(model)
    assert list(predictor.classes_) == ["high", "low", "middle"]
    probabilities = party.predict_proba(X, model)
    assert_array_equal(predictor(X), probabilities)
    found = explained(predictor, X, anchor)
    assert found.values.shape == (5, 4, 3)
    assert_allclose(found.base_values + found.values.sum(axis=1), probabilities, rtol=0, atol=1e-12)
    odds = explained(predictor.log_odds, X, anchor)
    expected = np.log(probabilities / (1 - probabilities))
    assert_allclose(odds.base_values + odds.values.sum(axis=1), expected, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_an_array_stands_for_the_frame_of_fit():
    """Packages that explain take frames apart; the columns keep their order and get their names back."""
    parties, models, anchor, tables = world(LinearRegression(), as_frame=True)
    predictor = parties[0].predictor(models[0])
    assert predictor.feature_names_in_ == list("abcd")
    expected = parties[0].predict(tables[0], models[0])
    assert_array_equal(predictor(tables[0].to_numpy()), expected)
    assert_array_equal(predictor(tables[0][list("dcba")]), expected)
    found = pytest.importorskip("shap").Explainer(predictor, anchor)(tables[0])
    parts = (tables[0].to_numpy() - anchor.to_numpy().mean(axis=0)) * COEFFICIENTS
    assert_allclose(found.values, parts, rtol=0, atol=1e-8)
    with pytest.raises(ObfuscationError):
        predictor(tables[0].to_numpy()[:, :3])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_arrays_of_objects_get_their_categories_back(library):
    frames = pytest.importorskip(library)
    rng = np.random.default_rng(0)

    def table(n_rows):
        return frames.DataFrame(
            {"age": rng.integers(20, 90, n_rows), "sex": rng.choice(["f", "m"], n_rows), "x": rng.normal(size=n_rows)}
        )

    def target(X):
        return np.asarray(X["age"]) / 10 + 3.0 * (np.asarray(X["sex"]) == "m")

    encoder = make_column_transformer(
        (StandardScaler(), ["age", "x"]), (OneHotEncoder(sparse_output=False, drop="first"), ["sex"])
    )
    tables, anchor = [table(50), table(50)], table(80)
    parties = [dc.Party(k, make_pipeline(encoder, PCA(3))).fit(each, target(each)) for k, each in enumerate(tables)]
    analyst = dc.Analyst(dc.LTI(3, fit_intercept=True), LinearRegression())
    model = analyst.fit([party.share(anchor) for party in parties]).party_model(0)
    answers = parties[0].predictor(model)(tables[0].to_numpy().astype(object))
    assert_allclose(answers, target(tables[0]), rtol=0, atol=1e-8)


def test_a_party_on_disk_explains_too():
    parties, models, _, tables = world(LinearRegression())
    kept = local_party(*party_state(parties[0]))
    first, second = (each.predictor(models[0])(tables[0]) for each in (parties[0], kept))
    assert_array_equal(first, second)


def test_what_cannot_be_explained_is_refused():
    parties, models, anchor, tables = world(LinearRegression())
    with pytest.raises(AgreementError, match="made for"):
        parties[0].predictor(models[1])
    predictor, X = parties[0].predictor(models[0]), tables[0][:2]
    with pytest.raises(AgreementError, match="no probabilities"):
        predictor.log_odds(X)
    assert "LinearRegression" in repr(predictor)
    names = world(LinearSVC(), target=lambda X: np.where(X[:, 0] > 0, "yes", "no"))
    with pytest.raises(AgreementError, match="names of classes"):
        names[0][0].predictor(names[1][0])(X)
    certain = dc.Analyst(dc.LTI(4, fit_intercept=True), _CertainClassifier())
    model = certain.fit([party.share(anchor) for party in names[0]]).party_model(0)
    with pytest.raises(NumericalError, match="no log odds"):
        names[0][0].predictor(model).log_odds(X)


class _CertainClassifier(LogisticRegression):
    def predict_proba(self, X):
        return super().predict_proba(X).round()


@pytest.mark.nightly
def test_parties_explain_the_anchor_alike():
    """Parties agree to rounding with the anchor as the background, and do not with their own rows."""
    parties, models, anchor, tables = world(LinearRegression())
    predictors = {party.name: party.predictor(model) for party, model in zip(parties, models, strict=True)}
    common = {name: explained(each, anchor[:10], anchor) for name, each in predictors.items()}
    own = {name: explained(each, anchor[:10], tables[name]) for name, each in predictors.items()}
    assert explanation_discrepancy(common, dict.fromkeys(common, anchor)) < 1e-8
    for backgrounds in (dict(enumerate(tables)), {0: anchor}):
        with pytest.raises(AgreementError, match="backgrounds"):
            explanation_discrepancy(own, backgrounds)
    assert explanation_discrepancy(own, dict.fromkeys(own, anchor)) > 0.01


def test_discrepancies_of_two_parties_are_as_defined():
    north, south = np.array([[3.0, 0.0], [0.0, 4.0]]), np.array([[3.0, 1.0], [2.0, 4.0]])
    one = dict.fromkeys(["north", "south", "west"], north)
    assert explanation_discrepancy({"north": north, "south": south}, one) == pytest.approx(np.sqrt(5 / (25 + 30)))
    # Of three parties it is the mean over pairs, of which one agrees.
    between = explanation_discrepancy({"north": north, "south": south, "west": north}, one)
    assert between == pytest.approx(2 / 3 * np.sqrt(5 / (25 + 30)))
    with pytest.raises(AgreementError, match="at least two"):
        explanation_discrepancy({"north": north}, one)
    with pytest.raises(AgreementError, match="same rows"):
        explanation_discrepancy({"north": north, "south": south[:1]}, one)
    shap = pytest.importorskip("shap")
    named = shap.Explanation(south, feature_names=["b", "a"])
    with pytest.raises(AgreementError, match="same rows, columns"):
        explanation_discrepancy({"north": shap.Explanation(north, feature_names=["a", "b"]), "south": named}, one)
