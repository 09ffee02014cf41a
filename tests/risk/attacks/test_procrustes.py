import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from datacollab.errors import AgreementError, RepresentationError
from datacollab.risk.attacks import ProcrustesAttack


def rotation(seed, d):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def classes(seed, n, n_columns=12, shared=0):
    """Rows in five classes with means and spreads of their own; `shared` seeds the classes, `seed` the rows."""
    world, rng = np.random.default_rng(shared), np.random.default_rng(seed)
    means, bases = 3 * world.normal(size=(5, n_columns)), world.normal(size=(5, 4, n_columns))
    y = np.arange(n) % 5
    return np.einsum("ni,nij->nj", rng.normal(size=(n, 4)), bases[y]) + means[y], y


def party(seed=1, n=80, d=6):
    """What an analyst has: a representation with a secret rotation, targets, the anchor's; and the originals."""
    (X, y), (A, y_a), (P, y_p) = classes(seed, n), classes(seed + 100, 300), classes(seed + 200, 1500)
    pca, R = PCA(d, random_state=0).fit(X), rotation(seed, d)
    known = {"public": P, "public_target": y_p}
    anchors = {"anchor_representation": pca.transform(A) @ R, "anchor_target": y_a}
    return X, y, pca.transform(X) @ R, known, anchors


def re_identified(X, guesses):
    return np.mean(cdist(guesses, X).argmin(axis=1) == np.arange(len(X)))


ANCHORS = ("anchor_representation", "anchor_target")


@pytest.mark.parametrize(
    ("seed", "n", "told"), [*((seed, 80, ANCHORS) for seed in range(3)), (1, 80, ()), (1, 15, ANCHORS[:1])]
)
def test_pca_falls_without_a_leak(seed, n, told):
    """The share alone is enough, and anchors without targets help too."""
    X, y, Z, known, anchors = party(seed, n)
    attack = ProcrustesAttack(random_state=0).fit(Z, y, **known, **{name: anchors[name] for name in told})
    assert re_identified(X, attack.reconstruct(Z, target=y)) > 0.5
    assert 0.5 < attack.misfit_ < 2 or told != ANCHORS


def test_a_representation_of_something_else_is_not_linked(rng):
    """The same numbers in another order say nothing about the rows."""
    X, y, Z, known, anchors = party()
    attack = ProcrustesAttack(random_state=0).fit(rng.permutation(Z), y, **known, **anchors)
    assert re_identified(X, attack.reconstruct(rng.permutation(Z), target=y)) < 0.15


def test_rotating_moving_and_reordering_changes_nothing(rng):
    _, y, Z, known, anchors = party()
    before = ProcrustesAttack(random_state=0).fit(Z, y, **known, **anchors).reconstruct(Z, target=y)
    R = rotation(7, 6)
    anchors["anchor_representation"] = anchors["anchor_representation"] @ R + 3
    order = rng.permutation(len(y))
    turned = (Z @ R + 3)[order]
    after = ProcrustesAttack(random_state=0).fit(turned, y[order], **known, **anchors)
    assert_allclose(after.reconstruct(turned, target=y[order]), before[order], atol=1e-6)


def test_numeric_targets_make_groups(rng):
    """A target that orders the rows along one direction tells how to turn it."""
    mixing = rng.normal(size=(4, 10)) * np.array([4.0, 2.0, 1.0, 0.5])[:, None]
    T = rng.exponential(size=(1700, 4))
    X, y = T @ mixing, T[:, 0] + 2 * T[:, 1]
    Z = PCA(4).fit(X[:200]).transform(X[:200]) @ rotation(2, 4)
    attack = ProcrustesAttack(random_state=0).fit(Z, y[:200], public=X[200:], public_target=y[200:])
    guesses = attack.reconstruct(Z, target=y[:200])
    assert re_identified(X[:200], guesses) > 0.3


def test_without_targets_the_shape_of_the_cloud_has_to_do(rng):
    """Three directions of clearly different spread, skewed: axes are known from the spread, signs from the skewness."""
    mixing = np.linalg.qr(rng.normal(size=(8, 3)))[0].T * np.array([6.0, 2.0, 0.7])[:, None]
    X = rng.exponential(size=(3200, 3)) @ mixing
    Z = PCA(3).fit(X[:200]).transform(X[:200]) @ rotation(2, 3)
    guesses = ProcrustesAttack(random_state=0).fit(Z, public=X[200:]).reconstruct(Z)
    assert re_identified(X[:200], guesses) > 0.1
    assert np.mean((guesses - X[:200]) ** 2) < 0.1 * X.var(axis=0).mean()


def test_columns_in_other_units_are_standardised():
    X, y, _, known, _ = party()
    units = np.geomspace(0.01, 100, 12)
    scale = X.std(axis=0)
    Z = PCA(6).fit_transform(X / scale) @ rotation(3, 6)
    attack = ProcrustesAttack(random_state=0).fit(
        Z, y, public=known["public"] * units, public_target=known["public_target"]
    )
    assert attack.standardize_
    assert re_identified(X, attack.reconstruct(Z, target=y) / units) > 0.3


@pytest.mark.parametrize("shape", [(4, 60), (40, 60), (2, 2), (40, 1)])
def test_odd_shapes(rng, shape):
    """More columns than rows, as many columns as the originals, a single column; warnings are errors here."""
    Z, P = rng.normal(size=shape), rng.normal(size=(30, 20))
    assert ProcrustesAttack(random_state=0).fit(Z, public=P).reconstruct(Z).shape == (shape[0], 20)


@pytest.mark.parametrize("constant", ["representation", "public"])
def test_constant_tables(rng, constant):
    Z, P = rng.normal(size=(20, 3)), rng.normal(size=(50, 4))
    if constant == "public":
        P[:] = 0.1
    else:
        Z[:] = 0.1
    attack = ProcrustesAttack(random_state=0).fit(Z, np.arange(20) % 2, public=P, public_target=np.arange(50) % 2)
    assert np.isfinite(attack.reconstruct(Z, target=np.arange(20) % 2)).all()


def test_errors(rng):
    _, y, Z, known, anchors = party(n=30)
    attack = ProcrustesAttack(random_state=0)
    with pytest.raises(NotFittedError):
        attack.reconstruct(Z)
    with pytest.raises(AgreementError, match="not of the public ones; pass public_target"):
        attack.fit(Z, y, public=known["public"])
    with pytest.raises(AgreementError, match="anchor representation has 5 columns but the representation has 6"):
        attack.fit(Z, y, **known, anchor_representation=anchors["anchor_representation"][:, :5])
    with pytest.raises(RepresentationError, match="at least 2 private and 2 public rows; got 1 and 1500"):
        attack.fit(Z[:1], y[:1], **known)
    attack.fit(Z, y, **known)
    with pytest.raises(AgreementError, match="got no target to reconstruct with, but was fitted with targets"):
        attack.reconstruct(Z)
    with pytest.raises(RepresentationError, match="has 5 columns but the one in fit had 6"):
        attack.reconstruct(Z[:, :5], target=y)
