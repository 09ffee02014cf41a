"""The common map: what all parties do with a row before they add anything up, and the analyst does not know."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist

from .._recommended import MOST_COMPONENTS
from .._typing import FloatArray
from ..errors import AnchorError
from ..linalg import Kernel
from ._words import key_stream, standard_normal

__all__ = ["CommonMap"]

_MOST_PRINCIPAL = 48
"""Principal components that distances are measured in."""
_MOST_LANDMARKS = 300
_MOST_PAIRED = 600
"""Anchor rows between which distances are measured, for the kernel's width."""
_CLIP = 4.0
"""Standard deviations of the first principal component at which all are clipped."""
_FARTHEST = 1e150
"""Numbers beyond it, in standard deviations, count as if they were there."""
_QUANTILE = 0.9
"""The part of the anchor that is not clipped to the unit ball."""
_ZERO = 1e-12
"""Lengths below this part of the clip are zero but for rounding."""
_NO_DIRECTION = 1e-8
"""Directions of the anchor with a smaller part of the largest singular value are dropped."""
_RANK = 1e-6
"""Directions of the landmarks with a smaller part of the largest eigenvalue are dropped."""


@dataclass(frozen=True, eq=False, repr=False)
class CommonMap:
    r"""A map of rows into the unit ball that follows from public rows and a secret.

    .. math::

        z = \mathrm{clip}(V^\top (x - \mu)), \qquad
        \varphi = [z / \ell,\; R^\top \kappa(L, z)] / \sqrt 2, \qquad
        v = W^\top (\varphi - \bar\varphi) / q

    and v is shortened to length 1.  V holds principal components of the anchor, L landmarks that the secret chooses
    among the rows, :math:`R R^\top = \kappa(L, L)^+`, and W the leading directions of φ over the anchor,
    turned by a rotation that the secret chooses.  Each party makes the map at home: from one anchor and one secret, all
    get the same, but for rounding, for all signs and bases that their programs of linear algebra choose.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        μ.
    principal : ndarray of shape (n_features, n_principal)
        V.
    clip : float
        Four standard deviations of the first principal component.
    linear_scale : float
        ℓ, the median length of z over the anchor; lengths of zero do not count.
    gamma : float
        Width of the Gaussian kernel κ: 1 over the median squared distance of anchor rows that differ.
    landmarks : ndarray of shape (n_landmarks, n_principal)
    root : ndarray of shape (n_landmarks, n_kept)
    feature_mean : ndarray of shape (n_principal + n_kept,)
    directions : ndarray of shape (n_principal + n_kept, n_components)
        W.
    length : float
        q, the .9 quantile of lengths over the anchor.

    Examples
    --------
    >>> anchor = np.random.default_rng(0).normal(size=(100, 4))
    >>> common = CommonMap.from_anchor(anchor, secret=bytes(32), n_components=16)
    >>> v = common.transform(anchor)
    >>> v.shape, bool(np.linalg.norm(v, axis=1).max() <= 1 + 1e-12)
    ((100, 16), True)
    """

    mean: FloatArray
    principal: FloatArray
    clip: float
    linear_scale: float
    gamma: float
    landmarks: FloatArray
    root: FloatArray
    feature_mean: FloatArray
    directions: FloatArray
    length: float

    @classmethod
    def from_anchor(
        cls,
        anchor: ArrayLike,
        secret: bytes,
        *,
        n_components: int = MOST_COMPONENTS,
        n_rows: int = 1000,
        flatten: float = 0.0,
    ) -> CommonMap:
        """Make the map.

        Few public rows leave few directions.  So rows between pairs of them are added, which the secret chooses.  They
        have no targets and are used for the map alone.

        Parameters
        ----------
        anchor : array-like of shape (n_anchors, n_features)
            Public rows, with numbers in units of a quarter of their declared range (`UNITS_PER_RANGE`), beside zeros
            and ones.
        secret : bytes of length 32
            Of all parties, and not of the analyst.
        n_components : int
            Upper bound; the anchor's rank may leave fewer.
        n_rows : int
            How many rows the map is made of, those between others included.
        flatten : float
            How alike the spread of all directions is: with 0 it is that of φ, with 1 all have the same.

        Raises
        ------
        AnchorError
            If the anchor has fewer than two different rows, or numbers that are not finite.
        """
        A = np.asarray(anchor, dtype=np.float64)
        if A.ndim != 2 or not np.isfinite(A).all() or len(np.unique(A, axis=0)) < 2:
            raise AnchorError(
                f"The common map needs an anchor of at least two different rows of finite numbers; got shape {A.shape}."
            )
        A = np.vstack([A, _between(A, secret, n_rows - len(A))])
        mean = A.mean(axis=0)
        _, s, Vt = np.linalg.svd(A - mean, full_matrices=False)
        kept = min(_MOST_PRINCIPAL, int((s > _NO_DIRECTION * s[0]).sum()))
        V = Vt[:kept].T
        clip = _CLIP * s[0] / np.sqrt(len(A))
        Z = np.clip((A - mean) @ V, -clip, clip)
        order = np.argsort(key_stream(_derived(secret, b"landmarks"), len(Z)))
        gamma = 1.0 / _median_above_zero(pdist(Z[order[:_MOST_PAIRED]], "sqeuclidean"), clip**2)
        landmarks = Z[order[:_MOST_LANDMARKS]]
        linear_scale = _median_above_zero(np.linalg.norm(Z, axis=1), clip)
        eigenvalues, U = scipy.linalg.eigh(_kernel(landmarks, landmarks, gamma))
        above = eigenvalues > _RANK * eigenvalues[-1]
        root = U[:, above] / np.sqrt(eigenvalues[above])
        F = _features(Z, linear_scale, landmarks, root, gamma)
        feature_mean = F.mean(axis=0)
        U, s, Wt = np.linalg.svd(F - feature_mean, full_matrices=False)
        d = min(n_components, int((s > _NO_DIRECTION * s[0]).sum()))
        # LAPACK chooses signs of singular vectors, and a basis of those with one singular value. This choice cancels:
        # the rotation is the orthogonal matrix nearest to secret numbers, one row of them for each anchor row, in U.
        normal = standard_normal(_derived(secret, b"rotation"), len(A) * d).reshape(len(A), d)
        left, _, right = np.linalg.svd(U[:, :d].T @ normal)
        directions = (Wt[:d].T * s[:d] ** -flatten) @ left @ right
        lengths = np.linalg.norm((F - feature_mean) @ directions, axis=1)
        return cls(
            mean=mean,
            principal=V,
            clip=float(clip),
            linear_scale=linear_scale,
            gamma=gamma,
            landmarks=landmarks,
            root=root,
            feature_mean=feature_mean,
            directions=directions,
            length=float(np.quantile(lengths, _QUANTILE)),
        )

    @property
    def n_components(self) -> int:
        """Return the number of columns that `transform` gives."""
        return int(self.directions.shape[1])

    def transform(self, X: ArrayLike) -> FloatArray:
        """Map rows, shape (n_rows, n_components); no row is longer than 1."""
        with np.errstate(over="ignore"):
            rows = np.asarray(X, dtype=np.float64) - self.mean
        # Infinity less infinity is no number.
        Z = np.clip(np.clip(rows, -_FARTHEST, _FARTHEST) @ self.principal, -self.clip, self.clip)
        F = _features(Z, self.linear_scale, self.landmarks, self.root, self.gamma)
        v = (F - self.feature_mean) @ self.directions / self.length
        return np.asarray(v / np.maximum(1.0, np.linalg.norm(v, axis=1, keepdims=True)))

    def __repr__(self) -> str:
        return f"CommonMap(n_features={len(self.mean)}, n_components={self.n_components})"


