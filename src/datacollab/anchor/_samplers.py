"""Samplers of anchors: the base, drawing from public rows, from a normal distribution and from a box."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from .._constraints import Interval, StrOptions
from .._encoder import TableEncoder
from .._frames import has_numbers_alone, plain_table
from .._validation import FloatArray
from ..errors import AgreementError, AnchorError
from ._sources import as_given, check_table, check_target, drawing_generator, encode_classes, split_equally


class AnchorSampler(BaseEstimator, ABC):
    """A base of the samplers: parameters as in scikit-learn, and one method that draws an anchor.

    A sampler learns nothing that outlives `sample`, so it never holds the source rows.  To write one of your own,
    implement ``_draw(X, y_source, generator)``, which returns rows and their targets, or None for targets.
    """

    _needs_source: ClassVar[bool] = True

    def sample(
        self,
        X_source: ArrayLike | None = None,
        y_source: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> tuple[FloatArray, NDArray[Any] | None]:
        """Draw an anchor from public or synthetic source rows.

        Parameters
        ----------
        X_source : array-like of shape (n_sources, n_features)
            May be left out only where `UniformAnchor` is given both bounds.
        y_source : array-like of shape (n_sources,), optional
            Targets of the source rows.
        random_state : int, RandomState instance or None
            The same int gives the same anchor; None draws from the operating system.

        Returns
        -------
        anchor : ndarray or dataframe of shape (n_samples, n_features)
            Of the columns and the kind of `X_source`.  In a table of gaps or categories, each row has one category of
            a column, and only `SampleAnchor` leaves numbers missing.
        anchor_target : ndarray of shape (n_samples,) or None

        Raises
        ------
        AnchorError
            If the source or its targets cannot be used, or do not suffice.
        """
        self._validate_params()
        generator = drawing_generator(random_state)
        if X_source is None and not self._needs_source:
            return self._draw(None, y_source, generator)
        table = plain_table(X_source, "X_source", AnchorError)
        if np.ndim(table) != 2 or has_numbers_alone(table):
            rows, target = self._draw(check_table(table, "X_source"), y_source, generator)
            return as_given(rows, table), target
        try:
            encoder = TableEncoder("X_source").fit(table)
        except AgreementError as error:
            raise AnchorError(str(error)) from None
        return self._draw_encoded(table, encoder, y_source, generator)

    def _draw_encoded(
        self, table: Any, encoder: TableEncoder, y_source: ArrayLike | None, generator: np.random.RandomState
    ) -> tuple[Any, NDArray[Any] | None]:
        """Return rows with categories, or of sources with gaps, and their targets."""
        rows, target = self._draw(encoder.transform(table), y_source, generator)
        return encoder.decode(encoder.settle(rows), table), target

    @abstractmethod
    def _draw(
        self, X: Any, y_source: ArrayLike | None, generator: np.random.RandomState
    ) -> tuple[FloatArray, NDArray[Any] | None]:
        """Return rows and targets made of checked sources."""


class SampleAnchor(AnchorSampler):
    """An anchor of random rows of a public table, without replacement, with their targets.

    Parameters
    ----------
    n_samples : int, default=1000
        The number of anchor rows.
    balanced : bool, default=False
        Whether every class gives ``n_samples / n_classes`` rows; the first classes in sorted order take the remainder.

    Notes
    -----
    Every row of the anchor is a row of the source and becomes known to every party.  The source must be public.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "balanced": ["boolean"],
    }

    def __init__(self, n_samples: int = 1000, *, balanced: bool = False) -> None:
        self.n_samples = n_samples
        self.balanced = balanced

    def _draw(
        self, X: FloatArray, y_source: ArrayLike | None, generator: np.random.RandomState
    ) -> tuple[FloatArray, NDArray[Any] | None]:
        y = None if y_source is None else check_target(y_source, X.shape[0])
        if X.shape[0] < self.n_samples:
            raise AnchorError(
                f"X_source has {X.shape[0]} rows, too few for n_samples={self.n_samples} without replacement. "
                "Lower n_samples, give more public rows, or generate rows with SMOTEAnchor."
            )
        order = generator.permutation(X.shape[0])
        chosen = self._balance(order, y) if self.balanced else order[: self.n_samples]
        return X[chosen], None if y is None else y[chosen]

    def _draw_encoded(
        self, table: Any, encoder: TableEncoder, y_source: ArrayLike | None, generator: np.random.RandomState
    ) -> tuple[Any, NDArray[Any] | None]:
        places, target = self._draw(np.arange(len(table), dtype=np.float64)[:, None], y_source, generator)
        return _safe_indexing(table, places[:, 0].astype(np.intp)), target

    def _balance(self, order: NDArray[np.intp], y: NDArray[Any] | None) -> NDArray[np.intp]:
        """Keep the first rows of each class, given rows in random order."""
        if y is None:
            raise AnchorError("balanced=True needs class labels. Pass y_source, or set balanced=False.")
        classes, codes = encode_classes(y)
        totals = split_equally(self.n_samples, classes.size)
        sizes = np.bincount(codes)
        # Fewer than the share would leave classes unequal without a word.
        short = sizes < totals
        if short.any():
            raise AnchorError(
                f"{int(short.sum())} of {classes.size} classes have fewer rows than their equal share of "
                f"n_samples={self.n_samples}; the smallest class has {int(sizes.min())}. Set n_samples to at most "
                f"{int(sizes.min()) * classes.size}, give more public rows, or set balanced=False."
            )
        # The first rows of a random order are a random choice.
        by_class = [np.flatnonzero(codes[order] == code)[:total] for code, total in enumerate(totals)]
        return order[np.sort(np.concatenate(by_class))]


