"""Peers of KTI's solvers: the formulas as they stand, the same by Cholesky factors, and another library.

All take the parties' anchor representations, an RBF kernel with the same `gamma` for all, and the ridge penalty
`alpha`, and return the target and the coefficients of the integration functions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

Array = NDArray[np.float64]
Anchors = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Integration:
    """Target of shape (n_anchors, n_components), coefficients by party, and the minimum, if it is KTI's."""

    target: Array
    coefficients: dict[str, Array]
    objective: float | None = None


def naive(anchors: Anchors, n_components: int, *, alpha: float, gamma: float) -> Integration:
    r"""Theorem 2 of the paper, literally: inverses, all eigenvectors of :math:`M_\lambda`, and inverses again.

    The second inverse of each party saves keeping all of them.
    """
    identity = np.eye(len(next(iter(anchors.values()))))
    M = np.zeros_like(identity)
    for A in anchors.values():
        M += alpha * np.linalg.inv(rbf_kernel(A, gamma=gamma) + alpha * identity)
    eigenvalues, U = np.linalg.eigh(M)
    Z = U[:, :n_components]
    coefficients = {
        party: np.linalg.inv(rbf_kernel(A, gamma=gamma) + alpha * identity) @ Z for party, A in anchors.items()
    }
    return Integration(Z, coefficients, float(eigenvalues[:n_components].sum()))


def cholesky(anchors: Anchors, n_components: int, *, alpha: float, gamma: float) -> Integration:
    r"""Return Theorem 2 as one writes it with SciPy: a Cholesky factor per party, and only the eigenvectors needed.

    The factors are kept, so that no kernel matrix is made twice.
    """
    n = len(next(iter(anchors.values())))
    M = np.zeros((n, n))
    factors = {}
    for party, A in anchors.items():
        K = rbf_kernel(A, gamma=gamma)
        K[np.diag_indices(n)] += alpha
        factors[party] = scipy.linalg.cho_factor(K, lower=True, overwrite_a=True)
        M += alpha * scipy.linalg.cho_solve(factors[party], np.eye(n))
    eigenvalues, Z = scipy.linalg.eigh(M, subset_by_index=(0, n_components - 1), overwrite_a=True)
    coefficients = {party: scipy.linalg.cho_solve(factor, Z) for party, factor in factors.items()}
    return Integration(Z, coefficients, float(eigenvalues.sum()))


def kgcca(anchors: Anchors, n_components: int, *, alpha: float, gamma: float) -> Integration:
    r"""Kernel generalised CCA of cca-zoo, with the shrinkage that makes it KTI on centred kernels.

    With :math:`c = \lambda / (n_a - 1 + \lambda)`, its target holds the leading eigenvectors of
    :math:`\sum_k K_k (K_k + \lambda I)^{-1}`, :math:`K_k` the centred kernel matrices.
    """
    from cca_zoo.nonparametric import KGCCA

    views: list[Any] = list(anchors.values())
    model = KGCCA(n_components, kernel="rbf", gamma=gamma, shrinkage=alpha / (len(views[0]) - 1 + alpha)).fit(views)
    coefficients = dict(zip(anchors, model.weights_, strict=True))
    total = sum(_centred_kernel(A, gamma) @ W for A, W in zip(views, model.weights_, strict=True))
    return Integration(np.linalg.qr(total)[0], coefficients)


def attained(anchors: Anchors, target: Array, *, alpha: float, gamma: float | Mapping[str, float]) -> float:
    r"""Value of :math:`\mathrm{tr}(Z^\top M_\lambda Z)` at any target, in double precision throughout."""
    total = 0.0
    for party, A in anchors.items():
        width = gamma if isinstance(gamma, float) else gamma[party]
        S = np.asfortranarray(rbf_kernel(A, gamma=width))
        np.fill_diagonal(S, 1 + alpha)
        factor = scipy.linalg.cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
        total += alpha * float(np.sum(target * scipy.linalg.cho_solve(factor, target)))
    return total


def _centred_kernel(A: Array, gamma: float) -> Array:
    K = rbf_kernel(A, gamma=gamma)
    mean = K.mean(axis=0)
    return np.asarray(K - mean - mean[:, np.newaxis] + mean.mean())
