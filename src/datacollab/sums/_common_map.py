"""The common map of rows, which all parties use before they add anything up, and the analyst does not know."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from .._typing import FloatArray
from ..errors import AnchorError
from ..linalg import Kernel, kernel_expansion
from ._recommended import MOST_COLUMNS, MOST_COMPONENTS
from ._words import key_stream, standard_normal

# Principal components that distances are measured in.
_MOST_PRINCIPAL = 48
_MOST_LANDMARKS = 300
# Anchor rows between which distances are measured, for the kernel's width.
_MOST_PAIRED = 600
_FOLDS = 5
# Of the variance of anchor rows that are left out, the part that principal components of the others must hold. All
# real tables that were tried hold more; more than some 55 independent columns hold less: see docs/results/sums.
_LEAST_SHARE = 0.9
# The same for columns that are all alike: pixels and signals hold more, and a kernel is worth more to them.
_LEAST_SHARE_ALIKE = 0.5
# Normal scores for each unit of a number: a quarter of its declared range, or its standard deviation. This bounds how
# far a crafted anchor magnifies a difference, and costs skewed columns next to nothing.
_STEEPEST = 10.0
_HALF = np.sqrt(0.5)
# Standard deviations of the first principal component at which all columns are clipped.
_CLIP = 4.0
# Numbers beyond it, in standard deviations, count as if they were there.
_FARTHEST = 1e150
# The part of the anchor that is not clipped to the unit ball.
_QUANTILE = 0.9
# Lengths below this part of the clip are zero but for rounding.
_ZERO = 1e-12
# Directions of the anchor with a smaller part of the largest singular value are dropped.
_NO_DIRECTION = 1e-8
# Directions of the landmarks with a smaller part of the largest eigenvalue are dropped.
_RANK = 1e-6
# Singular values that differ by a smaller part of the largest one are kept, or dropped, together: which directions
# belong to each of them, rounding decides.
_TIED = 1e-5
# Cells for each value of the anchor in which a number is looked up, and values in one from which on it is searched for.
_CELLS = 4
_MOST_IN_CELL = 16
_N_WITNESSES = 8
_N_WITNESS_ROWS = 100
_WITNESS_UNIT = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class CommonMap:
    r"""A map of rows into the unit ball that follows from public rows and a secret.

    .. math::

        z = V^\top \mathrm{clip}([x, r(x)] / \sqrt 2 - \mu), \qquad
        \varphi = [z / \ell,\; R^\top \kappa(L, z)] / \sqrt 2, \qquad
        v = W^\top (\varphi - \bar\varphi) / q

    and v is shortened to length 1.  r makes normal scores of numbers, by their quantiles in the anchor; columns of two
    values, as categories have, are taken once and as they are.  V holds principal components of the anchor, L landmarks
    that the secret chooses among the rows, :math:`R R^\top = \kappa(L, L)^+`, and W the leading directions of φ over
    the anchor, turned by a rotation that the secret chooses.

    The anchor may say too little about how columns vary together, as with hundreds of them.  Then there are no
    landmarks, V is the identity, and W turns r(x), without x: ridge regression is then on the table's own columns.

    Each party makes the map at home: from one anchor and one secret, all get the same, but for rounding, for all signs
    and bases that their programs of linear algebra choose.

    Attributes
    ----------
    scores : list of (ndarray, ndarray) or None, of length n_features
        For each column its values in the anchor and their scores by r; None if the column stays as it is.
    mean : ndarray of shape (n_columns,)
        μ, of the columns and the normal scores beside them.
    principal : ndarray of shape (n_columns, n_principal)
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
    witnesses, witness_key : ndarray of shape (8,), and bytes; see `witness`

    Examples
    --------
    >>> anchor = np.random.default_rng(0).normal(size=(100, 4))
    >>> common = CommonMap.from_anchor(anchor, secret=bytes(32), n_components=16)
    >>> v = common.transform(anchor)
    >>> v.shape, bool(np.linalg.norm(v, axis=1).max() <= 1 + 1e-12)
    ((100, 16), True)
    """

    scores: list[tuple[FloatArray, FloatArray] | None]
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
    witnesses: FloatArray = field(default_factory=lambda: np.zeros(_N_WITNESSES))
    witness_key: bytes = b""

    @classmethod
    def from_anchor(
        cls,
        anchor: ArrayLike,
        secret: bytes,
        *,
        n_components: int = MOST_COMPONENTS,
        n_columns: int = MOST_COLUMNS,
        n_rows: int = 1000,
        flatten: float = 0.0,
        as_they_are: bool = False,
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
        n_columns : int
            Upper bound where the table's own columns are turned; of more columns, a secret projection is taken.  With
            0 principal components are taken whatever the anchor says of them.
        n_rows : int
            How many rows the map is made of, those between others included.
        flatten : float
            How alike the spread of all directions is: with 0 it is that of φ, with 1 all have the same.
        as_they_are : bool
            Whether columns keep their numbers, as fits columns that are all alike, such as pixels.

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
        scores: list[tuple[FloatArray, FloatArray] | None] = [None] * A.shape[1]
        least_share = _LEAST_SHARE_ALIKE
        if not as_they_are:
            scores = [_normal_scores(column) for column in A.T]
            least_share = _LEAST_SHARE
        finders = [None if known is None else _Finder.prepare(*known) for known in scores]
        ranked = _score(A, finders)
        # The anchor's order, which its maker chose, decides nothing.
        by_secret = np.argsort(key_stream(_derive_key(secret, b"folds"), len(A)))
        if n_columns and _share_of_principal(ranked[by_secret]) < least_share:
            return cls._of_own_columns(ranked, secret, scores, n_columns)._with_witnesses(anchor, secret)
        A = _add_scores(A, finders)
        A = np.vstack([A, _between(A, secret, n_rows - len(A))])
        # z: principal components of columns that are clipped, so that no entry reaches far.
        mean = A.mean(axis=0)
        _, s, Vt = np.linalg.svd(A - mean, full_matrices=False)
        V = Vt[: _count_directions(s, _MOST_PRINCIPAL)].T
        clip = _CLIP * s[0] / np.sqrt(len(A))
        Z = np.clip(A - mean, -clip, clip) @ V
        order = np.argsort(key_stream(_derive_key(secret, b"landmarks"), len(Z)))
        # φ: z beside a kernel with landmarks, by Nyström's approximation.
        gamma = 1.0 / _median_above_zero(scipy.spatial.distance.pdist(Z[order[:_MOST_PAIRED]], "sqeuclidean"), clip**2)
        landmarks = Z[order[:_MOST_LANDMARKS]]
        linear_scale = _median_above_zero(np.linalg.norm(Z, axis=1), clip)
        eigenvalues, U = scipy.linalg.eigh(_kernel(landmarks, landmarks, gamma))
        above = eigenvalues > _RANK * eigenvalues[-1]
        root = U[:, above] / np.sqrt(eigenvalues[above])
        F = _features(Z, linear_scale, landmarks, root, gamma)
        # W: the leading directions of φ over the anchor.
        feature_mean = F.mean(axis=0)
        U, s, Wt = np.linalg.svd(F - feature_mean, full_matrices=False)
        d = _count_directions(s, n_components)
        # LAPACK chooses signs of singular vectors, and a basis of those with one singular value. This choice cancels:
        # the rotation is the orthogonal matrix nearest to secret numbers, one row of them for each anchor row, in U.
        normal = standard_normal(_derive_key(secret, b"rotation"), len(A) * d).reshape(len(A), d)
        left, _, right = np.linalg.svd(U[:, :d].T @ normal)
        directions = (Wt[:d].T * s[:d] ** -flatten) @ left @ right
        lengths = np.linalg.norm((F - feature_mean) @ directions, axis=1)
        made = cls(
            scores=scores,
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
        return made._with_witnesses(anchor, secret)

    @classmethod
    def _of_own_columns(
        cls, A: FloatArray, secret: bytes, scores: list[tuple[FloatArray, FloatArray] | None], n_columns: int
    ) -> CommonMap:
        """Make a map that turns the columns, and projects them if there are more than n_columns."""
        mean = A.mean(axis=0)
        _, s, Vt = np.linalg.svd(A - mean, full_matrices=False)
        # Columns that are constant in the anchor bring nothing, as in the other map.
        varies = np.abs(s[:, None] * Vt).max(axis=0) > _NO_DIRECTION * s[0]
        clip = _CLIP * s[0] / np.sqrt(len(A))
        Z = np.clip(A - mean, -clip, clip)[:, varies]
        p = Z.shape[1]
        d = min(p, n_columns)
        Q, upper = np.linalg.qr(standard_normal(_derive_key(secret, b"columns"), p * d).reshape(p, d))
        # Signs of columns are LAPACK's; with a positive diagonal beside them they are the secret's.
        directions = Q * np.sign(np.diag(upper))
        return cls(
            scores=scores,
            mean=mean,
            principal=np.eye(len(mean))[:, varies],
            clip=float(clip),
            linear_scale=float(np.sqrt(0.5)),
            gamma=1.0,
            landmarks=np.empty((0, p)),
            root=np.empty((0, 0)),
            feature_mean=np.zeros(p),
            directions=directions,
            length=float(np.quantile(np.linalg.norm(Z @ directions, axis=1), _QUANTILE)),
        )

    def _with_witnesses(self, anchor: ArrayLike, secret: bytes) -> CommonMap:
        """Return the map with secret sums over entries of mapped anchor rows."""
        rows = np.asarray(anchor, dtype=np.float64)
        v = self.transform(rows[:: -(-len(rows) // _N_WITNESS_ROWS)]).ravel()
        weights = standard_normal(_derive_key(secret, b"witnesses"), _N_WITNESSES * len(v)).reshape(_N_WITNESSES, -1)
        key = _derive_key(secret, b"witness pads")
        return replace(self, witnesses=weights @ v / np.sqrt(len(v)), witness_key=key)

    def witness(self, context: bytes) -> NDArray[np.uint64]:
        """Return eight words by which an analyst compares two parties' maps, and learns nothing else.

        They are secret sums of the mapped anchor, in units of 1e-12, under a pad that all parties derive
        from their secret and the `MaskedSum.context`, of 32 bytes.  The pad cancels in differences.
        """
        pad = key_stream(_derive_key(self.witness_key + context, b"pad"), _N_WITNESSES)
        return np.round(self.witnesses / _WITNESS_UNIT).astype(np.int64).view(np.uint64) + pad

    @property
    def n_components(self) -> int:
        """Return the number of columns that `transform` gives."""
        return int(self.directions.shape[1])

    @property
    def is_of_own_columns(self) -> bool:
        """Return whether the map turns the table's own columns."""
        return not len(self.landmarks)

    def transform(self, X: ArrayLike) -> FloatArray:
        """Map rows, shape (n_rows, n_components); no row is longer than 1."""
        # Squares of larger numbers would overflow.
        known = np.clip(np.asarray(X, dtype=np.float64), -_FARTHEST, _FARTHEST)
        score = _score if self.is_of_own_columns else _add_scores
        rows = score(known, self._finders)
        rows -= self.mean
        Z = np.clip(rows, -self.clip, self.clip, out=rows) @ self.principal
        v = self._turn(Z)
        v /= np.maximum(1.0, np.sqrt(np.einsum("ij,ij->i", v, v)))[:, None]
        return v

    def __getstate__(self) -> dict[str, Any]:
        """Return the numbers of the map alone: workers make its functions again."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def _finders(self) -> list[_Finder | None]:
        return [None if known is None else _Finder.prepare(*known) for known in self.scores]

    @cached_property
    def _turn(self) -> Callable[[FloatArray], FloatArray]:
        """Return the function from z to v before it is shortened; R and W are multiplied once, not with every row."""
        W = self.directions / self.length
        n_principal = self.principal.shape[1]
        linear = W[:n_principal] / (self.linear_scale * np.sqrt(2))
        constant = self.feature_mean @ W

        def turn(Z: FloatArray) -> FloatArray:
            v = Z @ linear
            if expand is not None:
                v += expand(Z)
            v -= constant
            return np.asarray(v)

        expand = None
        if self.is_of_own_columns:
            return turn
        kernel = Kernel(metric="rbf", parameters={"gamma": self.gamma})
        # Single precision would make two parties' maps differ by more than their witnesses may.
        expand = kernel_expansion(self.landmarks, self.root @ W[n_principal:] / np.sqrt(2), kernel, precision="float64")
        return turn

    def __repr__(self) -> str:
        return f"CommonMap(n_features={len(self.mean)}, n_components={self.n_components})"


def _normal_scores(column: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return a column's values and their normal scores; None for one that has two values, as a category's has.

    A value's score is the normal quantile of the middle of its ranks.  Between two values it may not climb faster than
    `_STEEPEST`.
    """
    values, counts = np.unique(column, return_counts=True)
    if len(values) < 3:
        return None
    quantiles = (np.cumsum(counts) - counts / 2) / len(column)
    climbs = np.minimum(np.diff(ndtri(quantiles)), _STEEPEST * np.diff(values))
    return values, np.concatenate([[0.0], np.cumsum(climbs)])


