"""What estimators that came from somebody else have in common."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

__all__ = ["FromElsewhere"]


class FromElsewhere(BaseEstimator):
    """An estimator that predicts, and cannot be trained.

    Attributes
    ----------
    name : str
        Of the class that was trained.
    """

    name: str

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Not possible: only what predicts was sent.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError(f"{type(self).__name__} came from elsewhere as it predicts, and cannot be trained.")
