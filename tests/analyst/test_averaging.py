"""The analyst's average of ridge regressions: its weights, its losses, and what goes back to the parties."""

import numpy as np
import pytest
from bent_views import turned_shares
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.metrics import log_loss

import datacollab as dc
from datacollab.model import AveragedClassifier, AveragedRegressor, LandmarkRidgeClassifier, LandmarkRidgeRegressor

pytestmark = pytest.mark.usefixtures("light_choices")


def world(rng, numbers=False, one_to_one=True, n_parties=3):
    """Shares of turned views on one space; the target is curved, and noisy."""

    def target(X):
        signal = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=len(X))
        return signal if numbers else np.where(signal > 0, "yes", "no")

    first, second, *others = turned_shares(rng, target, n_parties=n_parties)
    return [first, second if one_to_one else dc.Share(**{**vars(second), "one_to_one": False}), *others]


@pytest.mark.parametrize("numbers", [False, True])
def test_weights_follow_a_power_of_the_likelihood(rng, numbers):
    """Squared errors are log losses of normal errors; what would weigh next to nothing weighs nothing."""
    selection = dc.Analyst([dc.LTI(4)]).fit(world(rng, numbers)).selection_
    averaged = [each for each in selection.candidates if each.part]
    losses = np.array([each.loss for each in averaged])
    losses = losses / (2 * losses.min()) if numbers else losses
    expected = np.exp(-0.1 * selection.n_judges * (losses - losses.min()))
    assert_allclose([each.part for each in averaged], expected / expected.sum(), rtol=1e-6)
    assert min(each.part for each in averaged) >= 0.02


@pytest.mark.parametrize("numbers", [False, True])
def test_parties_get_the_average_that_was_judged(rng, numbers, monkeypatch):
    monkeypatch.setattr("datacollab.analyst._analyst.round_predictions", lambda left_out, target: left_out)
    shares = world(rng, numbers)
    collaboration = dc.Analyst([dc.LTI(4)]).fit(shares)
    chosen, h = collaboration.selection_.chosen, collaboration.estimator_
    assert chosen.model.startswith("average of ")
    assert isinstance(h, AveragedRegressor if numbers else AveragedClassifier)
    assert all(isinstance(each, LandmarkRidgeClassifier | LandmarkRidgeRegressor) for each in h.estimators_)
    parts = [each.part for each in collaboration.selection_.candidates if each.part]
    assert_allclose(sorted(parts), sorted(h.weights_))
    target = np.concatenate([share.target for share in shares])
    told = np.concatenate([collaboration.left_out_[share.party] for share in shares])
    found = np.mean((told - target) ** 2) if numbers else log_loss(target, told)
    assert_allclose(chosen.loss, found, rtol=1e-6)
    # By Jensen's inequality it is at least as good as its parts are on average.
    of_parts = sum(each.part * each.loss for each in collaboration.selection_.candidates if each.part)
    assert chosen.loss <= of_parts + 1e-12
    assert str(collaboration.selection_).count(" of the average") >= 1


@pytest.mark.slow
def test_the_average_stands_for_its_parts(rng):
    """Also where one of them has, by chance, a smaller loss."""
    analyst = dc.Analyst([dc.LTI(4)], anchor_weight=1.0)
    found = [analyst.fit(world(np.random.default_rng(seed))).selection_ for seed in range(3)]
    smaller = [each.loss < selection.chosen.loss for selection in found for each in selection.candidates if each.part]
    assert any(smaller)
    assert all(selection.chosen.model.startswith(("average", "random forest")) for selection in found)


def test_a_party_with_changed_rows_gets_the_average_without_it(rng):
    shares = world(rng, one_to_one=False, n_parties=4)
    collaboration = dc.Analyst([dc.LTI(4)], anchor_weight=1.0).fit(shares)
    h, without = collaboration.estimator_, collaboration.party_model("p1").without_party
    assert_allclose(without.weights_, h.weights_)
    rows = collaboration.representations_
    anchors = {share.party: share.anchor_representation for share in shares}
    anchor = np.mean(list(collaboration.integrator_.transform(anchors).values()), axis=0)
    X = np.vstack([rows["p0"], rows["p2"], rows["p3"], anchor])
    y = np.concatenate([shares[0].target, shares[2].target, shares[3].target, shares[0].anchor_target])
    for part, of_all in zip(without.estimators_, h.estimators_, strict=True):
        alone = clone(of_all).set_params(alphas=(of_all.alpha_,)).fit(X, y)
        assert_allclose(part.coefficients_, alone.coefficients_, rtol=1e-5, atol=1e-7)
        assert not np.allclose(part.coefficients_, of_all.coefficients_)


def test_nothing_is_averaged_where_other_rows_than_the_parties_judge(rng):
    shares = [dc.Share(**{**vars(share), "one_to_one": False}) for share in world(rng)]
    selection = dc.Analyst().fit(shares).selection_
    assert selection.judged_on == "anchor"
    assert not any(each.model.startswith("average") for each in selection.candidates)
