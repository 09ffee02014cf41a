import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from datacollab.datasets import load
from datacollab.errors import AgreementError, RepresentationError
from datacollab.risk.attacks import (
    membership,
    reconstruction_distance_scores,
    representation_distance_scores,
    subspace_scores,
)

SEEDS = st.integers(0, 1000)


@pytest.fixture(params=["digits", "mnist"])
def images(request):
    """Rows in a random order, and the smallest AUC that f on party rows must show."""
    if request.param == "digits":
        X, _ = load("digits")
    else:
        X, _ = load("mnist", data_dir=request.getfixturevalue("real_data_dir"), download=False)
    rows = np.random.default_rng(0).permutation(len(X))
    return np.asarray(X, dtype=np.float64)[rows[:4000]], {"digits": 0.75, "mnist": 0.85}[request.param]


@given(seed=SEEDS)
def test_distance_to_shared_rows(seed):
    rng = np.random.default_rng(seed)
    X, Z, M = rng.normal(size=(9, 4)), rng.normal(size=(7, 2)), rng.normal(size=(4, 2))
    expected = -cdist(X @ M, Z).min(axis=1)
    assert_allclose(representation_distance_scores(X, Z, lambda rows: rows @ M), expected)
    ridge = Ridge().fit(X, X @ M)
    assert_allclose(representation_distance_scores(X, Z, ridge), -cdist(ridge.predict(X), Z).min(axis=1))


def test_a_known_map_gives_members_away(rng):
    members, others = rng.normal(size=(2, 30, 5))
    M = rng.normal(size=(5, 2))
    scores = [
        representation_distance_scores(rows, members @ M + 100, lambda X: X @ M + 100) for rows in (members, others)
    ]
    assert_allclose(scores[0], 0, atol=1e-12)
    assert membership(*scores).tpr == 1


@given(seed=SEEDS, k=st.integers(1, 6))
def test_distance_to_reconstructions_in_units_of_the_neighbourhood(seed, k):
    rng = np.random.default_rng(seed)
    X, guesses, public = rng.normal(size=(9, 4)), rng.normal(size=(7, 4)), rng.normal(size=(12, 4))
    usual = np.sort(cdist(X, public), axis=1)[:, :k].mean(axis=1)
    expected = -cdist(X, guesses).min(axis=1) / usual
    assert_allclose(reconstruction_distance_scores(X, guesses, public, n_neighbors=k), expected)
    units = (1000 * rows - 7 for rows in (X, guesses, public))
    assert_allclose(reconstruction_distance_scores(*units, n_neighbors=k), expected)


def test_rows_that_are_public_score_lowest(rng):
    X, guesses = rng.normal(size=(2, 9, 4))
    scores = reconstruction_distance_scores(X, guesses, np.vstack([np.tile(X[:1], (5, 1)), rng.normal(size=(9, 4))]))
    assert scores.argmin() == 0
    assert np.isfinite(scores).all()


def test_perfect_reconstructions_give_members_away(rng):
    members, others, public = rng.normal(size=(3, 40, 5))
    scores = [reconstruction_distance_scores(rows, members, public) for rows in (members, others)]
    assert membership(*scores).auc == 1


@given(seed=SEEDS, d=st.integers(1, 4))
def test_subspace_scores_of_an_exactly_linear_map(seed, d):
    """Written with the projections' matrices, from the map itself in place of its estimate."""
    rng = np.random.default_rng(seed)
    X, anchor, public = rng.normal(size=(8, 6)), rng.normal(size=(20, 6)), rng.normal(size=(30, 6)) + 2
    F = rng.normal(size=(6, d))
    axes = PCA(d).fit(public).components_.T
    P, P0 = F @ np.linalg.pinv(F), axes @ axes.T
    centred = X - public.mean(axis=0)
    expected = ((centred @ P) * centred).sum(axis=1) - ((centred @ P0) * centred).sum(axis=1)
    assert_allclose(subspace_scores(X, anchor, anchor @ F + 9, public), expected / (centred**2).sum(axis=1), atol=1e-9)


@given(seed=SEEDS)
def test_rotating_and_moving_the_representation_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    X, anchor, public = rng.normal(size=(3, 25, 6))
    f, R = PCA(3).fit(X), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    Z = f.transform(anchor)
    before = subspace_scores(X, anchor, Z, public)
    assert_allclose(subspace_scores(X, anchor, 5 * Z @ R - 7, public), before, atol=1e-9)
    order = rng.permutation(25)
    assert_allclose(subspace_scores(X[order], anchor[order], Z[order], public), before[order], atol=1e-9)


def test_a_row_at_the_public_mean_scores_nothing(rng):
    anchor, public = rng.normal(size=(2, 25, 4))
    public -= public.mean(axis=0)
    assert subspace_scores(np.zeros((1, 4)), anchor, anchor[:, :2], public)[0] == pytest.approx(0)


def test_pca_fitted_on_the_party_tells_who_took_part_and_on_others_does_not(images):
    """From the anchor's representation alone: no shared row is used."""
    X, smallest = images
    members, others, elsewhere = X[:100], X[100:500], X[500:600]
    anchor, public = X[600:1100], X[1100:]
    scores = {}
    for name, rows in (("party", members), ("elsewhere", elsewhere)):
        Z = PCA(16, random_state=0).fit(rows).transform(anchor)
        scores[name] = membership(*(subspace_scores(asked, anchor, Z, public) for asked in (members, others)))
    assert scores["party"].auc >= smallest
    assert scores["elsewhere"].auc == pytest.approx(0.5, abs=0.08)
    assert scores["elsewhere"].tpr <= 0.06


def test_bad_input_is_refused(rng):
    X, anchor, public = rng.normal(size=(3, 25, 4))
    with pytest.raises(AgreementError, match="has 4 columns but the leaked anchor 3"):
        subspace_scores(X, anchor[:, :3], anchor[:, :2], public)
    with pytest.raises(AgreementError, match="has 4 columns but the public table 3"):
        subspace_scores(X, anchor, anchor[:, :2], public[:, :3])
    with pytest.raises(AgreementError, match="25 rows but its representation has 24"):
        subspace_scores(X, anchor, anchor[:-1, :2], public)
    with pytest.raises(RepresentationError, match="rows of the leaked anchor's representation are equal"):
        subspace_scores(X, anchor, np.ones((25, 2)), public)
    with pytest.raises(AgreementError, match="has 4 columns but the reconstructions 3"):
        reconstruction_distance_scores(X, X[:, :3], public)
    with pytest.raises(
        RepresentationError, match="n_neighbors=5 public rows are wanted near each row, and there are 4"
    ):
        reconstruction_distance_scores(X, X, public[:4])
    with pytest.raises(AgreementError, match=r"emulator returned shape \(25, 4\), but \(25, 2\) is wanted"):
        representation_distance_scores(X, X[:, :2], lambda rows: rows)
    with pytest.raises(RepresentationError, match="What the emulator returned contains NaN"):
        representation_distance_scores(X, X, lambda rows: rows * np.nan)
