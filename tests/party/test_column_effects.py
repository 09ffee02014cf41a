"""Effects of original columns: what a theorem says they are, and when they are refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import datacollab as dc
from datacollab.errors import AgreementError
from datacollab.model import LeastSquaresInference, LogisticInference
from datacollab.party import local_party, party_state
from datacollab.party._column_effects import bias_aware_reach
from datacollab.party._identification import determination, leakage
from datacollab.survival import CoxRegression
from datacollab.targets import survival_target

COEFFICIENTS = np.array([1.0, -0.5, 0.3, 0.0, 0.8])
NAMES = ["age", "dose", "weight", "noise", "smoker"]


def tables_of(seed, n_parties=3, n_rows=60, n_anchors=50):
    """Columns in their units, correlated, around other means at each party; the last has two values."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(4) + 0.4 * rng.normal(size=(4, 4))

    def one(n, shift):
        Z = rng.normal(size=(n, 4)) @ mixing + shift
        return np.column_stack([50 + 10 * Z[:, 0], Z[:, 1], 70 + 15 * Z[:, 2], Z[:, 3], Z[:, 0] + Z[:, 3] > 0])

    return [one(n_rows, shift) for shift in rng.normal(size=n_parties)], one(n_anchors, 0.0), rng


def collaborate(tables, targets, anchor, h, *, f="pca", n_components=5, **options):
    integrator = dc.LTI(n_components, fit_intercept=True)
    parties = [
        dc.Party(k, dc.obfuscator(f, n_components=n_components, standardize=True, **options)).fit(X, y)
        for k, (X, y) in enumerate(zip(tables, targets, strict=True))
    ]
    together = dc.Analyst(integrator, h).fit([party.share(anchor) for party in parties])
    return parties, [together.party_model(party.name) for party in parties]


