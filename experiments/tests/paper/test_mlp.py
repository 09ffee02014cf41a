import numpy as np
from numpy.testing import assert_allclose
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
