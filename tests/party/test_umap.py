import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from datacollab.errors import ObfuscationError
from datacollab.party import UMAPObfuscator
from datacollab.testing import check_obfuscator, is_row_wise

pytestmark = pytest.mark.nightly

METRICS = ["correlation", "cosine", "euclidean"]


def rows(n_rows, seed):
    random = np.random.default_rng(seed)
    centres = 3 * np.random.default_rng(99).normal(size=(4, 8))
    return centres[random.integers(4, size=n_rows)] + random.normal(size=(n_rows, 8))


X = rows(80, seed=0)
X_NEW = rows(45, seed=1)


def umap(**options):
    return UMAPObfuscator(**({"n_components": 3, "min_dist": 0.2, "n_epochs": 30, "random_state": 0} | options))


@pytest.fixture(scope="module", params=METRICS)
def fitted(request):
    return umap(metric=request.param, n_neighbors=5).fit(X)


@pytest.fixture(scope="module")
def paper():
    return umap(metric="cosine", n_neighbors=5, out_of_sample="umap").fit(X)


def naive(fitted, row):
    distances = cdist(row[np.newaxis], X, fitted.metric_)[0]
    nearest = np.argsort(distances)[: fitted.n_neighbors_]
    excess = distances[nearest] - distances[nearest].min()
    weights = np.exp(-excess / excess.mean())
    return sum(w * fitted.embedding_[i] for w, i in zip(weights, nearest, strict=True)) / weights.sum()


def test_new_rows_follow_the_rule(fitted):
    assert_allclose(fitted.transform(X_NEW), [naive(fitted, row) for row in X_NEW], rtol=1e-9)


def test_training_rows_follow_the_rule_like_all_others(fitted):
    assert_allclose(fitted.transform(X), [naive(fitted, row) for row in X], rtol=1e-9)
    assert_array_equal(fitted.transform(X[7:8]), fitted.transform(X)[7:8])
    own = np.linalg.norm(fitted.transform(X) - fitted.embedding_, axis=1)
    assert 0 < own.mean() < 0.25 * np.sqrt(fitted.embedding_.var(axis=0).sum())


def test_rows_do_not_depend_on_the_batch_bit_for_bit(fitted, monkeypatch):
    together = fitted.transform(X_NEW)
    for i, row in enumerate(X_NEW):
        assert_array_equal(fitted.transform(row[np.newaxis])[0], together[i])
    order = np.random.default_rng(0).permutation(len(X_NEW))
    assert_array_equal(fitted.transform(X_NEW[order]), together[order])
    assert_array_equal(fitted.transform(np.vstack([X, X_NEW]))[len(X) :], together)
    monkeypatch.setattr("datacollab.party._umap.BLOCK_ENTRIES", 7 * len(X))
    assert_array_equal(fitted.transform(X_NEW), together)


@pytest.mark.nightly
def test_umaps_own_transform_fails_the_check_of_rows(paper):
    assert not is_row_wise(paper, X_NEW)
    with pytest.raises(AssertionError, match="not row-wise: new rows, one by one"):
        check_obfuscator(paper, X)


@pytest.mark.parametrize(
    ("metric", "factor", "level"),
    [("cosine", np.linspace(0.1, 50, len(X_NEW))[:, np.newaxis], 0.0), ("correlation", 3.7, 0.9)],
)
def test_length_does_not_matter_and_under_correlation_the_level_neither(metric, factor, level):
    fitted = umap(metric=metric, n_neighbors=4).fit(X)
    assert_allclose(fitted.transform(factor * X_NEW + level), fitted.transform(X_NEW), rtol=1e-9)


@pytest.mark.parametrize(("metric", "value"), [("cosine", 0.0), ("correlation", 0.1)])
def test_rows_without_direction(metric, value):
    without = np.full((1, 8), value)
    fitted = umap(metric=metric, n_neighbors=4).fit(X)
    assert_array_equal(fitted.transform(without)[0], fitted.embedding_.mean(axis=0))
    fitted.fit(np.vstack([X, without]))
    mapped = fitted.transform(3 * without)[0]
    distances = np.linalg.norm(fitted.embedding_ - mapped, axis=1)
    assert_array_equal(mapped, fitted.transform(np.vstack([X, without]))[-1])
    assert distances[-1] <= np.median(distances)
    assert np.isfinite(fitted.transform(np.vstack([X_NEW, without]))).all()


