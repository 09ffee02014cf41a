import numpy as np
import pytest
from sklearn.decomposition import PCA

import datacollab as dc
from datacollab.errors import AgreementError, RepresentationError
from datacollab.risk.attacks import KernelRidgeAttack, LinearRegressionAttack, Rate, invert_collaboration, linked


@pytest.fixture
def parties(rng):
    """Two parties of a linear collaboration, and what each knows."""
    X, _ = dc.datasets.load("digits")
    rows = np.asarray(X)[rng.permutation(len(X))]
    anchor, own, others = rows[:300], rows[300:360], rows[360:420]
    f = {"own": PCA(16).fit(own), "others": PCA(16).fit(others)}
    integrator = dc.LTI(16).fit({name: f[name].transform(anchor) for name in f})
    common = {
        "anchor": integrator.integration_functions_["own"](f["own"].transform(anchor)),
        "own": integrator.integration_functions_["own"](f["own"].transform(own)),
        "others": integrator.integration_functions_["others"](f["others"].transform(others)),
    }
    return anchor, own, others, common


def test_a_party_links_another_partys_rows(parties):
    """Without a single row of the other party's representation of the anchor."""
    anchor, _, others, common = parties
    guesses = invert_collaboration(common["anchor"], anchor, common["others"])
    assert Rate(int(linked(others, guesses).sum()), len(others)).low > 0.5


def test_own_rows_are_further_pairs(parties):
    anchor, own, others, common = parties
    few = invert_collaboration(common["anchor"][:10], anchor[:10], common["others"])
    more = invert_collaboration(
        np.vstack([common["anchor"][:10], common["own"]]), np.vstack([anchor[:10], own]), common["others"]
    )
    assert linked(others, more).mean() > linked(others, few).mean()


def test_it_is_the_attack_on_the_common_space(parties):
    anchor, _, _, common = parties
    expected = KernelRidgeAttack().fit(common["anchor"], anchor).reconstruct(common["others"])
    assert np.array_equal(invert_collaboration(common["anchor"], anchor, common["others"]), expected)
    attack = LinearRegressionAttack()
    expected = LinearRegressionAttack().fit(common["anchor"], anchor).reconstruct(common["others"])
    guesses = invert_collaboration(common["anchor"], anchor, common["others"], attack=attack)
    assert np.array_equal(guesses, expected)
    assert not hasattr(attack, "mean_original_")


def test_targets_of_both_or_neither(parties, rng):
    anchor, _, others, common = parties
    targets = rng.integers(2, size=len(anchor)), rng.integers(2, size=len(others))
    guesses = invert_collaboration(common["anchor"], anchor, common["others"], own_target=targets[0], target=targets[1])
    assert guesses.shape == others.shape
    for given in ({"own_target": targets[0]}, {"target": targets[1]}):
        with pytest.raises(AgreementError, match="or neither"):
            invert_collaboration(common["anchor"], anchor, common["others"], **given)


def test_another_space_is_refused(parties):
    anchor, _, _, common = parties
    with pytest.raises(AgreementError, match="own pairs have 16 columns but the rows under attack have 3"):
        invert_collaboration(common["anchor"], anchor, common["others"][:, :3])
    with pytest.raises(RepresentationError, match="The collaboration representation contains NaN"):
        invert_collaboration(common["anchor"], anchor, common["others"] * np.nan)
