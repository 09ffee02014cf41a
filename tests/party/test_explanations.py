"""Explanations of composed models, against enumeration, closed forms and another library."""

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import datacollab as dc
from datacollab.errors import AgreementError, NumericalError, UnidentifiedColumnsWarning
from datacollab.party import explanation_agreement, local_party, party_state

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


def enumerated(answer, x, background):
    """Shapley values from the definition: every coalition of every column, one at a time."""
    n = len(x)

    def worth(kept):
        masked = background.copy()
        masked[:, list(kept)] = x[list(kept)]
        return answer(masked).mean(axis=0)

    values = []
    for column in range(n):
        others = [each for each in range(n) if each != column]
        values.append(
            sum(
                (worth((*kept, column)) - worth(kept)) / (n * comb(n - 1, size))
                for size in range(n)
                for kept in combinations(others, size)
            )
        )
    return np.array(values)


def bent(X):
    return X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + np.abs(X[:, 3]) * X[:, 0]


@pytest.fixture(scope="module")
def forest():
    h = RandomForestRegressor(n_estimators=10, random_state=0)
    return world(h, target=bent, f="kernel-pca", integrator=dc.KTI(4), n_components=6)


@pytest.mark.filterwarnings("ignore::datacollab.errors.UnidentifiedColumnsWarning")
def test_exact_values_are_those_of_enumeration(forest):
    parties, models, anchor, tables = forest
    party, model = parties[0], models[0]
    found = party.explain(tables[0][:3], model, background=anchor[:7])
    assert found.exact
    for row in range(3):
        expected = enumerated(lambda X: party.predict(X, model), tables[0][row], anchor[:7])
        np.testing.assert_allclose(found.values[row], expected, rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("ignore::datacollab.errors.UnidentifiedColumnsWarning")
def test_sampled_values_come_near_enumeration(forest):
    parties, models, anchor, tables = forest
    party, model = parties[0], models[0]
    exact = party.explain(tables[0][:3], model, background=anchor[:7]).values
    errors = []
    for n_permutations in (1, 100):
        sampled = party.explain(
            tables[0][:3], model, background=anchor[:7], n_permutations=n_permutations, random_state=0
        )
        assert not sampled.exact
        errors.append(np.abs(sampled.values - exact).max())
    assert errors[1] < errors[0] / 3
    assert errors[1] < 0.05 * np.abs(exact).max()


@pytest.mark.filterwarnings("ignore::datacollab.errors.UnidentifiedColumnsWarning")
@pytest.mark.parametrize("n_permutations", [None, 1, 3])
def test_values_add_up(forest, n_permutations):
    parties, models, anchor, tables = forest
    for party, model, X in zip(parties, models, tables, strict=True):
        found = party.explain(X[:9], model, background=anchor, n_background=11, n_permutations=n_permutations)
        answers = party.predict(X[:9], model)
        assert np.abs(found.base_values + found.values.sum(axis=1) - answers).max() < 1e-12
        # Evenly spaced rows of the background, the first and the last among them.
        places = np.linspace(0, len(anchor) - 1, 11).round().astype(int)
        assert found.base_values == pytest.approx(party.predict(anchor[places], model).mean(), abs=1e-12)


@pytest.mark.parametrize("n_permutations", [None, 1])
def test_values_of_a_linear_model_are_in_closed_form(n_permutations):
    parties, models, anchor, tables = world(LinearRegression())
    for party, model, X in zip(parties, models, tables, strict=True):
        found = party.explain(X, model, background=anchor, n_permutations=n_permutations)
        assert np.abs(found.values - (X - anchor.mean(axis=0)) * COEFFICIENTS).max() < 1e-8
        assert found.identified.all()
        np.testing.assert_allclose(found.r2, 1.0)
        # A column that the model does not look at.
        assert np.abs(found.values[:, 3]).max() < 1e-8


def test_values_are_those_of_shap():
    shap = pytest.importorskip("shap")
    h = LogisticRegression()
    parties, models, anchor, tables = world(h, target=lambda X: (bent(X) > 0).astype(int))
    party, model, X, background = parties[0], models[0], tables[0][:4], anchor[:10]

    def answer(rows):
        return party.predict_proba(rows, model)

    found = party.explain(X, model, background=background)
    masker = shap.maskers.Independent(background, max_samples=len(background))
    exact = shap.explainers.Exact(answer, masker)(X)
    np.testing.assert_allclose(found.values, exact.values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.base_values, exact.base_values[0], rtol=0, atol=1e-10)
    permuted = shap.explainers.Permutation(answer, masker, seed=0)(X, max_evals=4000)
    np.testing.assert_allclose(found.values, permuted.values, rtol=0, atol=5e-3)


def test_classes_are_explained_by_probabilities_and_log_odds():
    def target(X):
        return np.array(["low", "middle", "high"])[np.digitize(X @ COEFFICIENTS, [-1.0, 1.0])]

    parties, models, anchor, tables = world(LogisticRegression(), target=target)
    party, model, X = parties[1], models[1], tables[1][:5]
    found = party.explain(X, model, background=anchor)
    assert found.values.shape == (5, 4, 3)
    assert found.output_names == tuple(model.estimator.classes_)
    probabilities = party.predict_proba(X, model)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), probabilities, rtol=0, atol=1e-12)
    odds = party.explain(X, model, background=anchor, output="log-odds")
    expected = np.log(probabilities / (1 - probabilities))
    np.testing.assert_allclose(odds.base_values + odds.values.sum(axis=1), expected, rtol=0, atol=1e-10)