def test_hyperparameters_are_drawn_as_in_the_paper():
    random = np.random.RandomState(0)
    draws = [UMAPObfuscator()._draw(random, 100) for _ in range(500)]
    assert {n_neighbors for n_neighbors, _, _ in draws} == set(range(2, 8))
    assert {metric for _, _, metric in draws} == set(METRICS)
    distances = [min_dist for _, min_dist, _ in draws]
    assert 0 <= min(distances) < 0.05
    assert 0.75 < max(distances) < 0.8


def test_draws_differ_between_seeds_and_repeat_for_one():
    drawn = {}
    for seed in (0, 0, 1, None, None):
        fitted = umap(random_state=seed, min_dist=None).fit(X)
        drawn.setdefault(seed, []).append((fitted.n_neighbors_, fitted.min_dist_, fitted.metric_))
    assert drawn[0][0] == drawn[0][1] != drawn[1][0]
    assert drawn[None][0] != drawn[None][1]


def test_fresh_entropy_ignores_numpys_global_seed():
    state = np.random.get_state()  # noqa: NPY002
    try:
        embeddings = []
        for _ in range(2):
            np.random.seed(0)  # noqa: NPY002
            embeddings.append(umap(random_state=None).fit(X).embedding_)
    finally:
        np.random.set_state(state)  # noqa: NPY002
    assert not np.array_equal(*embeddings)


# With two neighbours umap-learn's spectral start is not reproducible.
@pytest.mark.parametrize("n_neighbors", [2, 3, 7])
def test_an_int_reproduces_the_embedding(n_neighbors):
    embeddings = [umap(n_components=2, n_neighbors=n_neighbors, metric="euclidean").fit(X).embedding_ for _ in range(3)]
    assert_array_equal(embeddings[0], embeddings[1])
    assert_array_equal(embeddings[0], embeddings[2])


def test_with_everything_given_the_embedding_is_umap_learns():
    from umap import UMAP

    fitted = umap(n_neighbors=5, metric="euclidean").fit(X)
    theirs = UMAP(n_components=3, n_neighbors=5, min_dist=0.2, n_epochs=30, random_state=0, n_jobs=1).fit(X)
    assert_array_equal(fitted.embedding_, theirs.embedding_)


@pytest.mark.parametrize("n_components", [10, 16, 64])
def test_the_papers_dimensions_fit_without_warnings(n_components):
    assert umap(n_components=n_components, n_neighbors=2).fit(X).embedding_.shape == (80, n_components)


def test_displays_show_no_learnt_value(fitted):
    drawn = clone(fitted).set_params(metric=None, min_dist=None).fit(X)
    for shown in (repr(drawn), str(drawn), drawn._repr_html_()):
        assert "embedding_" not in shown
        assert "min_dist_" not in shown
        assert f"{drawn.min_dist_:.4g}" not in shown


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({"n_components": 79}, X, "at least 81 training rows; got n_samples=80"),
        ({"n_neighbors": 80}, X, "n_neighbors=80 needs more training rows"),
        ({"metric": "correlation"}, X[:, :1], "coincide under the 'correlation' metric"),
        ({"metric": "euclidean"}, X * 1e30, "umap-learn failed"),
    ],
)
@pytest.mark.filterwarnings("ignore:A large number of your vertices were disconnected:UserWarning")
def test_impossible_requests_are_refused(options, table, message):
    with pytest.raises(ObfuscationError, match=message):
        umap(**options).fit(table)


def test_rows_too_far_away_are_refused():
    fitted = umap(metric="euclidean", n_neighbors=3).fit(X)
    with pytest.raises(ObfuscationError, match="too far from the training rows"):
        fitted.transform(X_NEW * 1e200)


# Two columns leave no direction to correlate, so the metric is not drawn here.
def test_scikit_learn_contract():
    check_estimator(UMAPObfuscator(n_components=2, metric="euclidean", n_epochs=10), on_skip=None)