def _between(A: FloatArray, secret: bytes, n: int) -> FloatArray:
    """Return n rows, each at a secret place between two rows; none if n is negative."""
    if n <= 0:
        return A[:0]
    words = key_stream(_derived(secret, b"rows between"), 3 * n).reshape(3, n)
    first, second = (words[:2] % np.uint64(len(A))).astype(np.intp)
    part = (words[2] >> np.uint64(11)).astype(np.float64)[:, None] * 2.0**-53
    return np.asarray(A[first] * part + A[second] * (1 - part))


def _median_above_zero(lengths: FloatArray, unit: float) -> float:
    """Return the median of the lengths that are not zero, or the unit if all are: many rows may be equal."""
    above = lengths[lengths > _ZERO * unit]
    return float(np.median(above)) if len(above) else float(unit)


def _kernel(X: FloatArray, landmarks: FloatArray, gamma: float) -> FloatArray:
    return np.asarray(Kernel(metric="rbf", parameters={"gamma": gamma}).between(X, landmarks))


def _features(Z: FloatArray, linear_scale: float, landmarks: FloatArray, root: FloatArray, gamma: float) -> FloatArray:
    return np.asarray(np.hstack([Z / linear_scale, _kernel(Z, landmarks, gamma) @ root]) / np.sqrt(2))


def _derived(secret: bytes, purpose: bytes) -> bytes:
    """Return a key of 32 bytes for one purpose."""
    return hashlib.sha256(b"datacollab sums 1 map\n" + purpose + b"\n" + secret).digest()
