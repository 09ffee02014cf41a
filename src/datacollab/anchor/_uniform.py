"""Anchors drawn uniformly from a box."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._validation import FloatArray, Interval
from ..errors import AnchorError
from ._base import AnchorSampler, as_given, check_table, drawing_generator

__all__ = ["UniformAnchor"]


class UniformAnchor(AnchorSampler):
    """Anchor of independent rows, uniform in a box.

    Parameters
    ----------
    n_samples : int, default=1000
        The number of anchor rows.
    low, high : float or array-like of shape (n_features,), optional
        Bounds of the box, one for all columns or one per column.  A bound that is not given is the column minimum or
        maximum of the source rows.
    n_features : int, optional
        The number of columns; needed only without source rows, where both bounds are single numbers.

    Notes
    -----
    Bounds taken from source rows tell every party the range of each column, so the source must be public.
    Where column ranges are known without data (pixels, percentages, ages), give them and no source at all.

    Examples
    --------
    >>> from datacollab.anchor import UniformAnchor
    >>> anchor, anchor_target = UniformAnchor(5, low=[0, -1], high=[1, 1]).sample(random_state=0)
    >>> anchor.shape, anchor_target
    ((5, 2), None)
    """

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

    def sample(
        self,
        X_source: ArrayLike | None = None,
        y_source: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> tuple[FloatArray, None]:
        """Draw an anchor from the box.

        Parameters
        ----------
        X_source : array-like of shape (n_sources, n_features), optional
            Public rows; not needed where both bounds are given.
        y_source : ignored
            A random row has no target.
        random_state : int, RandomState instance or None
            The same int gives the same anchor; None draws from the operating system.

        Returns
        -------
        anchor : ndarray of shape (n_samples, n_features)
            A data frame with the same columns where `X_source` is one.
        anchor_target : None

        Raises
        ------
        AnchorError
            When the bounds and the source disagree on the number of columns, a bound is missing or not finite, or a
            lower bound is above the upper one.
        """
        self._validate_params()
        generator = drawing_generator(random_state)
        X = None if X_source is None else check_table(X_source, "X_source")
        low = self._bound("low", None if X is None else X.min(axis=0))
        high = self._bound("high", None if X is None else X.max(axis=0))
        n_features = self._count_features(X, low, high)
        low, high = np.broadcast_to(low, n_features), np.broadcast_to(high, n_features)
        crossed = np.flatnonzero(low > high)
        if crossed.size:
            raise AnchorError(
                f"low is above high in {crossed.size} of {n_features} columns (first: {crossed[:10].tolist()}). "
                "Give bounds with low <= high in every column."
            )
        # Not low + u * (high - low): the width of a huge box overflows.
        weight = generator.uniform(size=(self.n_samples, n_features))
        return as_given(np.clip((1 - weight) * low + weight * high, low, high), X_source), None

    def _bound(self, name: str, of_source: FloatArray | None) -> FloatArray:
        given = getattr(self, name)
        if given is None:
            if of_source is None:
                raise AnchorError(f"The bound {name!r} is missing: pass {name}=..., or public rows as X_source.")
            return of_source
        try:
            bound = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise AnchorError(f"{name} must be a number or one number per column; it cannot be read as such.") from None
        if bound.ndim > 1 or not np.isfinite(bound).all():
            raise AnchorError(
                f"{name} must be a finite number, or a one-dimensional array with one finite number per column; got "
                f"shape {bound.shape} with {int((~np.isfinite(bound)).sum())} entries that are NaN or infinite."
            )
        return bound

    def _count_features(self, X: FloatArray | None, low: FloatArray, high: FloatArray) -> int:
        said = {name: bound.size for name, bound in (("low", low), ("high", high)) if bound.ndim == 1}
        if X is not None:
            said["X_source"] = X.shape[1]
        if self.n_features is not None:
            said["n_features"] = int(self.n_features)
        if not said:
            raise AnchorError(
                "The number of columns is unknown: low and high are single numbers and there is no X_source. "
                "Set n_features, or give one bound per column."
            )
        if len(set(said.values())) > 1 or 0 in said.values():
            raise AnchorError(
                f"The numbers of columns do not agree: {said}. Give one bound for all columns or one for each."
            )
        return next(iter(said.values()))
