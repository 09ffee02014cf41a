"""Anchors of real, public rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import FloatArray, Interval
from ..errors import AnchorError
from ._base import (
    AnchorSampler,
    as_given,
    balanced_totals,
    check_table,
    check_target,
    drawing_generator,
    encode_classes,
)

__all__ = ["SampleAnchor"]


class SampleAnchor(AnchorSampler):
    """Anchor of random rows of a public table, without replacement, carrying their targets.

    Parameters
    ----------
    n_samples : int, default=1000
        The number of anchor rows.
    balanced : bool, default=False
        Whether every class gives ``n_samples / n_classes`` rows; the first classes in sorted order take the remainder.

    Notes
    -----
    Every row of the anchor is a row of the source and becomes known to every party.  The source must be public.

    Examples
    --------
    The paper's real anchor takes 100 rows per label; here it is 20.

    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from datacollab.anchor import SampleAnchor
    >>> X, y = load_digits(return_X_y=True)
    >>> anchor, anchor_target = SampleAnchor(200, balanced=True).sample(X, y, random_state=0)
    >>> np.bincount(anchor_target)
    array([20, 20, 20, 20, 20, 20, 20, 20, 20, 20])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "balanced": ["boolean"],
    }

    def __init__(self, n_samples: int = 1000, *, balanced: bool = False) -> None:
        self.n_samples = n_samples
        self.balanced = balanced

    def sample(
        self,
        X_source: ArrayLike,
        y_source: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> tuple[FloatArray, NDArray[Any] | None]:
        """Draw an anchor from public rows.

        Parameters
        ----------
        X_source : array-like of shape (n_sources, n_features)
        y_source : array-like of shape (n_sources,), optional
            Targets of any kind; class labels where `balanced`.
        random_state : int, RandomState instance or None
            The same int gives the same anchor; None draws from the operating system.

        Returns
        -------
        anchor : ndarray of shape (n_samples, n_features)
            In random order; a data frame with the same columns where `X_source` is one.
        anchor_target : ndarray of shape (n_samples,) or None
            Targets of the same rows; None without `y_source`.

        Raises
        ------
        AnchorError
            When the source, or one of its classes where `balanced`, has too few rows, or labels are missing.
        """
        self._validate_params()
        generator = drawing_generator(random_state)
        X = check_table(X_source, "X_source")
        y = None if y_source is None else check_target(y_source, X.shape[0])
        if X.shape[0] < self.n_samples:
            raise AnchorError(
                f"X_source has {X.shape[0]} rows but n_samples={self.n_samples} are wanted, without replacement. "
                "Lower n_samples, give more public rows, or generate rows with SMOTEAnchor."
            )
        order = generator.permutation(X.shape[0])
        chosen = self._balance(order, y) if self.balanced else order[: self.n_samples]
        return as_given(X[chosen], X_source), None if y is None else y[chosen]

    def _balance(self, order: NDArray[np.intp], y: NDArray[Any] | None) -> NDArray[np.intp]:
        """Keep, of rows in random order, the first ones of each class."""
        if y is None:
            raise AnchorError("balanced=True needs class labels. Pass y_source, or set balanced=False.")
        classes, codes = encode_classes(y)
        totals, sizes = balanced_totals(self.n_samples, classes.size), np.bincount(codes)
        short = sizes < totals
        if short.any():
            raise AnchorError(
                f"{int(short.sum())} of {classes.size} classes have fewer rows than their equal share of "
                f"n_samples={self.n_samples}; the smallest class has {int(sizes.min())}. Set n_samples to at most "
                f"{int(sizes.min()) * classes.size}, give more public rows, or set balanced=False."
            )
        by_class = [np.flatnonzero(codes[order] == code)[:total] for code, total in enumerate(totals)]
        return order[np.sort(np.concatenate(by_class))]
