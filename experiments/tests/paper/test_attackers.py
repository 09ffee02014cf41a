"""The paper's attackers: formulas with pseudoinverses written out, and what a network learns."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.neural_network import MLPRegressor

from datacollab.risk.attacks import LinearRegressionAttack
from datacollab_experiments.paper import MLPAttack, PseudoinverseAttack

SHAPES = st.tuples(st.integers(2, 25), st.integers(1, 8), st.integers(1, 8))


def naive_pinv(Z, A, rows):
    F = np.linalg.pinv(A - A.mean(axis=0), rcond=1e-10) @ (Z - Z.mean(axis=0))
    return (rows - Z.mean(axis=0)) @ np.linalg.pinv(F, rcond=1e-10) + A.mean(axis=0)


def draw_pairs(seed, n_leaked, n_features, n_intermediate):
    """Leaked pairs with nothing in common, and further rows: the formulas must agree for any numbers."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n_leaked, n_intermediate)) + 3,
        rng.normal(size=(n_leaked, n_features)) - 5,
        rng.normal(size=(6, n_intermediate)),
    )


def rotation(seed, d):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def assert_close(got, wanted, rtol=1e-6):
    assert_allclose(got, wanted, rtol=0, atol=rtol * np.abs(wanted).max())


@given(seed=st.integers(0, 1000), shapes=SHAPES)
def test_is_the_formula_with_pseudo_inverses_written_out(seed, shapes):
    Z, A, rows = draw_pairs(seed, *shapes)
    assert_close(PseudoinverseAttack().fit(Z, A).reconstruct(rows), naive_pinv(Z, A, rows))


@given(seed=st.integers(0, 1000), d=st.integers(1, 8))
def test_an_invertible_linear_map_is_undone(seed, d):
    rng = np.random.default_rng(seed)
    leaked, private = rng.normal(size=(d + 5, d)), 10 * rng.normal(size=(7, d))
    obfuscation = rotation(seed, d) * rng.uniform(0.5, 2.0, size=d)
    guesses = PseudoinverseAttack().fit(leaked @ obfuscation + 4, leaked).reconstruct(private @ obfuscation + 4)
    assert_close(guesses, private, rtol=1e-9)


@given(seed=st.integers(0, 1000), shapes=SHAPES)
def test_reconstructions_turn_with_the_features_and_nothing_else_turns_or_moves_them(seed, shapes):
    """Neither a rotation and a shift of the representation nor another order of the pairs."""
    Z, A, rows = draw_pairs(seed, *shapes)
    R, Q = rotation(seed, Z.shape[1]), rotation(seed + 1, A.shape[1])
    order = np.random.default_rng(seed).permutation(len(Z))
    before = PseudoinverseAttack().fit(Z, A).reconstruct(rows)
    after = PseudoinverseAttack().fit((Z @ R - 7)[order], (A @ Q)[order]).reconstruct(rows @ R - 7)
    assert_close(after, before @ Q)


def test_a_constant_representation_gives_the_mean_leaked_row(rng):
    """Also where the constant is not the rounded mean of its copies, and for rows that differ from it."""
    leaked = rng.normal(size=(30, 5))
    guesses = PseudoinverseAttack().fit(np.full((30, 3), 0.1), leaked).reconstruct(rng.normal(size=(4, 3)))
    assert_allclose(guesses, np.tile(leaked.mean(axis=0), (4, 1)))


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
