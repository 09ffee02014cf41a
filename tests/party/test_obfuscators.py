import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.decomposition import PCA, KernelPCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import GaussianRandomProjection
from sklearn.utils.estimator_checks import check_estimator

from datacollab.errors import ObfuscationError
from datacollab.party import KernelPCAObfuscator, UMAPObfuscator, obfuscator
from datacollab.testing import check_obfuscator

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 12)) @ RANDOM.normal(size=(12, 12))
X_NEW = RANDOM.normal(size=(15, 12)) @ RANDOM.normal(size=(12, 12))
KINDS = {
    "pca": PCA,
    "kernel-pca": KernelPCAObfuscator,
    "umap": UMAPObfuscator,
    "random-projection": GaussianRandomProjection,
}


def naive_median_distance(rows):
    return np.median([np.linalg.norm(a - b) for i, a in enumerate(rows) for b in rows[:i]])


def test_bandwidth_is_the_median_distance():
    fitted = KernelPCAObfuscator(3).fit(X)
    assert_allclose(fitted.bandwidth_, naive_median_distance(X), rtol=1e-12)
    assert_allclose(fitted.gamma_, 1 / (2 * fitted.bandwidth_**2), rtol=1e-12)


def test_a_bandwidth_factor_gives_the_other_reading_of_the_median_heuristic():
    fitted = KernelPCAObfuscator(4, bandwidth_factor=1 / np.sqrt(2)).fit(X)
    assert_allclose(fitted.gamma_, 1 / naive_median_distance(X) ** 2, rtol=1e-12)


@pytest.mark.parametrize("bandwidth", ["median", 4.0])
def test_kernel_pca_is_scikit_learns_with_that_gamma(bandwidth):
    fitted = KernelPCAObfuscator(4, bandwidth=bandwidth).fit(X)
    theirs = KernelPCA(4, kernel="rbf", gamma=fitted.gamma_).fit(X)
    assert_allclose(fitted.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    assert_allclose(fitted.transform(X_NEW), theirs.transform(X_NEW), atol=1e-9)


def test_kernel_pca_survives_a_distant_origin():
    near, far = KernelPCAObfuscator(3).fit(X), KernelPCAObfuscator(3).fit(X + 1e8)
    assert_allclose(far.transform(X_NEW + 1e8), near.transform(X_NEW), atol=1e-5)


def test_kernel_pca_refuses_more_components_than_positive_eigenvalues():
    repeated = np.repeat(X[:5], 4, axis=0)
    with pytest.raises(ObfuscationError, match=r"only 4 positive eigenvalues\. Lower n_components to 4"):
        KernelPCAObfuscator(6).fit(repeated)
    assert KernelPCAObfuscator(4).fit_transform(repeated).shape == (20, 4)
    with pytest.raises(ObfuscationError, match="at most 59 components"):
        KernelPCAObfuscator(60).fit(X)


def test_kernel_pca_refuses_a_median_distance_of_zero():
    with pytest.raises(ObfuscationError, match="median distance between two rows is zero"):
        KernelPCAObfuscator(2).fit(np.vstack([np.zeros((30, 12)), X[:3]]))


def test_kernel_pca_keeps_the_scikit_learn_contract():
    check_estimator(KernelPCAObfuscator(n_components=2), on_skip=None)


@pytest.mark.parametrize("kind", KINDS)
def test_factory_standardises_by_default_where_the_design_says(kind):
    made = obfuscator(kind, 3, random_state=0)
    assert isinstance(made, Pipeline if kind in {"kernel-pca", "umap"} else KINDS[kind])
    bare = obfuscator(kind, 3, random_state=0, standardize=False)
    assert isinstance(bare, KINDS[kind])
    assert bare.get_params()["n_components"] == 3
    wrapped = obfuscator(kind, 3, random_state=0, standardize=True)
    assert isinstance(wrapped.named_steps["standardize"], StandardScaler)
    assert isinstance(wrapped.named_steps["reduce"], KINDS[kind])
    assert clone(wrapped).set_params(reduce__n_components=5).get_params()["reduce__n_components"] == 5


def test_options_reach_the_transformer():
    assert obfuscator("pca", 3, whiten=True).whiten
    assert obfuscator("umap", out_of_sample="umap").named_steps["reduce"].out_of_sample == "umap"
    assert obfuscator("kernel-pca", bandwidth=2.0).named_steps["reduce"].bandwidth == 2.0


def test_unknown_names_are_refused_with_what_is_allowed():
    with pytest.raises(ValueError, match=r"'t-sne'; choose one of .*'kernel-pca', 'pca', 'random-projection'"):
        obfuscator("t-sne")
    with pytest.raises(TypeError, match=r"'kernel-pca' takes no option \['gamma'\]; it takes \['bandwidth'"):
        obfuscator("kernel-pca", gamma=1.0)


@pytest.mark.parametrize(
    ("kind", "standardize"),
    [
        *((kind, False) for kind in KINDS if kind != "umap"),
        ("pca", True),
        pytest.param("umap", False, marks=pytest.mark.nightly),
    ],
)
def test_every_kind_keeps_the_obfuscator_contract(kind, standardize):
    options = {"n_epochs": 20} if kind == "umap" else {}
    check_obfuscator(obfuscator(kind, 4, random_state=1, standardize=standardize, **options), X, rows=8)
