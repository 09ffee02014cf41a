"""Rows of the anchor, moved to where the party's classes lie.

* Which class of the anchor's own and anchor rows belong to: by their target, or by an interval of it.
* How far a class of private rows lies from the anchor's rows of that class, with noise that keeps a promise.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin

from .._validation import FloatArray, Interval, StrOptions
from ..errors import ObfuscationError, SuppressedRowsWarning
from ._defence import Defence, Promise, Published
from ._gaussian_noise import SMALLEST_DELTA, clipped, gaussian_sigma, noisy
from ._microaggregation import bins_wanted

__all__ = [
    "AnchorClasses",
    "ClassShift",
    "PublicClass",
    "allocated",
    "anchor_classes",
    "noisy_sums",
    "public_class",
    "shrunk_shift",
]


LEAST_OF_BIN = 10
"""Anchor rows that an interval of numeric targets has, about."""


@dataclass(frozen=True, eq=False)
class AnchorClasses:
    """Classes of the anchor, numbered from 0 on.

    Attributes
    ----------
    own : ndarray of shape (n_samples,)
        The class of each own row; -1 where the anchor has none of it.
    anchor : ndarray of shape (n_anchors,)
    n_bins : int or None
        Intervals that were asked for; None where classes are distinct targets.
    """

    own: NDArray[np.intp]
    anchor: NDArray[np.intp]
    n_bins: int | None


def anchor_classes(target: NDArray[Any], anchor_target: NDArray[Any], n_bins: int | str | None) -> AnchorClasses:
    """Classes by distinct targets, or by intervals with about as many anchor rows each.

    Only the anchor's targets decide which classes there are.

    Parameters
    ----------
    target : ndarray of shape (n_samples,)
    anchor_target : ndarray of shape (n_anchors,)
    n_bins : int, "auto" or None
        As for `Microaggregation`, but "auto" looks at the anchor's targets.

    Raises
    ------
    ObfuscationError
        When intervals are wanted of what are no numbers.
    """
    wanted = bins_wanted(anchor_target, n_bins)
    if wanted is None:
        known, numbers = np.unique(anchor_target, return_inverse=True)
        own = np.full(len(target), -1, dtype=np.intp)
        for number, label in enumerate(known):
            own[target == label] = number
        return AnchorClasses(own, np.asarray(numbers, dtype=np.intp), None)
    if target.dtype.kind not in "biuf" or anchor_target.dtype.kind not in "biuf":
        raise ObfuscationError(
            f"n_bins={wanted} needs numeric targets; got dtype {target.dtype}, and {anchor_target.dtype} of the anchor."
        )
    n_intervals = max(1, min(wanted, len(anchor_target) // LEAST_OF_BIN))
    ends = np.unique(np.quantile(anchor_target, np.arange(1, n_intervals) / n_intervals, method="inverted_cdf"))
    # An end that is the largest target has nothing above it.
    ends = ends[ends < anchor_target.max()]
    return AnchorClasses(np.searchsorted(ends, target), np.searchsorted(ends, anchor_target), wanted)


LEAST_OF_CLUSTER = 10
"""Anchor rows that a cluster has, on average."""


@dataclass(frozen=True, eq=False)
class PublicClass:
    """One class of the anchor, in clusters.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        Of the anchor's representation.
    clusters : ndarray of shape (n_rows,)
        Which cluster each is of.
    centers : ndarray of shape (n_clusters, n_columns)
    radius : float
        C, the median distance of a row from the centre of its cluster.
    """

    rows: FloatArray
    clusters: NDArray[np.intp]
    centers: FloatArray
    radius: float

    @property
    def shares(self) -> FloatArray:
        """Share of the rows in each cluster, shape (n_clusters,)."""
        return np.bincount(self.clusters, minlength=len(self.centers)) / len(self.rows)


def public_class(rows: FloatArray, n_clusters: int) -> PublicClass:
    """Anchor rows of a class, grouped by k-means where several clusters are wanted and there are rows enough."""
    n_clusters = max(1, min(n_clusters, len(rows) // LEAST_OF_CLUSTER))
    if n_clusters == 1:
        clusters, centers = np.zeros(len(rows), dtype=np.intp), rows.mean(axis=0, keepdims=True)
    else:
        # Public, and the same with every call: nothing secret goes into it.
        means = KMeans(n_clusters, n_init=5, random_state=0).fit(rows)
        clusters, centers = means.labels_.astype(np.intp), means.cluster_centers_
    radius = float(np.median(np.linalg.norm(rows - centers[clusters], axis=1)))
    return PublicClass(rows, clusters, centers, radius)


def noisy_sums(
    X: FloatArray, public: PublicClass, sigma: float, generator: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
    r"""Sums of what own rows differ from the nearest centre by, and how many rows are nearest to it, with noise.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Own rows of the class.
    public : PublicClass
    sigma : float
        Standard deviation of the noise over the sensitivity, 2C.
    generator : RandomState

    Returns
    -------
    sums : ndarray of shape (n_clusters, n_columns)
    counts : ndarray of shape (n_clusters,)
        With noise of standard deviation 2 sigma.

    Notes
    -----
    Row i adds :math:`u_i = (v_i, C)` to the block of its cluster, and nothing to the other blocks, where
    :math:`v_i` is its difference from the centre, clipped to length C.  Exchange one row for another.  In the same
    block, the sum changes by :math:`(v - v', 0)`, at most 2C long.  In different ones, by two parts at right angles,
    each at most :math:`\sqrt{C^2 + C^2}` long, hence by :math:`\sqrt{4 C^2} = 2C` at most again.  So neither the
    number of clusters nor the counts cost anything beyond the sum of a single cluster.
    """
    nearest = pairwise_distances_argmin(X, public.centers)
    # One column more for counts, in multiples of C.
    vector = np.zeros((len(public.centers), X.shape[1] + 1))
    differences = clipped(X - public.centers[nearest], np.zeros(X.shape[1]), public.radius)
    np.add.at(vector, nearest, np.column_stack([differences, np.full(len(X), public.radius)]))
    vector = noisy(vector, sigma * 2 * public.radius, generator)
    return vector[:, :-1], vector[:, -1] / public.radius


def allocated(counts: FloatArray, shares: FloatArray, n_rows: int, noise: float) -> NDArray[np.intp]:
    """Whole numbers of rows for the clusters of a class, `n_rows` in all.

    Noisy counts are drawn towards those that the anchor's shares lead one to expect, as far as the noise exceeds the
    variance of a multinomial distribution; what is below zero is taken for zero, and remainders go to the largest.

    Parameters
    ----------
    counts, shares : ndarray of shape (n_clusters,)
    n_rows : int
    noise : float
        Standard deviation of the noise in `counts`.
    """
    expected, variance = n_rows * shares, n_rows * shares * (1 - shares)
    wanted = np.maximum(expected + variance / (variance + noise**2) * (counts - expected), 0.0)
    wanted = expected if wanted.sum() == 0 else wanted * (n_rows / wanted.sum())
    whole = np.floor(wanted).astype(np.intp)
    largest = np.argsort(whole - wanted, kind="stable")[: n_rows - int(whole.sum())]
    whole[largest] += 1
    return whole


def shrunk_shift(shift: FloatArray, rows: FloatArray, n_rows: int, noise: float) -> FloatArray:
    r"""A noisy mean drawn towards zero, as far as a mean of so few rows varies less than the noise.

    .. math:: S (S + s^2 I)^{-1} m, \qquad S = \mathrm{cov}(\tilde A_c) / n_c

    Parameters
    ----------
    shift : ndarray of shape (n_columns,)
        m.
    rows : ndarray of shape (n_public, n_columns)
        The anchor's of that class.
    n_rows : int
        Own rows, n_c.
    noise : float
        s, the standard deviation of the noise in `shift`.
    """
    if len(rows) < 2:
        return np.zeros_like(shift)
    S = np.atleast_2d(np.cov(rows, rowvar=False)) / n_rows
    return np.asarray(S @ np.linalg.solve(S + noise**2 * np.eye(len(S)), shift))


class ClassShift(Defence):
    r"""Publish rows of the anchor, each class moved by the noisy mean difference of the party's rows from it.

    For class c with :math:`n_c` own rows :math:`z_i`, let :math:`\mu_c` be the mean of the anchor's representation of
    that class, and :math:`C_c` the median distance of its rows from it.  Own rows enter by

    .. math:: m_c = \frac{1}{n_c} \Big( \sum_i (z_i - \mu_c) \min(1, C_c / \|z_i - \mu_c\|) + N(0, s^2 I) \Big),
              \qquad s = \sigma(\varepsilon, \delta) \, 2 C_c

    alone, and :math:`n_c` rows :math:`\tilde A_j + m_c` leave, with target c and j drawn at random from class c.

    Parameters
    ----------
    epsilon : float, default=4.0
        Above 0.
    delta : float, default=1e-5
        From 1e-12 on, and below 1; well below one over the number of rows.
    shrink : bool, default=True
        Whether :math:`m_c` is drawn towards zero as far as the mean of so few rows is expected to vary less than the
        noise.  Less noise is published then, and the promise is the same.
    n_clusters : int, default=1
        Clusters of the anchor within a class, each of which is moved by itself; for classes of several kinds of rows.
        Fewer where a class has fewer than ten anchor rows for each.
    min_rows : int, default=5
        Of classes with fewer own rows, the anchor's rows are published as they are.
    n_bins : int, "auto" or None, default="auto"
        For numeric targets: how many intervals, with about as many anchor rows each, serve as classes.  "auto" takes
        10 where the anchor's targets are floating-point numbers, not all whole or of more than twenty kinds, and
        otherwise every distinct target for a class; None does so always.

    Warns
    -----
    SuppressedRowsWarning
        When the anchor has no row of some own rows' class; nothing is published for these.

    Raises
    ------
    ObfuscationError
        When the anchor has no targets, or none of the own ones.

    Notes
    -----
    **What is promised.**  Each class's sum changes by at most 2C when one of its rows is replaced by another of the
    class, and a row is of one class.  So the share is :math:`(\varepsilon, \delta)`-differentially private: if the
    features of one row were replaced by any others, with its target, all other rows and the number of rows
    unchanged, whatever is published would be nearly as likely.  Targets and class counts are released exactly.  With
    intervals, how many rows each has is; the published targets are those of the anchor's rows.

    **Several clusters.**  For each cluster of the anchor's class, the sum over own rows nearest to its centre is
    published, and beside it C times their number.  All these numbers together change by at most 2C, too: a row that
    stays in its cluster changes the sum by 2C and no count; one that moves from one cluster to another changes either
    by a vector of length :math:`\sqrt{2} C` at most, at right angles to one another.  Counts are corrected afterwards
    so that they add up to the class's, which is public.

    Within a class, published rows have nothing to do with single own rows, so that nobody links more of them than by
    chance, one for each class.  Which anchor row each is made of may be known.

    On ten parties of 100 images each and 16 columns there are ten rows for a class, and an epsilon of 4 leaves little
    more than the anchor's rows in the proportions of the party's classes.  Larger classes are moved by more.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.party import ClassShift
    >>> anchor = np.random.default_rng(0).normal(size=(600, 2))
    >>> own = np.random.default_rng(1).normal(loc=0.5, size=(2000, 2))
    >>> published, _ = ClassShift(epsilon=8.0).apply(
    ...     own, np.zeros(2000), anchor_representation=anchor, anchor_target=np.zeros(600), random_state=0
    ... )
    >>> published.shape
    (2000, 2)
    >>> bool((published.mean(axis=0) > 0.2).all())
    True
    """

    needs_anchor: ClassVar[bool] = True
    needs_anchor_target: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, SMALLEST_DELTA, 1, closed="left")],
        "shrink": ["boolean"],
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "min_rows": [Interval(Integral, 1, None, closed="left")],
        "n_bins": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
    }

    def __init__(
        self,
        epsilon: float = 4.0,
        delta: float = 1e-5,
        *,
        shrink: bool = True,
        n_clusters: int = 1,
        min_rows: int = 5,
        n_bins: int | str | None = "auto",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.shrink = shrink
        self.n_clusters = n_clusters
        self.min_rows = min_rows
        self.n_bins = n_bins

    @property
    def is_private(self) -> bool:
        """True."""
        return True

    def promise(self, anchor_representation: FloatArray, anchor_target: NDArray[Any] | None) -> Promise | None:
        """Of each row's features, and with intervals of its target within its interval."""
        if anchor_target is None:
            return None
        if bins_wanted(anchor_target, self.n_bins) is None:
            return Promise(epsilon=self.epsilon, delta=self.delta)
        return Promise(
            epsilon=self.epsilon,
            delta=self.delta,
            change=(
                "if the features of one row were replaced by any others, and its target by another of the same "
                "interval, with all other rows and the number of rows unchanged"
            ),
            not_covered=(
                "How many targets lie in each interval is released exactly and is not covered, nor is the interval of "
                "a row's target."
            ),
        )

    def _defend(
        self,
        representation: FloatArray,
        target: NDArray[Any],
        anchor_representation: FloatArray | None,
        anchor_target: NDArray[Any] | None,
        generator: np.random.RandomState,
    ) -> Published:
        assert anchor_representation is not None  # release() refuses otherwise
        assert anchor_target is not None
        classes = anchor_classes(target, anchor_target, self.n_bins)
        kept = _checked(classes.own)
        rows = np.empty_like(representation)
        made_of = np.empty(len(target), dtype=np.intp)
        for number in np.unique(classes.own[kept]):
            own, public = np.flatnonzero(classes.own == number), np.flatnonzero(classes.anchor == number)
            drawn, shifts = self._shifted(representation[own], anchor_representation[public], generator)
            made_of[own] = public[drawn]
            rows[own] = anchor_representation[made_of[own]] + shifts
        made_of = made_of[kept]
        shown = target[kept] if classes.n_bins is None else anchor_target[made_of]
        return Published(rows=rows[kept], target=shown, own_rows=kept, anchor_rows=made_of)

    def _shifted(
        self, own: FloatArray, anchor: FloatArray, generator: np.random.RandomState
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """Anchor rows of a class, one for each own row, and what is added to each."""
        n_rows, public = len(own), public_class(anchor, self.n_clusters)
        if n_rows < self.min_rows or public.radius == 0:
            return _drawn(np.arange(len(anchor)), n_rows, generator), np.zeros_like(own)
        sigma = gaussian_sigma(self.epsilon, self.delta)
        sums, counts = noisy_sums(own, public, sigma, generator)
        wanted = allocated(counts, public.shares, n_rows, 2 * sigma)
        drawn, shifts = [], []
        for cluster in np.flatnonzero(wanted):
            n, members = int(wanted[cluster]), np.flatnonzero(public.clusters == cluster)
            shift = sums[cluster] / n
            if self.shrink:
                shift = shrunk_shift(shift, anchor[members], n, sigma * 2 * public.radius / n)
            drawn.append(_drawn(members, n, generator))
            shifts.append(np.tile(shift, (n, 1)))
        order = generator.permutation(n_rows)
        return np.concatenate(drawn)[order], np.vstack(shifts)[order]


def _checked(own_classes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Positions of the rows whose class the anchor has."""
    kept = np.flatnonzero(own_classes >= 0)
    n_rows, n_missing = len(own_classes), len(own_classes) - len(kept)
    if not len(kept):
        raise ObfuscationError(
            f"ClassShift: the anchor's targets have nothing in common with those of the {n_rows} rows, so none can be "
            "shared. Check that they mean the same and have the same type."
        )
    if n_missing:
        warnings.warn(
            f"ClassShift: {n_missing} of {n_rows} rows are of classes that the anchor has no row of; nothing is shared "
            "for them. Take an anchor with rows of each class.",
            SuppressedRowsWarning,
            stacklevel=2,
        )
    return kept


def _drawn(rows: NDArray[np.intp], n: int, generator: np.random.RandomState) -> NDArray[np.intp]:
    """`n` of the rows at random; none twice before all were drawn once."""
    rounds = [generator.permutation(rows) for _ in range(-(-n // len(rows)))]
    return np.concatenate(rounds)[:n]
