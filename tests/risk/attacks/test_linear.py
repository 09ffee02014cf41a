import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from datacollab.risk.attacks import LinearRegressionAttack

SHAPES = st.tuples(st.integers(2, 25), st.integers(1, 8), st.integers(1, 8))


def naive_lr(Z, A, rows):
    coefficients = np.linalg.pinv(Z - Z.mean(axis=0), rcond=1e-10) @ (A - A.mean(axis=0))
    return (rows - Z.mean(axis=0)) @ coefficients + A.mean(axis=0)


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
    assert_close(LinearRegressionAttack().fit(Z, A).reconstruct(rows), naive_lr(Z, A, rows))


@given(seed=st.integers(0, 1000), d=st.integers(1, 6))
def test_an_invertible_affine_change_of_the_representation_does_not_hinder_lr(seed, d):
    Z, A, rows = draw_pairs(seed, 20, 5, d)
    M = rotation(seed, d) * np.random.default_rng(seed).uniform(0.1, 10.0, size=d)
    before = LinearRegressionAttack().fit(Z, A).reconstruct(rows)
    assert_close(LinearRegressionAttack().fit(Z @ M - 7, A).reconstruct(rows @ M - 7), before)


@given(seed=st.integers(0, 1000), shapes=SHAPES)
def test_reconstructions_turn_with_the_features_and_nothing_else_turns_or_moves_them(seed, shapes):
    """Neither a rotation and a shift of the representation nor another order of the pairs."""
    Z, A, rows = draw_pairs(seed, *shapes)
    R, Q = rotation(seed, Z.shape[1]), rotation(seed + 1, A.shape[1])
    order = np.random.default_rng(seed).permutation(len(Z))
    before = LinearRegressionAttack().fit(Z, A).reconstruct(rows)
    after = LinearRegressionAttack().fit((Z @ R - 7)[order], (A @ Q)[order]).reconstruct(rows @ R - 7)
    assert_close(after, before @ Q)


@given(seed=st.integers(0, 1000), n_leaked=st.integers(12, 25))
def test_redundant_columns_change_nothing(seed, n_leaked):
    """A column repeated, and a constant one that no binary fraction equals."""
    Z, A, rows = draw_pairs(seed, n_leaked, 7, 3)
    before = LinearRegressionAttack().fit(Z, A).reconstruct(rows)
    A = np.column_stack([A, np.full(n_leaked, 0.1)])
    after = LinearRegressionAttack().fit(np.column_stack([Z, np.full(n_leaked, 0.1)]), A)
    guesses = after.reconstruct(np.column_stack([rows, np.zeros(6)]))
    assert_close(guesses, np.column_stack([before, np.full(6, 0.1)]))
    doubled = LinearRegressionAttack().fit(np.column_stack([Z, Z]), A).reconstruct(np.column_stack([rows, rows]))
    assert_close(doubled, guesses)


def test_a_constant_representation_gives_the_mean_leaked_row(rng):
    """Also where the constant is not the rounded mean of its copies, and for rows that differ from it."""
    leaked = rng.normal(size=(30, 5))
    guesses = LinearRegressionAttack().fit(np.full((30, 3), 0.1), leaked).reconstruct(rng.normal(size=(4, 3)))
    assert_allclose(guesses, np.tile(leaked.mean(axis=0), (4, 1)))


def test_constant_originals_are_reconstructed(rng):
    guesses = (
        LinearRegressionAttack()
        .fit(rng.normal(size=(30, 3)), np.full((30, 5), 0.1))
        .reconstruct(rng.normal(size=(4, 3)))
    )
    assert (guesses == 0.1).all()
