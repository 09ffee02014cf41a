"""Class means from noisy sums, and from the anchor's rows: a normal mixture with one covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from .._validation import FloatArray

__all__ = ["ClassMeans", "ClassMixture", "class_mixture", "linear_discriminant", "shrunk_means"]

MOST_STEPS = 200
TOLERANCE = 1e-5
"""Largest move of a mean, in standard deviations of the anchor's rows in its direction, at which it is done."""
RIDGE = 1e-3
"""Share of the anchor's covariance that is added to the one within classes."""


@dataclass(frozen=True, eq=False)
class ClassMeans:
    """What the parties' sums tell of each class.

    Attributes
    ----------
    counts : ndarray of shape (n_classes,)
        Above 0.
    means : ndarray of shape (n_classes, n_components)
    noise : ndarray of shape (n_components, n_components)
        Covariance of the noise in a class's sum; divided by the square of its count it is that in its mean.
    """

    counts: FloatArray
    means: FloatArray
    noise: FloatArray

    def covariances(self, T: FloatArray) -> FloatArray:
        r""":math:`R_c = T / n_c + V / n_c^2`, shape (n_classes, n_components, n_components).

        What a mean of :math:`n_c` rows varies by, at most, and what the noise adds.
        """
        n = self.counts[:, None, None]
        return np.asarray(T / n + self.noise / n**2)


@dataclass(frozen=True, eq=False)
class ClassMixture:
    """Normal distributions of classes.

    Attributes
    ----------
    means : ndarray of shape (n_classes, n_components)
    covariance : ndarray of shape (n_components, n_components)
        Common to all.
    priors : ndarray of shape (n_classes,)
    """

    means: FloatArray
    covariance: FloatArray
    priors: FloatArray

    def scores(self, X: FloatArray) -> FloatArray:
        """Logarithm of prior and density, up to what all classes have in common, shape (n_rows, n_classes)."""
        directions = cho_solve(cho_factor(self.covariance), self.means.T)
        lengths = np.einsum("cj,jc->c", self.means, directions)
        return np.asarray(X @ directions - lengths / 2 + np.log(self.priors))


def shrunk_means(told: ClassMeans, center: FloatArray, T: FloatArray) -> FloatArray:
    r"""Means drawn towards the centre as far as the noise goes, shape (n_classes, n_components).

    .. math:: m + T (T + V / n_c^2)^{-1} (\bar x_c - m)

    Best where class means are distributed about the centre as the anchor's rows are, which they are at most.

    Parameters
    ----------
    told : ClassMeans
    center : ndarray of shape (n_components,)
        m.
    T : ndarray of shape (n_components, n_components)
        Covariance of the anchor's rows.
    """
    noise = told.noise / told.counts[:, None, None] ** 2
    drawn = np.linalg.solve(T + noise, (told.means - center)[:, :, None])[:, :, 0]
    return np.asarray(center + drawn @ T)


