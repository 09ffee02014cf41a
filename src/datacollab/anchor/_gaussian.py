"""Anchors drawn from a normal distribution."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .._validation import FloatArray, Interval, StrOptions
from ..errors import AnchorError
from ._base import AnchorSampler, as_given, check_table, drawing_generator

__all__ = ["GaussianAnchor"]


class GaussianAnchor(AnchorSampler):
    r"""Anchor of independent normal rows, with the mean and covariance of the source.

    Parameters
    ----------
    n_samples : int, default=1000
        The number of anchor rows.
    covariance : {"full", "diagonal"}, default="full"
        "full" takes the sample covariance of the source, "diagonal" its variances only.

    Notes
    -----
    The full covariance :math:`S = X_c^\top X_c / (n - 1)` of the centred source is never formed.  With
    :math:`X_c = QR`, rows :math:`\mu + g R / \sqrt{n - 1}`, g standard normal, have covariance S exactly, whatever
    its rank.  Fewer sources than columns are therefore fine; the anchor then lies in the affine span of the sources.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from datacollab.anchor import GaussianAnchor
    >>> X, _ = load_iris(return_X_y=True)
    >>> anchor, anchor_target = GaussianAnchor(100_000).sample(X, random_state=0)
    >>> anchor.mean(axis=0).round(1)
    array([5.8, 3.1, 3.8, 1.2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "covariance": [StrOptions({"full", "diagonal"})],
    }

    def __init__(self, n_samples: int = 1000, *, covariance: str = "full") -> None:
        self.n_samples = n_samples
        self.covariance = covariance

    def sample(
        self,
        X_source: ArrayLike,
        y_source: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> tuple[FloatArray, None]:
        """Draw an anchor with the moments of public rows.

        Parameters
        ----------
        X_source : array-like of shape (n_sources, n_features)
            Two rows at least.
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
            When the source cannot be used or has one row only.
        """
        self._validate_params()
        generator = drawing_generator(random_state)
        X = check_table(X_source, "X_source")
        if X.shape[0] == 1:
            raise AnchorError("X_source has one row, so it has no covariance. Give at least two public rows.")
        mean = X.mean(axis=0)
        if self.covariance == "full":
            factor = np.linalg.qr(X - mean, mode="r") / np.sqrt(X.shape[0] - 1)
            rows = generator.standard_normal((self.n_samples, factor.shape[0])) @ factor
        else:
            rows = generator.standard_normal((self.n_samples, X.shape[1])) * X.std(axis=0, ddof=1)
        return as_given(mean + rows, X_source), None