def test_log_odds_of_a_linear_model_of_two_classes_are_linear():
    parties, models, anchor, tables = world(LogisticRegression(), target=lambda X: X[:, 0] > X[:, 1])
    found = parties[0].explain(tables[0], models[0], background=anchor, output="log-odds")
    for column in range(4):
        straight = np.polyfit(tables[0][:, column], found.values[:, column, 1], 1)
        np.testing.assert_allclose(np.polyval(straight, tables[0][:, column]), found.values[:, column, 1], atol=1e-8)
    np.testing.assert_allclose(found.values[:, :, 0], -found.values[:, :, 1], rtol=0, atol=1e-10)


def test_a_group_is_one_player():
    parties, models, anchor, tables = world(LinearRegression(), as_frame=True)
    found = parties[0].explain(tables[0], models[0], background=anchor, columns={"both": ["a", "c"]})
    assert found.feature_names == ("both", "b", "d")
    parts = (tables[0].to_numpy() - anchor.to_numpy().mean(axis=0)) * COEFFICIENTS
    np.testing.assert_allclose(found.values[:, 0], parts[:, 0] + parts[:, 2], rtol=0, atol=1e-8)
    assert list(found.importance()) == sorted(found.importance(), key=found.importance().get, reverse=True)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_with_categories_are_explained(library):
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
    found = parties[0].explain(tables[0], model, background=anchor)
    assert found.identified.all()
    men, share = np.asarray(tables[0]["sex"]) == "m", (np.asarray(anchor["sex"]) == "m").mean()
    np.testing.assert_allclose(found.values[:, 1], 3.0 * (men - share), rtol=0, atol=1e-8)
    assert np.abs(found.values[:, 2]).max() < 1e-8


@pytest.mark.filterwarnings("ignore::datacollab.errors.UnidentifiedColumnsWarning")
def test_neither_jobs_nor_blocks_change_values(forest, monkeypatch):
    parties, models, anchor, tables = forest
    wanted = {"background": anchor, "n_background": 9, "random_state": 3}
    party, X, lines = parties[0], tables[0][:4], []
    together = [party.explain(X, models[0], n_permutations=n, **wanted).values for n in (None, 2)]
    monkeypatch.setattr("datacollab.party._masked_model.BLOCK_ROWS", 5)
    wanted |= {"n_jobs": 2, "progress": lines.append}
    apart = [party.explain(X, models[0], n_permutations=n, **wanted).values for n in (None, 2)]
    for first, second in zip(together, apart, strict=True):
        np.testing.assert_allclose(first, second, rtol=0, atol=1e-10)
    assert lines == [f"row {row} of 4" for row in range(1, 5)] * 2


def test_a_column_that_the_representation_lost_is_not_identified():
    parties, models, anchor, tables = world(LinearRegression(), n_components=2)
    with pytest.warns(UnidentifiedColumnsWarning, match=r"columns are not identified"):
        found = parties[0].explain(tables[0][:3], models[0], background=anchor)
    assert not found.identified.all()
    assert (found.r2[~found.identified] < 0.99).all()
    assert "*" in found.plot_row(0).get_yticklabels()[0].get_text() or found.identified.any()


def test_masked_rows_far_from_the_anchor_fade():
    parties, models, anchor, _ = world(LinearRegression(), integrator=dc.KTI(4))
    beside = anchor[:20] + 1_000 * np.eye(4)[0]
    with pytest.warns(UnidentifiedColumnsWarning):
        near = parties[0].explain(anchor[:20], models[0], background=anchor)
    with pytest.warns(UnidentifiedColumnsWarning):
        far = parties[0].explain(beside, models[0], background=anchor)
    # Half of the masked rows keep the column that is far out.
    assert near.faded < 0.1
    assert 0.4 < far.faded < 0.7


def test_a_party_on_disk_explains_too():
    parties, models, anchor, tables = world(LinearRegression())
    kept = local_party(*party_state(parties[0]))
    first, second = (each.explain(tables[0][:3], models[0], background=anchor).values for each in (parties[0], kept))
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-10)


def test_parties_explain_the_anchor_alike():
    parties, models, anchor, tables = world(LinearRegression())
    common = [
        party.explain(anchor[:10], model, background=anchor) for party, model in zip(parties, models, strict=True)
    ]
    own = [
        party.explain(anchor[:10], model, background=X) for party, model, X in zip(parties, models, tables, strict=True)
    ]
    assert explanation_agreement(common).discrepancy < 1e-8
    assert explanation_agreement(own).discrepancy > 0.01
    assert explanation_agreement(common).ranks[0, 1] == pytest.approx(1.0)


