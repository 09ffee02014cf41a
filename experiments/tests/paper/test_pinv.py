import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from datacollab.risk.attacks import LinearRegressionAttack
from datacollab_experiments.paper import PseudoinverseAttack

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


@given(seed=st.integers(0, 1000), rank=st.integers(1, 4))
def test_is_the_formula_where_the_pairs_have_low_rank(seed, rank):
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(20, rank))
    Z, A = latent @ rng.normal(size=(rank, 6)), latent @ rng.normal(size=(rank, 9))
    rows = rng.normal(size=(5, 6))
    assert_close(PseudoinverseAttack().fit(Z, A).reconstruct(rows), naive_pinv(Z, A, rows))


@given(seed=st.integers(0, 1000), d=st.integers(1, 8))
def test_an_invertible_linear_map_is_undone(seed, d):
    rng = np.random.default_rng(seed)
    leaked, private = rng.normal(size=(d + 5, d)), 10 * rng.normal(size=(7, d))
    obfuscation = rotation(seed, d) * rng.uniform(0.5, 2.0, size=d)
    guesses = PseudoinverseAttack().fit(leaked @ obfuscation + 4, leaked).reconstruct(private @ obfuscation + 4)
    assert_close(guesses, private, rtol=1e-9)


def test_originals_in_the_affine_span_of_the_leaked_are_reconstructed(rng):
    """Of 40 columns, 4 leaked rows in general position give away all rows of their 3-dimensional affine span."""
    basis, origin = rng.normal(size=(3, 40)), rng.normal(size=40)
    leaked, private = (rng.normal(size=(n, 3)) @ basis + origin for n in (4, 20))
    pca = PCA(10).fit(np.vstack([private, rng.normal(size=(50, 40))]))
    guesses = PseudoinverseAttack().fit(pca.transform(leaked), leaked).reconstruct(pca.transform(private))
    assert_close(guesses, private)


def test_pinv_undoes_pca_up_to_what_pca_dropped(rng):
    """With leaked rows that span all columns F is V exactly, and what is lost is filled in from their mean."""
    leaked, private = rng.normal(size=(60, 8)), rng.normal(size=(10, 8))
    pca = PCA(3).fit(private)
    dropped = np.eye(8) - pca.components_.T @ pca.components_
    guesses = PseudoinverseAttack().fit(pca.transform(leaked), leaked).reconstruct(pca.transform(private))
    assert_close(guesses, private @ (np.eye(8) - dropped) + leaked.mean(axis=0) @ dropped, rtol=1e-9)


def test_the_two_differ(rng):
    """Where the map loses something, LR guesses it from the leaked rows' correlations and PINV does not."""
    leaked = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(60, 8))
    Z = leaked[:, :2]
    both = LinearRegressionAttack(), PseudoinverseAttack()
    errors = [np.abs(attack.fit(Z, leaked).reconstruct(Z) - leaked).mean() for attack in both]
    assert errors[0] < 0.5 * errors[1]


@given(seed=st.integers(0, 1000), shapes=SHAPES)
def test_reconstructions_turn_with_the_features_and_nothing_else_turns_or_moves_them(seed, shapes):
    """Neither a rotation and a shift of the representation nor another order of the pairs."""
    Z, A, rows = draw_pairs(seed, *shapes)
    R, Q = rotation(seed, Z.shape[1]), rotation(seed + 1, A.shape[1])
    order = np.random.default_rng(seed).permutation(len(Z))
    before = PseudoinverseAttack().fit(Z, A).reconstruct(rows)
    after = PseudoinverseAttack().fit((Z @ R - 7)[order], (A @ Q)[order]).reconstruct(rows @ R - 7)
    assert_close(after, before @ Q)


@given(seed=st.integers(0, 1000), n_leaked=st.integers(12, 25))
def test_redundant_columns_change_nothing(seed, n_leaked):
    """A column repeated, and a constant one that no binary fraction equals."""
    Z, A, rows = draw_pairs(seed, n_leaked, 7, 3)
    before = PseudoinverseAttack().fit(Z, A).reconstruct(rows)
    A = np.column_stack([A, np.full(n_leaked, 0.1)])
    after = PseudoinverseAttack().fit(np.column_stack([Z, np.full(n_leaked, 0.1)]), A)
    guesses = after.reconstruct(np.column_stack([rows, np.zeros(6)]))
    assert_close(guesses, np.column_stack([before, np.full(6, 0.1)]))
    doubled = PseudoinverseAttack().fit(np.column_stack([Z, Z]), A).reconstruct(np.column_stack([rows, rows]))
    assert_close(doubled, guesses)


def test_a_constant_representation_gives_the_mean_leaked_row(rng):
    """Also where the constant is not the rounded mean of its copies, and for rows that differ from it."""
    leaked = rng.normal(size=(30, 5))
    guesses = PseudoinverseAttack().fit(np.full((30, 3), 0.1), leaked).reconstruct(rng.normal(size=(4, 3)))
    assert_allclose(guesses, np.tile(leaked.mean(axis=0), (4, 1)))


def test_constant_originals_are_reconstructed(rng):
    guesses = (
        PseudoinverseAttack().fit(rng.normal(size=(30, 3)), np.full((30, 5), 0.1)).reconstruct(rng.normal(size=(4, 3)))
    )
    assert (guesses == 0.1).all()


def test_a_large_offset_costs_no_more_digits_than_it_takes_up(rng):
    leaked, private, obfuscation = rng.normal(size=(20, 4)), rng.normal(size=(5, 4)), rng.normal(size=(4, 4))
    guesses = PseudoinverseAttack().fit(leaked @ obfuscation + 1e8, leaked).reconstruct(private @ obfuscation + 1e8)
    assert_allclose(guesses, private, atol=1e-6)
