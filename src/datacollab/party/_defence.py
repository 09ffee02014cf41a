"""What every defence is: a change of the rows just before they are shared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from .._validation import FloatArray
from ..errors import ObfuscationError

__all__ = ["Defence", "defend"]


class Defence(BaseEstimator, ABC):
    """Changes a party's representation before it leaves; the anchor's representation leaves as it is.

    A defence has parameters and learns nothing.  `Party` applies each once per fit and shares the result however often
    it is asked: whoever gets the same rows defended twice, with other random numbers, averages the defence away.

    To write one of your own, implement `_defend`, and set the two class attributes.

    Attributes
    ----------
    needs_anchor : bool
        Whether the anchor's representation is read.
    independent_rows : bool
        Whether each published row depends on its own row, public rows and random numbers only.  Where this is so, the
        rows can be changed before a Gaussian mechanism without touching its guarantee.
    """

    needs_anchor: ClassVar[bool] = False
    independent_rows: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def apply(
        self,
        representation: ArrayLike,
        target: ArrayLike,
        *,
        anchor_representation: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> tuple[FloatArray, NDArray[Any]]:
        """Rows as they may leave, with their targets.

        Parameters
        ----------
        representation : array-like of shape (n_samples, n_intermediate)
        target : array-like of shape (n_samples,)
        anchor_representation : array-like of shape (n_anchors, n_intermediate), optional
            Wanted where `needs_anchor`.
        random_state : int, RandomState or None, default=None
            Of noise.  None is NumPy's global generator; `Party` passes one of its own from the operating system.

        Returns
        -------
        representation : ndarray of shape (n_published, n_intermediate)
            In the order of the given rows; some may be missing.
        target : ndarray of shape (n_published,)
            As given.

        Raises
        ------
        ObfuscationError
            When the rows cannot be defended.
        """
        published, kept = self.release(
            np.asarray(representation, dtype=np.float64),
            np.asarray(target),
            None if anchor_representation is None else np.asarray(anchor_representation, dtype=np.float64),
            check_random_state(random_state),
        )
        return published, np.asarray(target)[kept]

    def release(
        self,
        representation: FloatArray,
        target: NDArray[Any],
        anchor_representation: FloatArray | None,
        generator: np.random.RandomState,
    ) -> tuple[FloatArray, NDArray[np.intp]]:
        """Rows as they may leave, and which of the given rows they stand for, ascending; see `apply`."""
        self._validate_params()
        if self.needs_anchor and anchor_representation is None:
            raise ObfuscationError(f"{type(self).__name__} needs the anchor's representation; pass it.")
        published, kept = self._defend(representation, target, anchor_representation, generator)
        if published.shape != (len(kept), representation.shape[1]) or not np.isfinite(published).all():
            raise ObfuscationError(
                f"{type(self).__name__} must give {len(kept)} rows of {representation.shape[1]} finite numbers; got "
                f"shape {published.shape}."
            )
        return published, kept

    @abstractmethod
    def _defend(
        self,
        representation: FloatArray,
        target: NDArray[Any],
        anchor_representation: FloatArray | None,
        generator: np.random.RandomState,
    ) -> tuple[FloatArray, NDArray[np.intp]]:
        """Rows as they may leave, and which of the given rows they stand for, ascending."""


def defend(
    defences: Sequence[Defence],
    representation: FloatArray,
    target: NDArray[Any],
    anchor_representation: FloatArray | None,
    generator: np.random.RandomState,
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Apply defences one after the other.

    Returns
    -------
    representation : ndarray of shape (n_published, n_intermediate)
    kept : ndarray of shape (n_published,)
        Positions of the rows that are published, ascending.
    """
    kept = np.arange(len(representation))
    for defence in defences:
        representation, chosen = defence.release(representation, target[kept], anchor_representation, generator)
        kept = kept[chosen]
    return representation, kept
