"""Times to an event: a collaboration of all roles, against all rows in one place."""

import numpy as np
import pytest

import datacollab as dc
from datacollab.errors import AgreementError
from datacollab.survival import CoxRegression, concordance_index
from datacollab.targets import coarsen_times, effect_target, survival_target

RANDOM = np.random.default_rng(0)
MIX = RANDOM.normal(size=(6, 6))
N = 360


def rows(n):
    return RANDOM.normal(size=(n, 6)) @ MIX


def target(X):
    time = RANDOM.exponential(np.exp(-0.4 * X[:, 0] + 0.3 * X[:, 1])) * 300
    end = RANDOM.uniform(100, 900, size=len(X))
    return survival_target(time < end, np.minimum(time, end) + 0.01)


X, ANCHOR, X_TEST = rows(N), rows(200), rows(400)
Y, Y_TEST, Y_ANCHOR = target(X), target(X_TEST), target(ANCHOR)
OWNERS = np.repeat(["a", "b", "c"], N // 3)
TEST_OWNERS = np.resize(["a", "b", "c"], len(X_TEST))


def model(**options):
    given = {"obfuscator": dc.obfuscator("pca", 6), "random_state": np.random.RandomState(0)} | options
    return dc.DataCollaborationSurvival(**given)


def fitted(**options):
    return model(**options).fit(X, Y, groups=OWNERS, anchor=ANCHOR)


@pytest.mark.parametrize("strata", ["party", None])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_full_rank_maps_and_affine_integration_give_the_pooled_cox_regression(strata, alpha):
    """Partial likelihood is the same for the same rows in other coordinates; a ridge penalty is not."""
    found = fitted(strata=strata, estimator=CoxRegression(alpha), time_step=30.0)
    pooled = CoxRegression(alpha).fit(X, coarsen_times(Y, 30.0), strata=None if strata is None else OWNERS)
    risk = found.predict(X_TEST, groups=TEST_OWNERS)
    if alpha:
        assert np.corrcoef(risk, pooled.predict(X_TEST))[0, 1] > 0.9
        return
    np.testing.assert_allclose(risk, pooled.predict(X_TEST), atol=1e-6)
    g, h = found.models_["a"].integration_function, found.collaboration_.estimator_
    f = found.parties_["a"]
    steps = f.obfuscate(X.mean(axis=0) + np.eye(6)), f.obfuscate(X.mean(axis=0)[None])
    np.testing.assert_allclose((g(steps[0]) - g(steps[1])) @ h.coef_, pooled.coef_, atol=1e-7)
    times = [60.0, 120.0, 240.0]
    for party in "abc":
        own = party == TEST_OWNERS
        wanted = pooled.predict_survival(X_TEST[own], times, stratum=party if strata else None)
        survival = found.predict_survival(X_TEST[own], times, groups=TEST_OWNERS[own])
        np.testing.assert_allclose(survival, wanted, atol=1e-6)


def test_a_party_gets_its_own_baseline_alone():
    found = fitted()
    assert set(found.collaboration_.estimator_.baselines_) == {"a", "b", "c"}
    for party, each in found.models_.items():
        assert set(each.estimator.baselines_) == {party}
    assert set(fitted(strata=None).models_["a"].estimator.baselines_) == {None}


def test_anchor_rows_with_times_have_a_stratum_of_their_own():
    parties = [dc.Party(name, dc.obfuscator("pca", 6)).fit(X[name == OWNERS], Y[name == OWNERS]) for name in "abc"]
    shares = [party.share(ANCHOR, Y_ANCHOR) for party in parties]
    analyst = dc.Analyst(dc.LTI(6, fit_intercept=True), CoxRegression(), anchor_weight=1.0)
    h = analyst.fit(shares).estimator_
    assert len(h.baselines_) == 4
    without = dc.Analyst(dc.LTI(6, fit_intercept=True), CoxRegression()).fit(shares).estimator_
    assert len(without.baselines_) == 3
    assert np.linalg.norm(np.sqrt(np.diag(h.covariance_))) < np.linalg.norm(np.sqrt(np.diag(without.covariance_)))


def test_scores_are_concordances_and_together_is_better_than_alone():
    found = fitted()
    score = found.score(X_TEST, Y_TEST, groups=TEST_OWNERS)
    assert score == concordance_index(Y_TEST, found.predict(X_TEST, groups=TEST_OWNERS))
    central = dc.Central(CoxRegression()).fit(X, Y)
    local = dc.Local(CoxRegression()).fit(X, Y, groups=OWNERS)
    assert abs(score - central.score(X_TEST, Y_TEST)) < 0.01
    assert score > local.score(X_TEST, Y_TEST, groups=TEST_OWNERS) - 0.005
    with pytest.raises(TypeError, match="no sample_weight"):
        central.score(X_TEST, Y_TEST, sample_weight=np.ones(len(X_TEST)))


@pytest.mark.parametrize("wrong", [np.zeros(N), effect_target(np.resize([0, 1], N), np.zeros(N))])
def test_other_targets_are_refused(wrong):
    with pytest.raises(AgreementError, match="Expected times to an event"):
        model().fit(X, wrong, groups=OWNERS, anchor=ANCHOR)
