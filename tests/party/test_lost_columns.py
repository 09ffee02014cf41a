"""Columns that the representation lost have unknown effects, which must not be shown as those of others."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import datacollab as dc
from datacollab.model import LeastSquaresInference
from datacollab.party._identification import lost_leakage


@pytest.mark.parametrize("n_anchors", [400, 20_000])
def test_the_effect_of_a_lost_column_is_not_shown_as_that_of_one_that_goes_with_it(n_anchors):
    """A column of little variance that matters much, and goes a little with the first."""
    shown, wrong = 0, 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(2_000 + n_anchors, 3))
        X = np.column_stack([10 * Z[:, 0], 8 * Z[:, 1], 0.5 * (0.09 * Z[:, 0] + np.sqrt(1 - 0.09**2) * Z[:, 2])])
        y = 0.1 * X[:, 0] + 4 * X[:, 2] + rng.normal(size=len(X))
        parties = [dc.Party(k, dc.obfuscator("pca", n_components=2)).fit(X[k:2_000:2], y[k:2_000:2]) for k in range(2)]
        analyst = dc.Analyst(dc.LTI(2, fit_intercept=True), LeastSquaresInference())
        model = analyst.fit([party.share(X[2_000:]) for party in parties]).party_model(0)
        found = parties[0].column_effects(X[2_000:], model, scale="unit")
        assert not found.identified[[0, 2]].any()
        assert "it reads others that were lost, whose effects are unknown" in found.reasons[0]
        # Nothing is lost that goes with the second, which only a large anchor can tell.
        shown += found.identified[1]
        wrong += found.identified[1] and not found.low[1] <= 0 <= found.high[1]
    assert shown == (0 if n_anchors == 400 else 10)
    assert wrong <= 2


def test_a_lost_category_counts_as_a_lost_column():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"dose": rng.normal(size=1_200), "age": rng.normal(size=1_200)})
    rows["ward"] = np.where(rng.random(1_200) < 0.5 + 0.05 * np.sign(rows["dose"]), "n", "s")
    y = (3.0 * (rows["ward"] == "n") + rng.normal(size=1_200)).to_numpy()
    anchor = rows[800:]
    for encoder, is_lost in (("drop", True), (OneHotEncoder(sparse_output=False, drop="first"), False)):
        coding = make_column_transformer(("passthrough", ["dose", "age"]), (encoder, ["ward"]))
        parties = [dc.Party(k, make_pipeline(coding, PCA())).fit(rows[k:800:2], y[k:800:2]) for k in range(2)]
        analyst = dc.Analyst(dc.LTI(2 if is_lost else 3, fit_intercept=True), LeastSquaresInference())
        model = analyst.fit([party.share(anchor) for party in parties]).party_model(0)
        found = parties[0].column_effects(anchor, model)
        assert found.identified.tolist() == ([False] * 3 if is_lost else [True, True, False])
        assert all("were lost" in reason for reason in found.reasons[:2]) if is_lost else found.reasons[0] is None


def test_the_limit_of_lost_leakage_holds_for_nearly_all_anchors():
    """Against anchors drawn anew from a world in which what lost columns do is known."""
    step, P = np.array([1.0, 0.5]), np.array([[0.1, 0.0, -0.2], [0.05, 0.3, 0.0]])
    mixing = np.array([[0.8, 0.4, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.3]])
    known, limits = np.linalg.norm(P.T @ step), []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        representation = rng.normal(size=(60, 2))
        lost = representation @ P + rng.normal(size=(60, 3)) @ mixing
        limits.append(lost_leakage(step, representation, lost - lost.mean(axis=0)))
    assert np.mean(np.array(limits) >= known) >= 0.94
    assert np.mean(limits) < 3 * known
    # Of one column it is that of least squares, whose standard errors are known.
    representation = np.column_stack([representation, rng.normal(size=60)])
    fitted = LeastSquaresInference().fit(representation, lost[:, 0])
    D = np.array([1.0, -1.0, 0.5])
    expected = abs(D @ fitted.coef_) + norm.ppf(0.975) * np.sqrt(D @ fitted.covariance_ @ D)
    assert lost_leakage(D, representation, lost[:, :1] - lost[:, :1].mean()) == pytest.approx(expected)
    assert lost_leakage(D, representation, lost[:, :0]) == 0.0
