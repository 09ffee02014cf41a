"""What every anchor sampler looks like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from .._secrets import fresh_generator
from .._validation import FloatArray

__all__ = ["AnchorSampler", "drawing_generator"]


def drawing_generator(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    """What an anchor is drawn by: by default the operating system, whatever was done to NumPy's generator.

    Who knows the anchor can invert what parties share, and a guess of it can be tested against a share.
    """
    if random_state is None:
        return fresh_generator()
    generator: np.random.RandomState = check_random_state(random_state)
    return generator


class AnchorSampler(BaseEstimator, ABC):
    """Base of the samplers: parameters as in scikit-learn, and one method that draws an anchor.

    A sampler learns nothing that outlives `sample`, so it never holds the source rows.
    """

    @abstractmethod
    def sample(
        self,
        X_source: ArrayLike,
        y_source: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> tuple[FloatArray, NDArray[Any] | None]:
        """Draw an anchor from public or synthetic source rows.

        Parameters
        ----------
        X_source : array-like of shape (n_sources, n_features)
        y_source : array-like of shape (n_sources,), optional
            Targets of the source rows.
        random_state : int, RandomState instance or None
            The same int gives the same anchor; None draws from the operating system.

        Returns
        -------
        anchor : ndarray of shape (n_samples, n_features)
            A data frame with the same columns where `X_source` is one.
        anchor_target : ndarray of shape (n_samples,) or None
            None where no target can be assigned.
        """
