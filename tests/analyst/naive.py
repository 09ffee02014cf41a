"""The paper's equations, transcribed as they stand: dense, inverted, slow.  Oracles for the tests, nothing else."""

import numpy as np
import scipy.linalg


def leading_eigenvectors(M, k):
    return np.linalg.eigh(M)[1][:, ::-1][:, :k]


def lti(anchors, k):
    """Theorem 1: eigenvectors of the sum of projectors, and pseudo-inverses."""
    M = sum(A @ np.linalg.pinv(A) for A in anchors.values())
    Z = leading_eigenvectors(M, k)
    maps = {party: np.linalg.pinv(A) @ Z for party, A in anchors.items()}
    return Z, maps, residual(anchors, maps, Z)


def mpp(anchors, R):
    W = np.hstack(list(anchors.values()))
    Z = leading_eigenvectors(W @ W.T, len(R)) @ R
    maps = {party: np.linalg.pinv(A) @ Z for party, A in anchors.items()}
    return Z, maps, residual(anchors, maps, Z)


def gep(anchors, k):
    """The generalised eigenvalue problem itself; representations of full column rank only."""
    W = np.hstack(list(anchors.values()))
    blocks = scipy.linalg.block_diag(*(A.T @ A for A in anchors.values()))
    eigenvalues, V = scipy.linalg.eigh(W.T @ W, blocks)
    V = V[:, ::-1][:, :k]
    parts = np.split(V, np.cumsum([A.shape[1] for A in anchors.values()])[:-1])
    return eigenvalues[::-1][:k], dict(zip(anchors, parts, strict=True))


def pairwise_discrepancy(anchors, maps):
    total = 0.0
    for k in anchors:
        for other in anchors:
            total += np.sum((anchors[k] @ maps[k] - anchors[other] @ maps[other]) ** 2)
    return total


def residual(anchors, maps, Z):
    return sum(np.linalg.norm(A @ maps[party] - Z, "fro") ** 2 for party, A in anchors.items())


def rbf(X, Y, gamma):
    return np.array([[np.exp(-gamma * np.sum((x - y) ** 2)) for y in Y] for x in X])


def m_lambda(kernels, alpha):
    n = len(next(iter(kernels.values())))
    return alpha * sum(np.linalg.inv(K + alpha * np.eye(n)) for K in kernels.values())


def kti_target(M, k, *, C=None, center=False):
    """eqs. reduced_KNI, kernel-graph-gep and reduced-Y, with an explicit basis T of the centred subspace."""
    n = len(M)
    C = np.eye(n) if C is None else C
    T = scipy.linalg.null_space(np.ones((1, n))) if center else np.eye(n)
    _, Y = scipy.linalg.eigh(T.T @ M @ T, T.T @ C @ T)
    return T @ Y[:, :k]


def kti_objective(kernels, Z, alpha):
    """eq. kernel-formulation at the optimal functions, term by term: fit plus penalty."""
    n = len(Z)
    total = 0.0
    for K in kernels.values():
        Gamma = np.linalg.inv(K + alpha * np.eye(n)) @ Z
        total += np.sum((K @ Gamma - Z) ** 2) + alpha * np.trace(Gamma.T @ K @ Gamma)
    return total


def graph_weights(anchors, n_neighbors, weight):
    """Raw weights on nearest-neighbour pairs, symmetrised and averaged, in plain loops."""
    n = len(next(iter(anchors.values())))
    total = np.zeros((n, n))
    for A in anchors.values():
        raw = np.zeros((n, n))
        for i in range(n):
            distances = np.sum((A - A[i]) ** 2, axis=1)
            distances[i] = np.inf
            for j in np.argsort(distances)[:n_neighbors]:
                raw[i, j] = weight(i, j)
        total += (raw + raw.T) / 2
    return total / len(anchors)


def laplacian(W):
    return np.diag(W.sum(axis=1)) - W
