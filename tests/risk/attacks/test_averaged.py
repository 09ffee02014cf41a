import numpy as np
import pytest
from numpy.testing import assert_allclose

from datacollab.risk.attacks import (
    AveragedAttack,
    EmulatorAttack,
    GaussianPriorAttack,
    KernelRidgeAttack,
    LinearRegressionAttack,
)


@pytest.fixture
def known(rng):
    A, public = rng.normal(size=(40, 4)), rng.normal(size=(200, 4))
    y, y_public = np.arange(40) % 2, np.arange(200) % 2
    A[:, 0] += 3 * y
    public[:, 0] += 3 * y_public
    return np.tanh(A[:, 1:3]), A, {"target": y, "public": public, "public_target": y_public}


def test_is_the_mean_of_blind_and_informed_attacks(known):
    Z, A, side = known
    y, public = side["target"], side["public"]
    attack = AveragedAttack(blind=[LinearRegressionAttack()], informed=[GaussianPriorAttack()]).fit(Z, A, **side)
    expected = (
        LinearRegressionAttack().fit(Z, A).reconstruct(Z)
        + GaussianPriorAttack().fit(Z, A, **side).reconstruct(Z, target=y)
    ) / 2
    assert_allclose(attack.reconstruct(Z, target=y), expected, atol=1e-10)
    blind = AveragedAttack(informed=[GaussianPriorAttack()]).fit(Z, A, public=public).reconstruct(Z)
    assert_allclose(blind, GaussianPriorAttack().fit(Z, A, public=public).reconstruct(Z), atol=1e-10)


def test_the_default_is_kernel_ridge_blind_and_the_emulator_informed(known):
    Z, A, side = known
    expected = (
        KernelRidgeAttack().fit(Z, A).reconstruct(Z)
        + EmulatorAttack().fit(Z, A, **side).reconstruct(Z, target=side["target"])
    ) / 2
    guesses = AveragedAttack().fit(Z, A, **side).reconstruct(Z, target=side["target"])
    assert_allclose(guesses, expected, atol=1e-10)


def test_members_are_left_unfitted(known):
    Z, A, side = known
    member = LinearRegressionAttack()
    AveragedAttack(blind=[member]).fit(Z, A, **side)
    assert not hasattr(member, "coefficients_")


def test_no_attack_at_all_is_refused(known):
    Z, A, side = known
    with pytest.raises(ValueError, match="no attack to average; give blind or informed attacks"):
        AveragedAttack(blind=[]).fit(Z, A, **side)