@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("model", [LeastSquaresInference, LogisticInference])
@pytest.mark.parametrize("seed", range(3))
def test_pca_of_all_columns_gives_what_all_rows_in_one_place_give(model, robust, seed):
    tables, anchor, rng = tables_of(seed)
    X = np.concatenate(tables)
    scores = (X / [10, 1, 15, 1, 1] - [5, 0, 70 / 15, 0, 0]) @ COEFFICIENTS + rng.logistic(size=len(X))
    y = scores > 0.5 if model is LogisticInference else scores
    central = model(robust=robust).fit(X, y)
    coefficients, errors = np.ravel(central.coef_), np.sqrt(np.diag(central.covariance_))
    parties, models = collaborate(tables, np.split(y, 3), anchor, model(robust=robust))
    for party, its in zip(parties, models, strict=True):
        found = party.column_effects(anchor, its, scale="unit")
        assert found.identified.all()
        np.testing.assert_allclose(found.r2, 1.0)
        np.testing.assert_allclose(found.effect, coefficients, rtol=0, atol=1e-6 * errors.min())
        np.testing.assert_allclose(found.se, errors, rtol=1e-6)
        np.testing.assert_allclose(found.high - found.effect, 1.959963984540054 * found.se, rtol=1e-12)
        np.testing.assert_allclose(found.effect - found.low, 1.959963984540054 * found.se, rtol=1e-12)
        per_sd = party.column_effects(anchor, its)
        np.testing.assert_allclose(per_sd.effect, coefficients * anchor.std(axis=0), rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(per_sd.steps, anchor.std(axis=0))


@pytest.mark.parametrize("seed", range(3))
def test_pca_of_all_columns_gives_the_hazard_ratios_of_all_rows_in_one_place(seed):
    tables, anchor, rng = tables_of(seed)
    X = np.concatenate(tables)
    scores = (X / [10, 1, 15, 1, 1] - [5, 0, 70 / 15, 0, 0]) @ COEFFICIENTS
    times, observed = rng.exponential(np.exp(-scores)), rng.exponential(size=len(X))
    # In steps, so that there are ties.
    y = survival_target(times < observed, np.ceil(20 * np.minimum(times, observed)))
    central = CoxRegression().fit(X, y)
    errors = np.sqrt(np.diag(central.covariance_))
    # Parties share representations, and times are joined to them in their order.
    parties = [
        dc.Party(k, dc.obfuscator("pca", n_components=5, standardize=True), shuffle=False).fit(each, np.zeros(60))
        for k, each in enumerate(tables)
    ]
    integrator = dc.LTI(5, fit_intercept=True)
    together = dc.Analyst(integrator, LeastSquaresInference()).fit([party.share(anchor) for party in parties])
    h = CoxRegression().fit(np.concatenate([together.representations_[party.name] for party in parties]), y)
    for party in parties:
        model = replace(together.party_model(party.name), estimator=h)
        found = party.column_effects(anchor, model, scale="unit")
        np.testing.assert_allclose(found.effect, central.coef_, rtol=0, atol=1e-6 * errors.min())
        np.testing.assert_allclose(found.se, errors, rtol=1e-6)
        assert found.ratios()["column 1"][0] == pytest.approx(np.exp(central.coef_[1]))
        # Its log risk is explained in closed form.
        explained = party.explain(tables[0][:5], model, background=anchor)
        expected = (tables[0][:5] - anchor.mean(axis=0)) * central.coef_
        np.testing.assert_allclose(explained.values, expected, rtol=0, atol=1e-7)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_effects_are_the_same_at_every_party_where_maps_are_affine(seed, n_components):
    tables, anchor, rng = tables_of(seed)
    targets = [X[:, 1] + rng.normal(size=len(X)) for X in tables]
    # One common subspace: parties differ by an affine map, whatever is lost in it.
    shared = np.linalg.qr(rng.normal(size=(5, n_components)))[0] / np.array([10.0, 1.0, 15.0, 1.0, 0.5])[:, None]
    parties = [
        dc.Party(k, _Projection(shared @ rng.normal(size=(n_components, n_components)))).fit(X, y)
        for k, (X, y) in enumerate(zip(tables, targets, strict=True))
    ]
    analyst = dc.Analyst(dc.LTI(n_components, fit_intercept=True), LeastSquaresInference())
    together = analyst.fit([party.share(anchor) for party in parties])
    found = [party.column_effects(anchor, together.party_model(party.name)) for party in parties]
    for other in found[1:]:
        np.testing.assert_array_equal(other.identified, found[0].identified)
        np.testing.assert_allclose(other.effect, found[0].effect, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(other.se, found[0].se, rtol=1e-4)


class _Projection(LinearRegression):
    """A fixed linear map."""

    def __init__(self, matrix=None):
        self.matrix = matrix

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X) @ self.matrix


def projected(kept, tables, targets, anchor):
    parties = [dc.Party(k, _Projection(kept)).fit(X, y) for k, (X, y) in enumerate(zip(tables, targets, strict=True))]
    analyst = dc.Analyst(dc.LTI(kept.shape[1], fit_intercept=True), LeastSquaresInference())
    model = analyst.fit([party.share(anchor) for party in parties]).party_model(0)
    return parties[0].column_effects(anchor, model), model


def test_columns_that_the_representation_lost_are_refused():
    rng = np.random.default_rng(0)
    tables, anchor = [rng.normal(size=(60, 5)) for _ in range(3)], rng.normal(size=(20_000, 5))
    targets = [X[:, 1] + rng.normal(size=len(X)) for X in tables]
    # The first two columns are kept as they are, and the others in one sum.
    kept = np.zeros((5, 3))
    kept[0, 0] = kept[1, 1] = kept[2, 2] = kept[3, 2] = kept[4, 2] = 1.0
    found, _ = projected(kept, tables, targets, anchor)
    assert found.identified.tolist() == [True, True, False, False, False]
    assert np.isnan(found.effect[2:]).all()
    assert np.isnan(found.se[2:]).all()
    assert all("R2" in reason for reason in found.reasons[2:])
    assert "refused" in str(found)
    assert set(found.ratios()) == {"column 0", "column 1"}
    assert found.ratios()["column 1"][1] == pytest.approx(np.exp(found.low[1]))
    # The same two coefficients as in the model on all rows without the others apart.
    central = LeastSquaresInference().fit(np.concatenate(tables) @ kept, np.concatenate(targets))
    np.testing.assert_allclose(found.effect[:2] / anchor.std(axis=0)[:2], central.coef_[:2], rtol=1e-6)


def test_a_column_into_which_others_are_read_is_refused_though_it_is_told():
    rng = np.random.default_rng(1)
    anchor = rng.normal(size=(8_000, 3))
    anchor[:, 1] += 0.5 * anchor[:, 0]
    coefficients = np.array([1.0, 2.0, -1.0])
    # The first column is kept as it is; of the second, which goes with it, nothing is.
    kept = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    tables = [anchor[:4_000], anchor[4_000:]]
    found, model = projected(kept, tables, [X @ coefficients for X in tables], anchor)
    assert found.r2[0] == pytest.approx(1.0)
    assert found.r2[2] == pytest.approx(1.0)
    assert found.identified.tolist() == [False, False, True]
    assert "it reads others that were lost" in found.reasons[0]
    # Without noise, and learnt on the anchor itself, effects are off by no more than leakage says.
    deviations = anchor.std(axis=0)
    representation = model.transform(anchor @ kept)
    for column in (0, 2):
        step = deviations[column] * (model.transform(kept[column][None]) - model.transform(np.zeros((1, 2))))[0]
        off = abs(step @ model.estimator.coef_ - deviations[column] * coefficients[column])
        standardised = (anchor - anchor.mean(axis=0)) / deviations
        bound = leakage(step, representation, standardised, column) * np.linalg.norm(deviations * coefficients)
        assert off <= bound * (1 + 1e-9)
        assert leakage(step, representation, standardised, column) == pytest.approx(found.leakage[column])
        # Only the lost column is read into it, so the bound has nothing to spare for the others.
        lost = leakage(step, representation, standardised, column) * deviations[1] * coefficients[1]
        assert off == pytest.approx(abs(lost), rel=0.02)


def test_kernel_maps_have_the_lower_bar_and_come_near():
    tables, anchor, rng = tables_of(4, n_rows=80, n_anchors=150)
    tables, anchor = [X[:, :4] for X in tables], anchor[:, :4]
    scale = anchor.std(axis=0)
    targets = [X / scale @ COEFFICIENTS[:4] + rng.normal(size=len(X)) for X in tables]
    h = LeastSquaresInference()
    for width in (1.0, 2.0, 3.0):
        options = {"f": "kernel-pca", "n_components": 8, "bandwidth_factor": width}
        parties, models = collaborate(tables, targets, anchor, h, **options)
        found = parties[0].column_effects(anchor, models[0])
        if (found.r2 >= 0.95).all():
            assert ((found.leakage <= 0.1) == found.identified).all()
        assert not found.identified[found.r2 < 0.95].any()
        shown = found.identified
        assert (np.abs(found.effect - COEFFICIENTS[:4])[shown] < 4 * found.se[shown]).all()
    # The wider the kernel, the more linear the map; it never is quite.
    assert shown.all()
    assert (found.r2 < 1 - 1e-6).all()


def test_steps_are_chosen_by_column():
    tables, anchor, rng = tables_of(1)
    targets = [X[:, 1] + rng.normal(size=len(X)) for X in tables]
    frames = [pd.DataFrame(X, columns=NAMES) for X in tables]
    frame = pd.DataFrame(anchor, columns=NAMES)
    parties, models = collaborate(frames, targets, frame, LeastSquaresInference())
    unit = parties[0].column_effects(frame, models[0], scale="unit")
    chosen = parties[0].column_effects(frame, models[0], columns=["smoker", "age"], scale={"age": 10.0})
    assert chosen.names == ("smoker", "age")
    assert chosen.effect[1] == pytest.approx(10 * unit.effect[0])
    assert chosen.steps.tolist() == [pytest.approx(anchor[:, 4].std()), 10.0]
    narrow = parties[0].column_effects(frame, models[0], confidence=0.5)
    assert (narrow.high - narrow.low < unit.se * anchor.std(axis=0) * 1.4).all()
    kept = local_party(*party_state(parties[0]))
    np.testing.assert_allclose(kept.column_effects(frame, models[0], scale="unit").effect, unit.effect)


def test_what_has_no_effects_is_refused():
    tables, anchor, rng = tables_of(2)
    targets = [X[:, 0] > 50 for X in tables]
    parties, models = collaborate(tables, targets, anchor, LogisticRegression())
    with pytest.raises(AgreementError, match="coef_ and covariance_; the model is a LogisticRegression"):
        parties[0].column_effects(anchor, models[0])
    targets = [X[:, 1] + rng.normal(size=len(X)) for X in tables]
    parties, models = collaborate(tables, targets, anchor, LeastSquaresInference())
    with pytest.raises(AgreementError, match="made for"):
        parties[0].column_effects(anchor, models[1])
    with pytest.raises(AgreementError, match="none of the 5 columns"):
        parties[0].column_effects(anchor, models[0], columns=["dose"])
    with pytest.raises(ValueError, match="scale must be"):
        parties[0].column_effects(anchor, models[0], scale="sigma")
    with pytest.raises(ValueError, match="confidence must be"):
        parties[0].column_effects(anchor, models[0], confidence=95)
    still = anchor.copy()
    still[:, 2] = 70.0
    found = parties[0].column_effects(still, models[0])
    assert found.reasons[2] == "does not vary over the anchor"
    assert np.isnan(found.effect[2])


@settings(max_examples=40, deadline=None)
@given(st.floats(0.0, 6.0), st.floats(0.5, 0.99))
def test_intervals_hold_what_they_promise_for_the_largest_bias(bias, confidence):
    reach = bias_aware_reach(2.0, 2.0 * bias, confidence)
    holds = norm.cdf(reach / 2 - bias) - norm.cdf(-reach / 2 - bias)
    assert holds == pytest.approx(confidence, abs=1e-7)
    assert bias_aware_reach(2.0, 0.0, confidence) <= reach


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
def test_intervals_of_a_bias_far_above_the_standard_error_are_one_sided(confidence):
    for ratio in (9_999.0, 10_001.0, 1e9):
        reach = bias_aware_reach(2.0, 2.0 * ratio, confidence)
        assert reach / 2 - ratio == pytest.approx(norm.ppf(confidence), abs=1e-6)


def test_leakage_widens_intervals():
    tables, anchor, rng = tables_of(4, n_rows=80, n_anchors=150)
    tables, anchor = [X[:, :4] for X in tables], anchor[:, :4]
    targets = [X / anchor.std(axis=0) @ COEFFICIENTS[:4] + rng.normal(size=len(X)) for X in tables]
    options = {"f": "kernel-pca", "n_components": 8, "bandwidth_factor": 2.0}
    parties, models = collaborate(tables, targets, anchor, LeastSquaresInference(), **options)
    found = parties[0].column_effects(anchor, models[0])
    one = parties[0].column_effects(anchor, models[0], columns=[0], scale={"column 0": 10.0})
    shown = found.identified
    wide = (found.high - found.low)[shown] / found.se[shown] / 2
    assert (wide > 1.96).all()
    assert np.array_equal(np.argsort(wide), np.argsort((found.leakage / found.se)[shown]))
    # Neither the step nor what else is asked for changes anything but the unit.
    assert (one.high[0] - one.low[0]) / one.se[0] / 2 == pytest.approx(wide[0])


def test_determination_is_that_of_regression():
    rng = np.random.default_rng(0)
    representation, columns = rng.normal(size=(80, 6)) + 3.0, rng.normal(size=(80, 4))
    columns[:, 0] += representation @ rng.normal(size=6)
    plain = [LinearRegression().fit(representation, column).score(representation, column) for column in columns.T]
    adjusted = 1 - (1 - np.array(plain)) * 79 / 73
    np.testing.assert_allclose(determination(representation, columns), adjusted, rtol=1e-10)
    # Components that say the same twice count once; a constant column has none, as have too few rows.
    twice = np.column_stack([representation, representation[:, :2] @ rng.normal(size=(2, 3))])
    np.testing.assert_allclose(determination(twice, columns), adjusted, rtol=1e-8)
    assert np.isnan(determination(representation, np.full((80, 1), 0.1))).all()
    assert np.isnan(determination(representation[:7], columns[:7])).all()


@pytest.mark.parametrize("model", [LeastSquaresInference(robust=True), LogisticInference()])
def test_effects_are_the_same_once_the_model_came_in_a_file(model, tmp_path):
    tables, anchor, rng = tables_of(5)
    targets = [X[:, 1] + rng.logistic(size=len(X)) for X in tables]
    if isinstance(model, LogisticInference):
        targets = [np.where(y > 0, "yes", "no") for y in targets]
    parties, models = collaborate(tables, targets, anchor, model)
    models[0].save(tmp_path / "a.dcmodel")
    received = dc.PartyModel.load(tmp_path / "a.dcmodel")
    assert received.estimator.robust == model.robust
    before, after = (parties[0].column_effects(anchor, each) for each in (models[0], received))
    np.testing.assert_array_equal(before.effect, after.effect)
    np.testing.assert_array_equal(before.se, after.se)
    np.testing.assert_array_equal(parties[0].predict(anchor, models[0]), parties[0].predict(anchor, received))


def test_hazard_ratios_are_the_same_once_the_model_came_in_a_file(tmp_path):
    tables, anchor, rng = tables_of(6)
    parties, models = collaborate(tables, [X[:, 1] for X in tables], anchor, LeastSquaresInference())
    rows = parties[0].transform(tables[0], models[0])
    y = survival_target(rng.random(60) < 0.8, rng.exponential(np.exp(-tables[0][:, 1])))
    model = replace(models[0], estimator=CoxRegression().fit(rows, y))
    model.save(tmp_path / "a.dcmodel")
    received = dc.PartyModel.load(tmp_path / "a.dcmodel")
    before, after = (parties[0].column_effects(anchor, each).ratios() for each in (model, received))
    assert before == {name: pytest.approx(values, rel=1e-12) for name, values in after.items()}


def test_categories_and_columns_with_gaps_have_no_effects_and_others_do():
    rng = np.random.default_rng(0)

    def table(n_rows):
        weight = np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows))
        return pd.DataFrame({"dose": rng.normal(size=n_rows), "ward": rng.choice(["n", "s"], n_rows), "weight": weight})

    encoder = make_column_transformer(
        (SimpleImputer(), ["dose", "weight"]), (OneHotEncoder(sparse_output=False, drop="first"), ["ward"])
    )
    tables, anchor = [table(80), table(80)], table(100)
    targets = [2 * X["dose"].to_numpy() + (X["ward"] == "n") + rng.normal(size=80) for X in tables]
    parties = [
        dc.Party(k, make_pipeline(encoder, PCA(3))).fit(X, y)
        for k, (X, y) in enumerate(zip(tables, targets, strict=True))
    ]
    analyst = dc.Analyst(dc.LTI(3, fit_intercept=True), LeastSquaresInference())
    model = analyst.fit([party.share(anchor) for party in parties]).party_model(0)
    found = parties[0].column_effects(anchor, model, scale="unit")
    assert found.reasons[1:] == ("is no column of numbers", "has missing entries in the anchor")
    assert found.identified.tolist() == [True, False, False]
    assert abs(found.effect[0] - 2) < 3 * found.se[0]