@dataclass(frozen=True, eq=False, repr=False)
class _Finder:
    """A column's scores, looked up in a grid of cells: the same bits as `numpy.interp`, in a third of its time."""

    values: FloatArray
    scores: FloatArray
    slopes: FloatArray
    """From each value to the next one; 0 from the last one on."""
    following: FloatArray
    """The value after each."""
    first: NDArray[np.intp]
    """The last value below each cell, or the first of all; empty where so many share a cell that a search is faster."""
    cells_per_unit: float

    @classmethod
    def prepare(cls, values: FloatArray, scores: FloatArray) -> _Finder:
        n_cells = _CELLS * len(values)
        first = np.empty(0, dtype=np.intp)
        per_unit = (n_cells - 1) / float(values[-1] - values[0])
        # Numbers that differ by next to nothing have no cells.
        if per_unit < np.inf:
            cells = ((values - values[0]) * per_unit).astype(np.intp)
            if np.bincount(cells).max() <= _MOST_IN_CELL:
                first = np.maximum(np.searchsorted(cells, np.arange(n_cells)) - 1, 0)
        slopes = np.append(np.diff(scores) / np.diff(values), 0.0)
        return cls(values, scores, slopes, np.append(values[1:], np.inf), first, per_unit)

    def __call__(self, numbers: FloatArray) -> FloatArray:
        if not len(self.first):
            return np.interp(numbers, self.values, self.scores)
        within = np.clip(numbers, self.values[0], self.values[-1])
        place = self.first[((within - self.values[0]) * self.cells_per_unit).astype(np.intp)]
        while (is_later := within >= self.following[place]).any():
            place += is_later
        return np.asarray(self.slopes[place] * (within - self.values[place]) + self.scores[place])