def class_mixture(
    told: ClassMeans, Z: FloatArray, codes: NDArray[np.intp] | None = None, *, anchor_weight: float = 1.0
) -> ClassMixture:
    r"""Maximise the posterior of a normal mixture, by expectation and maximisation on the anchor's rows [1]_.

    .. math::
        w \sum_j \log \sum_c \pi_c \, N(z_j; \mu_c, W) + \sum_c n_c \log \pi_c
        + \sum_c \log N(\bar x_c; \mu_c, R_c) - \frac{\rho w n_a}{2} \mathrm{tr}(W^{-1} T)

    over the means, their common covariance W and the priors.  Of an anchor row with a known class the sum over classes
    is that class's term alone.

    Parameters
    ----------
    told : ClassMeans
        :math:`\bar x_c`, :math:`n_c` and, by `ClassMeans.covariances`, :math:`R_c`.
    Z : ndarray of shape (n_anchors, n_components)
        The anchor's rows.
    codes : ndarray of shape (n_anchors,), optional
        Number of each anchor row's class, where that is known; -1 where not.
    anchor_weight : float, default=1.0
        w.  0 gives `shrunk_means`, with the anchor's covariance T for W.

    Notes
    -----
    No step makes the sum smaller.  It starts from `shrunk_means`.

    References
    ----------
    .. [1] Dempster, Laird and Rubin (1977). Maximum likelihood from incomplete data via the EM algorithm. Journal of
       the Royal Statistical Society B 39(1), 1-38.
    """
    center = Z.mean(axis=0)
    T = np.atleast_2d(np.cov(Z, rowvar=False, bias=True))
    found = ClassMixture(shrunk_means(told, center, T), T, told.counts / told.counts.sum())
    if anchor_weight == 0:
        return found
    known = np.full(len(Z), -1) if codes is None else codes
    scale = cho_factor(T)
    precisions = np.asarray(np.linalg.inv(told.covariances(T)))
    for _ in range(MOST_STEPS):
        parts = anchor_weight * _parts(found, Z, known)
        before, found = found, _maximised(told, precisions, Z, parts, T, found.covariance)
        moves = found.means - before.means
        if np.einsum("cj,jc->c", moves, cho_solve(scale, moves.T)).max() <= TOLERANCE**2:
            break
    return found


def _parts(found: ClassMixture, Z: FloatArray, known: NDArray[np.intp]) -> FloatArray:
    """How far each anchor row is of each class, shape (n_anchors, n_classes); rows add up to one."""
    parts = softmax(found.scores(Z), axis=1)
    parts[known >= 0] = np.eye(len(found.priors))[known[known >= 0]]
    return np.asarray(parts)


def _maximised(
    told: ClassMeans, precisions: FloatArray, Z: FloatArray, parts: FloatArray, T: FloatArray, W: FloatArray
) -> ClassMixture:
    """One step: the means given W, then W given the means.

    Parameters
    ----------
    told : ClassMeans
    precisions : ndarray of shape (n_classes, n_components, n_components)
        Inverses of R_c, which are summed with others.
    Z : ndarray of shape (n_anchors, n_components)
    parts : ndarray of shape (n_anchors, n_classes)
        How far each anchor row is of each class, times its weight.
    T, W : ndarray of shape (n_components, n_components)
    """
    totals, own = parts.sum(axis=0), np.linalg.inv(W)
    weighted = np.einsum("cij,cj->ci", precisions, told.means) + parts.T @ Z @ own
    means = np.linalg.solve(precisions + totals[:, None, None] * own, weighted[:, :, None])[:, :, 0]
    covariance = RIDGE * T
    for mean, part in zip(means, parts.T, strict=True):
        covariance = covariance + (Z - mean).T @ ((Z - mean) * part[:, None]) / parts.sum()
    counts = told.counts + totals
    return ClassMixture(means, covariance, counts / counts.sum())


def linear_discriminant(classes: NDArray[np.generic], mixture: ClassMixture) -> LinearDiscriminantAnalysis:
    r"""h: the most probable class, as scikit-learn's linear discriminant would have it from rows.

    .. math:: \arg\max_c \; x^\top W^{-1} \mu_c - \tfrac12 \mu_c^\top W^{-1} \mu_c + \log \pi_c

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    mixture : ClassMixture
    """
    d = mixture.means.shape[1]
    estimator = LinearDiscriminantAnalysis(solver="lsqr")
    estimator.classes_, estimator.priors_, estimator.n_features_in_ = classes, mixture.priors, d
    estimator.means_, estimator.covariance_ = mixture.means, mixture.covariance
    scores = mixture.scores(np.vstack([np.zeros(d), np.eye(d)]))
    coefficients, intercept = (scores[1:] - scores[0]).T, scores[0]
    if len(classes) == 2:
        coefficients, intercept = coefficients[1:] - coefficients[:1], intercept[1:] - intercept[:1]
    estimator.coef_, estimator.intercept_ = coefficients, intercept
    return estimator