def test_discrepancy_of_values_is_as_defined():
    parties, models, anchor, tables = world(LinearRegression())
    first, second = (parties[0].explain(X, models[0], background=anchor) for X in (tables[0][:5], tables[1][:5]))
    found = explanation_agreement([first, second])
    squares = sum((each.values**2).sum() for each in (first, second))
    expected = np.sqrt(((first.values - second.values) ** 2).sum() / squares)
    assert found.discrepancy == pytest.approx(expected)
    assert found.values[0, 1] == found.values[1, 0] == found.discrepancy
    assert found.values[0, 0] == 0.0
    with pytest.raises(AgreementError, match="at least two"):
        explanation_agreement([first])
    shorter = parties[0].explain(tables[0][:4], models[0], background=anchor)
    with pytest.raises(AgreementError, match="same rows"):
        explanation_agreement([first, shorter])


def test_figures_are_drawn():
    parties, models, anchor, tables = world(LogisticRegression(), target=lambda X: X[:, 0] > X[:, 1])
    found = parties[0].explain(tables[0], models[0], background=anchor)
    swarm, row = found.plot_beeswarm(max_columns=3), found.plot_row(2, "True", max_columns=2)
    assert [label.get_text() for label in swarm.get_yticklabels()] == list(found.importance())[:3]
    # The bars begin at the base value and end at the answer.
    ends = sorted([row.patches[0].get_x(), row.patches[0].get_x() + row.patches[0].get_width()], key=abs)
    answer = parties[0].predict_proba(tables[0], models[0])[2, 1]
    assert min(abs(end - answer) for end in ends) < 1e-12
    assert min(abs(each - found.base_values[1]) for each in _bar_ends(row)) < 1e-12
    with pytest.raises(AgreementError, match="one of the outputs"):
        found.plot_row(0, "neither")
    with pytest.raises(AgreementError, match="Rows 0 to 59"):
        found.plot_row(60)


def _bar_ends(axes):
    return [end for bar in axes.patches for end in (bar.get_x(), bar.get_x() + bar.get_width())]


def test_shap_takes_an_explanation():
    pytest.importorskip("shap")
    parties, models, anchor, tables = world(LogisticRegression(), target=lambda X: X[:, 0] > X[:, 1])
    found = parties[0].explain(tables[0], models[0], background=anchor)
    theirs = found.to_shap()
    np.testing.assert_array_equal(theirs.values, found.values)
    np.testing.assert_array_equal(theirs.data, tables[0])
    assert theirs[:, :, 1].base_values.shape == (60,)
    assert list(theirs.feature_names) == list(found.feature_names)


def test_text_shows_no_entry():
    parties, models, anchor, tables = world(LinearRegression())
    marked = np.full((2, 4), 7.123456)
    found = parties[0].explain(marked, models[0], background=anchor)
    assert found.data is marked
    assert "7.12" not in repr(found)


def test_what_cannot_be_explained_is_refused():
    parties, models, anchor, tables = world(LinearRegression())
    party, model, X = parties[0], models[0], tables[0][:2]
    with pytest.raises(AgreementError, match="made for"):
        party.explain(X, models[1], background=anchor)
    with pytest.raises(AgreementError, match="no probabilities"):
        party.explain(X, model, background=anchor, output="probability")
    with pytest.raises(ValueError, match="output must be"):
        party.explain(X, model, background=anchor, output="odds")
    with pytest.raises(ValueError, match="n_permutations must be"):
        party.explain(X, model, background=anchor, n_permutations=0)
    with pytest.raises(AgreementError, match="same columns"):
        party.explain(X, model, background=anchor[:, :3])
    with pytest.raises(AgreementError, match="'z' is none of the 4 columns"):
        party.explain(X, model, background=anchor, columns={"group": ["z"]})
    with pytest.raises(AgreementError, match="in no other group"):
        party.explain(X, model, background=anchor, columns={"one": [0, 1], "two": [1]})
    with pytest.raises(AgreementError, match="rows and columns"):
        party.explain(X[0], model, background=anchor)


def test_names_of_classes_and_certain_classes_are_refused():
    parties, models, anchor, tables = world(LinearSVC(), target=lambda X: np.where(X[:, 0] > 0, "yes", "no"))
    with pytest.raises(AgreementError, match="names of classes"):
        parties[0].explain(tables[0][:2], models[0], background=anchor)
    forest = dc.Analyst(dc.LTI(4, fit_intercept=True), _CertainClassifier())
    shares = [party.share(anchor) for party in parties]
    model = forest.fit(shares).party_model(0)
    with pytest.raises(NumericalError, match="no log odds"):
        parties[0].explain(tables[0][:2], model, background=anchor, output="log-odds")


class _CertainClassifier(LogisticRegression):
    def predict_proba(self, X):
        return super().predict_proba(X).round()