def _score(X: FloatArray, finders: list[_Finder | None]) -> FloatArray:
    """Return rows with normal scores in place of numbers; values between those of the anchor lie on a line."""
    made = X.copy()
    for place, finder in enumerate(finders):
        if finder is not None:
            made[:, place] = finder(X[:, place])
    return made


def _add_scores(X: FloatArray, finders: list[_Finder | None]) -> FloatArray:
    """Return rows with the normal scores of numbers beside them; a number and its score weigh half each."""
    numbers = [place for place, finder in enumerate(finders) if finder is not None]
    made = np.hstack([X, X[:, numbers]])
    made[:, numbers] *= _HALF
    for place, number in enumerate(numbers, start=X.shape[1]):
        finder = finders[number]
        assert finder is not None
        made[:, place] = _HALF * finder(X[:, number])
    return made


def _share_of_principal(A: FloatArray) -> float:
    """Return the part of the variance of rows left out that principal components of the other rows hold."""
    total = 0.0
    held = 0.0
    for fold in range(min(_FOLDS, len(A))):
        is_left = np.arange(len(A)) % _FOLDS == fold
        kept = A[~is_left]
        mean = kept.mean(axis=0)
        _, s, Vt = np.linalg.svd(kept - mean, full_matrices=False)
        V = Vt[: _count_directions(s, _MOST_PRINCIPAL)].T
        left = A[is_left] - mean
        total += float((left**2).sum())
        held += float(((left @ V) ** 2).sum())
    # Rows that are all alike say nothing against principal components.
    return held / total if total else 1.0


