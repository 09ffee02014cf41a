"""Reconstruction attacks, their targets, and measures of matches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from datacollab.errors import AgreementError, RepresentationError
from datacollab.risk.attacks import (
    EmulatorAttack,
    KernelRidgeAttack,
    LinearRegressionAttack,
    NearestNeighborsAttack,
    class_means,
)

ATTACKS = {
    "LR": LinearRegressionAttack(),
    "kernel ridge": KernelRidgeAttack(),
    "neighbours": NearestNeighborsAttack(),
    "emulator": EmulatorAttack(),
}

PUBLIC = np.random.default_rng(9).normal(size=(60, 5))


@pytest.fixture(params=ATTACKS)
def attack(request):
    return clone(ATTACKS[request.param])


def fit(attack, Z, A, *, public=PUBLIC, **known):
    """Those that want no public rows take them all the same."""
    return attack.fit(Z, A, public=public, **known)


@pytest.fixture
def pairs(rng):
    """Thirty rows of five features under a nonlinear map to three columns, and what they were."""
    A = rng.normal(size=(30, 5))
    return np.tanh(A @ rng.normal(size=(5, 3))), A


def test_result_is_a_float64_table_with_the_originals_columns(attack, pairs):
    Z, A = pairs
    assert fit(attack, Z, A) is attack
    guesses = attack.reconstruct(Z[:4])
    assert guesses.shape == (4, 5)
    assert guesses.dtype == np.float64
    assert (attack.n_features_in_, attack.n_features_out_) == (3, 5)
    assert_allclose(attack.mean_original_, A.mean(axis=0))
    assert_allclose(attack.mean_representation_, Z.mean(axis=0))


def test_rows_are_reconstructed_one_by_one(attack, pairs):
    Z, A = pairs
    fit(attack, Z, A)
    alone = np.vstack([attack.reconstruct(z[None, :]) for z in Z])
    assert_allclose(attack.reconstruct(Z), alone, atol=1e-12)


def test_reconstructions_do_not_depend_on_the_blocks(attack, pairs, monkeypatch):
    whole = fit(attack, *pairs).reconstruct(pairs[0])
    monkeypatch.setattr("datacollab.risk.attacks._attack.BLOCK_ENTRIES", 90)
    assert_allclose(attack.reconstruct(pairs[0]), whole, atol=1e-10)


@pytest.mark.parametrize("name", ATTACKS)
@given(seed=st.integers(0, 1000), n_leaked=st.integers(8, 40), with_target=st.booleans())
def test_rotating_and_moving_the_representation_changes_nothing(name, seed, n_leaked, with_target):
    """Without scaling; of the emulator the inputs are originals, and noise is measured along with the rows."""
    rng, attack = np.random.default_rng(seed), clone(ATTACKS[name])
    if "standardize" in attack.get_params():
        attack.set_params(standardize=False)
    A, rows, R = rng.normal(size=(n_leaked, 5)), rng.normal(size=(6, 3)), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    Z = np.tanh(A[:, :3])
    known = {"target": np.arange(n_leaked) % 2, "public_target": np.arange(60) % 2} if with_target else {}
    target = [0, 1] * 3 if with_target else None
    before = fit(clone(attack), Z, A, **known).reconstruct(rows, target=target)
    after = fit(clone(attack), Z @ R - 7, A, **known).reconstruct(rows @ R - 7, target=target)
    assert_allclose(after, before, atol=1e-6 * np.abs(before).max())


def test_dtype_and_memory_order_do_not_matter(attack, pairs):
    Z, A = (rows.astype(np.float32).astype(np.float64) for rows in pairs)
    expected = fit(clone(attack), Z, A).reconstruct(Z)
    for convert in (lambda rows: rows.astype(np.float32), np.asfortranarray, np.ndarray.tolist):
        guesses = fit(clone(attack), convert(Z), convert(A)).reconstruct(convert(Z))
        assert guesses.dtype == np.float64
        assert_allclose(guesses, expected, atol=1e-10)


def test_input_is_left_alone(attack, pairs):
    copies = [rows.copy() for rows in pairs]
    for rows in pairs:
        rows.setflags(write=False)
    fit(attack, *pairs).reconstruct(pairs[0])
    for rows, copy in zip(pairs, copies, strict=True):
        assert (rows == copy).all()


def test_parameters_are_stored_untouched_and_clonable(attack, pairs):
    parameters = attack.get_params()
    fit(attack, *pairs)
    assert clone(attack).get_params() == parameters == attack.get_params()
    assert not [name for name in vars(clone(attack)) if name.endswith("_")]


def test_reprs_show_no_data(attack, pairs):
    fit(attack, *pairs)
    assert repr(attack) == repr(clone(attack))
    assert "mean_original_" not in attack._repr_html_()


BAD = {
    "nan": (lambda rows: np.where(rows[3, 2] == rows, np.nan, rows), "NaN or infinity in 1 of 30 rows"),
    "infinity": (lambda rows: np.where(rows[3, 2] == rows, np.inf, rows), "NaN or infinity in 1 of 30 rows"),
    "empty": (lambda rows: rows[:, :0], r"empty \(shape \(30, 0\)\)"),
    "one dimension": (lambda rows: rows[:, 0], r"two-dimensional.*shape \(30,\)"),
    "text": (lambda rows: np.full(rows.shape, "secret"), "must be a table of real numbers"),
}


def test_bad_pairs_and_rows_are_refused_without_showing_them(attack, pairs):
    for spoil, message in BAD.values():
        for spoilt, name in enumerate(("leaked representation", "leaked original")):
            bad = [*pairs]
            bad[spoilt] = spoil(bad[spoilt])
            with pytest.raises(RepresentationError, match=f"{name}.*{message}") as caught:
                fit(attack, *bad)
            assert "secret" not in str(caught.value)
            assert caught.value.__context__ is None or caught.value.__suppress_context__
    fit(attack, *pairs)
    for spoil, message in BAD.values():
        with pytest.raises(RepresentationError, match=f"The representation.*{message}") as caught:
            attack.reconstruct(spoil(pairs[0]))
        assert "secret" not in str(caught.value)


def test_unequal_numbers_of_rows(attack, pairs):
    Z, A = pairs
    with pytest.raises(AgreementError, match="representation has 29 rows but the leaked original has 30; give pairs"):
        fit(attack, Z[:-1], A)


def test_too_few_pairs(attack, pairs):
    Z, A = pairs
    assert fit(attack, Z[:2], A[:2]).reconstruct(Z).shape == A.shape
    with pytest.raises(RepresentationError, match="at least 2 leaked pairs; got 1"):
        fit(attack, Z[:1], A[:1])


def test_other_columns_than_the_leaked(attack, pairs):
    with pytest.raises(RepresentationError, match="has 2 columns but the one in fit had 3"):
        fit(attack, *pairs).reconstruct(pairs[0][:, :2])


def test_not_fitted(attack, pairs):
    with pytest.raises(NotFittedError):
        attack.reconstruct(pairs[0])


def shifted_classes(rng, n):
    """Rows whose class moves them along a direction that the representation does not show."""
    y = rng.integers(3, size=n)
    A = rng.normal(size=(n, 5))
    A[:, 4] += 8 * y
    return A[:, :3] + 0.01 * rng.normal(size=(n, 3)), A, y


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_targets_tell_what_the_representation_does_not(attack, rng, kind):
    Z, A, y = shifted_classes(rng, 240)
    target = np.array(["low", "middle", "high"])[y] if kind == "labels" else A[:, 4]
    leaked, private, public = slice(0, 80), slice(80, 120), slice(120, 240)
    blind = fit(clone(attack), Z[leaked], A[leaked], public=A[public]).reconstruct(Z[private])
    attack.fit(Z[leaked], A[leaked], target=target[leaked], public=A[public], public_target=target[public])
    informed = attack.reconstruct(Z[private], target=target[private])
    wrong_blind, wrong_informed = (np.mean((guess - A[private]) ** 2) for guess in (blind, informed))
    assert wrong_informed < 0.7 * wrong_blind


def test_targets_go_to_both_or_to_neither(attack, pairs):
    y = np.arange(30) % 2
    with pytest.raises(AgreementError, match="got a target to reconstruct with, but was fitted without targets"):
        fit(clone(attack), *pairs).reconstruct(pairs[0], target=y)
    fit(attack, *pairs, target=y, public_target=np.arange(60) % 2)
    with pytest.raises(AgreementError, match="got no target to reconstruct with, but was fitted with targets"):
        attack.reconstruct(pairs[0])
    with pytest.raises(AgreementError, match="floating-point numbers are regression targets"):
        attack.reconstruct(pairs[0], target=y.astype(float))


def test_public_rows_are_asked_for_and_checked(attack, pairs):
    if not attack.needs_public:
        expected = clone(attack).fit(*pairs).reconstruct(pairs[0])
        assert_allclose(fit(attack, *pairs).reconstruct(pairs[0]), expected)
        return
    with pytest.raises(AgreementError, match="needs public rows; pass public"):
        attack.fit(*pairs)
    with pytest.raises(AgreementError, match="public table has 4 columns but the originals have 5"):
        fit(attack, *pairs, public=PUBLIC[:, :4])
    with pytest.raises(AgreementError, match="not of the public ones; pass public_target"):
        fit(attack, *pairs, target=np.arange(30) % 2)
    with pytest.raises(AgreementError, match=r"public rows' target has shape \(30,\), but there are 60 rows"):
        fit(attack, *pairs, target=np.arange(30) % 2, public_target=np.arange(30) % 2)


@pytest.mark.parametrize("constant", [0, 1], ids=["representation", "originals"])
def test_constant_tables(attack, pairs, constant):
    """Nothing to learn from, or nothing to learn; warnings are errors in this suite."""
    tables = [*pairs]
    tables[constant] = np.full(tables[constant].shape, 0.1)
    guesses = fit(attack, *tables).reconstruct(pairs[0])
    assert np.isfinite(guesses).all()


@pytest.mark.parametrize("repeated", [2, 30])
def test_repeated_pairs(attack, pairs, repeated):
    Z, A = (np.repeat(rows[: 60 // repeated], repeated, axis=0) for rows in pairs)
    assert np.isfinite(fit(attack, Z, A).reconstruct(pairs[0])).all()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([1, 2], r"target has shape \(2,\), but there are 3 rows"),
        ([1.0, np.nan, np.inf], "is missing or infinite in [12] of 3 rows"),
        (np.array(["secret", None, "secret"], dtype=object), "is missing or infinite in 1 of 3 rows"),
        (["secret", "b", "c"], "another kind than the leaked rows' target"),
        (np.array(["secret", 1, 2], dtype=object), "cannot be sorted|another kind"),
    ],
)
def test_bad_targets_are_refused_without_showing_them(bad, message, rng):
    Z, A = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    attack = LinearRegressionAttack().fit(Z, A, target=[1, 2, 1])
    with pytest.raises(AgreementError, match=message) as caught:
        attack.reconstruct(Z, target=bad)
    assert "secret" not in str(caught.value)


def test_class_means_of_classes(rng):
    public, target = rng.normal(size=(30, 3)), np.array(list("abc") * 10)
    means = class_means(public, target, ["c", "a", "unheard of"])
    expected = [public[target == "c"].mean(axis=0), public[target == "a"].mean(axis=0), public.mean(axis=0)]
    assert_allclose(means, expected)


def test_class_means_of_numbers_are_those_of_similar_targets(rng):
    target = rng.normal(size=1000)
    public = target[:, None] + rng.normal(size=(1000, 2))
    means = class_means(public, target, np.array([-9.0, 0.0, 9.0]))
    assert_allclose(means, [[-1.75] * 2, [0.0] * 2, [1.75] * 2], atol=0.35)


def test_class_means_of_bad_input_are_refused_without_showing_it():
    with pytest.raises(AgreementError, match=r"has shape \(1,\), but there are 2 rows") as caught:
        class_means([[1.0], [2.0]], ["secret"], ["secret"])
    assert "secret" not in str(caught.value)
