"""The same problems solved by another library, cca-zoo (generalised canonical correlation analysis)."""

import numpy as np
import pytest
from bent_views import nonlinear_views
from cca_zoo.linear import GCCA, MCCA
from cca_zoo.nonparametric import KGCCA
from numpy.testing import assert_allclose
from scipy.linalg import subspace_angles
from sklearn.metrics.pairwise import rbf_kernel

from datacollab import GEP, KTI, LTI


@pytest.fixture(params=[0, 1], ids=["seed0", "seed1"])
def centred_views(request):
    views, _ = nonlinear_views(300, seed=request.param)
    return {party: A - A.mean(axis=0) for party, A in views.items()}


def factor(K):
    """Phi with Phi @ Phi.T = K."""
    eigenvalues, V = np.linalg.eigh(K)
    return V * np.sqrt(np.clip(eigenvalues, 0, None))


def test_lti_is_gcca(centred_views):
    """Without shrinkage, GCCA's latent variable spans the leading eigenspace of the sum of projectors."""
    gcca = GCCA(4).fit(list(centred_views.values()))
    T = sum(A @ w for A, w in zip(centred_views.values(), gcca.weights_, strict=True))
    lti = LTI(4).fit(centred_views)
    assert subspace_angles(lti.target_, T).max() < 1e-6
    for party, weights in zip(centred_views, gcca.weights_, strict=True):
        signs = np.sign(np.sum(weights * lti.integration_functions_[party].coefficients, axis=0))
        ours = lti.integration_functions_[party].coefficients * signs * np.sqrt(299)
        assert_allclose(ours, weights, rtol=1e-5, atol=1e-7)


def test_gep_is_mcca(centred_views):
    mcca = MCCA(4).fit(list(centred_views.values()))
    gep = GEP(4).fit(centred_views)
    for party, weights in zip(centred_views, mcca.weights_, strict=True):
        ratio = weights / gep.integration_functions_[party].coefficients
        assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape), rtol=1e-5)


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_kti_is_kgcca_on_centred_kernels(centred_views, alpha):
    """KGCCA centres every kernel; with lambda = c (n-1) / (1-c) it is KTI on kernels H K H."""
    n = 300
    shrinkage = alpha / (n - 1 + alpha)
    kgcca = KGCCA(4, kernel="rbf", gamma=0.1, shrinkage=shrinkage).fit(list(centred_views.values()))
    H = np.eye(n) - 1 / n
    features = {party: factor(H @ rbf_kernel(A, gamma=0.1) @ H) for party, A in centred_views.items()}
    kti = KTI(4, kernel="linear", alpha=alpha).fit(features)
    T = sum(score for score in kgcca.transform(list(centred_views.values())))
    assert subspace_angles(kti.target_, T).max() < 1e-6
    for party, score in zip(features, kgcca.transform(list(centred_views.values())), strict=True):
        ours = kti.integration_functions_[party](features[party])
        signs = np.sign(np.sum(ours * score, axis=0))
        assert_allclose(ours * signs * np.sqrt(n - 1), (1 - shrinkage) * score, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_kti_is_gcca_on_sign_doubled_features(centred_views, alpha):
    """Stacking features on their negatives makes GCCA's centring void, which leaves the uncentred problem."""
    n = 300
    kti = KTI(4, gamma=0.1, alpha=alpha).fit(centred_views)
    features = [factor(rbf_kernel(A, gamma=0.1)) for A in centred_views.values()]
    shrinkage = 2 * alpha / (2 * n - 1 + 2 * alpha)
    gcca = GCCA(4, shrinkage=shrinkage).fit([np.vstack([phi, -phi]) for phi in features])
    Z = sum(phi @ weights for phi, weights in zip(features, gcca.weights_, strict=True))
    assert subspace_angles(kti.target_, Z).max() < 1e-6