def _count_directions(s: FloatArray, most: int) -> int:
    """Return how many leading directions to keep: at most `most`, unless more are tied, which are kept together."""
    rank = max(1, int((s > _NO_DIRECTION * s[0]).sum()))
    drops = s[:rank] - np.append(s[1:rank], 0.0)
    ends = 1 + np.flatnonzero(drops > _TIED * s[0])
    if rank <= most:
        return rank
    below = ends[ends <= most]
    # A tie that would cost half of the directions is kept whole.
    if len(below) and below[-1] > most / 2:
        return int(below[-1])
    return int(min(ends[ends > most], default=rank))


def _between(A: FloatArray, secret: bytes, n: int) -> FloatArray:
    """Return n rows, each at a secret place between two rows; none if n is negative."""
    if n <= 0:
        return A[:0]
    words = key_stream(_derive_key(secret, b"rows between"), 3 * n).reshape(3, n)
    first, second = (words[:2] % np.uint64(len(A))).astype(np.intp)
    part = (words[2] >> np.uint64(11)).astype(np.float64)[:, None] * 2.0**-53
    return np.asarray(A[first] * part + A[second] * (1 - part))


def _median_above_zero(lengths: FloatArray, unit: float) -> float:
    """Return the median of the lengths that are not zero, or the unit if all are: many rows may be equal."""
    above = lengths[lengths > _ZERO * unit]
    return float(np.median(above)) if len(above) else unit


def _kernel(X: FloatArray, landmarks: FloatArray, gamma: float) -> FloatArray:
    return np.asarray(Kernel(metric="rbf", parameters={"gamma": gamma}).between(X, landmarks))


def _features(Z: FloatArray, linear_scale: float, landmarks: FloatArray, root: FloatArray, gamma: float) -> FloatArray:
    linear = Z / (linear_scale * np.sqrt(2))
    if not len(landmarks):
        return np.asarray(linear)
    return np.asarray(np.hstack([linear, _kernel(Z, landmarks, gamma) @ root / np.sqrt(2)]))


def _derive_key(secret: bytes, purpose: bytes) -> bytes:
    """Return a key of 32 bytes for one purpose."""
    return hashlib.sha256(b"datacollab sums 1 map\n" + purpose + b"\n" + secret).digest()
