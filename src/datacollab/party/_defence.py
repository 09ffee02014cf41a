"""Defences: changes of the rows just before they are shared."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from .._constraints import Interval, StrOptions
from .._validation import FloatArray
from ..errors import ObfuscationError, SuppressedRowsWarning
from ..linalg import SMALLEST_DELTA, gaussian_sigma
from ..targets import TargetKind, target_kind


@dataclass(frozen=True, kw_only=True)
class Promise:
    """Differential privacy of each row's features by a Gaussian mechanism.

    `clip` is the largest length of a row, and `noise` the standard deviation, if they are the same for all rows.
    """

    epsilon: float
    delta: float
    clip: float | None = None
    noise: float | None = None


class Published(NamedTuple):
    """Rows as they may leave, their targets, and `own_rows`, the position of the given row behind each of them."""

    rows: FloatArray
    target: NDArray[Any]
    own_rows: NDArray[np.intp]

    def __repr__(self) -> str:
        return f"Published({self.rows.shape[0]} rows)"


Targets = NDArray[Any]
Random = np.random.RandomState

MOST_CLASSES = 20
"""Kinds of whole numbers that may still be classes; each of more kinds would single out some rows."""


def are_numbers(target: NDArray[Any]) -> bool:
    """Return whether targets are numbers.  Whole ones of many kinds are: as classes each would leave as it is."""
    if target.dtype.kind != "f":
        return False
    return bool((target != np.floor(target)).any()) or len(np.unique(target)) > MOST_CLASSES


class Defence(BaseEstimator, ABC):
    """Changes a party's representation before it leaves; the anchor's representation leaves as it is.

    A defence has parameters and learns nothing.  `Party` applies each once per fit and shares that result each time:
    anyone who gets the same rows defended twice, with other random numbers, averages the defence away.

    To write one of your own, implement `_defend`, which gives a `Published`, and set the class attributes.

    Attributes
    ----------
    needs_anchor : bool
        Whether the anchor's representation is read.
    independent_rows : bool
        Whether each published row depends on its own row, public rows and random numbers only.  Such a defence may
        precede a Gaussian mechanism without changing its guarantee.
    kind : str
        Its name in a party's policy.
    words, option : str
        Its effect on the rows, for people, and the options of `datacollab party share` that choose it; both may name
        parameters in braces.
    """

    kind: ClassVar[str] = "other"
    words: ClassVar[str] = ""
    option: ClassVar[str] = ""
    needs_anchor: ClassVar[bool] = False
    independent_rows: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    @property
    def description(self) -> str:
        """Its effect on the rows, for people."""
        return self.words.format(**self.get_params()) or type(self).__name__

    @property
    def options(self) -> str:
        """The options of `datacollab party share` that choose it; empty if there are none."""
        return self.option.format(**self.get_params())

    @property
    def has_promise(self) -> bool:
        """Whether it can promise differential privacy."""
        return type(self).promise is not Defence.promise

    def promise(self, anchor_representation: FloatArray) -> Promise | None:
        """Return its promise with an anchor's representation, or None.

        It presumes that nothing before depends on private rows.
        """
        return None

    def apply(
        self,
        representation: ArrayLike,
        target: ArrayLike,
        *,
        anchor_representation: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> Published:
        """Return rows as they may leave, with their targets, shapes (n_published, n_intermediate) and (n_published,).

        They come in the order of the given rows that they stand for, whose positions are ``own_rows``; some may be
        missing.  The anchor's representation is needed where `needs_anchor` says so.  Noise is drawn by
        ``random_state``: None is NumPy's global generator, and `Party` passes one of its own from the operating system.

        Raise ObfuscationError if the rows cannot be defended.
        """
        self._validate_params()
        name = type(self).__name__
        rows = np.asarray(representation, dtype=np.float64)
        if self.needs_anchor and anchor_representation is None:
            raise ObfuscationError(f"{name} needs the anchor's representation; pass it.")
        anchor = None
        if anchor_representation is not None:
            anchor = np.asarray(anchor_representation, dtype=np.float64)
        published = self._defend(rows, np.asarray(target), anchor, check_random_state(random_state))
        n_rows = len(published.own_rows)
        # Defences of others are checked before anything leaves.
        if published.rows.shape != (n_rows, rows.shape[1]) or not np.isfinite(published.rows).all():
            raise ObfuscationError(
                f"{name} must give {n_rows} rows of {rows.shape[1]} finite numbers; got shape {published.rows.shape}."
            )
        return published

    @abstractmethod
    def _defend(self, rows: FloatArray, target: Targets, anchor: FloatArray | None, generator: Random) -> Published:
        """Return rows as they may leave, in the order of the own rows behind them."""


def mdav(X: FloatArray, k: int) -> NDArray[np.intp]:
    """Return each row's group, from 0 on, by MDAV, maximum distance to average vector [DomingoFerrer2005].

    While 3k rows or more are left, the row farthest from their mean is grouped with its k - 1 nearest rows, and so is
    the row farthest from that one; k of the remaining rows are split off once more if at least k remain.
    """
    labels = np.zeros(len(X), dtype=np.intp)
    index = np.arange(len(X))
    rows = X - X.mean(axis=0)
    group = 0
    while len(index) >= 2 * k:
        # With fewer than 3k rows, a second group would leave less than k.
        pivots = 2 if len(index) >= 3 * k else 1
        pivot = rows.mean(axis=0)
        for _ in range(pivots):
            pivot = rows[np.argmax(_square_distances(rows, pivot))]
            near = np.argpartition(_square_distances(rows, pivot), k - 1)[:k]
            labels[index[near]] = group
            group += 1
            others = np.ones(len(index), dtype=bool)
            others[near] = False
            index = index[others]
            rows = rows[others]
    labels[index] = group
    return labels


def _square_distances(X: FloatArray, point: FloatArray) -> FloatArray:
    difference = X - point
    return np.asarray(np.einsum("ij,ij->i", difference, difference))


def group_means(X: FloatArray, labels: NDArray[np.intp]) -> FloatArray:
    """Return each row's group mean, shape (n_rows, n_columns); rows of a group are equal to the bit."""
    sums = np.zeros((labels.max() + 1, X.shape[1]))
    np.add.at(sums, labels, X)
    return np.asarray((sums / np.bincount(labels)[:, None])[labels])