class GaussianAnchor(AnchorSampler):
    r"""An anchor of independent normal rows, with the mean and covariance of the source.

    Parameters
    ----------
    n_samples : int, default=1000
    covariance : {"full", "diagonal"}, default="full"
        "full" takes the sample covariance of the source, "diagonal" its variances only.  Targets are not assigned, and
        at least two source rows are needed.

    Notes
    -----
    The full covariance :math:`S = X_c^\top X_c / (n - 1)` of the centred source is never formed.  With
    :math:`X_c = QR`, rows :math:`\mu + g R / \sqrt{n - 1}`, g standard normal, have covariance S exactly, at any rank.
    Fewer sources than columns are therefore fine; the anchor then lies in the affine span of the sources.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "covariance": [StrOptions({"full", "diagonal"})],
    }

    def __init__(self, n_samples: int = 1000, *, covariance: str = "full") -> None:
        self.n_samples = n_samples
        self.covariance = covariance

    def _draw(
        self, X: FloatArray, y_source: ArrayLike | None, generator: np.random.RandomState
    ) -> tuple[FloatArray, None]:
        if X.shape[0] == 1:
            raise AnchorError("X_source has one row, so it has no covariance. Give at least two public rows.")
        mean = X.mean(axis=0)
        if self.covariance == "full":
            # R of the centred source is a root of (n - 1) S, of any rank.
            factor = np.linalg.qr(X - mean, mode="r") / np.sqrt(X.shape[0] - 1)
            rows = generator.standard_normal((self.n_samples, factor.shape[0])) @ factor
        else:
            rows = generator.standard_normal((self.n_samples, X.shape[1])) * X.std(axis=0, ddof=1)
        return mean + rows, None


class UniformAnchor(AnchorSampler):
    """An anchor of independent rows, uniform in a box.

    Parameters
    ----------
    n_samples : int, default=1000
    low, high : float or array-like of shape (n_features,), optional
        Bounds of the box, one for all columns or one per column.  A missing bound is the column minimum or maximum of
        the source rows.
    n_features : int, optional
        The number of columns; needed only without source rows, if both bounds are single numbers.

    Raises
    ------
    AnchorError
        In `sample`, if the bounds and the source disagree on the number of columns, a bound is missing or not finite,
        or a lower bound is above the upper one.

    Notes
    -----
    Bounds taken from source rows show every party the range of each column, so the source must be public.  Targets are
    not assigned.

    Examples
    --------
    >>> from datacollab.anchor import UniformAnchor
    >>> anchor, anchor_target = UniformAnchor(5, low=[0, -1], high=[1, 1]).sample(random_state=0)
    >>> anchor.shape, anchor_target
    ((5, 2), None)
    """

    _needs_source: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "low": [Interval(Real, None, None, closed="neither"), "array-like", None],
        "high": [Interval(Real, None, None, closed="neither"), "array-like", None],
        "n_features": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_samples: int = 1000,
        *,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        n_features: int | None = None,
    ) -> None:
        self.n_samples = n_samples
        self.low = low
        self.high = high
        self.n_features = n_features

    def _draw(
        self, X: FloatArray | None, y_source: ArrayLike | None, generator: np.random.RandomState
    ) -> tuple[FloatArray, None]:
        low = self._bound("low", None if X is None else X.min(axis=0))
        high = self._bound("high", None if X is None else X.max(axis=0))
        n_features = self._count_features(X, low, high)
        low = np.broadcast_to(low, n_features)
        high = np.broadcast_to(high, n_features)
        crossed = np.flatnonzero(low > high)
        if crossed.size:
            raise AnchorError(
                f"low is above high in {crossed.size} of {n_features} columns (first: {crossed[:10].tolist()}). "
                "Give bounds with low <= high in every column."
            )
        # Not low + u * (high - low): the width of a huge box overflows.
        weight = generator.uniform(size=(self.n_samples, n_features))
        return np.clip((1 - weight) * low + weight * high, low, high), None

    def _bound(self, name: str, of_source: FloatArray | None) -> FloatArray:
        value = getattr(self, name)
        if value is None:
            if of_source is None:
                raise AnchorError(f"The bound {name!r} is missing: pass {name}=..., or public rows as X_source.")
            return of_source
        try:
            bound = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise AnchorError(f"{name} must be a number or one number per column; it cannot be read as such.") from None
        if bound.ndim > 1 or not np.isfinite(bound).all():
            raise AnchorError(
                f"{name} must be a finite number, or a one-dimensional array with one finite number per column; got "
                f"shape {bound.shape} with {int((~np.isfinite(bound)).sum())} entries that are NaN or infinite."
            )
        return bound

    def _count_features(self, X: FloatArray | None, low: FloatArray, high: FloatArray) -> int:
        numbers = {name: bound.size for name, bound in (("low", low), ("high", high)) if bound.ndim == 1}
        if X is not None:
            numbers["X_source"] = X.shape[1]
        if self.n_features is not None:
            numbers["n_features"] = int(self.n_features)
        if not numbers:
            raise AnchorError(
                "The number of columns is unknown: low and high are single numbers and there is no X_source. "
                "Set n_features, or give one bound per column."
            )
        if len(set(numbers.values())) > 1 or 0 in numbers.values():
            raise AnchorError(
                f"The numbers of columns do not agree: {numbers}. Give one bound for all columns or one for each."
            )
        return next(iter(numbers.values()))
