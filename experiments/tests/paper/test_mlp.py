import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.neural_network import MLPRegressor

from datacollab.risk.attacks import LinearRegressionAttack
from datacollab_experiments.paper import MLPAttack


def folded(rng, n):
    """Rows on a curve that no linear map of the one column of their representation follows."""
    angle = rng.uniform(-2.0, 2.0, size=n)
    return angle[:, None], np.column_stack([np.abs(angle) + 5, np.cos(2 * angle)])


def test_is_the_regressor_described_on_centred_pairs(rng):
    Z, A = rng.normal(size=(80, 3)) + 2, rng.normal(size=(80, 4)) - 3
    oracle = MLPRegressor(
        hidden_layer_sizes=(128,), max_iter=600, early_stopping=True, validation_fraction=0.2, random_state=1
    ).fit(Z - Z.mean(axis=0), A - A.mean(axis=0))
    expected = oracle.predict(Z - Z.mean(axis=0)) + A.mean(axis=0)
    assert_allclose(MLPAttack(random_state=1).fit(Z, A).reconstruct(Z), expected, rtol=1e-6)


def test_bends_where_a_linear_attack_cannot(rng):
    leaked, private = folded(rng, 300), folded(rng, 100)
    errors = [
        np.mean((attack.fit(*leaked).reconstruct(private[0]) - private[1]) ** 2)
        for attack in (MLPAttack(random_state=0), LinearRegressionAttack())
    ]
    assert errors[0] < 0.1 * errors[1]


def test_random_state_determines_the_result(rng):
    leaked = folded(rng, 60)
    first, again, other = (MLPAttack(random_state=seed).fit(*leaked).reconstruct(leaked[0]) for seed in (0, 0, 1))
    assert (first == again).all()
    assert not np.allclose(first, other)
    generator = np.random.RandomState(0)
    drawn = clone(MLPAttack()).set_params(random_state=generator).fit(*leaked).reconstruct(leaked[0])
    assert (drawn == first).all()


def test_the_limit_of_epochs_is_no_warning(rng):
    """Warnings are errors in this suite."""
    Z = rng.normal(size=(40, 2))
    attack = MLPAttack(random_state=0).fit(Z, 100 * Z[:, :1])
    assert attack.regressor_.n_iter_ == 600


def test_an_impossible_random_state_is_refused():
    with pytest.raises(ValueError, match="random_state"):
        MLPAttack(random_state="seed").fit(np.ones((9, 2)), np.ones((9, 2)))
