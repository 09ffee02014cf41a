"""What holds for every reconstruction attack, and what bad input must say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from datacollab.errors import AgreementError, RepresentationError
from datacollab.privacy import LinearRegressionAttack, MLPAttack, PseudoinverseAttack

ATTACKS = {"LR": LinearRegressionAttack(), "PINV": PseudoinverseAttack(), "MLP": MLPAttack(random_state=0)}


@pytest.fixture(params=ATTACKS)
def attack(request):
    return clone(ATTACKS[request.param])


@pytest.fixture
def pairs(rng):
    """Thirty rows of five features under a nonlinear map to three columns, and what they were."""
    A = rng.normal(size=(30, 5))
    return np.tanh(A @ rng.normal(size=(5, 3))), A


def test_result_is_a_float64_table_with_the_originals_columns(attack, pairs):
    Z, A = pairs
    assert attack.fit(Z, A) is attack
    guesses = attack.reconstruct(Z[:4])
    assert guesses.shape == (4, 5)
    assert guesses.dtype == np.float64
    assert (attack.n_features_in_, attack.n_features_out_) == (3, 5)
    assert_allclose(attack.mean_original_, A.mean(axis=0))
    assert_allclose(attack.mean_representation_, Z.mean(axis=0))


def test_one_feature_stays_a_table(attack, pairs):
    Z, A = pairs
    assert attack.fit(Z, A[:, :1]).reconstruct(Z[:4]).shape == (4, 1)


def test_rows_are_reconstructed_one_by_one(attack, pairs):
    Z, A = pairs
    attack.fit(Z, A)
    alone = np.vstack([attack.reconstruct(z[None, :]) for z in Z])
    assert_allclose(attack.reconstruct(Z), alone, atol=1e-12)


@pytest.mark.parametrize("as_type", [np.float32, np.asfortranarray, np.ndarray.tolist], ids=["f4", "Fortran", "list"])
def test_dtype_and_memory_order_do_not_matter(attack, pairs, as_type):
    Z, A = (rows.astype(np.float32).astype(np.float64) for rows in pairs)
    convert = (lambda rows: rows.astype(np.float32)) if as_type is np.float32 else as_type
    expected = clone(attack).fit(Z, A).reconstruct(Z)
    guesses = attack.fit(convert(Z), convert(A)).reconstruct(convert(Z))
    assert guesses.dtype == np.float64
    assert_allclose(guesses, expected, atol=1e-10)


def test_input_is_left_alone(attack, pairs):
    copies = [rows.copy() for rows in pairs]
    for rows in pairs:
        rows.setflags(write=False)
    attack.fit(*pairs).reconstruct(pairs[0])
    for rows, copy in zip(pairs, copies, strict=True):
        assert (rows == copy).all()


def test_parameters_are_stored_untouched_and_clonable(attack, pairs):
    parameters = attack.get_params()
    attack.fit(*pairs)
    assert clone(attack).get_params() == parameters == attack.get_params()
    assert not [name for name in vars(clone(attack)) if name.endswith("_")]


def test_reprs_show_no_data(attack, pairs):
    attack.fit(*pairs)
    assert repr(attack) == repr(clone(attack))
    assert "mean_original_" not in attack._repr_html_()


BAD = {
    "nan": (lambda rows: np.where(rows[3, 2] == rows, np.nan, rows), "NaN or infinity in 1 of 30 rows"),
    "infinity": (lambda rows: np.where(rows[3, 2] == rows, np.inf, rows), "NaN or infinity in 1 of 30 rows"),
    "empty": (lambda rows: rows[:, :0], r"empty \(shape \(30, 0\)\)"),
    "one dimension": (lambda rows: rows[:, 0], r"two-dimensional.*shape \(30,\)"),
    "text": (lambda rows: np.full(rows.shape, "secret"), "must be a table of real numbers"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize(("spoilt", "name"), [(0, "leaked representation"), (1, "leaked original")])
def test_bad_pairs_are_refused_without_showing_them(attack, pairs, kind, spoilt, name):
    spoil, message = BAD[kind]
    bad = [*pairs]
    bad[spoilt] = spoil(bad[spoilt])
    with pytest.raises(RepresentationError, match=f"{name}.*{message}") as caught:
        attack.fit(*bad)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_are_refused_without_showing_them(attack, pairs, kind):
    spoil, message = BAD[kind]
    with pytest.raises(RepresentationError, match=f"The representation.*{message}") as caught:
        attack.fit(*pairs).reconstruct(spoil(pairs[0]))
    assert "secret" not in str(caught.value)


def test_unequal_numbers_of_rows(attack, pairs):
    Z, A = pairs
    with pytest.raises(AgreementError, match="representation has 29 rows but the leaked original has 30; give pairs"):
        attack.fit(Z[:-1], A)


def test_too_few_pairs(attack, pairs):
    Z, A = pairs
    fewest = 6 if isinstance(attack, MLPAttack) else 2
    assert attack.fit(Z[:fewest], A[:fewest]).reconstruct(Z).shape == A.shape
    with pytest.raises(RepresentationError, match=f"at least {fewest} leaked pairs; got {fewest - 1}"):
        attack.fit(Z[: fewest - 1], A[: fewest - 1])


def test_other_columns_than_the_leaked(attack, pairs):
    with pytest.raises(RepresentationError, match="has 2 columns but the leaked one had 3"):
        attack.fit(*pairs).reconstruct(pairs[0][:, :2])


def test_not_fitted(attack, pairs):
    with pytest.raises(NotFittedError):
        attack.reconstruct(pairs[0])
