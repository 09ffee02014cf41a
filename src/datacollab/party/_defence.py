"""What every defence is: a change of the rows just before they are shared.

* What a defence promises, in numbers.
* What comes out of a defence.
* Which targets are numbers rather than classes, where nobody says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from .._validation import FloatArray
from ..errors import ObfuscationError
from ..targets import TargetKind, target_kind

__all__ = ["FEATURES_OF_A_ROW", "MOST_CLASSES", "Defence", "Promise", "Published", "are_numbers", "defend"]


FEATURES_OF_A_ROW = (
    "if the features of one row were replaced by any others, with all other rows, all targets and the number of rows "
    "unchanged",
    "Labels (targets) and row counts are released exactly and are not covered.",
)


@dataclass(frozen=True, kw_only=True)
class Promise:
    """Differential privacy by a Gaussian mechanism.

    Attributes
    ----------
    epsilon, delta : float
    change : str
        Which change of the private table can hardly be noticed: a clause that begins with "if".
    not_covered : str
        What is released as it is, in a sentence.
    clip, noise : float or None
        Where all rows have the same: how long a row may be, and the standard deviation of the noise.
    """

    epsilon: float
    delta: float
    change: str = FEATURES_OF_A_ROW[0]
    not_covered: str = FEATURES_OF_A_ROW[1]
    clip: float | None = None
    noise: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Published:
    """Rows as they may leave, with their targets.

    Attributes
    ----------
    rows : ndarray of shape (n_published, n_intermediate)
    target : ndarray of shape (n_published,)
    own_rows : ndarray of shape (n_published,)
        Which of the given rows each published row stands for.
    """

    rows: FloatArray
    target: NDArray[Any]
    own_rows: NDArray[np.intp]

    def followed_by(self, later: Published) -> Published:
        """Return the same after another defence, to which these rows were given."""
        return Published(rows=later.rows, target=later.target, own_rows=self.own_rows[later.own_rows])

    def __repr__(self) -> str:
        return f"Published({self.rows.shape[0]} rows)"


MOST_CLASSES = 20
"""Kinds of whole numbers that may still be classes; of more, each would single out some rows."""


def are_numbers(target: NDArray[Any]) -> bool:
    """Whether targets are floating-point numbers that are not all whole, or are whole and of more than twenty kinds.

    Counts and rounded measurements are whole numbers too: as classes, each row's would leave as it is.
    """
    if target.dtype.kind != "f":
        return False
    return bool((target != np.floor(target)).any()) or len(np.unique(target)) > MOST_CLASSES


class Defence(BaseEstimator, ABC):
    """Changes a party's representation before it leaves; the anchor's representation leaves as it is.

    A defence has parameters and learns nothing.  `Party` applies each once per fit and shares the result however often
    it is asked: whoever gets the same rows defended twice, with other random numbers, averages the defence away.

    To write one of your own, implement `_defend`, which gives a `Published`, and set the class attributes.

    Attributes
    ----------
    needs_anchor : bool
        Whether the anchor's representation is read.
    target_kinds : frozenset of TargetKind
        Which targets it can be given; single ones unless it says otherwise.
    independent_rows : bool
        Whether each published row depends on its own row, public rows and random numbers only.  Where this is so, the
        rows can be changed before a Gaussian mechanism without touching its guarantee.
    kind : str
        What a party's policy calls it.
    """

    kind: ClassVar[str] = "other"
    needs_anchor: ClassVar[bool] = False
    target_kinds: ClassVar[frozenset[TargetKind]] = frozenset({TargetKind.SINGLE})
    independent_rows: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    @property
    def description(self) -> str:
        """What it does to the rows, for people."""
        return type(self).__name__

    @property
    def options(self) -> str:
        """The options of `datacollab party share` that choose it; empty if there are none."""
        return ""

    @property
    def has_promise(self) -> bool:
        """Whether it can promise differential privacy."""
        return type(self).promise is not Defence.promise

    def promise(self, anchor_representation: FloatArray) -> Promise | None:
        """Return what it promises with this anchor, as long as nothing before it depends on private rows.

        Parameters
        ----------
        anchor_representation : ndarray of shape (n_anchors, n_intermediate)

        Returns
        -------
        Promise or None
        """
        return None

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
            In the order of the given rows that they stand for; some may be missing.
        target : ndarray of shape (n_published,)

        Raises
        ------
        ObfuscationError
            When the rows cannot be defended.
        """
        published = self.release(
            np.asarray(representation, dtype=np.float64),
            np.asarray(target),
            None if anchor_representation is None else np.asarray(anchor_representation, dtype=np.float64),
            check_random_state(random_state),
        )
        return published.rows, published.target

    def release(
        self,
        representation: FloatArray,
        target: NDArray[Any],
        anchor_representation: FloatArray | None,
        generator: np.random.RandomState,
    ) -> Published:
        """Rows as they may leave, and what they stand for; see `apply`."""
        self._validate_params()
        name = type(self).__name__
        self.check_kind(target)
        if self.needs_anchor and anchor_representation is None:
            raise ObfuscationError(f"{name} needs the anchor's representation; pass it.")
        published = self._defend(representation, target, anchor_representation, generator)
        n_rows = len(published.own_rows)
        if published.rows.shape != (n_rows, representation.shape[1]) or not np.isfinite(published.rows).all():
            raise ObfuscationError(
                f"{name} must give {n_rows} rows of {representation.shape[1]} finite numbers; got shape "
                f"{published.rows.shape}."
            )
        return published

    def check_kind(self, target: NDArray[Any]) -> None:
        """Refuse targets that it has no way with.

        Raises
        ------
        ObfuscationError
        """
        if (kind := target_kind(target)) not in self.target_kinds:
            raise ObfuscationError(
                f"{type(self).__name__} is for classes and numbers, and has no way with targets of kind "
                f"{kind.value!r}. Take Microaggregation, followed by GaussianNoise if wanted."
            )

    @abstractmethod
    def _defend(
        self,
        representation: FloatArray,
        target: NDArray[Any],
        anchor_representation: FloatArray | None,
        generator: np.random.RandomState,
    ) -> Published:
        """Rows as they may leave, in the order of the own rows that they stand for."""


def defend(
    defences: Sequence[Defence],
    representation: FloatArray,
    target: NDArray[Any],
    anchor_representation: FloatArray | None,
    generator: np.random.RandomState,
) -> Published:
    """Apply defences one after the other."""
    published = Published(rows=representation, target=target, own_rows=np.arange(len(representation)))
    for defence in defences:
        later = defence.release(published.rows, published.target, anchor_representation, generator)
        published = published.followed_by(later)
    return published