AUTO_BINS = 10
"""Intervals of numeric targets by default."""


class Microaggregation(Defence):
    """Publish means of at least k rows of one class instead of the rows [DomingoFerrer2002]_.

    Within each class, rows that lie close together form groups of k to 2k - 1 rows (MDAV [DomingoFerrer2005]_), and
    the mean of its group replaces each row.  Class means are kept.

    Parameters
    ----------
    k : int, default=5
        Rows that share a published row, at least; from 2 on.
    small_classes : {"suppress", "group"}, default="suppress"
        Of classes with fewer than `k` rows, "suppress" shares no row, and warns.  "group" averages them over class
        borders: among each other, or with the smallest of the other classes if they are fewer than `k` all together.
    n_bins : int, "auto" or None, default="auto"
        For numeric targets: how many intervals of about as many rows each serve as classes; fewer if they would have
        fewer than `k` rows.  "auto" takes 10 if targets are floating-point numbers, not all whole or of more than
        twenty kinds, and otherwise every distinct target for a class; None does so always.
    by : {"auto", "target", "treatment", "event"} or None, default="auto"
        The common property of a group; None groups all rows by their features alone, and each keeps its own target.
        "auto" is the target for classes and numbers, the treatment for effects, and None for times to events or no
        targets.

    Warns
    -----
    SuppressedRowsWarning
        If rows are not shared.

    Raises
    ------
    ObfuscationError
        If there are fewer than `k` rows to share, or targets lack the field that `by` names.

    Notes
    -----
    **Exact means do not hide who took part.**  An attacker who has the anchor knows a linear f to the last digit, and
    finds among candidates the k whose mean was published.  With 100 images, 16 columns and k = 5 it solved 67 of 82
    groups within seconds.  Follow it by noise (`GaussianNoise`).  An attacker who has only the share links one row in
    k of a class to its original, at best and on average.  It is not differential privacy.

    If targets are numbers in intervals, the mean of a group's targets is shared for all of its rows.  Groups by the
    outcome, or by whether the event was seen, bias effects, so `by` refuses an outcome or a time.  Each row keeps its
    own time or outcome, by which anyone who knows it finds the row: round times (`time_step` of `Party`).

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.party import Microaggregation
    >>> rows = np.array([[0.0], [1.0], [10.0], [11.0], [12.0]])
    >>> Microaggregation(k=2).apply(rows, np.zeros(5)).rows.ravel()
    array([ 0.5,  0.5, 11. , 11. , 11. ])
    """

    kind: ClassVar[str] = "microaggregation"
    words: ClassVar[str] = "every row is the mean of at least {k} of yours"
    option: ClassVar[str] = "--group-size {k}"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "k": [Interval(Integral, 2, None, closed="left")],
        "small_classes": [StrOptions({"suppress", "group"})],
        "n_bins": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "by": [str, None],
    }

    def __init__(
        self, k: int = 5, *, small_classes: str = "suppress", n_bins: int | str | None = "auto", by: str | None = "auto"
    ) -> None:
        self.k = k
        self.small_classes = small_classes
        self.n_bins = n_bins
        self.by = by

    def _defend(self, rows: FloatArray, target: Targets, anchor: FloatArray | None, generator: Random) -> Published:
        if len(rows) < self.k:
            raise ObfuscationError(
                f"Microaggregation: {len(rows)} rows are fewer than k={self.k}, so none can be shared. Lower "
                "k (the groups become smaller), or share no rows."
            )
        by = self.by
        if by == "auto":
            by = _AUTO[target_kind(target)]
        n_bins = self._choose_bins(target, by)
        classes = self._merge_small_classes(_classes(_grouping(target, by), n_bins, self.k))
        kept = np.flatnonzero(classes >= 0)
        means = np.empty((len(kept), rows.shape[1]))
        shown = target[kept]
        if n_bins is not None:
            shown = shown.astype(np.float64)
        for label in np.unique(classes[kept]):
            members = classes[kept] == label
            groups = mdav(rows[kept][members], self.k)
            means[members] = group_means(rows[kept][members], groups)
            if n_bins is not None:
                # Each row's own number would tell the rows of a group apart again.
                shown[members] = group_means(shown[members, None], groups)[:, 0]
        return Published(rows=means, target=shown, own_rows=kept)

    def _choose_bins(self, target: Targets, by: str | None) -> int | None:
        """Return the number of intervals of the target, or None where each distinct value is a class."""
        # Treatments and events are classes, whatever the outcome is.
        if by != "target" or self.n_bins is None:
            return None
        if self.n_bins != "auto":
            return int(self.n_bins)
        if are_numbers(target):
            return AUTO_BINS
        return None

    def _merge_small_classes(self, classes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return each row's class, none below k rows; -1 for rows that are not shared."""
        sizes = np.bincount(classes)
        small = sizes < self.k
        rows = small[classes]
        n_rows = int(rows.sum())
        if n_rows == 0:
            return classes
        count = f"{n_rows} of {len(classes)} rows are of classes with fewer than k={self.k} rows"
        if self.small_classes == "group":
            pool = len(sizes)
            # Fewer than k rows join the smallest large class; there is one, as all rows together are k or more.
            if n_rows < self.k:
                pool = int(np.argmin(np.where(small, len(classes) + 1, sizes)))
            return np.where(rows, pool, classes)
        if n_rows == len(classes):
            raise ObfuscationError(
                f"Microaggregation: {count}, so none could be shared. Lower k, set n_bins if targets are numbers, "
                "or choose small_classes='group'."
            )
        warnings.warn(
            f"Microaggregation: {count}; they are not shared. If targets are numbers, set n_bins; to share these "
            "rows, averaged over class borders, choose small_classes='group'.",
            SuppressedRowsWarning,
            stacklevel=2,
        )
        return np.where(rows, -1, classes)


# The field that "auto" means for `by`.
_AUTO = {
    TargetKind.SINGLE: "target",
    TargetKind.SURVIVAL: None,
    TargetKind.EFFECT: "treatment",
    TargetKind.SURVIVAL_EFFECT: "treatment",
    TargetKind.NONE: None,
}


def _grouping(target: NDArray[Any], by: str | None) -> NDArray[Any]:
    """Return the common property of groups, shape (n_samples,)."""
    if by is None:
        return np.zeros(len(target), dtype=np.int8)
    if by == "target" and target_kind(target) is TargetKind.SINGLE:
        return target
    if by in ("outcome", "time"):
        raise ObfuscationError(
            f"Microaggregation: groups by {by} would make rows of like outcomes alike, and estimates from them "
            "would be biased. Leave by='auto', or set None to group by features alone."
        )
    if by not in (target.dtype.names or ()):
        raise ObfuscationError(
            f"Microaggregation: targets of kind {target_kind(target).value!r} cannot be grouped by {by!r}. "
            "Leave by='auto', or set None to group by features alone."
        )
    return np.asarray(target[by])


def _classes(target: NDArray[Any], n_bins: int | None, k: int) -> NDArray[np.intp]:
    """Return the number of each row's class, from 0 on."""
    if n_bins is None:
        return np.asarray(np.unique(target, return_inverse=True)[1], dtype=np.intp)
    if target.dtype.kind not in "biuf":
        raise ObfuscationError(f"Microaggregation: n_bins={n_bins} needs numeric targets; got dtype {target.dtype}.")
    return _bins(target.astype(np.float64), min(n_bins, len(target) // k), k)


def _bins(target: FloatArray, n_bins: int, k: int) -> NDArray[np.intp]:
    """Return intervals of about as many rows each; equal targets share one, and none has fewer than k rows."""
    ends = np.quantile(target, np.arange(1, n_bins) / n_bins)
    bins = np.searchsorted(ends, target, side="left")
    sizes = np.bincount(bins, minlength=n_bins)
    merged = np.zeros(n_bins, dtype=np.intp)
    rows = 0
    number = 0
    # Intervals with fewer than k rows, as where many targets are equal, are joined with those after them.
    for position, size in enumerate(sizes):
        merged[position] = number
        rows += int(size)
        if rows >= k:
            rows = 0
            number += 1
    # A rest at the end joins the last full interval.
    return np.asarray(np.minimum(merged, max(number - 1, 0))[bins])


# The grid on which noised numbers lie, in powers of two below the standard deviation.
_FINENESS = 12


def grid_step(sigma: float) -> float:
    """Return the distance between numbers with noise of this standard deviation: a power of two."""
    return 2.0 ** (math.floor(math.log2(sigma)) - _FINENESS)


def add_noise(values: FloatArray, sigma: float, generator: np.random.RandomState) -> FloatArray:
    r"""Return values with Gaussian noise, on a grid [Mironov2012]: :math:`g\,\mathrm{round}((x + \sigma n) / g)`.

    Without the rounding the last bits of a sum would tell which numbers it can be the sum of, and with them the noise.
    It takes nothing from the promise, and changes a value by less than a thousandth of the noise.
    """
    step = grid_step(sigma)
    return np.asarray(np.round((values + sigma * generator.standard_normal(values.shape)) / step) * step)


def clip_rows(X: FloatArray, center: FloatArray, radius: float) -> FloatArray:
    """Move rows towards `center` until none is farther from it than `radius`."""
    centred = X - center
    # A row too long for a square is as long as infinity, and is clipped like any other.
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(centred, axis=1)
    factors = np.minimum(1.0, radius / np.maximum(lengths, np.finfo(float).tiny))
    return np.asarray(center + centred * factors[:, None])


class GaussianNoise(Defence):
    """Add Gaussian noise, in units of each column's standard deviation over the party's rows.

    Parameters
    ----------
    scale : float, default=1.0
        Standard deviation of the noise over that of the column.

    Raises
    ------
    ObfuscationError
        If there is but one row, whose columns have no standard deviation.

    Notes
    -----
    It gives no guarantee, as the size of the noise depends on private rows, which are not clipped; see
    `GaussianMechanism`.  At equal accuracy of the collaboration, `Microaggregation` leaves less to be recovered.
    """

    kind: ClassVar[str] = "noise"
    words: ClassVar[str] = "noise of {scale:g} standard deviations"
    option: ClassVar[str] = "--noise {scale:g}"
    _parameter_constraints: ClassVar[dict[str, Any]] = {"scale": [Interval(Real, 0, None, closed="neither")]}

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def _defend(self, rows: FloatArray, target: Targets, anchor: FloatArray | None, generator: Random) -> Published:
        if len(rows) < 2:
            raise ObfuscationError("GaussianNoise: one row has no standard deviation, so it would leave without noise.")
        noise = generator.standard_normal(rows.shape) * (self.scale * rows.std(axis=0))
        return Published(rows=rows + noise, target=target, own_rows=np.arange(len(rows)))


class GaussianMechanism(Defence):
    r"""Clip every row and add Gaussian noise: differential privacy of each row's representation [Balle2018]_.

    Rows farther than C from the mean of the anchor's representation are moved towards it until they are at distance C,
    the median distance of the anchor's rows from that mean.  Neither is learnt from private rows.  Replacing a row
    moves its clipped representation by at most 2C, and the noise has the standard deviation ``gaussian_sigma(epsilon,
    delta) * 2C`` in every column.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float, default=1e-5
        From 1e-12 on, and below 1; well below one over the number of rows.

    Raises
    ------
    ObfuscationError
        If more than half of the anchor's rows have the same representation, so that C is zero.

    Notes
    -----
    Whether the promise holds depends on everything before it: `Party.guarantee` says so, or why not.  Targets and the
    number of rows are shared as they are.  Published numbers lie on a grid, so that their last bits disclose nothing.
    With ten parties of 100 images each and 16 columns, an epsilon of 16 leaves an accuracy on MNIST of .35 of .89, and
    one of 64 leaves .85 and promises next to nothing.
    """

    kind: ClassVar[str] = "noise"
    words: ClassVar[str] = "Gaussian mechanism, epsilon {epsilon:g}, delta {delta:g}"
    option: ClassVar[str] = "--epsilon {epsilon:g}"
    needs_anchor: ClassVar[bool] = True
    independent_rows: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, SMALLEST_DELTA, 1, closed="left")],
    }

    def __init__(self, epsilon: float, delta: float = 1e-5) -> None:
        self.epsilon = epsilon
        self.delta = delta

    def clip(self, anchor_representation: FloatArray) -> float:
        """Return C, the largest distance of a row from the anchor's mean."""
        # The anchor is public, so C tells nothing of private rows.
        centred = anchor_representation - anchor_representation.mean(axis=0)
        clip = float(np.median(np.linalg.norm(centred, axis=1)))
        if not clip > 0:
            raise ObfuscationError(
                "GaussianMechanism: more than half of the anchor's rows have the same representation, so the bound on "
                "a row's length is zero. Take an anchor whose rows differ."
            )
        return clip

    def noise(self, anchor_representation: FloatArray) -> float:
        """Return the standard deviation of the noise in every column."""
        # Replacing a row moves its clipped representation from one side of the ball to the other at most.
        return gaussian_sigma(self.epsilon, self.delta) * 2 * self.clip(anchor_representation)

    def promise(self, anchor_representation: FloatArray) -> Promise | None:
        """Return the promise for each row's representation."""
        return Promise(
            epsilon=self.epsilon,
            delta=self.delta,
            clip=self.clip(anchor_representation),
            noise=self.noise(anchor_representation),
        )

    def _defend(self, rows: FloatArray, target: Targets, anchor: FloatArray | None, generator: Random) -> Published:
        assert anchor is not None  # or `apply` refuses
        rows = add_noise(clip_rows(rows, anchor.mean(axis=0), self.clip(anchor)), self.noise(anchor), generator)
        return Published(rows=rows, target=target, own_rows=np.arange(len(rows)))
